"""`Rate`: what a study along n found, and the fits to its gaps."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rdiff import table
from rdiff.compare import Comparison
from rdiff.estimate import Estimate, plain
from rdiff.expansion import NOTHING, Fitted, Series, limit, power, unresolved
from rdiff.export import Exports

_SET_IN = 0.5  # of the gap: what the refined approximation leaves of it where the series has set in
_CLEAR = 1e-3, 1e-5  # of a number: smaller errors are not shown beside it, or not even by its digits


@dataclasses.dataclass(frozen=True)
class RateRow:
    """One observable at one n.

    **Fields:** `n`, `observable`; `prelimit` and `limit`, E h(X) and E h(Y); `gap`, their difference, its standard error
    `stderr` (0 where both are exact) and numerical `error`; `scaled_gap`, sqrt(n) times it; `refined`, E h(Y) + C(h)/sqrt(n),
    and `refined_gap`, E h(X) less that (NaN without C(h)); `reliable`: whether both errors can be trusted.
    `prelimit_stderr` and `limit_stderr`, `prelimit_error` and `limit_error` are the parts.
    """

    n: int
    observable: str
    prelimit: float
    limit: float
    gap: float
    stderr: float
    error: float
    scaled_gap: float
    refined: float
    refined_gap: float
    reliable: bool
    prelimit_stderr: float
    prelimit_error: float
    limit_stderr: float
    limit_error: float

    @classmethod
    def of(cls, c: Comparison) -> "RateRow":
        """The row of a comparison at one n."""
        x, y = c.prelimit, c.limit
        refined = math.nan if c.refined is None else c.refined
        assert c.n is not None
        return cls(
            c.n, c.name, float(x.mean), float(y.mean), c.difference, c.stderr, float(x.systematic) + float(y.systematic),
            math.sqrt(c.n) * c.difference, refined, float(x.mean) - refined, c.reliable, float(x.stderr), float(x.systematic),
            float(y.stderr), float(y.systematic),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; NaN is None, and so is the standard error of what is exact."""
        found = {k: v if isinstance(v, (str, bool, int)) else plain(v) for k, v in dataclasses.asdict(self).items()}
        for part in ("", "prelimit_", "limit_"):
            if found[f"{part}error"] and found[f"{part}stderr"] == 0:
                found[f"{part}stderr"] = None
        return found


