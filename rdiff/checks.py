"""The identities that every JSQ queue satisfies exactly, as checks of its samples and of its solvers.

With P_block = P(Q_{b+1} = n), by conservation of customers: E Q_1 = n lam (1 - P_block) under any policy, and
E Q_i = n lam (P(Q_{i-1} = n) - P_block), i >= 2, when arrivals join a shortest queue. What fails, and by how much,
names the likely cause.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff import table
from rdiff.estimate import plain, t_quantile

_LEVEL = 0.999
_EXACT = 1e-8


@dataclasses.dataclass(frozen=True)
class Check:
    """An identity tested: `value` should equal `expected`.

    **Fields:** `stderr` of their difference (0 for an exact law), `z` the difference in standard errors (NaN without
    one), `ok` (None where nothing can be said, as from a single row), and the likely `cause` of a failure ("" else).

    ```python
    >>> from rdiff.checks import Check
    >>> print(Check("E Q1 = n lam", value=20.2, expected=20.0, stderr=0.2, z=1.0, ok=True))
    E Q1 = n lam: 20.2 against 20, z = 1.0, holds

    ```
    """

    name: str
    value: float
    expected: float
    stderr: float
    z: float
    ok: bool | None
    cause: str = ""

    @property
    def verdict(self) -> str:
        """In a word: "holds", "FAILS" or "unknown"."""
        return {True: "holds", False: "FAILS", None: "unknown"}[self.ok]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; NaN and infinity are None."""
        numbers = {key: plain(getattr(self, key)) for key in ("value", "expected", "stderr", "z")}
        return {"name": self.name, **numbers, "ok": self.ok, "cause": self.cause}

    def __str__(self) -> str:
        z = "" if math.isnan(self.z) else f", z = {self.z:.1f}"
        cause = f": {self.cause}" if self.cause else ""
        return f"{self.name}: {self.value:.5g} against {self.expected:.5g}{z}, {self.verdict}{cause}"


def queue_identities(
    n: int,
    lam: float,
    b: float,
    occupancy: Any,
    full: Any,
    weights: Any = None,
    exact: bool = False,
    stderr: Any = None,
) -> list[Check]:
    """The queue's identities, one a level, from averages over batches (or chains, or from exact ones).

    The two sides are strongly correlated, so each identity is tested by its difference in every batch, by Student's t.

    **Arguments:** `n`, `lam`, `b` (may be infinite: then P_block = 0); `occupancy` and `full`, the averages of Q_i and
    of the indicator of Q_i = n, shape (batches, levels); `weights` (batches,), the time in each; `exact`: the numbers
    have no sampling error, and hold to 1e-8 or fail; `stderr` (levels,), those of the differences where they are known,
    instead of those from batches.
    **Returns:** a list of `Check`, the first for E Q_1.
    """
    occupancy = np.atleast_2d(np.asarray(occupancy, np.float64))
    full = np.atleast_2d(np.asarray(full, np.float64))
    share = np.ones(len(occupancy)) if weights is None else np.asarray(weights, np.float64)
    share = share / share.sum()
    blocked = np.zeros(len(full)) if math.isinf(b) else full[:, -1]
    source = np.concatenate([np.ones((len(full), 1)), full[:, :-1]], axis=1)
    expected = n * lam * (source - blocked[:, None])
    block = "" if math.isinf(b) else " - P_block"
    checks = []
    for i in range(occupancy.shape[1]):
        rate = (f"(1{block})" if block else "") if i == 0 else f"(P(Q{i} = n){block})" if block else f"P(Q{i} = n)"
        name = f"E Q{i + 1} = n lam {rate}".rstrip()
        known = None if stderr is None else float(stderr[i])
        checks.append(_test(name, occupancy[:, i], expected[:, i], share, n * lam, exact, known))
    return _with_causes(checks, n, lam, b)


def failures(checks: Sequence[Check]) -> list[str]:
    """One sentence for each cause of failing checks, naming the identities that it explains."""
    holders: dict[str, list[str]] = {}
    for check in checks:
        if check.ok is False:
            holders.setdefault(check.cause, []).append(check.name)
    return [f"{_joined(names)} fail{'s' if len(names) == 1 else ''}: {cause}" for cause, names in holders.items()]


def _joined(names: Sequence[str], most: int = 3) -> str:
    return " and ".join([*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])])


def checks_table(checks: Sequence[Check], title: str | None = None) -> Any:
    """The `rich` table of checks: with standard errors, or, where all are of an exact law, with the difference."""
    exact = all(check.stderr == 0 and math.isnan(check.z) for check in checks)
    columns = ["identity of the queue", "value", "expected", *(["difference"] if exact else ["stderr", "z"]), "verdict"]
    rows = []
    for check in checks:
        if exact:
            numbers = [f"{check.value:.10g}", f"{check.expected:.10g}", f"{check.value - check.expected:.0e}"]
        else:
            numbers = [table.number(value, check.stderr) for value in (check.value, check.expected)]
            numbers += [table.number(check.stderr), "-" if math.isnan(check.z) else f"{check.z:.1f}"]
        rows.append([check.name, *numbers, check.verdict])
    return table.build(columns, rows, title)


