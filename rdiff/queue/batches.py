"""Batch means: averages over stretches of equal time, from which the error of a correlated series is read.

Schmeiser, Batch size effects in the analysis of simulation output, Operations Research 30 (1982): 10 to 30 batches are
enough for the interval, and more batches only risk correlated ones.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

FEWEST, BATCHES = 10, 30
_PARTS = 4  # of a chain when chains are many: to see a start that has not worn off
_FEW_ROWS, _FEW_DRAWS, _LAG, _FAR = 100, 50, 0.5, 4.5


@dataclasses.dataclass(frozen=True)
class BatchMeans:
    """Averages over batches: `means` (batches, observables), the time in each (`weights`), its `chain`; `mean` of all.

    Batches are in order of time within a chain, and never reach across chains. `rows` counts the rows averaged;
    `independent` says that each batch is an independent run.
    """

    means: np.ndarray
    weights: np.ndarray
    chain: np.ndarray
    mean: np.ndarray
    rows: int
    independent: bool = False

    @classmethod
    def of_runs(cls, values: np.ndarray, weights: np.ndarray) -> "BatchMeans":
        """Every row (rows, observables) an independent run."""
        return cls(values, weights, np.arange(len(values)), _mean(values, weights), len(values), independent=True)

    @classmethod
    def of_chains(
        cls, values: np.ndarray, durations: np.ndarray, chains: Sequence[slice], batches: int = BATCHES
    ) -> "BatchMeans":
        """Rows that hold for `durations`, chain after chain: `batches` in all, or 4 a chain when chains are many.

        Rows are constant pieces: the end of a batch splits the one that it falls in.
        """
        total = float(durations.sum())
        means, weights, owner = [], [], []
        for c, rows in enumerate(chains):
            d, v = durations[rows], values[rows]
            span = float(d.sum())
            if span <= 0:
                continue
            least = _PARTS if len(chains) >= BATCHES else 1
            count = min(max(least, round(batches * span / total)), int(np.count_nonzero(d)))
            clock = np.concatenate([[0.0], np.cumsum(d)])
            edges = np.linspace(0.0, clock[-1], count + 1)
            centre = np.median(v, axis=0)  # integrate what is left: constants and rare events stay exact
            sums = np.concatenate([np.zeros((1, v.shape[1])), np.cumsum((v - centre) * d[:, None], axis=0)])
            integral = np.stack([np.interp(edges, clock, s) for s in sums.T], axis=1)
            width = clock[-1] / count
            means.append(centre + np.diff(integral, axis=0) / width)
            weights.append(np.full(count, width))
            owner.append(np.full(count, c))
        rows = int(np.count_nonzero(durations))
        mean = _mean(values, durations)
        return cls(np.concatenate(means), np.concatenate(weights), np.concatenate(owner), mean, rows)

    @functools.cached_property
    def units(self) -> "BatchMeans":
        """What the error is read from: the batches, or whole chains when there are 30 or more of them."""
        names, index = np.unique(self.chain, return_inverse=True)
        if self.independent or len(names) < BATCHES:
            return self
        weights = np.bincount(index, self.weights)
        sums = np.stack([np.bincount(index, self.weights * m) for m in self.means.T], axis=1)
        return BatchMeans(sums / weights[:, None], weights, names, self.mean, self.rows)

    @property
    def dof(self) -> int:
        """Degrees of freedom of the standard errors."""
        return len(self.units.weights) - 1

    @property
    def stderr(self) -> np.ndarray:
        """Standard errors (observables,); NaN from one batch."""
        units = self.units
        if units.dof < 1:
            return np.full(units.means.shape[1], math.nan)
        share = units.weights / units.weights.sum()
        spread = share @ (share[:, None] * (units.means - self.mean) ** 2)
        return np.sqrt(spread * (units.dof + 1) / units.dof)

    def cautions(self, j: int, ess: float) -> tuple[str, ...]:
        """Why the error of observable `j`, worth `ess` independent rows, should not be trusted."""
        units, found = self.units, []
        series = units.means[:, j]
        if self.rows < 2:
            return ("one row has no standard error",)
        if self.independent:
            return (f"only {self.rows} runs: the error itself is uncertain",) if self.rows < 10 else ()
        if self.rows < _FEW_ROWS:
            found.append(f"only {self.rows} rows, too few to see how strongly they are correlated")
        if np.ptp(series) == 0:
            found.append("the observable is the same in every row: an error of 0 says nothing of values not seen")
            return tuple(found)
        values, counts = np.unique(series, return_counts=True)
        if counts.max() > len(series) / 2:
            rest = len(series) - counts.max()
            found.append(f"a rare event: only {rest} of {len(series)} batches differ from {values[counts.argmax()]:.4g}")
        elif ess < _FEW_DRAWS:
            found.append(f"worth only {ess:.0f} independent rows: the record is short for its correlation")
        if self._lag(j) > _LAG:
            found.append(f"batches are correlated ({self._lag(j):.2f}): the record is short and the error too small")
        if self._start(j) > _FAR:
            found.append(f"the first batch is {self._start(j):.1f} standard deviations off: burn-in too short")
        return tuple(found)

    def _lag(self, j: int) -> float:
        """Correlation of neighbouring units of one chain; 0 where too few to tell."""
        units = self.units
        d = units.means[:, j] - self.mean[j]
        pair = units.chain[1:] == units.chain[:-1]
        return float((d[1:] * d[:-1])[pair].mean() / (d**2).mean()) if pair.sum() >= 10 else 0.0

    def _start(self, j: int) -> float:
        """How far the chains' first batches lie from the later ones, in standard deviations of that difference."""
        first = np.append(True, self.chain[1:] != self.chain[:-1])
        m = self.means[:, j]
        if (~first).sum() < FEWEST - 1:
            return 0.0
        later = m[~first]
        scale = later.std(ddof=1) * math.sqrt(1 / first.sum() + 1 / len(later))
        gap = abs(m[first].mean() - later.mean())
        return gap / scale if scale > 0 else (math.inf if gap > 0 else 0.0)


def _mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted average of the rows; of a constant, that constant exactly."""
    centre = np.median(values, axis=0)
    return centre + weights @ (values - centre) / weights.sum()