@dataclasses.dataclass(frozen=True)
class RateFit:
    """What the gaps of one observable say of their order and constant. Each number is a `Fitted`: value, stderr, error, order.

    **Fields:**

    - `raw`: slope of log |gap| on log n, by least squares.
    - `corrected`: s of log |gap| = a + s log n + k/sqrt(n), with a further l/n from five exact n on.
    - `constant`: C(h) of the limit alone; NaN where h is not smooth enough.
    - `constant_fitted`: what sqrt(n) gap tends to, by Richardson extrapolation in n^{-1/2} of order `order`.
    - `refined`: the slope of the refined approximation's error, E h(X) - E h(Y) - C(h)/sqrt(n), with k/sqrt(n): about -1.
    - `limit`: E h(Y); `limit_fitted`: the same from the queue alone, by extrapolation of E h(X).
    - `notes`: why a number is missing.
    """

    observable: str
    raw: Fitted
    corrected: Fitted
    constant: Fitted
    constant_fitted: Fitted
    refined: Fitted
    limit: Fitted
    limit_fitted: Fitted
    notes: tuple[str, ...] = ()

    @property
    def slope(self) -> float:
        """The corrected slope where there is one, else the raw one; NaN without either."""
        return self.raw.value if math.isnan(self.corrected.value) else self.corrected.value

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: `raw`, `raw_stderr` (None where exact), `raw_error`, and so on; NaN is None."""
        found: dict[str, Any] = {"observable": self.observable}
        for field in dataclasses.fields(self)[1:-1]:
            fitted = getattr(self, field.name)
            key = "refined_slope" if field.name == "refined" else field.name
            stderr = None if fitted.stderr == 0 else plain(fitted.stderr)
            found |= {key: plain(fitted.value), f"{key}_stderr": stderr, f"{key}_error": plain(fitted.error)}
        orders = {"corrected_terms": self.corrected.order, "constant_fitted_order": self.constant_fitted.order}
        return found | orders | {"notes": list(self.notes)}


@dataclasses.dataclass(frozen=True)
class Rate(Exports):
    """E h(X) - E h(Y) along n. Prints as two tables; pickles.

    **Fields:** `beta`, `b`; `rows`, one `RateRow` for each n and observable, n by n; `fits`, a `RateFit` by observable;
    `remarks`: what the laws guessed or left out; `several`: whether a dict of observables was asked for;
    `made`: how it was made.

    ```python
    >>> import rdiff
    >>> study = rdiff.rate([64, 256, 1024], beta=1.0, b=1, h=lambda y: y[1])
    >>> study.ns, round(study.slope, 2), round(study.constant, 3)
    ((64, 256, 1024), -0.5, -2.467)

    ```
    """

    beta: float
    b: int
    rows: tuple[RateRow, ...]
    fits: dict[str, RateFit]
    remarks: tuple[str, ...] = ()
    several: bool = False
    made: tuple[tuple[str, Any], ...] = ()

    @property
    def ns(self) -> tuple[int, ...]:
        """The numbers of servers."""
        return tuple(dict.fromkeys(row.n for row in self.rows))

    @property
    def slope(self) -> Any:
        """The corrected slope where there is one, else the raw one: near -1/2. A float, or a dict of these for a dict of h."""
        return self._each(lambda found: found.slope)

    @property
    def constant(self) -> Any:
        """C(h) of the closed form: a float, or a dict of these for a dict of h. NaN where h is not smooth enough."""
        return self._each(lambda found: found.constant.value)

    def of(self, observable: str) -> tuple[RateRow, ...]:
        """The rows of one observable."""
        return tuple(row for row in self.rows if row.observable == observable)

    def to_dict(self) -> dict[str, Any]:
        """`rows`, `slopes` and `notes`, plain values for JSON."""
        rows, slopes = [row.to_dict() for row in self.rows], [found.to_dict() for found in self.fits.values()]
        return {"rows": rows, "slopes": slopes, "notes": self.notes()}

    def tables(self, title: str | None = None) -> list[Any]:
        """The `rich` tables: the gaps along n, and what was fitted to them."""
        sampled = any(row.stderr > 0 for row in self.rows)
        head = [
            "observable",
            "n",
            "E h(X)",
            "E h(Y)",
            "gap",
            "stderr" if sampled else "error",
            "sqrt(n) gap",
            "refined",
            "its gap",
        ]
        rows = [_cells(row, sampled) for name in self.fits for row in self.of(name)]
        names = ["observable", "raw slope", "corrected", "C(h)", "fitted C(h)", "refined slope", "E h(Y) from X"]
        fits = [
            [name, *(_fitted(x) for x in (f.raw, f.corrected, f.constant, f.constant_fitted, f.refined, f.limit_fitted))]
            for name, f in self.fits.items()
        ]
        return [table.build(head, rows, title), table.build(names, fits)]

    def notes(self) -> list[str]:
        """Lines to print under the tables."""
        holders: dict[str, list[str]] = {}
        for name, found in self.fits.items():
            for note in found.notes:
                holders.setdefault(note, []).append(name)
        said = [*self.remarks, *(f"{', '.join(names)}: {note}" for note, names in holders.items())]
        if any(not math.isnan(found.corrected.value) for found in self.fits.values()):
            terms = max(found.corrected.order for found in self.fits.values())
            said.append(f"corrected: s of log|gap| = a + s log n + k/sqrt(n){' + l/n' * (terms > 1)}; the theorem's s is -1/2")
        if any(not math.isnan(found.constant_fitted.value) for found in self.fits.values()):
            orders = sorted({f.constant_fitted.order for f in self.fits.values() if not math.isnan(f.constant_fitted.value)})
            told = ", ".join(map(str, orders))
            said.append(
                f"fitted C(h), E h(Y) from X: in n^(-1/2), to the order (of C: {told}) that changes least with one more or less"
            )
        return said

    @property
    def settings(self) -> dict[str, Any]:
        """The system, the n, and how the laws were found, with seed, versions and device."""
        return {"beta": self.beta, "b": self.b, "n": list(self.ns), **dict(self.made)}

    def _shown(self) -> tuple[list[Any], list[str]]:
        return self.tables(), self.notes()

    def _each(self, what: Callable[[RateFit], float]) -> Any:
        found = {name: what(one) for name, one in self.fits.items()}
        return found if self.several else next(iter(found.values()))


def fit(rows: Sequence[RateRow], constant: Estimate | None, early: str = "") -> RateFit:
    """The fits to the rows of one observable along n; `constant`, C(h), where the limit knows it.

    `early`: why the largest n is not large, if so. Then a series is fitted only where C(h) says that it has set in.
    """
    ns, first = np.array([row.n for row in rows]), rows[0]
    own = np.diag([row.prelimit_stderr**2 for row in rows])
    covariance, error = own + first.limit_stderr**2, np.array([row.error for row in rows])
    gaps = Series(ns, np.array([row.gap for row in rows]), covariance, error)
    known = NOTHING if constant is None else Fitted(float(constant.mean), 0.0, float(constant.error or 0.0), 0)
    refined = Series(ns, np.array([row.refined_gap for row in rows]), covariance, error + known.error / np.sqrt(ns))
    queue = Series(ns, np.array([row.prelimit for row in rows]), own, np.array([row.prelimit_error for row in rows]))
    notes = [] if constant is None else list(constant.cautions)
    why = unresolved(gaps)
    last = rows[-1]
    if early and not abs(last.refined_gap) < _SET_IN * abs(last.gap) + 3 * last.stderr:
        notes.append(f"no series in n^(-1/2) is fitted: {early}")
        gap = NOTHING if why else power(gaps, 0)
        target = Fitted(first.limit, first.limit_stderr, first.limit_error, 0)
        return RateFit(first.observable, gap, NOTHING, known, NOTHING, NOTHING, target, NOTHING, tuple(notes))
    if len(ns) < 3:
        notes.append("one n gives no slope" if len(ns) == 1 else "two n give no corrected slope: at least three are needed")
    if why:
        notes.append(f"no slope: of the gap, {why}")
    elif math.isfinite(known.value) and len(ns) > 2 and (poor := unresolved(refined)):
        notes.append(f"no slope of the refined gap: {poor}")
    return RateFit(
        first.observable, power(gaps, 0), power(gaps), known, limit(gaps.scaled()),
        NOTHING if math.isnan(known.value) else power(refined, 1),
        Fitted(first.limit, first.limit_stderr, first.limit_error, 0), limit(queue), tuple(notes),
    )  # fmt: skip


def _cells(row: RateRow, sampled: bool) -> list[str]:
    error = row.stderr if sampled else None
    value = {k: table.number(getattr(row, k), error) for k in ("prelimit", "limit", "gap", "refined", "refined_gap")}
    scaled = table.number(row.scaled_gap, None if error is None else math.sqrt(row.n) * error)
    spread = f"{row.stderr:.2g}" if sampled else f"{row.error:.0e}"
    return [row.observable, str(row.n), value["prelimit"], value["limit"], value["gap"], spread, scaled, value["refined"],
            value["refined_gap"]]  # fmt: skip


def _fitted(x: Fitted) -> str:
    """The number with its error, where that can be seen."""
    off = math.hypot(x.stderr, x.error)
    if not math.isfinite(x.value):
        return "-"
    if abs(x.value) <= off < 1e-6:
        return f"0 +- {off:.0e}"
    visible, seen = (off > share * abs(x.value) for share in _CLEAR)
    return f"{table.number(x.value, off)} +- {off:.1g}" if visible else table.number(x.value, off if seen else None)