def _test(
    name: str, left: np.ndarray, right: np.ndarray, share: np.ndarray, scale: float, exact: bool, known: float | None
) -> Check:  # fmt: skip
    value, expected = float(share @ left), float(share @ right)
    difference = value - expected
    dof = len(share) - 1 if known is None else math.inf
    if exact:
        ok = abs(difference) <= _EXACT * abs(expected) + 1e-12 * scale
        return Check(name, value, expected, 0.0, math.nan, ok)
    if dof < 1:
        return Check(name, value, expected, math.nan, math.nan, None)
    if known is None:
        stderr = math.sqrt(float(share**2 @ ((left - right) - difference) ** 2) * (dof + 1) / dof)
    else:
        stderr = known
    if stderr <= 1e-12 * scale:  # both sides constant, as Q_3 = 0 is in most records
        ok = abs(difference) <= 1e-9 * scale
        return Check(name, value, expected, 0.0, 0.0 if ok else math.copysign(math.inf, difference), ok)
    z = difference / stderr
    return Check(name, value, expected, stderr, z, abs(z) <= t_quantile(_LEVEL, dof))


def _with_causes(checks: list[Check], n: int, lam: float, b: float) -> list[Check]:
    first, rest = checks[0], checks[1:]
    ratio = _ratio(first)
    if first.ok is False:
        cause = _throughput(first, n, lam)
        if math.isfinite(b) and ratio < 1 and rest and rest[0].ok is False and _ratio(rest[0]) > 1.4:
            # P_block is what JSQ blocks; another policy meets full servers while others have room.
            cause = f"arrivals are blocked at full servers while others have room, as under another policy; or {cause}"
        first = dataclasses.replace(first, cause=cause)
    named, above = [], ""
    for check in rest:
        if check.ok is False:
            waits = _ratio(check)
            # Both sides of an identity are of the record's own load, but for lam: a wrong one moves all of them alike.
            if first.ok is False and (ratio < 0.5 or 0.7 < waits < 1.4 or 0.7 < waits / ratio < 1.4):
                cause = first.cause
            else:
                cause = above = above or _policy(waits, check.name)  # a policy moves all levels: the lowest names it
            check = dataclasses.replace(check, cause=cause)
        named.append(check)
    return [first, *named]


def _ratio(check: Check) -> float:
    if check.expected > 0:
        return check.value / check.expected
    return math.inf if check.value > 0 else 1.0


def _throughput(check: Check, n: int, lam: float) -> str:
    """Why E Q_1, which no policy moves, is not the accepted traffic."""
    busy, ratio = check.value, _ratio(check)
    if ratio < 0.5:
        return (
            f"E Q1/n = {busy / n:.4g} where lam = {lam:.4g}: the counts seem to leave out the customer in service "
            "(waiting only), from which Q_1 cannot be recovered; or the load is far from what was said: a service rate other "
            "than 1, rate and mean swapped (only Lambda/(n mu) matters), or a start from empty that was not dropped (burn_in)"
        )
    load = f"E Q1/n = {busy / n:.4g} is the load of the record, against lam = {lam:.4g}"
    if abs(check.value - check.expected) > max(0.05 * check.expected, 0.5):  # wrong weights move Q_1 by less than one
        return (
            f"{load}: wrong lam or beta, a service rate other than 1 or rate and mean swapped (only Lambda/(n mu) "
            "matters), a wrong n or b, or a start from empty that was not dropped (burn_in)"
        )
    return (
        f"{load}: wrong weights (event rows averaged without their times), times shifted against states by a row "
        "(hold), burn-in too short, or lam slightly off (a service rate other than 1)"
    )


def _policy(ratio: float, name: str) -> str:
    """Why more customers wait than join-the-shortest-queue lets wait."""
    level = name.split(" = ")[0]
    times = f"{level} is {ratio:.3g} times what join-the-shortest-queue gives" if math.isfinite(ratio) else (
        f"{level} is positive though no arrival can have met the level below full"
    )  # fmt: skip
    if ratio < 1:
        return (
            f"{times}: times shifted against states by a row (hold), wrong weights, a wrong b, or customers that move "
            "between queues"
        )
    if ratio <= 1.15:
        return f"{times}: times shifted against states by a row (hold), wrong weights, or ties with stale information"
    if ratio <= 3.5:
        return (
            f"{times}: the policy is not JSQ; choice of servers with replacement, a choice among some servers only, "
            "or stale information"
        )
    if ratio <= 30:
        return (
            f"{times}: the policy is not JSQ; it seems to compare waiting customers only (the one in service ignored), "
            "a few servers chosen at random, or stale information"
        )
    return f"{times}: the policy is not JSQ; random routing, round robin, a choice among very few servers, or stale information"
