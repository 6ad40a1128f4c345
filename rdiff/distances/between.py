"""`distance_between`: how far the law of the queue is from its limit, over all test functions at once."""

import dataclasses
import math
from typing import Any

from rdiff.compare import same_system
from rdiff.distances import programme
from rdiff.distances.continuum import Continuum
from rdiff.distances.function import Piece, TestFunction
from rdiff.distances.lattice import Lattice
from rdiff.distances.marginal import marginal
from rdiff.distances.splines import Axis, graded, uniform
from rdiff.errors import InputError
from rdiff.estimate import Estimate
from rdiff.export import Exports
from rdiff.limit.law import StationaryLaw
from rdiff.provenance import provenance
from rdiff.queue.exact import ExactQueueLaw

_WIDTH, _HEIGHT = 6.0, 24.0  # splines live on [0, beta + width] x [0, height/beta]
_PLANE = ((40, 0.8, 1.44), (80, 0.4, 1.2))  # cells in y1; first cell (more at small beta) and ratio of cells in y2
_LINE = (320, 0.1, 1.05)
_PARTS = 2  # of a cell, in the refinement that says what is still missing


@dataclasses.dataclass(frozen=True, eq=False)
class Distance(Exports):
    """The distances between X, the queue at n, and Y, its limit.

    **Fields:**

    - `n`, `b`, `beta`.
    - `d_M2`, `d_M1`: sup |E h(X) - E h(Y)| over h with all partial derivatives of order 1 and 2 (M_2), or 1 (M_1), in [-1, 1].
      Both values are attained, by `h_M2` and `h_M1`: they are lower bounds.
    - `error_M2`, `error_M1`: how much may be missing, an estimate: what the last refinement added, what functions that are no
      sum of a function of y1 and one of y2 gained on the same grid, and the numerical errors of the laws.
    - `w1`, `ks`: Wasserstein and Kolmogorov-Smirnov distance of X_i and Y_i, i = 1, 2 (i = 1 for b = 0).
    - `remainder`: the sum of E X_i over i >= 3, contained in d_M2 and d_M1.
    - `made`: versions and device.

    ```python
    >>> import rdiff
    >>> at_16, = rdiff.distance([16], beta=1.0)
    >>> round(at_16.d_M2, 3), [round(x, 3) for x in at_16.w1]
    (0.498, [0.094, 0.453])

    ```
    """

    n: int
    b: int
    beta: float
    d_M2: float
    d_M1: float
    error_M2: float
    error_M1: float
    w1: tuple[float, ...]
    ks: tuple[float, ...]
    remainder: float
    h_M2: TestFunction
    h_M1: TestFunction
    made: tuple[tuple[str, Any], ...] = dataclasses.field(default_factory=provenance)

    @property
    def scaled_M2(self) -> float:
        """sqrt(n) d_M2, bounded in n by the theorem."""
        return math.sqrt(self.n) * self.d_M2

    @property
    def scaled_M1(self) -> float:
        """sqrt(n) d_M1."""
        return math.sqrt(self.n) * self.d_M1

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        names = ("n", "d_M2", "d_M1", "scaled_M2", "scaled_M1", "error_M2", "error_M1")
        pairs = {f"{name}_{i + 1}": x for name in ("w1", "ks") for i, x in enumerate(getattr(self, name))}
        return {name: getattr(self, name) for name in names} | pairs | {"remainder": self.remainder}

    @property
    def settings(self) -> dict[str, Any]:
        """The system, versions and device."""
        return {"n": self.n, "b": self.b, "beta": self.beta, **dict(self.made)}

    def _shown(self) -> tuple[list[Any], list[str]]:
        from rdiff.distances.along import Distances

        return Distances((self,))._shown()


