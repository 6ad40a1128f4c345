"""The exact stationary law of the queue at finite n."""

import dataclasses
import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rdiff.checks import Check, failures, queue_identities
from rdiff.errors import InputError, integer
from rdiff.estimate import Estimate, Estimates
from rdiff.functionals import by_name
from rdiff.progress import Done, progress_bar
from rdiff.provenance import provenance
from rdiff.queue.balance import Balance
from rdiff.queue.elimination import Elimination
from rdiff.queue.law import QueueLaw
from rdiff.queue.observe import evaluate_padded
from rdiff.queue.truncation import GIB, lost_above, plan, slow

_log = logging.getLogger(__name__)
CHUNK = 1 << 16
_UNBALANCED = 1e-10
_CUT = "the window or cap cuts off states that matter here: take a wider one"
_FAR = 8.0  # times the mean number of customers beyond one a server, when there are any
_EPS, _LEAST = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


class ExactQueueLaw(QueueLaw):
    """The stationary law of X by nested elimination, at a cost of the number of states; verified before it answers.

    Relative errors stay near rounding in the smallest probability. Without the law in memory, every question is one more
    pass of the elimination.

    **Arguments:** a `JSQQueue`; `window`: keep X_1 <= window; `cap`: keep X_2 + ... + X_{b+1} <= cap; "auto" for either sets
    both so that what is cut off is below rounding, or has about the probability `tol`, which alone stands for "auto";
    `memory`, GiB; `keep`: whether to hold the law in memory (default: when half of `memory` does);
    `progress`: a bar on stderr.

    **Attributes:** `n`, `b`, `beta`, `lam`, `alpha`; `blocking`, P(Q_{b+1} = n); `residual`, the largest relative error of
    local balance; `outside`, an upper estimate of the probability cut off; `notes`.

    **Raises:** `InputError` when the states do not fit, with a window that would.

    Source: block elimination as of level-dependent quasi-birth-death processes with one gate between levels.

    ```python
    >>> import rdiff
    >>> law = rdiff.JSQQueue(n=100, b=1, beta=1.0).exact()
    >>> est = law.expect(lambda x: x[1])
    >>> round(est.mean, 10), est.stderr, est.error < 1e-11
    (0.5998094576, 0.0, True)

    ```
    """

    def __init__(
        self, queue: Any, *, window: Any = None, cap: Any = None, tol: float | None = None, memory: float = 2.0,
        keep: bool | None = None, progress: bool = False,
    ) -> None:  # fmt: skip
        self.queue, self.progress = queue, progress
        self.space = plan(queue, window, cap, memory, tol)
        if said := slow(queue, self.space):
            _log.warning(said)
        self._kept: np.ndarray | None = None
        self._solve(8 * self.space.count <= memory * GIB / 2 if keep is None else keep)
        self._verify()

    @property
    def blocking(self) -> float:
        """P(Q_{b+1} = n), the share of arrivals that are blocked."""
        return float(self._full[-1])

    @property
    def outside(self) -> float:
        """An upper estimate of the probability of the states cut off by window and cap; 0 when all are kept."""
        above = float(lost_above(self.space, self.lam, self._masses)) if self._capped else 0.0
        return above + math.sqrt(self.n) * self._edge

    @property
    def notes(self) -> tuple[str, ...]:
        """What was cut off, when a double could see it."""
        lost = self.outside
        return (f"states of probability about {lost:.1e} lie outside the window or cap",) if lost > 1e-12 else ()

    def expect(self, h: Any) -> Any:
        """E h(X): an `Estimate` with stderr 0 and `error`, a bound on rounding and truncation; of a dict, `Estimates`.

        **Arguments:** `h`, JAX-traceable, from a state (b + 1,) to a scalar; evaluated in float64. Many h cost one pass.
        **Raises:** `InputError` when h is no scalar, or not finite at some state.
        """
        observables = by_name(h)
        count = len(observables)
        total, edge, by_level = np.zeros(count), np.zeros(count), np.zeros((self.space.top + 1, count))
        for states, weights in self.pieces():
            values = evaluate_padded(observables, self.queue.scaled(states))
            total += weights @ values
            parts = weights[:, None] * np.abs(values)
            level = states[:, self.space.levels - 1]  # in runs
            starts = np.concatenate([[0], np.flatnonzero(np.diff(level)) + 1])
            by_level[level[starts]] += np.add.reduceat(parts, starts)
            if self.space.first:
                edge += parts[(states[:, 0] == self.space.first) & (self.space.levels > 1)].sum(axis=0)
        errors = self._errors(by_level, edge)
        settings = (("n", self.n), ("b", self.b), ("beta", self.beta), ("states", int(self.space.count)), *provenance())
        result = Estimates()
        for name, mean, error in zip(observables, total, errors):
            result[name] = Estimate(float(mean), 0.0, name, error=float(error), settings=settings)
        return result if isinstance(h, Mapping) else next(iter(result.values()))

    def checks(self) -> list[Check]:
        """The queue's identities, which an exact law satisfies to 1e-8 (unless a coarse window cuts off more)."""
        checks = queue_identities(self.n, self.lam, self.b, self._occupancy, self._full, exact=True)
        return [check if check.ok else dataclasses.replace(check, cause=_CUT) for check in checks]

    def marginal(self, i: int) -> np.ndarray:
        """P(Q_i = k), k = 0, ..., n, for the coordinate i = 1, ..., b + 1."""
        if integer("i", i, 1) > self.queue.levels:
            raise InputError(f"i must be at most b + 1 = {self.queue.levels}, got {i}")
        chances = np.zeros(self.n + 1)
        for states, weights in self.pieces():
            chances += np.bincount(states[:, i - 1], weights, self.n + 1)
        return chances

    def poisson(self, h: Any) -> Any:
        """f with G_X f = h - E h(X) on the lattice, f = 0 at X = 0; see `rdiff.queue.poisson.LatticePoisson`."""
        from rdiff.queue.poisson import LatticePoisson

        return LatticePoisson(self, h)

    def stein_factors(self, h: Any, mass: float = 0.9999, *, over: str = "box") -> dict[str, float]:
        """The Stein factors of the prelimit: "f1", "f2", "f11", "f12", "f22", the scaled differences |Delta_i f|/delta and
        |Delta_i Delta_j f|/delta^2 of the lattice's f, delta = 1/sqrt(n), at the states where they exist; one that needs a
        state beyond the edge counts as 0.

        **Arguments:** `over`: "box", the largest over the box of marginal quantiles that carries at least `mass`, as
        `StationaryLaw.stein_factors`; "all", over all states; "weighted", over all, each divided by 1 + x1 + x2; "mean", E.
        """
        from rdiff.queue.poisson import stein_factors

        return stein_factors(self, self.poisson(h), over, mass)

    def pieces(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The law piece by piece: states of occupancy, int64 (m, b + 1), and their probabilities (m,), m <= 65536."""
        held, length = [], 0
        missing = self.queue.levels - self.space.levels
        for level, weights in self._levels():
            states = self.space.at(level)
            if missing:
                states = np.concatenate([states, np.zeros((len(states), missing), np.int64)], axis=1)
            held.append((states, weights))
            length += len(weights)
            if length >= CHUNK:
                states, weights = (np.concatenate(part) for part in zip(*held))
                whole = length // CHUNK * CHUNK
                for start in range(0, whole, CHUNK):
                    yield states[start : start + CHUNK], weights[start : start + CHUNK]
                held, length = [(states[whole:], weights[whole:])], length - whole
        if length:
            states, weights = (np.concatenate(part) for part in zip(*held))
            yield states, weights

    def __repr__(self) -> str:
        return f"ExactQueueLaw(n={self.n}, b={self.b}, beta={self.beta:g}, {self.space.count:,.0f} states)"

    @property
    def _capped(self) -> bool:
        return self.space.levels < self.queue.levels or self.space.top < self.n

    def _levels(self) -> Iterator[tuple[int, np.ndarray]]:
        """pi of each outer level, in one order or the other."""
        if self._kept is None:
            for level, v in self._excursions("averaging"):
                yield level, self._scales[level] * v
            return
        sizes = self.space.sizes[self.space.levels - 1]
        start = 0
        for level in range(self.space.top + 1):
            yield level, self._kept[start : start + int(sizes[level])]
            start += int(sizes[level])

    def _excursions(self, what: str) -> Iterator[tuple[int, np.ndarray]]:
        """One pass of the elimination, watched."""
        done = 0
        with progress_bar(self.progress, what=what) as show:
            for level, v in Elimination(self.space, self.queue.arrivals).excursions():
                yield level, v
                done += len(v)
                show(Done(done, int(self.space.count)))

    def _solve(self, keep: bool) -> None:
        """The pass that scales the levels, takes the moments of the checks, and sees to local balance."""
        space, arrivals = self.space, self.queue.arrivals
        levels, inner = space.levels, space.inner
        sizes = space.sizes[levels - 1][: space.top + 1].astype(np.int64)
        ends = np.cumsum(sizes)
        if keep:
            self._kept = np.empty(int(ends[-1]))
        edge = (inner[:, :1] == space.first) & (space.first > 0)
        features = np.concatenate([np.ones((len(inner), 1)), inner, inner == space.n, edge[:, :1]], axis=1)
        if levels == 1:
            features = np.array([[1.0, 0.0]])  # no inner levels, no edge
        moments, gates = np.zeros((space.top + 1, features.shape[1])), np.zeros(space.top + 1)
        balance = Balance(space, arrivals)
        self.residual, least = 0.0, math.inf
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            for level, v in self._excursions("solving"):
                moments[level] = v @ features[: len(v)]
                gates[level], least = v[0], float(np.minimum(least, v.min()))  # of numpy: a NaN stays one
                self.residual = float(np.maximum(self.residual, balance.residual(level, v)))
                if self._kept is not None:
                    self._kept[ends[level] - sizes[level] : ends[level]] = v
            scales = _products(arrivals * gates[:-1])
            self._scales = scales / (scales @ moments[:, 0])
        self.least = least
        if self._kept is not None:
            self._kept *= np.repeat(self._scales, sizes)
        chances = self._scales @ moments
        outer = np.arange(space.top + 1)
        self._masses = self._scales * moments[:, 0]
        missing = np.zeros(self.queue.levels - levels)
        self._occupancy = np.concatenate([chances[1:levels], [self._masses @ outer], missing])
        self._full = np.concatenate([chances[levels : 2 * levels - 1], [self._masses @ (outer == space.n)], missing])
        self._at_cap, self._edge = float(self._scales[-1] * gates[-1]), float(chances[-1])

    def _verify(self) -> None:
        """Refuses to answer when the law does not satisfy what defines it."""
        truth = [float(self._masses.sum() - 1), float(np.minimum(self.least, 0.0))]
        # The chain that was solved blocks at the cap, and at the edge of the window.
        full = self._full[: self.space.levels].copy()
        full[-1] = self._at_cap
        identities = queue_identities(self.n, self.lam, 0.0, self._occupancy[: len(full)], full, exact=True)
        broken = [] if self._edge > 1e-15 else failures(identities)
        if not np.max(np.abs(truth)) <= 1e-10 or not self.residual < _UNBALANCED or broken:
            raise ArithmeticError(
                f"the exact law failed its own checks: sum - 1 and least probability {truth}, relative local balance "
                f"{self.residual:.1e}; {'; '.join(broken)}"
            )

    def _errors(self, by_level: np.ndarray, edge: np.ndarray) -> np.ndarray:
        """Rounding and truncation, from E |h| over each outer level and at the edge of the window."""
        size, root, drift = by_level.sum(axis=0), math.sqrt(self.n), self.queue.drift
        # A relative error e of all arrival rates moves beta by sqrt(n) e, and E h by (d E h/d beta)/E h < 1 + 2/beta^2 of that.
        errors = max(self.residual, 4 * _EPS) * (1 + root * (1 + 2 / drift**2)) * size
        if self._capped:
            # E h is off by the flow blocked at the cap, n lam pi(gate), times what one customer more changes from there on:
            # h as it is there, for the time 1/(n - n lam) that it takes to be rid of one. 3 for safety.
            there = (by_level / np.maximum(self._masses, _LEAST)[:, None]).max(axis=0)
            errors = errors + 3 * self.lam / (1 - self.lam) * self._at_cap * (there + size)
            most = self.space.top + max(self.space.levels - 2, 0) * self.n
            if most * (1 - self.lam) < _FAR:  # h may grow much beyond so low a cap
                reach = 1 + most / root
                mass = min(float(lost_above(self.space, self.lam, self._masses)), 1 / _LEAST)
                errors = np.maximum(errors, reach * (lost_above(self.space, self.lam, by_level) + mass * size))
        if self.space.first:
            errors = errors + (self.n - self.space.first) * (edge + self._edge * size)
        return errors


def _products(ratios: np.ndarray) -> np.ndarray:
    """1, r_1, r_1 r_2, ... over a power of 2: with b = 0 and n > 700 they pass the largest double, e^n among them."""
    mantissa, exponent, found = 1.0, 0, [(1.0, 0)]
    for ratio in ratios.tolist():
        mantissa, shift = math.frexp(mantissa * ratio)
        exponent += shift
        found.append((mantissa, exponent))
    mantissas, exponents = np.array(found).T
    return np.ldexp(mantissas, (exponents - exponents.max()).astype(int))
