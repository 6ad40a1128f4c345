"""Local balance of an exact law, state by state, through the same rates that the simulator uses."""

import numpy as np

from rdiff.queue.chain import rates
from rdiff.queue.space import Space

_TINY = 1e-290  # far below it a double has lost digits


class Balance:
    """Inflow against outflow at every state of one outer level after the other.

    `residual` takes the excursions v_l of `rdiff.queue.elimination` from the top level down.
    """

    def __init__(self, space: Space, arrivals: float):
        self.space, self.arrivals = space, arrivals
        inner = space.inner
        block = Space(space.n, max(space.levels - 1, 1), space.first)
        self._columns = np.ascontiguousarray(inner.T, dtype=np.float64)
        self._risen = [_neighbours(block, inner, i, 1) for i in range(1, inner.shape[1])]
        self._fallen = [_neighbours(block, inner, i, -1) for i in range(1, inner.shape[1])]
        self._above = np.zeros(0)

    def residual(self, level: int, v: np.ndarray) -> float:
        """The largest |inflow - outflow|/outflow at this level, when pi_{l-1} sends a flow of 1 to its gate."""
        size = len(v)
        q = (*self._columns[:, :size], level)
        up, down = rates(q, self.space.n, self.arrivals)
        if self.space.first and self.space.levels > 1:
            down = (np.where(q[0] == self.space.first, 0, down[0]), *down[1:])  # blocked at the edge of the window
        out = v * (sum(up) + sum(down))
        into = np.zeros(size)
        if self.space.levels > 1:  # moves along a line of Q_1; none leads out of it
            into[1:] = (v * down[0])[:-1]
            into[:-1] += (v * up[0])[1:]
        for rate, places in ((down[1:], self._risen), (up[1:], self._fallen)):
            for r, place in zip(rate, places):  # other moves within the level
                flow = np.append(v * r, 0.0)
                into += flow[np.minimum(place[:size], size)]
        leaves = float(v[0] * np.broadcast_to(up[-1], v.shape)[0])
        if level == self.space.top:
            into[0] += leaves  # blocked: returned at once (0 at n, where there is no such arrival)
        else:
            into[: len(self._above)] += leaves * (level + 1) * self._above
        into[0] += level > 0
        self._above = v
        return float(np.max(np.abs(into - out) / (np.maximum(out, into) + _TINY)))


def _neighbours(block: Space, q: np.ndarray, i: int, step: int) -> np.ndarray:
    """Where each state stands with one more or less at a level, beyond the end where it is none."""
    if step > 0:
        exists = q[:, i] < q[:, i - 1]
    else:
        exists = q[:, i] > (q[:, i + 1] if i + 1 < q.shape[1] else 0)
    return np.where(exists, np.arange(len(q)) + block.shift(q, i, step), len(q))
