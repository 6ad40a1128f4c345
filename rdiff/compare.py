"""`compare`: E h under two laws side by side, their difference and its error, and whether to believe them."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from rdiff import table
from rdiff.checks import Check, checks_table, failures
from rdiff.errors import InputError
from rdiff.estimate import Estimate, notes, plain, t_quantile
from rdiff.export import Exports, shared

_SAME = 1e-9


@dataclasses.dataclass(frozen=True)
class Comparison(Exports):
    """E h(X) against E h(Y).

    **Fields:** `prelimit` and `limit`, the two `Estimate`s; `n`, the servers of the one queue among the two laws (None
    when there is none, or two different ones); `refined`, E h(Y) + C(h)/sqrt(n) where the limit law knows it; `checks`,
    the identities of the laws that have them, and of two exact ones together; `notes`, what the laws guessed or left out;
    `carried`, the standard error of E h(Y) that an estimated beta brings, |d/dbeta E h(Y)| times that of beta.

    ```python
    >>> import rdiff
    >>> X, Y = rdiff.JSQQueue(100, b=1, beta=1.0).exact(), rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    >>> found = rdiff.compare(X, Y, lambda y: y[1])
    >>> round(found.difference, 4), round(found.limit.mean, 4), round(found.refined, 4)
    (-0.2143, 0.8141, 0.5673)

    ```
    """

    prelimit: Estimate
    limit: Estimate
    n: int | None = None
    refined: float | None = None
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    carried: float = 0.0

    @property
    def name(self) -> str:
        """What was averaged."""
        return self.prelimit.name

    @property
    def difference(self) -> float:
        """E h(X) - E h(Y)."""
        return _number(self.prelimit.mean) - _number(self.limit.mean)

    @property
    def stderr(self) -> float:
        """Standard error of the difference: the two laws are independent.

        The error of a beta that was estimated from the samples is added as if it were independent too. It is not: the
        arrivals that raise lam raise the queue with it, so this is larger than the truth, never smaller.
        """
        return math.hypot(_number(self.prelimit.stderr), _number(self.limit.stderr), self.carried)

    @property
    def scaled(self) -> float | None:
        """The difference times sqrt(n), which converges to the theorem's constant C(h); None without one n."""
        return None if self.n is None else math.sqrt(self.n) * self.difference

    @property
    def z(self) -> float | None:
        """The difference in standard errors; None when neither law has any (or one is unknown)."""
        return self.difference / self.stderr if self.stderr > 0 else None

    @property
    def dof(self) -> float:
        """Degrees of freedom of the difference (Welch, Satterthwaite)."""
        parts = [(_number(e.stderr) ** 2, e.dof) for e in (self.prelimit, self.limit)]
        bottom = sum(v**2 / dof for v, dof in parts if v > 0 and dof > 0)
        return (sum(v for v, _ in parts) + self.carried**2) ** 2 / bottom if bottom > 0 else math.inf

    def ci(self, level: float = 0.95) -> tuple[float, float]:
        """Interval for the difference: Student t, widened by the known biases and numerical errors of both."""
        self.prelimit.ci(level)  # refuses a level that is none
        half = _number(self.prelimit.systematic) + _number(self.limit.systematic)
        if self.stderr != 0:
            half += t_quantile(level, self.dof) * self.stderr
        return self.difference - half, self.difference + half

    @property
    def reliable(self) -> bool:
        """Whether both errors can be trusted and no identity fails."""
        return self.prelimit.reliable and self.limit.reliable and not failures(self.checks)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers for JSON: NaN and infinity are None, and so is the standard error of what is exact."""
        exact = self.prelimit.error is not None and self.limit.error is not None and self.stderr == 0
        numbers = {
            "prelimit": self.prelimit.mean, "limit": self.limit.mean, "difference": self.difference,
            "stderr": None if exact else self.stderr, "scaled": self.scaled, "z": self.z, "refined": self.refined,
        }  # fmt: skip
        return {
            "observable": self.name,
            **{key: plain(value) for key, value in numbers.items()},
            "ci": [plain(end) for end in self.ci(level)],
            "level": level,
            "prelimit_stderr": _stderr(self.prelimit),
            "prelimit_error": plain(self.prelimit.error),
            "limit_stderr": _stderr(self.limit),
            "limit_error": plain(self.limit.error),
            "carried": plain(self.carried),
            "n": self.n,
            "reliable": self.reliable,
            "cautions": _notes({self.name: self}),
        }

    @property
    def settings(self) -> dict[str, Any]:
        """How the two laws answered, each a dict."""
        return {"prelimit": dict(self.prelimit.settings), "limit": dict(self.limit.settings)}

    def _shown(self) -> tuple[list[Any], list[str]]:
        return Comparisons({self.name: self})._shown()


class Comparisons(Exports, dict[str, Comparison]):
    """Comparisons of the same two laws by observable; prints as one table with the checks under it.

    ```python
    >>> import rdiff
    >>> X, Y = rdiff.JSQQueue(100, b=1, beta=1.0).exact(), rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    >>> found = rdiff.compare(X, Y, {"y1": lambda y: y[0], "y2": lambda y: y[1]})
    >>> list(found), round(found["y2"].difference, 4)
    (['y1', 'y2'], -0.2143)

    ```
    """

    @property
    def checks(self) -> tuple[Check, ...]:
        """The identities of the laws compared."""
        return next(iter(self.values())).checks if self else ()

    @property
    def reliable(self) -> bool:
        """Whether all of them are."""
        return all(comparison.reliable for comparison in self.values())

    def notes(self) -> list[str]:
        """Lines to print under the tables: identities that fail and why, what is not reliable, what was guessed."""
        said = dict.fromkeys(note for comparison in self.values() for note in comparison.notes)
        return [*failures(self.checks), *_notes(self), *said]

    def to_dict(self, level: float = 0.95) -> list[dict[str, Any]]:
        """A list of the comparisons' plain dicts; the checks have their own `to_dict`."""
        return [comparison.to_dict(level) for comparison in self.values()]

    def table(self, level: float = 0.95, title: str | None = None) -> Any:
        """The `rich` table of the comparisons."""
        scaled = any(c.n is not None for c in self.values())
        refined = any(c.refined is not None for c in self.values())
        columns = ["observable", "prelimit", "limit", "difference", "stderr", f"{100 * level:g}% interval", "z"]
        columns += ["x sqrt(n)"] * scaled + ["refined"] * refined
        rows = []
        for name, c in self.items():
            low, high = c.ci(level)
            row: list[Any] = [
                name,
                table.number(c.prelimit.mean, max(_scale(c.prelimit), c.stderr / 10)),
                table.number(c.limit.mean, max(_scale(c.limit), c.stderr / 10)),
                table.number(c.difference, c.stderr),
                table.number(c.stderr),
                f"[{table.number(low, c.stderr)}, {table.number(high, c.stderr)}]",
                "-" if c.z is None or math.isnan(c.z) else f"{c.z:.1f}",
            ]
            root = None if c.n is None else math.sqrt(c.n)
            row += [table.number(c.scaled, None if root is None else root * c.stderr)] * scaled
            rows.append(row + [c.refined] * refined)
        return table.build(columns, rows, title)

    def checks_table(self, title: str | None = None) -> Any:
        """The `rich` table of the checks, or None without any."""
        return checks_table(self.checks, title) if self.checks else None

    @property
    def settings(self) -> dict[str, Any]:
        """How the two laws answered, each a dict; what differs between observables is a dict by name."""
        sides = {side: {k: dict(getattr(c, side).settings) for k, c in self.items()} for side in ("prelimit", "limit")}
        return {side: shared(each) for side, each in sides.items()}

    def _shown(self) -> tuple[list[Any], list[str]]:
        return [t for t in (self.table(), self.checks_table()) if t is not None], self.notes()


