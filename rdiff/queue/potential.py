"""Integrals along the queue's paths until it meets one state, for all starts at once, level after level.

u(x) = E_x of the integral of c(X(t)) until the pin, a state of the bulk, solves M u = c, M being minus the generator with the
pin's row and column left out. With the states grouped by the outer level m as in `rdiff.queue.elimination`, level m leads up
only from its gate to the gate of m + 1, at rate n lam, and down from every state to the same one of level m - 1. So from the
bottom up, u on level m is a_m + n lam b_m u_{m+1}(gate): a_m what is gathered before the gate of m + 1 is entered, n lam b_m
the chance that it is. With M_m within the level, which has the same structure with one coordinate fewer,

    M_m u_m = c_m + m (a_{m-1} + n lam b_{m-1} u_m(gate)) + n lam e_gate u_{m+1}(gate),

three right-hand sides and a division by 1 - w, w the chance to fall from the gate and come back to it before any exit. It is
at most 1/(1 + lam), for an arrival may come first; every other operation adds what has the sign of c. Then from the top down.
"""

import numpy as np
from scipy.linalg.lapack import dgttrf, dgttrs  # pyright: ignore[reportAttributeAccessIssue]

from rdiff.queue.space import Space

_SHORTEST = 3  # unknowns that scipy's LAPACK wrapper takes


class Potential:
    """M^{-1} of the queue on `space`, arrivals at rate `arrivals`, killed at `pin` = (Q_1, 0, ..., 0), Q_1 about n lam.

    Arrivals are blocked at the gate of the top level, and departures that would lead below `space.first`.
    """

    def __init__(self, space: Space, arrivals: float):
        self.space, self.arrivals = space, arrivals
        self.pin = min(space.n, max(space.first, round(arrivals)))
        self._lines: dict[int, tuple] = {}

    def solve(self, c: np.ndarray) -> np.ndarray:
        """u at all states from c there, both in the order of `space.all()`; u = 0 at the pin, where c does not matter."""
        levels = self.space.levels
        if levels == 1:
            return self._solve_line(0, c[None], self.space.top)[0]
        return self._solve(levels, 0, c[None], self.space.top)[0]

    def _solve(self, k: int, low: int, rows: np.ndarray, closed: int | None = None) -> np.ndarray:
        """M^{-1} c for each c of `rows`, (rows, states), in the block of k levels from `low` on; its gate leads out of it.

        With `closed`, its top level, arrivals at the gate are blocked instead.
        """
        if k == 1:
            return self._solve_line(low, rows)
        top, rate, count = self.space.n if closed is None else closed, self.arrivals, len(rows)
        u, b = np.empty_like(rows), np.empty(rows.shape[1])
        sizes = self.space.sizes[k - 1][low : top + 1].astype(np.int64)
        ends = np.cumsum(sizes[::-1])[::-1]  # of level m, as levels are laid out from the top down
        levels = [slice(end - size, end) for size, end in zip(sizes, ends)]
        for fall, here in enumerate(levels):
            size = int(sizes[fall])
            right = np.zeros((count + 2, size))
            right[:count] = rows[:, here]
            right[-1, 0] = 1.0
            if fall:
                below = slice(levels[fall - 1].start, levels[fall - 1].start + size)
                right[:count] += fall * u[:, below]
                right[count] = fall * rate * b[below]
            solved = self._solve(k - 1, low + fall, right)
            back = solved[count] / (1 - solved[count, 0])
            u[:, here] = solved[:count] + solved[:count, :1] * back
            b[here] = solved[-1] + solved[-1, 0] * back
        gate = np.zeros(count)
        if closed is not None:
            start = levels[-1].start
            gate = u[:, start] / (1 - rate * b[start])
        for here in reversed(levels):
            u[:, here] += (rate * gate)[:, None] * b[here]
            gate = u[:, here.start]
        return u

    def _solve_line(self, low: int, rows: np.ndarray, closed: int | None = None) -> np.ndarray:
        """Tridiagonal systems along Q_1 = n, ..., max(low, first)."""
        top = self.space.n if closed is None else closed
        count = rows.shape[1]
        if low == 0:
            rows = rows.copy()
            rows[:, top - min(self.pin, top)] = 0.0
        if count < _SHORTEST:  # unknowns of their own beside
            rows = np.concatenate([rows, np.zeros((len(rows), _SHORTEST - count))], axis=1)
        solved, info = dgttrs(*self._line(low, top, closed is not None), rows.T)
        assert info == 0
        return solved.T[:, :count]

    def _line(self, low: int, top: int, closed: bool) -> tuple:
        """The factors of M on a line; its rows dominate, so pivots are never small."""
        if low in self._lines:
            return self._lines[low]
        first = 0 if self.space.levels == 1 else self.space.first
        q = np.arange(top, max(low, first) - 1, -1, dtype=np.float64)
        diagonal, rise, fall = self.arrivals + q, np.full(len(q) - 1, -self.arrivals), low - q[:-1]
        diagonal[-1] = self.arrivals + low  # no departure from Q_1 at the bottom of a line
        if closed:
            diagonal[0] -= self.arrivals
        if low == 0:
            pin = top - min(self.pin, top)
            diagonal[pin], rise[pin - 1 : pin], fall[pin : pin + 1] = 1.0, 0.0, 0.0
        alone = np.zeros(max(_SHORTEST - len(q), 0))
        rise, diagonal, fall = (np.concatenate(part) for part in ((rise, alone), (diagonal, alone + 1), (fall, alone)))
        *factors, info = dgttrf(rise, diagonal, fall)
        assert info == 0
        if self.space.levels > 2:
            self._lines[low] = tuple(factors)
        return tuple(factors)
