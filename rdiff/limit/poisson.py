"""The Poisson equation of the limit, G f = h - E h with D f = 0 at y1 = 0, by collocation."""

import dataclasses
import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.polynomial import chebyshev as series

from rdiff.limit import chebyshev

BEND = 2.0  # y2 is linear in the polynomials' variable below this, its logarithm above


class PoissonSolution(eqx.Module):
    """f with G f = h - E h, D f = f_1 + f_2 = 0 at y1 = 0 and f(0) = 0, as a polynomial in y1 and log(1 + y2/2).

    `f(y)`, `f.gradient(y)` and `f.hessian(y)` take states of shape (..., b + 1) and give shapes (...), (..., d) and
    (..., d, d) with d = min(b + 1, 2): f is known on the plane y3 = y4 = ... = 0, which the process does not leave. JAX arrays
    are evaluated in their own precision, under `jit`, `vmap` and `grad`; anything else in numpy float64. Outside `window`,
    where the mass is below e^{-30}, f is that of the nearest point.

    ```python
    >>> import rdiff
    >>> f = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0)).poisson(lambda y: y[0])
    >>> print(f"{f.mean:.6f}", f.gradient([1.0, 2.0]).round(6))
    1.000000 [-1.  1.]

    ```
    """

    mean: float
    beta: float
    b: int = eqx.field(static=True)
    window: tuple[float, float] = eqx.field(static=True)
    coefficients: Float[np.ndarray, "m n"]

    def __call__(self, y: Any) -> Any:
        """f(y)."""
        return self._at(y)[0]

    def gradient(self, y: Any) -> Any:
        """(f_1, f_2) at y; (f_1,) for b = 0."""
        _, xp, f = self._at(y, 1)
        return xp.stack([f[1, 0], f[0, 1]][: self._size], axis=-1)

    def hessian(self, y: Any) -> Any:
        """((f_11, f_12), (f_12, f_22)) at y; ((f_11,),) for b = 0."""
        _, xp, f = self._at(y, 2)
        rows = [[f[2, 0], f[1, 1]], [f[1, 1], f[0, 2]]]
        return xp.stack([xp.stack(row[: self._size], axis=-1) for row in rows[: self._size]], axis=-2)

    def __hash__(self) -> int:
        # by identity, so that `jax.jit(f)` and `jax.jit(f.gradient)` work
        return id(self)

    @property
    def _size(self) -> int:
        return min(self.b + 1, 2)

    def _at(self, y: Any, order: int = 0) -> tuple[Any, Any, dict[tuple[int, int], Any]]:
        """f and its partial derivatives up to `order`, by how often in y1 and y2."""
        xp = jnp if isinstance(y, jax.Array) else np
        y = y if xp is jnp else np.asarray(y, float)
        x1 = xp.clip(y[..., 0], 0.0, self.window[0])
        x2 = xp.clip(y[..., 1], 0.0, self.window[1]) if self.b else xp.zeros_like(x1)
        span = math.log1p(self.window[1] / BEND) or 1.0
        one = _polynomials(xp, x1 / self.window[0], self.coefficients.shape[0])
        two = _polynomials(xp, xp.log1p(x2 / BEND) / span, self.coefficients.shape[1])
        t1 = 1 / (span * (x2 + BEND))
        out = {}
        for i in range(order + 1):
            in_t = [self._value(xp, one, two, i, j) for j in range(order - i + 1)]
            # the chain rule in t = log(1 + y2/2)/span: t'' = -span t'^2
            out[i, 0] = in_t[0]
            if len(in_t) > 1:
                out[i, 1] = t1 * in_t[1]
            if len(in_t) > 2:
                out[i, 2] = t1**2 * (in_t[2] - span * in_t[1])
        return out[0, 0], xp, out

    def _value(self, xp: Any, one: Any, two: Any, i: int, j: int) -> Any:
        c = series.chebder(series.chebder(self.coefficients, i, scl=2.0 / self.window[0], axis=0), j, scl=2.0, axis=1)
        c = xp.asarray(c, one.dtype)
        return xp.sum(one[: c.shape[0]] * xp.tensordot(c, two[: c.shape[1]], axes=1), axis=0)