def compare(X: Any, Y: Any, h: Any) -> Any:
    """E h(X) - E h(Y) for any two laws, with its standard error and the identities that say whether X is what it seems.

    **Arguments:**

    - `X`, `Y`: laws, anything with `expect(h)`: samples, simulated or exact, of a queue or of the limit. Where they
      have `beta`, `n`, `b`, `checks()`, `notes` or `refined(h, n)`, these are used.
    - `h`: from a state to a scalar, JAX-traceable; or a dict of these by name, answered from one run of each law.

    **Returns:** a `Comparison`, or `Comparisons` for a dict.

    **Raises:** `InputError` when something is not a law, when the two beta differ, or when one has a buffer (b = 0
    against b >= 1) and the other does not: they have different limits.

    Braverman, Stochastic Systems 13(1), 2023: the difference is at most of order 1/sqrt(n).

    ```python
    >>> import numpy as np, rdiff
    >>> rows = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 100)
    >>> S = rdiff.Samples(rows, n=4, b=1, beta=1.0, weights="regular")
    >>> rdiff.compare(S, S, lambda x: x[1]).difference
    0.0

    ```
    """
    for which, law in (("first", X), ("second", Y)):
        if not callable(getattr(law, "expect", None)):
            raise InputError(
                f"the {which} law, {law!r:.60}, has no expect(h): a model is made a law by rdiff.SimulatedLaw(model) "
                "or rdiff.StationaryLaw(model), a queue by .exact() or .simulate()"
            )
    same_system(X, Y)
    left, right = X.expect(h), Y.expect(h)
    carried = _carried(X, Y, h)
    sizes = {int(law.n) for law in (X, Y) if getattr(law, "n", None) is not None}
    n = sizes.pop() if len(sizes) == 1 else None
    checks = tuple(check for law in (X, Y) for check in (law.checks() if hasattr(law, "checks") else ()))
    if n is not None:
        from rdiff import generator  # which builds on this module

        checks += tuple(generator.checks(X, Y, h, left, right))
    said = tuple(note for law in (X, Y) for note in (getattr(law, "notes", None) or ()))

    def pair(x: Estimate, y: Estimate, function: Any) -> Comparison:
        return Comparison(x, y, n, _refined(Y, function, n), checks, said, carried.get(x.name, 0.0))

    if isinstance(h, Mapping):
        return Comparisons({name: pair(left[name], right[name], h[name]) for name in left})
    return pair(left, right, h)


