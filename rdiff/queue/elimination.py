"""The stationary law of the queue by nested elimination, level after level of the outermost coordinate.

Group states by the outer level l = Q_{b+1}. It rises only at the gate of its block, the state Q_1 = ... = Q_b = n, at rate
n lam, and falls at rate l from every state. So pi_l = n lam pi_{l-1}(gate) v_l, where v_l, the time spent at l in an
excursion from the gate, solves v_l M_l = e_gate + n lam v_l(gate) r_{l+1}, M_l being minus the generator within the block
and r_{l+1} = (l+1) v_{l+1} the law of the return from above. With the rows y = e_gate M_l^{-1}, z = r_{l+1} M_l^{-1},

    v_l = y + (n lam y_gate/den) z,      den = 1 - n lam z_gate = l sum(z),

and the last form is used: the difference would lose the small levels altogether. A row x M = c within a block has the same
structure with one coordinate fewer, down to tridiagonal systems in Q_1. There blocks are also left at their lower bound
`low`, and den = rho_{m+1} + m sum(z), where rho_m = low sum(v_m) + n lam v_m(gate) rho_{m+1} is the chance that an excursion
to m or above ends by leaving the block. Every term is positive: relative errors stay at rounding in the smallest probability.
"""

from collections.abc import Iterator

import numpy as np
from scipy.linalg.lapack import dgttrs, dpttrf  # pyright: ignore[reportAttributeAccessIssue]

from rdiff.queue.space import Space

_SHORTEST = 3  # unknowns that scipy's LAPACK wrapper takes
_CALL, _ENTRY, _ROW = 1.5e-5, 5e-8, 1.5e-9  # seconds: a nested block; a state in one; and there for each row beside


def seconds(space: Space) -> float:
    """About how long an elimination of `space` takes.

    Like the number of states, but where levels are many and servers few: the blocks nest as deep as there are levels, and all
    rows of the blocks around them are carried along.
    """
    blocks, states, total = np.ones(space.n + 1), space.sizes[1], 0.0
    cost = _ENTRY + _ROW * space.levels
    for k in range(2, space.levels):
        total += _CALL * blocks.sum() + cost * states.sum()  # the gates of the level before
        blocks = 1 + np.append(np.cumsum(blocks[::-1])[::-1][:-1], 0)  # a block of one state has none inside
        states = space.sizes[k] + np.cumsum(states[::-1])[::-1]
    outer = slice(space.top + 1)
    return total + float(_CALL * blocks[outer].sum() + cost * states[outer].sum())


