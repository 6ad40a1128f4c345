"""`distance`: the theorem's own quantity along n, sqrt(n) d_{M_2}(X, Y), and its limit."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rdiff import table
from rdiff.averages import Interrupted
from rdiff.distances.between import Distance, distance_between
from rdiff.distances.continuum import Continuum
from rdiff.errors import InputError, integer
from rdiff.estimate import plain
from rdiff.expansion import Series, limit, too_small
from rdiff.export import Exports
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.progress import Done
from rdiff.queue.chain import JSQQueue

_POINTS = 3  # of an extrapolation
_LATTICE = ("d_M1", "w1_2")  # where the lattice of X_2 shows

_HEADS = {"d_M2": "d_M2", "d_M1": "d_M1", "w1_1": "W1 of X1", "w1_2": "W1 of X2", "ks_1": "KS of X1", "ks_2": "KS of X2"}


class Distances(Exports, tuple[Distance, ...]):
    """Distances of one system along n, a tuple of them; prints as a table of sqrt(n) times each distance.

    `limits` has the limit of sqrt(n) times each as n grows, by Richardson extrapolation in n^{-1/2} from the last three n, with
    its error (`rdiff.expansion.limit`); None for fewer than two n, for a largest n that is not large against 1/beta^2, and
    where the error is as large as the limit. The density of Y2 is infinite at 0, where the lattice of X_2 shows at smaller
    powers of n: KS of X_2 has no limit (P(X_2 = 0) falls too slowly), and the error of W_1 of X_2 and of d_{M_1} is at least
    the whole step from the last n to the limit.

    ```python
    >>> import rdiff
    >>> found = rdiff.distance([16, 64], beta=1.0)
    >>> [round(value, 3) for value in found.scaled()["d_M2"]]  # sqrt(n) times the distance
    [1.993, 2.238]

    ```
    """

    @property
    def limits(self) -> dict[str, tuple[float, float] | None]:
        """(limit, error) by name: d_M2, d_M1, w1_1, w1_2, ks_1."""
        found: dict[str, tuple[float, float] | None] = {}
        for name, values in self.scaled().items():
            if name == "ks_2":
                continue
            value, error = self._limit(name, values)
            found[name] = (value, error) if value > error and not self._beyond else None  # False for NaN
        return found

    def _limit(self, name: str, values: list[float]) -> tuple[float, float]:
        rows, missing = self[-_POINTS:], {"d_M2": "error_M2", "d_M1": "error_M1"}
        errors = [math.sqrt(row.n) * getattr(row, missing[name]) if name in missing else 0.0 for row in rows]
        ns, exact = np.array([row.n for row in rows]), np.zeros((len(rows), len(rows)))
        fitted = limit(Series(ns, np.array(values[-_POINTS:]), exact, np.array(errors)))
        step = abs(fitted.value - values[-1]) if name in _LATTICE and self[0].b else 0.0
        return fitted.value, max(fitted.error, step)

    @property
    def _early(self) -> dict[int, str]:
        """The n that are not large, of those that a limit is found from, and why."""
        tail = StationaryLaw(JSQDiffusion(self[0].beta)).tail if self and self[0].b else None
        found = {row.n: too_small(row.n, row.beta, tail) for row in self[-_POINTS:]}
        return {n: why for n, why in found.items() if why}

    @property
    def _beyond(self) -> bool:
        """Whether the queue is too small for much of Y_2 even at the largest n."""
        return bool(self) and "P(Y2" in self._early.get(self[-1].n, "")

    def scaled(self) -> dict[str, list[float]]:
        """sqrt(n) times each distance, by name, along n."""
        names = ["d_M2", "d_M1", *(f"{kind}_{i + 1}" for kind in ("w1", "ks") for i in range(len(self[0].w1)))] if self else []
        rows = [row.to_dict() for row in self]
        return {name: [math.sqrt(row["n"]) * row[name] for row in rows] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """`rows` and `limit`, plain numbers for JSON."""
        limit: dict[str, Any] = {}
        for name, found in self.limits.items():
            limit[name], limit[f"{name}_error"] = (None, None) if found is None else map(plain, found)
        return {"rows": [row.to_dict() for row in self], "limit": limit}

    def table(self, title: str | None = None) -> Any:
        """The `rich` table: everything times sqrt(n)."""
        scaled, limits = self.scaled(), self.limits
        rows = [
            [str(row.n), *(f"{values[k]:.4f}" for values in scaled.values()), f"{math.sqrt(row.n) * row.error_M2:.0e}"]
            for k, row in enumerate(self)
        ]
        found = [limits.get(name) for name in scaled]
        if any(found):
            rows.append(["limit", *("-" if x is None else f"{x[0]:.4f}" for x in found), ""])
            rows.append(["+-", *("-" if x is None else f"{x[1]:.0e}" for x in found), ""])
        columns = ["n", *(_HEADS[name] for name in scaled), "d_M2 may lack"]
        return table.build(columns, rows, title or "sqrt(n) times the distances between the queue and its limit")

    def notes(self) -> list[str]:
        """Lines to print under the table."""
        said = ["d_M2, d_M1: attained by a test function, so lower bounds; may lack: an estimate of what is above"]
        further = max((row.remainder / row.d_M2 for row in self if row.d_M2 > 0), default=0.0)
        if further:
            said.append(f"both contain the sum of E X_i over i >= 3 (at most {further:.1e} of d_M2), which are 0 for Y")
        extrapolated = any(self.limits.values())
        if extrapolated:
            said.append("limit: Richardson extrapolation in n^(-1/2) from the last three n; +-: the last term or the next")
            if len(self) == 2:
                said.append("two n give no sign of the next term: the +- rests on the size supposed of it; take a third n")
        missing = [name for name, found in self.limits.items() if found is None]
        if len(self) > 1 and missing and not self._beyond:
            said.append(f"no limit of {', '.join(_HEADS[name] for name in missing)}: its error is as large; take larger n")
        if self and self[0].b:
            said.append("sqrt(n) KS of X2 has no limit: the density of Y2 is infinite at 0, and there the lattice of X2 shows")
            if extrapolated:
                said.append("for the same reason the +- of W1 of X2 and of d_M1 is the step from the last n to the limit")
        if len(self) > 1:
            what = "there is no limit to be had from it" if self._beyond else "that spoils the extrapolation"
            said += [f"{why}: {what}" for why in list(self._early.values())[-1:]]
        return said

    @property
    def settings(self) -> dict[str, Any]:
        """The system, the n, versions and device."""
        return {**(self[0].settings if self else {}), "n": [row.n for row in self]}

    def _shown(self) -> tuple[list[Any], list[str]]:
        return [self.table()], self.notes()


def distance(
    ns: Iterable[int], *, beta: float, b: int = 1, memory: float = 2.0, on_progress: Callable[[Done], None] | None = None
) -> Distances:
    """d_{M_2} and d_{M_1} between the queue at each n and its limit, exact law against exact law; W1 and KS of the marginals.

    The theorem says that sqrt(n) d_{M_2} is bounded in n; it converges, and `limits` has to what. About a second an n.

    **Arguments:** `ns`, in increasing order; `beta`; `b` (0: the loss system, one coordinate); `memory`, GiB for each exact
    law, which keeps all states that a double can see; `on_progress`, called with how many n are done.
    **Raises:** `InputError` for no n, n <= beta^2, an n twice or out of order, and as `JSQQueue` and `StationaryLaw` do;
    `Interrupted` on Ctrl-C, with the `Distances` of the n reached, if any.

    Source: Braverman, Stochastic Systems 13(1), 2023.

    ```python
    >>> import rdiff
    >>> found = rdiff.distance([16, 64, 256], beta=1.0)
    >>> [round(row.scaled_M2, 4) for row in found]
    [1.9929, 2.2382, 2.41]

    ```
    """
    try:
        sizes = [integer("n", n, 1, "the number of servers") for n in ns]
    except TypeError:
        raise InputError(f"ns must be numbers of servers, such as [16, 64, 256], got {ns!r}") from None
    if not sizes or any(n >= m for n, m in itertools.pairwise(sizes)):
        raise InputError(f"ns must be numbers of servers in increasing order, each once, got {sizes}")
    queues = [JSQQueue(n, b, beta=beta) for n in sizes]  # refused before any is solved
    target = Continuum(StationaryLaw(JSQDiffusion(beta, b)))
    rows: list[Distance] = []
    try:
        for k, queue in enumerate(queues):
            if on_progress is not None:
                on_progress(Done(k, len(queues)))
            rows.append(distance_between(queue.exact(window="auto", cap="auto", memory=memory), target))
    except KeyboardInterrupt:
        raise Interrupted(Distances(rows) if rows else None) from None  # pyright: ignore[reportArgumentType]
    return Distances(rows)
