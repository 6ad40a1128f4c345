"""Clamped quadratic B-splines on one axis: the functions of a coordinate that a linear programme searches."""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float


@dataclasses.dataclass(frozen=True, eq=False)
class Axis:
    """Quadratic splines on [0, end] that arrive flat at the end, so that held constant beyond it they keep a continuous slope.

    A spline is its `size` control coefficients c. `slope` and `curvature` are matrices: the slope is the linear interpolation
    of slope @ c at the breaks (0 at the last one), the second derivative in each cell is curvature @ c. Values and derivatives
    lie between the least and the largest coefficient, since the basis is nonnegative and sums to 1.

    **Fields:** `breaks`, from 0 to `end`, increasing.

    Source: de Boor, A practical guide to splines.

    ```python
    >>> import numpy as np
    >>> from rdiff.distances.splines import Axis
    >>> axis = Axis(np.array([0.0, 1.0, 2.0]))
    >>> axis.size, axis.at(np.array([0.0, 2.0, 5.0])).toarray().tolist()
    (3, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])

    ```
    """

    breaks: Float[np.ndarray, " cells1"]

    @property
    def size(self) -> int:
        """The number of control coefficients: one a break."""
        return len(self.breaks)

    def at(self, x: Float[np.ndarray, " points"]) -> Any:
        """The basis at x, sparse (points, size); beyond the end as at the end."""
        from scipy.interpolate import BSpline

        return BSpline.design_matrix(np.clip(x, 0.0, self.breaks[-1]), self._knots, 2) @ self._flat

    @functools.cached_property
    def slope(self) -> Any:
        """Sparse (cells, size): the slope at the breaks but the last."""
        return (self._differences(2) @ self._flat)[:-1]

    @functools.cached_property
    def curvature(self) -> Any:
        """Sparse (cells, size): the second derivative in each cell."""
        return self._differences(1) @ self._differences(2) @ self._flat

    def polynomials(self) -> tuple[Any, Any, Any]:
        """Sparse (cells, size) each: in every cell, the coefficients of 1, t and t^2 with t counted from its start."""
        return self.at(self.breaks[:-1]), self.slope, self.curvature / 2

    def refined(self, parts: int = 2) -> "Axis":
        """Every cell cut in `parts`: a space that holds this one (but for the last cell, where the end is flat)."""
        steps = np.linspace(0, 1, parts, endpoint=False)
        fine = self.breaks[:-1, None] + np.diff(self.breaks)[:, None] * steps
        return Axis(np.append(fine.ravel(), self.breaks[-1]))

    @functools.cached_property
    def _knots(self) -> np.ndarray:
        return np.concatenate([self.breaks[:1]] * 2 + [self.breaks] + [self.breaks[-1:]] * 2)

    @functools.cached_property
    def _flat(self) -> Any:
        """From the coefficients kept to those of all splines: the last two are one, for a flat end."""
        from scipy.sparse import csr_array

        size = self.size + 1
        columns = np.minimum(np.arange(size), size - 2)
        return csr_array((np.ones(size), (np.arange(size), columns)), shape=(size, size - 1))

    def _differences(self, degree: int) -> Any:
        """From the coefficients of splines of `degree` to those of their derivatives."""
        from scipy.sparse import diags_array

        knots = self._knots[2 - degree : len(self._knots) - (2 - degree)]
        steps = degree / (knots[degree + 1 : -1] - knots[1 : -degree - 1])
        count = len(steps)
        return diags_array([-steps, steps], offsets=[0, 1], shape=(count, count + 1)).tocsr()  # pyright: ignore


def uniform(end: float, cells: int) -> Axis:
    """Cells of one width on [0, end]."""
    return Axis(np.linspace(0.0, end, cells + 1))


def graded(end: float, first: float, ratio: float) -> Axis:
    """Cells on [0, end], each `ratio` times the one before, the first at most `first` wide."""
    cells = int(np.ceil(np.log1p(end * (ratio - 1) / first) / np.log(ratio)))
    edges = np.expm1(np.log(ratio) * np.arange(cells + 1))
    return Axis(end * edges / edges[-1])
