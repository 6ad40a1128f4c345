"""Adaptive quadrature of many one-dimensional integrals at once."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from rdiff.limit import chebyshev

_DEPTH = 50


def integrate(
    f: Callable[[np.ndarray, np.ndarray], np.ndarray],
    left: Float[np.ndarray, " cells"],
    right: Float[np.ndarray, " cells"],
    owner: Int[np.ndarray, " cells"],
    tolerance: Float[np.ndarray, " owners"],
    count: int = 10,
) -> tuple[Float[np.ndarray, " owners"], Float[np.ndarray, " owners"]]:
    """Integrals over the cells of each owner, with error bounds: a cell is halved until both halves agree with the whole.

    Jumps and kinks are closed in upon by bisection, so an integrand with finitely many of them costs a few dozen levels. The
    rule is Gauss-Lobatto's, as a jump close to the end of a cell escapes rules without nodes at the ends.

    **Arguments:** `f(points, owners)`, both flat arrays; the cells' ends and owners; `tolerance`, absolute, for one cell of
    each owner; `count`, nodes a cell.
    """
    nodes, weights = chebyshev.gauss_lobatto(count)

    def rule(left: np.ndarray, right: np.ndarray, owner: np.ndarray) -> np.ndarray:
        points = left[:, None] + (right - left)[:, None] * nodes
        return (right - left) * (f(points.ravel(), np.repeat(owner, count)).reshape(points.shape) @ weights)

    total, error = np.zeros_like(tolerance), np.zeros_like(tolerance)
    whole = rule(left, right, owner)
    for depth in range(_DEPTH):
        middle = (left + right) / 2
        ends = np.concatenate([left, middle]), np.concatenate([middle, right])
        halves = rule(*ends, np.concatenate([owner, owner])).reshape(2, -1)
        gap = np.abs(halves.sum(axis=0) - whole)
        done = (gap <= tolerance[owner]) | (depth == _DEPTH - 1)
        np.add.at(total, owner[done], halves[:, done].sum(axis=0))
        np.add.at(error, owner[done], gap[done])
        if done.all():
            break
        keep = np.concatenate([~done, ~done])
        left, right, whole = ends[0][keep], ends[1][keep], halves.ravel()[keep]
        owner = np.concatenate([owner, owner])[keep]
    return total, error