def distance_between(X: ExactQueueLaw, Y: StationaryLaw | Continuum) -> Distance:
    """d_{M_2}, d_{M_1}, and the distances of the marginals, between the exact law of a queue and that of the limit.

    d_{M_2} is a linear programme over splines h of (y1, y2), whose control coefficients bound the derivatives everywhere, and
    over sums of finer splines of y1 and of y2; the larger is taken. d_{M_1}, the Wasserstein distance for |x_1| + |x_2| + ...,
    is that of coordinate 1 plus that of coordinate 2, exact to the quadrature; the programme says what other h would add.
    For b >= 2, Y_3 = Y_4 = ... = 0 and h + y_3 + y_4 + ... is a test function whenever h is: both distances are those in
    (X_1, X_2) plus the sum of E X_i over i >= 3, no more and no less.

    **Arguments:** `X`, from `JSQQueue.exact()`; `Y`, a `StationaryLaw`; the order of the two does not matter.
    **Raises:** `InputError` for other laws, among them samples, and when the two do not belong together.

    Source: Braverman, Stochastic Systems 13(1), 2023, for d_{M_2} and its bound C(b, beta)/sqrt(n).

    ```python
    >>> import rdiff
    >>> from rdiff.distances.between import distance_between
    >>> Y = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0, b=1))
    >>> found = distance_between(rdiff.JSQQueue(n=16, b=1, beta=1.0).exact(), Y)
    >>> print(f"{found.scaled_M2:.4f} {found.scaled_M1:.4f}")
    1.9929 2.1881

    ```
    """
    if isinstance(X, (StationaryLaw, Continuum)):
        X, Y = Y, X  # pyright: ignore[reportAssignmentType]
    continuum = Y if isinstance(Y, Continuum) else None
    law = continuum.law if continuum is not None else Y
    _exact(X, law)
    same_system(X, law)
    continuum = continuum or Continuum(law)  # pyright: ignore[reportArgumentType]
    lattice = Lattice.of(X)
    coordinates = (1, 2) if X.b else (1,)
    sides = [marginal(i, lattice, continuum) for i in coordinates]
    lines, missing = [], 0.0
    for i, axis in zip(coordinates, _axes(X.beta, *_LINE)):
        coarse = programme.one(axis, lattice.one(i, axis) - continuum.one(i, axis))[0]
        axis = axis.refined(_PARTS)
        value, c = programme.one(axis, lattice.one(i, axis) - continuum.one(i, axis))
        lines.append((value, Piece.spline(i - 1, axis, c)))
        missing += abs(value - coarse)
    d_M2, pieces = sum(value for value, _ in lines), tuple(piece for _, piece in lines)
    d_M1, gain = sum(side.w1 for side in sides), [0.0, 0.0]
    if X.b:
        best, joint, gain = _joint(lattice, continuum)
        if best > d_M2:
            d_M2, pieces = best, (joint,)
    numerical = _numerical(X) + _numerical(law)
    return Distance(
        n=X.n, b=X.b, beta=X.beta, d_M2=d_M2 + lattice.remainder, d_M1=d_M1 + lattice.remainder,
        error_M2=missing + gain[1] + numerical, error_M1=gain[0] + numerical,
        w1=tuple(side.w1 for side in sides), ks=tuple(side.ks for side in sides), remainder=lattice.remainder,
        h_M2=TestFunction(X.b + 1, 2, pieces), h_M1=TestFunction(X.b + 1, 1, tuple(side.h for side in sides)),
    )  # fmt: skip


def _joint(X: Lattice, Y: Continuum) -> tuple[float, Piece, list[float]]:
    """d_{M_2} over splines of both coordinates, its h, and what they gain over sums of splines of one, for M_1 and M_2."""
    gain, best, piece = [0.0, 0.0], -math.inf, None
    for level, cells in enumerate(_PLANE):
        one, two = _axes(Y.beta, *cells)
        gaps = X.two(one, two) - Y.two(one, two)
        for order in (1, 2) if level == 0 else (2,):
            value, c = programme.two(one, two, gaps, order)
            apart = sum(programme.one(axis, gaps.sum(axis=1 - k), order)[0] for k, axis in enumerate((one, two)))
            gain[order - 1] = max(value - apart, 0.0)
            if order == 2 and value > best:
                best, piece = value, Piece.tensor(one, two, c)
    assert piece is not None
    return best, piece, gain


def _axes(beta: float, cells: int, first: float, ratio: float) -> tuple[Axis, Axis]:
    """Of y1 and y2; Y2 is about 2/beta at small beta."""
    return uniform(beta + _WIDTH, cells), graded(_HEIGHT / beta, first * max(1.0, 0.5 / beta), ratio)


def _numerical(law: Any) -> float:
    """The error of E h under an exact law: |h| is at most y_1 + y_2 + ... for a test function."""
    total = law.expect(lambda y: y.sum())
    return float(total.error) if isinstance(total, Estimate) and total.error is not None else 0.0


def _exact(X: Any, Y: Any) -> None:
    if not isinstance(Y, StationaryLaw):
        raise InputError(f"a distance is between a queue and rdiff.StationaryLaw(model), the exact limit; got {Y!r:.60}")
    if isinstance(X, ExactQueueLaw):
        return
    if isinstance(X, StationaryLaw):
        raise InputError(
            "a distance is between a queue's exact law, JSQQueue(n, b, beta).exact(), and the limit; got two limits"
        )
    if hasattr(X, "expect"):
        raise InputError(
            f"a distance needs the exact law of the queue, JSQQueue(n, b, beta).exact(), got {type(X).__name__}: the h that "
            "fits samples best fits their noise too, so that their distance is too large by about (effective number)^-1/2; "
            "compare(samples, law, h) with the h of an exact distance is free of that"
        )
    raise InputError(f"a distance needs the exact law of the queue, JSQQueue(n, b, beta).exact(), got {X!r:.60}")
