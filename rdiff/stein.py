"""`stein_factors`: the Stein factors of the queue along n beside the limit's."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff import table
from rdiff.errors import InputError, integer
from rdiff.estimate import plain
from rdiff.export import Exports
from rdiff.functionals import by_name
from rdiff.limit.law import StationaryLaw
from rdiff.limit.stein import asked
from rdiff.models import JSQDiffusion
from rdiff.provenance import provenance
from rdiff.queue.chain import JSQQueue

_WHAT = {
    "box": "largest over the box of marginal quantiles that carries {mass:.10g} of the law",
    "all": "largest over all states",
    "weighted": "largest over all states, each divided by 1 + x1 + x2",
    "mean": "mean under the law",
}


@dataclasses.dataclass(frozen=True)
class SteinFactors(Exports):
    """Stein factors along n; prints as a table, one row an n and the limit's below.

    **Fields:** `queue`, by observable and n, and `limit`, by observable, the factors by name ("f1", "f2", "f11", "f12",
    "f22"); `beta`, `b`, `over`, `mass`; `made`, versions and device.

    ```python
    >>> import rdiff
    >>> factors = rdiff.stein_factors([16, 64], beta=1.0, h=lambda y: y[1])
    >>> round(factors.queue["h"][16]["f11"], 2), round(factors.limit["h"]["f11"], 2)
    (1.54, 3.64)

    ```
    """

    queue: dict[str, dict[int, dict[str, float]]]
    limit: dict[str, dict[str, float]]
    beta: float
    b: int
    over: str
    mass: float
    made: tuple[tuple[str, Any], ...] = dataclasses.field(default_factory=provenance)

    def to_dict(self) -> list[dict[str, Any]]:
        """One plain row an observable and n, `n` None for the limit; infinity is None."""
        return [
            {"observable": name, "n": n, **{key: plain(value) for key, value in factors.items()}}
            for name in self.limit
            for n, factors in [*self.queue[name].items(), (None, self.limit[name])]
        ]

    def table(self, title: str | None = None) -> Any:
        """The `rich` table that `print` shows as text."""
        names = list(next(iter(self.limit.values())))
        rows = [
            [name, "limit" if n is None else n, *(factors[key] for key in names)]
            for name in self.limit
            for n, factors in [*self.queue[name].items(), (None, self.limit[name])]
        ]
        return table.build(["observable", "n", *names], rows, title, [f"{_WHAT[self.over].format(mass=self.mass)}"])

    @property
    def settings(self) -> dict[str, Any]:
        """The system, what the factors are largest over, versions and device."""
        return {"beta": self.beta, "b": self.b, "over": self.over, "mass": self.mass, **dict(self.made)}

    def _shown(self) -> tuple[list[Any], list[str]]:
        return [self.table(f"Stein factors, beta = {self.beta:g}, b = {self.b}")], []


def stein_factors(
    n: Sequence[int], *, beta: float, b: int = 1, h: Any, over: str = "box", mass: float = 0.9999, memory: float = 2.0
) -> SteinFactors:
    """How large the first and second differences of the Poisson equation's solution are along n, and the limit's derivatives.

    They are what Stein's method bounds: with f from the limit, |E h(X) - E h(Y)| is at most a few of these over sqrt(n); with
    f from the lattice the same holds with the factors of the prelimit. For bounded h such as exp(-y1-y2) they are bounded in
    n; for h = y2 they are over the states that carry the mass, or in mean, or divided by 1 + x1 + x2, while over all states
    they grow like sqrt(n).

    A difference that needs a state beyond the edge of the lattice does not exist, and counts as 0.

    **Arguments:** `n`, the numbers of servers, increasing; `beta`; `b`; `h`, or a dict of them; `over`, "box", "all",
    "weighted" or "mean", and `mass`, of the box: see `ExactQueueLaw.stein_factors`; `memory`, GiB, of an exact law.

    **Raises:** `InputError` for what the exact laws refuse. **Warns:** `AccuracyWarning` where h is not smooth enough for the
    limit's f.

    ```python
    >>> import rdiff
    >>> found = rdiff.stein_factors([16, 64, 256], beta=1.0, h=lambda y: y[1], over="mean")
    >>> [round(row["f2"], 3) for row in found.to_dict()]  # the last is the limit's
    [1.792, 2.269, 2.534, 2.846]

    ```
    """
    limit, observables = StationaryLaw(JSQDiffusion(beta, b)), by_name(h)
    asked(over, mass, b)
    if np.ndim(n) != 1 or not len(sizes := list(n)):
        raise InputError(f"n must be a list of numbers of servers, got {n!r}: for instance [16, 64, 256]")
    sizes = [integer("n", size, 1, "the number of servers") for size in sizes]
    if any(one >= other for one, other in itertools.pairwise(sizes)):
        raise InputError(f"n must be numbers of servers in increasing order, each once, got {sizes}")
    queue: dict[str, dict[int, dict[str, float]]] = {name: {} for name in observables}
    for size in sizes:
        law = JSQQueue(size, b, beta=beta).exact(memory=memory)
        for name, function in observables.items():
            queue[name][law.n] = law.stein_factors({name: function}, mass, over=over)
    factors = {name: limit.stein_factors(function, mass, over=over) for name, function in observables.items()}
    return SteinFactors(queue, factors, limit.beta, b, over, mass)
