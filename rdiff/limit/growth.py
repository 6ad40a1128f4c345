"""Whether h grows more slowly than the law's tails fall, and what lies beyond the region that was solved."""

import math

import numpy as np
from jaxtyping import Float

from rdiff.errors import InputError
from rdiff.limit.march import START, March


def beyond(
    march: March, points: Float[np.ndarray, "points 2"], weights: Float[np.ndarray, " points"], h: Float[np.ndarray, " points"]
) -> float:
    """About E|h| outside the region of the march, from how |h| p falls towards its ends.

    **Raises:** `InputError` where it does not fall.
    """
    along = (march.lengths[:, None] * np.ones(march.stages)).ravel()
    count = len(points) // (len(along) + 8)
    mass = np.abs(weights * h).reshape(-1, count)[: len(along)]
    y = points.reshape(-1, count, 2)[: len(along), 0, 1]
    total = float(np.sum(mass))
    if total == 0.0:
        return 0.0
    return _upwards(march, y, mass.sum(axis=1) / along) + _sideways(mass, total)


def _upwards(march: March, y: np.ndarray, flow: np.ndarray) -> float:
    """y2 beyond `START`/beta: |h| p_2 falls there exponentially, at a rate read off between 0.4 and 0.8 of it."""
    scaled = march.beta * y / START
    far, near = int(np.argmin(np.abs(scaled - 0.8))), int(np.argmin(np.abs(scaled - 0.4)))
    # a Radau weight more or less is within a factor 10
    if flow[far] == 0.0 or flow[near] == 0.0:
        return 0.0
    rate = math.log(flow[near] / y[near] / (flow[far] / y[far])) / (y[far] - y[near])
    if rate < 0.02 * march.beta:
        raise InputError(
            f"the observable grows as fast as the tail of Y2, of order y2 exp(-{march.beta:g} y2), falls (or so nearly that it "
            "cannot be told apart), so its expectation is infinite: only slower growth has one"
        )
    return 10 * flow[far] / y[far] * math.exp(-rate * (START / march.beta - y[far])) / rate


def _sideways(mass: np.ndarray, total: float) -> float:
    """y1 beyond the windows: |h| p falls there like a normal density."""
    edge = float(np.sum(np.max(mass[:, -5:], axis=1)))
    if edge > 1e-5 * total:
        raise InputError(
            "the observable grows in y1 as fast as the density, of order exp(-y1^2/2), falls (or so nearly that it cannot be "
            "told apart), so its expectation is infinite: only slower growth has one"
        )
    return edge