@dataclasses.dataclass(frozen=True, eq=False)
class Collocation:
    """The Poisson equation at the points `points`, factorised once for all h. `degree2 = 0` is b = 0: y2 = 0 throughout.

    Least squares in tensor Chebyshev polynomials of y1 on [0, beta + 9] and of log(1 + y2/2) for y2 in [0, 34/beta], on
    the Lobatto points: the equation weighted by 1/(1 + y1 + y2)^2, the boundary by 1/(1 + y2), f(0, 0) = 0, and the number
    E h one more unknown. f is smooth and grows like a polynomial, so this converges fast for smooth h.
    """

    beta: float
    points: Float[np.ndarray, "points 2"]
    window: tuple[float, float]
    shape: tuple[int, int]
    scale: Float[np.ndarray, " unknowns"]
    row_weights: Float[np.ndarray, " points"]
    q: Float[np.ndarray, "rows unknowns"]
    r: Float[np.ndarray, "unknowns unknowns"]

    def solve(self, h: Float[np.ndarray, " points"]) -> tuple[Float[np.ndarray, "m n"], float]:
        """Coefficients of f, and E h, from h at the points."""
        from scipy.linalg import solve_triangular

        found = solve_triangular(self.r, self.q[: len(h)].T @ (self.row_weights * h)) / self.scale
        return found[:-1].reshape(self.shape), float(found[-1])

    def moment(self, points: np.ndarray, weights: np.ndarray, i: int, j: int) -> Float[np.ndarray, "m n"]:
        """The matrix whose product with f's coefficients, summed, is the sum of weights times d^i/dy1^i d^j/dy2^j f(points)."""
        x, y = points.T
        one = basis(x / self.window[0], self.shape[0] - 1, i) / self.window[0] ** i
        span = math.log1p(self.window[1] / BEND) or 1.0
        t, slope = np.log1p(y / BEND) / span, 1 / (span * (y + BEND))
        two = basis(t, self.shape[1] - 1, j) * slope[:, None] ** j
        if j == 2:
            two -= span * slope[:, None] ** 2 * basis(t, self.shape[1] - 1, 1)
        return (one * weights[:, None]).T @ two

    @functools.cached_property
    def weights(self) -> Float[np.ndarray, " points"]:
        """Quadrature weights of the stationary law at the points: E h = weights . h for smooth h."""
        return self._transposed(np.append(np.zeros(len(self.scale) - 1), 1.0))

    def transposed(self, functional: Float[np.ndarray, "m n"]) -> Float[np.ndarray, " points"]:
        """The weights at the points that give sum(functional * coefficients of f) from h."""
        return self._transposed(np.append(functional.ravel(), 0.0))

    def _transposed(self, unknowns: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular

        across = self.q @ solve_triangular(self.r, unknowns / self.scale, trans=1)
        return self.row_weights * across[: len(self.points)]


def collocate(beta: float, degree1: int, degree2: int) -> Collocation:
    """Builds and factorises the equation. Polynomial degrees `degree1` in y1 and `degree2` in log(1 + y2/2)."""
    from scipy.linalg import qr

    length1, length2 = beta + 9.0, 34.0 / beta if degree2 else 0.0
    span = math.log1p(length2 / BEND) or 1.0
    u, v = chebyshev.lobatto(degree1)[0], chebyshev.lobatto(degree2)[0] if degree2 else np.zeros(1)
    y1, y2 = length1 * u, BEND * np.expm1(span * v)
    a0, a1, a2 = (basis(u, degree1, k) / length1**k for k in range(3))
    c0, c1 = basis(v, degree2, 0), basis(v, degree2, 1) / (span * (y2 + BEND))[:, None]
    points = np.stack(np.meshgrid(y1, y2, indexing="ij"), axis=-1).reshape(-1, 2)
    x, y = points.T
    equation = (beta - x - y)[:, None] * np.kron(a1, c0) + np.kron(a2, c0) - y[:, None] * np.kron(a0, c1)
    boundary = np.kron(a1[:1], c0) + np.kron(a0[:1], c1)
    row_weights = 1 / (1 + x + y) ** 2
    rows = len(points) + len(y2) + 1
    matrix = np.zeros((rows, a0.shape[1] * c0.shape[1] + 1), order="F")
    matrix[: len(points), :-1] = equation * row_weights[:, None]
    matrix[: len(points), -1] = row_weights
    matrix[len(points) : -1, :-1] = boundary / (1 + y2)[:, None]
    matrix[-1, :-1] = np.kron(a0[0], c0[0])
    scale = np.linalg.norm(matrix, axis=0)
    factors: Any = qr(matrix / scale, mode="economic", overwrite_a=True, check_finite=False)
    return Collocation(beta, points, (length1, length2), (degree1 + 1, degree2 + 1), scale, row_weights, *factors)


def basis(t: np.ndarray, degree: int, order: int) -> np.ndarray:
    """Derivatives of T_0..T_degree in t in [0, 1], (len(t), degree + 1)."""
    columns = series.chebder(np.eye(degree + 1), order, scl=2.0) if order else np.eye(degree + 1)
    return series.chebvander(2 * t - 1, columns.shape[0] - 1) @ columns


def _polynomials(xp: Any, t: Any, count: int) -> Any:
    """T_0..T_(count-1) at 2t - 1, stacked in front."""
    u = 2 * t - 1
    rows = [xp.ones_like(u), u]
    while len(rows) < count:
        rows.append(2 * u * rows[-1] - rows[-2])
    return xp.stack(rows[:count])
