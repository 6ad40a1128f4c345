"""`TestFunction`: the h that tells two laws apart best, a piecewise polynomial with its derivatives."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rdiff.distances.splines import Axis


@dataclasses.dataclass(frozen=True, eq=False)
class Piece:
    """A polynomial on each cell of one coordinate, or of two, held constant beyond the last cell.

    **Fields:** `coordinates`, counted from 0; `breaks`, one array a coordinate; `coefficients` (cells..., degree + 1...), of
    the powers of the distances from the start of the cell.
    """

    coordinates: tuple[int, ...]
    breaks: tuple[Float[np.ndarray, " cells1"], ...]
    coefficients: np.ndarray

    @classmethod
    def spline(cls, coordinate: int, axis: Axis, c: Float[np.ndarray, " size"]) -> "Piece":
        """The spline of one coordinate with the coefficients c."""
        return cls((coordinate,), (axis.breaks,), np.stack([p @ c for p in axis.polynomials()], axis=-1))

    @classmethod
    def tensor(cls, first: Axis, second: Axis, c: Float[np.ndarray, "size1 size2"]) -> "Piece":
        """The spline of the first two coordinates with the coefficients c."""
        rows = [[(q @ (p @ c).T).T for q in second.polynomials()] for p in first.polynomials()]
        coefficients = np.moveaxis(np.array(rows), (0, 1), (2, 3))
        return cls((0, 1), (first.breaks, second.breaks), coefficients)

    def derivative(self, coordinate: int) -> "Piece | None":
        """By one coordinate; None where that is 0 everywhere."""
        if coordinate not in self.coordinates:
            return None
        axis = len(self.breaks) + self.coordinates.index(coordinate)
        if self.coefficients.shape[axis] == 1:
            return None
        powers = np.arange(self.coefficients.shape[axis], dtype=float)
        shape = [1] * self.coefficients.ndim
        shape[axis] = -1
        lowered = np.take(self.coefficients * powers.reshape(shape), np.arange(1, len(powers)), axis=axis)
        # no slope beyond the end: one more cell, with zeros
        axis -= len(self.breaks)
        pad = [(0, int(i == axis)) for i in range(lowered.ndim)]
        breaks = [np.append(cuts, cuts[-1] + 1.0) if i == axis else cuts for i, cuts in enumerate(self.breaks)]
        return dataclasses.replace(self, breaks=tuple(breaks), coefficients=np.pad(lowered, pad))

    def __call__(self, y: Any) -> Any:
        xp = jnp if isinstance(y, jax.Array) else np
        cells, steps = [], []
        for i, breaks in zip(self.coordinates, self.breaks):
            edges = xp.asarray(breaks, y.dtype)
            at = xp.clip(y[..., i], edges[0], edges[-1])
            cell = xp.clip(xp.searchsorted(edges, at, side="right") - 1, 0, len(breaks) - 2)
            cells.append(cell)
            steps.append(at - edges[cell])
        out = xp.asarray(self.coefficients, y.dtype)[tuple(cells)]
        for step in reversed(steps):
            out = _horner(out, step.reshape(step.shape + (1,) * (out.ndim - 1 - step.ndim)))
        return out


@dataclasses.dataclass(frozen=True, eq=False)
class TestFunction:
    """h of a state (y_1, ..., y_{b+1}): a sum of piecewise polynomials of y_1, of y_2 and of both, and of y_3, ..., y_{b+1}.

    JAX-traceable, so it goes wherever an observable does: `compare(X, Y, h).difference` is the distance that it attains (its
    kinks cost the limit's `expect` 10 s for `order` 2 and minutes for 1). `gradient` and `hessian` are numpy's.

    **Fields:** `dim`, b + 1; `order`, 1 or 2: the derivatives up to it are bounded by 1; `pieces`.

    ```python
    >>> import numpy as np, rdiff
    >>> from rdiff.distances.between import distance_between
    >>> X, Y = rdiff.JSQQueue(n=16, b=1, beta=1.0).exact(), rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    >>> found = distance_between(X, Y)
    >>> round(float(found.h_M2.gradient(np.array([1.0, 0.5]))[1]), 6)
    -1.0
    >>> X.expect(found.h_M2).mean > Y.expect(found.h_M2, method="march").mean
    True

    ```
    """

    __test__ = False  # not a test of pytest's

    dim: int
    order: int
    pieces: tuple[Piece, ...]

    def __call__(self, y: Any) -> Any:
        """h at states (..., dim)."""
        y = y if isinstance(y, jax.Array) else np.asarray(y, float)
        total = y[..., 2:].sum(axis=-1)
        for piece in self.pieces:
            total = total + piece(y)
        return total

    def gradient(self, y: Any) -> np.ndarray:
        """(h_1, ..., h_{b+1}) at states (..., dim), as an array of that shape."""
        y = np.asarray(y, float)
        out = np.ones(y.shape)
        for i in range(min(2, self.dim)):
            out[..., i] = self._sum(y, i)
        return out

    def hessian(self, y: Any) -> np.ndarray:
        """h_ij at states (..., dim), as an array (..., dim, dim); 0 where slopes jump, for `order` 1."""
        y = np.asarray(y, float)
        out = np.zeros((*y.shape, self.dim))
        for i in range(min(2, self.dim)):
            for j in range(min(2, self.dim)):
                out[..., i, j] = self._sum(y, i, j)
        return out

    def _sum(self, y: np.ndarray, *coordinates: int) -> np.ndarray:
        total = np.zeros(y.shape[:-1])
        for piece in self.pieces:
            for i in coordinates:
                piece = None if piece is None else piece.derivative(i)
            total = total if piece is None else total + piece(y)
        return total


def _horner(coefficients: Any, t: Any) -> Any:
    out = coefficients[..., -1]
    for k in range(coefficients.shape[-1] - 2, -1, -1):
        out = out * t + coefficients[..., k]
    return out
