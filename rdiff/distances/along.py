"""`distance`: the theorem's own quantity along n, sqrt(n) d_{M_2}(X, Y), and its limit."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rdiff import table
from rdiff.averages import Interrupted
from rdiff.distances.between import Distance, distance_between
from rdiff.distances.continuum import Continuum
from rdiff.errors import InputError, integer
from rdiff.estimate import plain
from rdiff.export import Exports
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.progress import Done
from rdiff.queue.chain import JSQQueue

_POINTS = 3  # of an extrapolation
_BEYOND = 0.01


class Distances(Exports, tuple[Distance, ...]):
    """Distances of one system along n, a tuple of them; prints as a table of sqrt(n) times each distance.

    `limits` has the limit of sqrt(n) times each as n grows, by Richardson extrapolation in n^{-1/2}: the polynomial through the
    last three n, with the difference to that through the last two as its error; None for fewer than two n. The density of Y2
    is infinite at 0, where the lattice of X_2 shows at smaller powers of n: KS of X_2 has no limit (P(X_2 = 0) falls too
    slowly), and the error of W_1 of X_2 and of d_{M_1} is the whole step from the last n to the limit.
    """

    @property
    def limits(self) -> dict[str, tuple[float, float] | None]:
        """(limit, error) by name: d_M2, d_M1, w1_1, w1_2, ks_1."""
        ns = [row.n for row in self]
        found: dict[str, tuple[float, float] | None] = {}
        for name, values in self.scaled().items():
            limit = richardson(ns, values)
            if limit is not None and name in ("d_M1", "w1_2") and self[0].b:
                limit = limit[0], max(limit[1], abs(limit[0] - values[-1]))
            if name != "ks_2":
                found[name] = limit
        return found

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
        heads = {"d_M2": "d_M2", "d_M1": "d_M1", "w1_1": "W1 of X1", "w1_2": "W1 of X2", "ks_1": "KS of X1", "ks_2": "KS of X2"}
        scaled, limits = self.scaled(), self.limits
        rows = [
            [str(row.n), *(f"{values[k]:.4f}" for values in scaled.values()), f"{math.sqrt(row.n) * row.error_M2:.0e}"]
            for k, row in enumerate(self)
        ]
        found = [limits.get(name) for name in scaled]
        if any(found):
            rows.append(["limit", *("-" if x is None else f"{x[0]:.4f}" for x in found), ""])
            rows.append(["+-", *("-" if x is None or math.isinf(x[1]) else f"{x[1]:.0e}" for x in found), ""])
        columns = ["n", *(heads[name] for name in scaled), "d_M2 may lack"]
        return table.build(columns, rows, title or "sqrt(n) times the distances between the queue and its limit")

    def notes(self) -> list[str]:
        """Lines to print under the table."""
        said = ["d_M2, d_M1: attained by a test function, so lower bounds; may lack: an estimate of what is above"]
        further = max((row.remainder / row.d_M2 for row in self if row.d_M2 > 0), default=0.0)
        if further:
            said.append(f"both contain the sum of E X_i over i >= 3 (at most {further:.1e} of d_M2), which are 0 for Y")
        extrapolated = any(self.limits.values())
        if extrapolated:
            said.append("limit: Richardson extrapolation in n^(-1/2), +- the change from two points to three")
        if self and self[0].b:
            said.append("sqrt(n) KS of X2 has no limit: the density of Y2 is infinite at 0, and there the lattice of X2 shows")
            if extrapolated:
                said.append("for the same reason the +- of W1 of X2 and of d_M1 is the step from the last n to the limit")
            tail = StationaryLaw(JSQDiffusion(self[0].beta)).tail
            few = [str(row.n) for row in self[-_POINTS:] if tail(math.sqrt(row.n)) > _BEYOND]
            if few and extrapolated:
                said.append(
                    f"at n = {', '.join(few)} P(Y2 > sqrt(n)), where X2 cannot be, is above {_BEYOND:g}: that is no power of "
                    "n^(-1/2) and spoils the extrapolation; take larger n"
                )
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
    limit = Continuum(StationaryLaw(JSQDiffusion(beta, b)))
    rows: list[Distance] = []
    try:
        for k, queue in enumerate(queues):
            if on_progress is not None:
                on_progress(Done(k, len(queues)))
            rows.append(distance_between(queue.exact(window="auto", cap="auto", memory=memory), limit))
    except KeyboardInterrupt:
        raise Interrupted(Distances(rows) if rows else None) from None  # pyright: ignore[reportArgumentType]
    return Distances(rows)


def richardson(ns: Sequence[int], values: Sequence[float]) -> tuple[float, float] | None:
    """The limit of values that are a series in n^{-1/2}: (limit, error); None for fewer than two.

    The polynomial in n^{-1/2} through the last three, and its difference to the one through the last two.

    ```python
    >>> from rdiff.distances.along import richardson
    >>> limit, error = richardson([4, 16, 64], [3.5, 2.625, 2.28125])
    >>> print(f"{limit:.6f} {error:.6f}")
    2.000000 0.062500

    ```
    """
    if len(ns) < 2:
        return None
    at_zero = [_extrapolated(ns[-m:], values[-m:]) for m in (2, min(_POINTS, len(ns)))]
    return at_zero[1], abs(at_zero[1] - at_zero[0]) if len(ns) > 2 else math.inf


def _extrapolated(ns: Sequence[int], values: Sequence[float]) -> float:
    """Lagrange's polynomial in n^{-1/2} at 0."""
    x = [n**-0.5 for n in ns]
    return sum(
        v * math.prod(other / (other - here) for j, other in enumerate(x) if j != i)
        for i, (here, v) in enumerate(zip(x, values))
    )