def same_system(X: Any, Y: Any) -> None:
    """Refuses two laws that belong to different systems: other beta, another regime, a buffer against none."""
    beta = [getattr(law, "beta", None) for law in (X, Y)]
    if None not in beta and not math.isclose(float(beta[0]), float(beta[1]), rel_tol=_SAME):  # pyright: ignore
        raise InputError(
            f"the laws have different beta, {float(beta[0]):.10g} and {float(beta[1]):.10g}: "  # pyright: ignore
            "beta = sqrt(n) (1 - lam) fixes the limit, so give both the same (or lam = 1 - beta/sqrt(n))"
        )
    for law, other in ((X, Y), (Y, X)):
        alpha = getattr(law, "alpha", 0.5)
        if alpha != 0.5 and getattr(other, "n", None) is None:
            raise InputError(
                f"lambda = 1 - beta/n^alpha with alpha = {alpha:g} is not the Halfin-Whitt regime, alpha = 1/2, whose limit "
                "this is: queues of other regimes can be compared with each other only"
            )
    b = [getattr(law, "b", None) for law in (X, Y)]
    if None not in b and (b[0] == 0) != (b[1] == 0):
        raise InputError(f"the laws have b = {b[0]} and b = {b[1]}: without a buffer (b = 0) the limit is another one")


def _refined(Y: Any, h: Any, n: int | None) -> float | None:
    if n is None or not callable(getattr(Y, "refined", None)) or hasattr(Y, "n"):
        return None
    value = Y.refined(h, n)
    return float(getattr(value, "mean", value))


def _carried(X: Any, Y: Any, h: Any) -> dict[str, float]:
    """The error of E h(Y) from that of a beta which the samples estimate, by name; empty where beta is given."""
    law, other = (X, Y) if getattr(X, "beta_stderr", 0.0) else (Y, X)
    stderr = float(getattr(law, "beta_stderr", 0.0) or 0.0)
    if not stderr:
        return {}
    if callable(getattr(other, "sensitivity", None)):
        limit = other
    else:  # a simulated law has no derivative in beta; that of the limit is as good, up to O(1/sqrt(n))
        from rdiff.limit.law import StationaryLaw
        from rdiff.models import JSQDiffusion

        places = law.x.shape[1] - 1 if math.isinf(law.b) else int(law.b)
        limit = StationaryLaw(JSQDiffusion(law.beta, places))
    found: Any = limit.sensitivity(h)
    slopes = found if isinstance(h, Mapping) else {found.name: found}
    return {name: abs(_number(slope.mean)) * stderr for name, slope in slopes.items()}


def _notes(comparisons: Mapping[str, Comparison]) -> list[str]:
    """The cautions of both laws, one line each."""
    sides = ({name: getattr(c, side) for name, c in comparisons.items()} for side in ("prelimit", "limit"))
    return [f"{side} {line}" for side, group in zip(("prelimit", "limit"), sides, strict=True) for line in notes(group)]


def _stderr(estimate: Estimate) -> float | None:
    """None for an exact law: it has a numerical `error` instead."""
    return None if estimate.error is not None and _number(estimate.stderr) == 0 else plain(estimate.stderr)


def _scale(estimate: Estimate) -> float:
    error = estimate.stderr if estimate.error is None else estimate.error
    return _number(error)


def _number(value: Any) -> float:
    return float(value)