class Elimination:
    """The excursions v_l of the queue on `space`, arrivals at rate `arrivals`.

    At the top level arrivals at the gate are blocked. With space.first > 0, departures that would lead below it are.
    """

    def __init__(self, space: Space, arrivals: float):
        self.space, self.arrivals = space, arrivals
        self._lines: dict[int, tuple] = {}
        self._gates: dict[tuple[int, int], np.ndarray] = {}

    def excursions(self) -> Iterator[tuple[int, np.ndarray]]:
        """(l, v_l) from the top level down; v_0 is proportional to pi_0, and n lam v_0(gate) = 1."""
        inner = self.space.levels - 1
        returns = np.zeros(0)
        for level in range(self.space.top, -1, -1):
            rows = np.zeros((2, self._size(inner, level)))
            rows[0, 0] = 1.0
            if level == self.space.top:
                returns = rows[0].copy()  # blocked: back at the gate at once
            rows[1, : len(returns)] = returns
            y, z = self._solve(inner, level, rows)
            # From level 0 nothing falls: the chain returns to the gate for sure.
            v = z if level == 0 else y + (self.arrivals * y[0] / (level * z.sum())) * z
            yield level, v
            returns = level * v

    def _size(self, k: int, low: int) -> int:
        return int(self.space.sizes[k][low])

    def _solve(self, k: int, low: int, rows: np.ndarray) -> np.ndarray:
        """x of x M = c for each of `rows`, (rows, states), in the block of k inner levels from `low` on."""
        if k == 0 or low == self.space.n:  # one state
            return rows / (self.arrivals + low)
        if k == 1:
            return self._solve_line(low, rows)
        n, rate = self.space.n, self.arrivals
        x, excursions, sizes = np.empty_like(rows), np.empty(rows.shape[1]), []
        v, a, leaves, start = np.zeros(0), rows[:, :0], 1.0, 0
        at_gate = np.empty((n - low + 1, len(rows) + 1))
        for m in range(n, low - 1, -1):
            size, above = self._size(k - 1, m), len(v)
            inside = slice(start, start + size)
            falls = m + 1 - low
            right = np.empty((len(rows) + 1, size))
            right[0, :above], right[0, above:] = falls * v, 0.0
            right[1:] = rows[:, inside]
            right[1:, :above] += falls * a
            solved = self._solve(k - 1, m, right)
            z, a = solved[0], solved[1:]
            scaled = (rate / (leaves + m * z.sum())) * z
            a += a[:, :1] * scaled
            y = self._gate(k - 1, m)
            v = y + y[0] * scaled
            leaves = low * v.sum() + rate * v[0] * leaves
            x[:, inside], excursions[inside] = a, v
            at_gate[n - m, 0], at_gate[n - m, 1:] = v[0], a[:, 0]
            sizes.append(size)
            start += size
        # Upwards: x_m = a_m + n lam x_{m-1}(gate) v_m.
        factors = np.zeros((len(rows), n - low + 1))
        before = np.zeros(len(rows))
        for j in range(n - low, -1, -1):
            factors[:, j] = rate * before
            before = at_gate[j, 1:] + factors[:, j] * at_gate[j, 0]
        x += np.repeat(factors, sizes, axis=1) * excursions
        return x

    def _gate(self, k: int, low: int) -> np.ndarray:
        """The row from the gate, e_gate M^{-1}; kept, since every outer level asks for it."""
        if (k, low) not in self._gates:
            row = np.zeros((1, self._size(k, low)))
            row[0, 0] = 1.0
            self._gates[k, low] = self._solve(k, low, row)[0]
        return self._gates[k, low]

    def _solve_line(self, low: int, rows: np.ndarray) -> np.ndarray:
        """Tridiagonal systems, eliminated from Q_1 = low up to the gate."""
        count = rows.shape[1]
        if count < _SHORTEST:  # unknowns of their own beside
            rows = np.concatenate([rows, np.zeros((len(rows), _SHORTEST - count))], axis=1)
        solved, info = dgttrs(*self._line(low), rows[:, ::-1].T)
        assert info == 0
        return solved.T[:, ::-1][:, :count]

    def _line(self, low: int) -> tuple:
        """The factors of M^T on the states Q_1 = max(low, first), ..., n, without pivoting.

        All pivots are at least n lam, and for low = 0 equal to it: rows swapped over rounding, or pivots that are off by it,
        would cost what makes the small probabilities right.
        """
        if low in self._lines:
            return self._lines[low]
        q = np.arange(max(low, self.space.first), self.space.n + 1, dtype=np.float64)
        pivots, rise, fall = self.arrivals + q, np.full(len(q) - 1, -self.arrivals), low - q[1:]
        pivots[0] = self.arrivals + low  # no departure from Q_1 at the bottom of a line
        if len(q) < _SHORTEST:
            alone = np.zeros(_SHORTEST - len(q))
            pivots, rise, fall = (np.concatenate(part) for part in ((alone + 1, pivots), (alone, rise), (alone, fall)))
        if low == 0:
            pivots[-len(q) :] = self.arrivals
        else:  # those of a symmetric matrix with the same products
            pivots, _, info = dpttrf(pivots, np.sqrt(rise * fall))
            assert info == 0
        factors = (rise / pivots[:-1], pivots, fall, np.zeros(len(pivots) - 2), np.arange(1, len(pivots) + 1, dtype=np.int32))
        if self.space.levels > 2:
            self._lines[low] = factors
        return factors
