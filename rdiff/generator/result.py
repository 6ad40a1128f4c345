"""What a generator comparison answers."""

import dataclasses
from typing import Any

from rdiff import table
from rdiff.compare import same_system
from rdiff.errors import InputError
from rdiff.estimate import plain
from rdiff.export import Exports, shared
from rdiff.limit.law import StationaryLaw
from rdiff.provenance import provenance
from rdiff.queue.exact import ExactQueueLaw

_SMALL, _NOTHING = 0.1, 1e-8  # errors that leave something to be seen: relative to the largest term, and in units of h


@dataclasses.dataclass(frozen=True)
class GeneratorComparison(Exports):
    """A difference of means, and the mean of the difference of generators that equals it.

    **Fields:** `name`, of h; `n`; `direct`, the difference by the two laws themselves; `terms`, of the generator side, by
    name; `error`, what the stated errors of both sides leave for `residual`; `settings`, versions and device.

    ```python
    >>> import rdiff
    >>> Q, Y = rdiff.JSQQueue(100, b=1, beta=1.0), rdiff.JSQDiffusion(1.0, b=1)
    >>> found = rdiff.generator.classical(Q.exact(), rdiff.StationaryLaw(Y), lambda y: y[1])
    >>> round(found.direct, 6), found.closes
    (-0.21425, True)

    ```
    """

    name: str
    n: int
    direct: float
    terms: dict[str, float]
    error: float
    settings: tuple[tuple[str, Any], ...] = dataclasses.field(default_factory=provenance)

    @property
    def generator(self) -> float:
        """The generator side, the sum of its terms."""
        return sum(self.terms.values())

    @property
    def residual(self) -> float:
        """The generator side less the direct one: 0 up to `error`."""
        return self.generator - self.direct

    @property
    def closes(self) -> bool:
        """Whether the residual is within an error that is small enough to say so."""
        return self.verdict == "closes"

    @property
    def verdict(self) -> str:
        """In a word: "closes", "FAILS", or "not resolved" where the error is not small against the terms."""
        if not abs(self.residual) <= self.error:
            return "FAILS"
        largest = max(abs(self.direct), *map(abs, self.terms.values()))
        return "closes" if self.error <= max(_SMALL * largest, _NOTHING) else "not resolved"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        numbers = {key: plain(getattr(self, key)) for key in ("direct", "generator", "residual", "error")}
        terms = {name: plain(value) for name, value in self.terms.items()}
        return {"observable": self.name, "n": self.n, **numbers, "closes": self.closes, "verdict": self.verdict, "terms": terms}

    def _shown(self) -> tuple[list[Any], list[str]]:
        return GeneratorComparisons({self.name: self})._shown()


class GeneratorComparisons(Exports, dict[str, GeneratorComparison]):
    """Generator comparisons of the same two laws by observable; prints as one table.

    ```python
    >>> import rdiff
    >>> Q, Y = rdiff.JSQQueue(100, b=1, beta=1.0), rdiff.JSQDiffusion(1.0, b=1)
    >>> h = {"y2": lambda y: y[1], "y1*y2": lambda y: y[0] * y[1]}
    >>> found = rdiff.generator.classical(Q.exact(), rdiff.StationaryLaw(Y), h)
    >>> {name: each.verdict for name, each in found.items()}
    {'y2': 'closes', 'y1*y2': 'closes'}

    ```
    """

    def to_dict(self) -> list[dict[str, Any]]:
        """A list of their plain dicts."""
        return [each.to_dict() for each in self.values()]

    def table(self, title: str | None = None) -> Any:
        """The `rich` table that `print` shows as text."""
        names = list(next(iter(self.values())).terms) if self else []
        values = {name: [c.direct, *(c.terms[term] for term in names)] for name, c in self.items()}
        rows = [
            [name, *(f"{x:.9f}" for x in values[name]), f"{c.residual:.0e}", f"{c.error:.0e}", c.verdict]
            for name, c in self.items()
        ]
        return table.build(["observable", "difference", *names, "residual", "error", "verdict"], rows, title)

    @property
    def settings(self) -> dict[str, Any]:
        """Versions and device."""
        return shared({name: dict(each.settings) for name, each in self.items()})

    def _shown(self) -> tuple[list[Any], list[str]]:
        return [self.table()], []


def exact_pair(X: Any, Y: Any) -> None:
    """Refuses all but the exact law of a queue and that of its limit."""
    if not isinstance(X, ExactQueueLaw) or not isinstance(Y, StationaryLaw):
        raise InputError(
            "a generator comparison needs two exact laws, of a queue and of its limit: rdiff.JSQQueue(n, b, beta).exact() and "
            f"rdiff.StationaryLaw(rdiff.JSQDiffusion(beta, b)), got {X!r:.60} and {Y!r:.60}"
        )
    same_system(X, Y)
