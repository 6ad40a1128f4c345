"""The states that an exact law keeps, in the order of its elimination."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Space:
    """States n >= Q_1 >= ... >= Q_levels with Q_1 >= first and Q_levels <= last.

    Sorted downwards by the last level, then the one before, and so on: a block of k inner levels, all at least `low`, is
    laid out as its sub-blocks by Q_k = n, ..., low. So its *gate*, the state (n, ..., n) that alone leads to the next block,
    comes first, and the block of `low` is the beginning of the block of 0.

    `first` bounds Q_1 only beside further levels: of one level, all are kept up to `last`.
    """

    n: int
    levels: int
    first: int = 0
    last: int | None = None

    @property
    def top(self) -> int:
        """The largest outer level."""
        return self.n if self.last is None else self.last

    @functools.cached_property
    def sizes(self) -> list[np.ndarray]:
        """sizes[k][low]: the states of the block of k inner levels that are at least `low` (floats: they may be huge)."""
        low = np.arange(self.n + 1, dtype=np.float64)
        sizes = [np.ones(self.n + 1), self.n + 1 - np.maximum(low, self.first)]
        for _ in range(2, self.levels):
            sizes.append(np.cumsum(sizes[-1][::-1])[::-1])
        return sizes

    @property
    def count(self) -> float:
        """The number of states."""
        return float(self.sizes[self.levels - 1][: self.top + 1].sum())

    @property
    def block(self) -> float:
        """The number of states of the largest block of one outer level."""
        return float(self.sizes[self.levels - 1][0])

    @functools.cached_property
    def inner(self) -> np.ndarray:
        """The block of 0: (states, levels - 1)."""
        if self.levels == 1:
            return np.zeros((1, 0), np.int64)
        states = np.arange(self.n, self.first - 1, -1)[:, None]
        for k in range(1, self.levels - 1):
            heads = [states[: int(size)] for size in self.sizes[k][::-1]]
            outer = np.repeat(np.arange(self.n, -1, -1), [len(head) for head in heads])
            states = np.concatenate([np.concatenate(heads), outer[:, None]], axis=1)
        return states

    @functools.cached_property
    def _starts(self) -> list[np.ndarray]:
        """By level k and Q_k: how many states, of the same levels beyond the k-th, come before the first with this Q_k."""
        starts = [np.append(sizes, 0.0)[1:].astype(np.int64) for sizes in self.sizes[1 : self.levels]]
        outer = self.sizes[self.levels - 1][: self.top + 1].astype(np.int64)
        return [*starts, np.append(np.cumsum(outer[::-1])[::-1][1:], 0)]

    def places(self, q: np.ndarray) -> np.ndarray:
        """Where the states q, (..., levels), stand in the order of all(); -1 for what is none of them."""
        below = np.concatenate([q[..., 1:], np.zeros((*q.shape[:-1], 1), q.dtype)], axis=-1)
        kept = np.all(q >= below, axis=-1) & (q[..., 0] <= self.n) & (q[..., -1] <= self.top)
        if self.levels > 1:
            kept &= q[..., 0] >= self.first
        starts = zip(self._starts, np.moveaxis(np.where(kept[..., None], q, 0), -1, 0))
        return np.where(kept, sum(start[at] for start, at in starts), -1)

    def shift(self, q: np.ndarray, i: int, step: int) -> np.ndarray:
        """How far behind the states q, (states, levels), those with `step` more at the level of index i stand; where these are
        states."""
        start = self._starts[i]
        return start[np.clip(q[:, i] + step, 0, len(start) - 1)] - start[q[:, i]]

    def at(self, level: int) -> np.ndarray:
        """The states with Q_levels = level: (states, levels)."""
        size = int(self.sizes[self.levels - 1][level])
        return np.concatenate([self.inner[:size], np.full((size, 1), level)], axis=1)

    def all(self) -> np.ndarray:
        """All states: (count, levels)."""
        return np.concatenate([self.at(level) for level in range(self.top, -1, -1)])
