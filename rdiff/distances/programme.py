"""The linear programme: the largest gap E h(X) - E h(Y) among splines h whose derivatives are bounded by 1."""

from typing import Any

import numpy as np
from jaxtyping import Float

from rdiff.distances.splines import Axis


def one(axis: Axis, gaps: Float[np.ndarray, " size"], order: int = 2) -> tuple[float, Float[np.ndarray, " size"]]:
    """The sup over g(y) with |g'| <= 1, and |g''| <= 1 for `order` 2.

    **Arguments:** `axis`; `gaps`, E B(X) - E B(Y) of its basis; `order`.
    **Returns:** a lower bound of the sup over all such functions, and the coefficients of the g that attains it, g(0) = 0.
    """
    from scipy.sparse import vstack

    return _solve(gaps, axis.slope if order == 1 else vstack([axis.slope, axis.curvature]))


def two(
    first: Axis, second: Axis, gaps: Float[np.ndarray, "size1 size2"], order: int = 2
) -> tuple[float, Float[np.ndarray, "size1 size2"]]:
    """The sup over h(y1, y2) whose partial derivatives up to `order` have control coefficients in [-1, 1].

    **Arguments:** the axes; `gaps`, E B_i(X1) B_j(X2) - E B_i(Y1) B_j(Y2); `order`, 1 or 2.
    **Returns:** as `one`.
    """
    from scipy.sparse import eye_array, kron, vstack

    i, j = eye_array(first.size), eye_array(second.size)
    pairs = [(first.slope, j), (i, second.slope)]
    if order == 2:
        pairs += [(first.curvature, j), (first.slope, second.slope), (i, second.curvature)]
    value, found = _solve(gaps.ravel(), vstack([kron(a, b, format="csr") for a, b in pairs]))
    return value, found.reshape(gaps.shape)


def _solve(objective: np.ndarray, rows: Any) -> tuple[float, np.ndarray]:
    """max objective . c over |rows c| <= 1, c_0 = 0; the c returned satisfies the bounds exactly, so the value is attained."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    scale = np.max(np.abs(objective))
    if scale == 0:
        return 0.0, np.zeros(len(objective))
    rows = csr_array(rows)
    both = vstack([rows, -rows], format="csc")
    most = np.ones(2 * rows.shape[0])
    ends = [(0, 0)] + [(None, None)] * (len(objective) - 1)
    answer = linprog(-objective / scale, A_ub=both, b_ub=most, bounds=ends, method="highs-ipm")
    if answer.status != 0:
        raise ArithmeticError(f"the linear programme of the distance was not solved: {answer.message}")
    found = answer.x
    found /= max(1.0, float(np.max(np.abs(rows @ found))))
    return float(objective @ found), found
