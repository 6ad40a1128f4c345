"""`Samples`: the law that a simulator's rows stand for, with errors that respect time and correlation."""

import dataclasses
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rdiff.checks import Check, failures, queue_identities
from rdiff.errors import InputError, integer
from rdiff.estimate import Estimate, Estimates
from rdiff.export import arviz_data
from rdiff.functionals import by_name
from rdiff.provenance import provenance
from rdiff.queue import customers
from rdiff.queue.batches import BATCHES, FEWEST, BatchMeans
from rdiff.queue.formats import Format, occupancy
from rdiff.queue.holding import Holding
from rdiff.queue.load import Load, Log, complete_log, from_arrivals, from_occupancy, other_clock, waiting_only
from rdiff.queue.observe import evaluate, require_linear
from rdiff.queue.problems import Record
from rdiff.queue.rows import flat, label, numbers, slices, starts_empty, unique
from rdiff.queue.system import System

_log = logging.getLogger(__name__)
# By simulation at n = 4, 25, 100 and beta = 0.5, 1, 2: from here on 95% intervals called reliable cover 89% or more.
_RELAXATIONS = 80
_BATCH = 5  # relaxation times a batch, where the record has them: shorter batches are correlated and their error too small
_SHOWN = 3
_ASKED = ("grid of times", "estimated from", "from their arrivals")  # notes on what was asked for: no guesses


class Samples:
    r"""Samples of a queue as a law of X: X_1 = (n - Q_1)/sqrt(n) and X_i = Q_i/sqrt(n), i >= 2, row by row.

    **Arguments:**

    - `array`: numbers, (rows, columns) or (chains, rows, columns), written as `format`: "occupancy" Q_1..Q_{b+1},
      "lengths" of the n servers (in service included), "fractions" Q_i/n, "scaled" X itself. A leading Q_0 is dropped.
      Or "customers", one a row: arrival, departure (NaN: still present), server; these have their time in them. A
      DataFrame does, if all of its columns are these, and an xarray DataArray, whose dimension "chain" holds chains.
    - `n` servers, `b` places to wait at each (or `inf`), and `beta` or `lam` = 1 - beta/sqrt(n). `lam="estimated"`: from
      the arrivals of a complete log, else from E Q_1; its error goes into `beta_stderr`, and into every comparison.
    - `weights`: "time" (a row counts for as long as its state holds; the default when `time` is given), "regular" (rows
      on a grid of times), "arrivals" (states seen by arrivals just before they join), or one number a row.
    - `time`: one a row, in mean service times. `hold`: a state lasts until the "next" time or since the "previous".
      `end_time`: when the last row ends, or where the record is cut: one for all chains, a list in the order in which the
      chains first appear, or a dict by chain label.
    - `burn_in`: time to drop, counted from the first row of each chain; or `burn_in_rows`.
    - `averages`: each row is the average of an independent run; then only h that are linear are allowed.
    - `chain`: a label a row, when (rows, columns) holds several chains; they count in order of first appearance.
    - `names` of the columns and `lines`, the numbers of the rows in a file: what messages call them.

    Standard errors come from 10 to 30 batches of equal time (never across chains), five relaxation times long where the
    record has that many; intervals from Student's t. A record of fewer than 80 relaxation times is not reliable. Checks
    of a complete log, where every move is by one customer, use the exact error of the queue's martingale instead.

    **Attributes:** `n`, `b`, `beta`, `lam`; `beta_stderr`, the standard error of an estimated beta (0 of a given one);
    `x` (rows, levels) float64, the rows that count; `weights` (rows,), how much each counts; `chain` (rows,), the chain it
    belongs to; `chains`, how many; `notes`, what was guessed or left out.

    **Raises:** `InputError` naming row and column, what was found and expected, and the usual cause; also when E Q_1 shows
    that the customer in service was left out, or a load far from `lam`.

    ```python
    >>> import numpy as np, rdiff
    >>> rows = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 100)
    >>> S = rdiff.Samples(rows, n=4, b=1, beta=1.0, weights="regular")
    >>> float(S.expect(lambda x: x[0]).mean)
    0.25

    ```
    """

    def __init__(
        self, array: Any, *, n: Any, b: Any, beta: Any = None, lam: Any = None, format: Format = "occupancy",
        weights: Any = None, time: Any = None, hold: Literal["next", "previous"] = "next", end_time: Any = None,
        burn_in: Any = None, burn_in_rows: int | None = None, averages: bool = False, chain: Any = None,
        names: Sequence[str] | None = None, lines: Any = None,
    ) -> None:  # fmt: skip
        estimated = isinstance(lam, str) and lam == "estimated"
        if estimated and beta is not None:
            raise InputError(f"beta = {beta} is given, and lam is to be estimated: they are one parameter, give one of them")
        self.system = System.of(n, b, beta, 0.5 if estimated else lam)
        self.averages = bool(averages)
        names = names if names is not None else [str(c) for c in getattr(array, "columns", [])] or None
        array = numbers(array)
        record = label(array.shape, names, lines)
        rows, chain_of, chain_labels = flat(array, chain, record)
        if self.averages:
            if time is not None or (isinstance(weights, str) and weights != "regular"):
                raise InputError("rows that are averages of runs have no time: give neither time nor weights of time")
            weights = "regular" if weights is None else weights
        q, notes = None, []
        if format == "customers":
            if time is not None or weights not in (None, "time") or self.averages or burn_in_rows is not None:
                raise InputError("customers have their times in them: give no time, weights, burn_in_rows or averages")
            time, q, chain_of, notes = customers.events(*customers.columns(rows, record), chain_of, self.system, record)
            rows, record = q, label(q.shape, None, None)
        held = Holding.of(weights, time, hold, end_time, burn_in, burn_in_rows, len(rows), chain_labels)
        if q is None:
            q, notes = occupancy(rows, self.system, format, self.averages, record)
        order = np.argsort(chain_of, kind="stable")
        q, chain_of = q[order], chain_of[order]
        durations, said = _durations(held, order, chain_of, record)
        keep = durations > 0
        self._log = complete_log(q, durations, chain_of) if _by_time(held) else None
        self._load = self._estimated(q, durations, record) if estimated and keep.any() else None
        if self._load is not None:
            self.system = System.of(n, b, lam=self._load.lam)
        load = self.n * self.lam
        self._starts_empty = starts_empty(q, durations, chain_of, order, load, self.averages, record)
        record.refuse()
        if not keep.any():
            why = f": {'; '.join(said)}" if said else ""
            raise InputError(f"no row counts: burn-in, end time and weights leave nothing of {len(rows)} rows{why}")
        self.weights = durations[keep]
        labels, self.chain = np.unique(chain_of[keep], return_inverse=True)
        self.chains = len(labels)
        self._states, self._index = unique(q[keep], self.n)
        self._span = _time_span(held, self.weights)
        if self._load is not None and self._load.from_occupancy:
            self._load = dataclasses.replace(self._load, stderr=self._load_stderr())
        self._cause = self._other_hold(held, q, order, chain_of)
        self._refuse_waiting_only()
        found = [] if self._load is None else [f"{self._load}: beta = {self.beta:.4g} +- {self.beta_stderr:.2g}"]
        if self._log is not None and not self._cause:
            found += other_clock(self._log, float(self.weights @ q[keep, 0] / self.weights.sum()))
        self.notes = tuple(dict.fromkeys(notes + said + found))
        for note in self.notes:
            _log.log(logging.INFO if any(words in note for words in _ASKED) else logging.WARNING, note)

    @property
    def n(self) -> int:
        """The number of servers."""
        return self.system.n

    @property
    def b(self) -> int | float:
        """Places to wait at each server, the one in service left out; may be `math.inf`."""
        return self.system.b

    @property
    def beta(self) -> float:
        """sqrt(n) (1 - lam)."""
        return self.system.beta

    @property
    def lam(self) -> float:
        """Arrival rate a server, in units of the service rate."""
        return self.system.lam

    @property
    def beta_stderr(self) -> float:
        """Standard error of beta, where it was estimated from these rows; 0 where it was given."""
        return 0.0 if self._load is None else math.sqrt(self.n) * self._load.stderr

    @property
    def x(self) -> np.ndarray:
        """The rows that count, as X: float64 (rows, levels), in order within each chain."""
        return self._x[self._index]

    @property
    def _x(self) -> np.ndarray:
        # Divide: delta Q, with delta = 1/sqrt(n), makes X_2 > 0.3 true at Q_2 = 3, n = 100.
        x = self._states.astype(np.float64)
        x[:, 0] = self.n - x[:, 0]
        return x / math.sqrt(self.n)

    def expect(self, h: Any) -> Any:
        """E h(X): an `Estimate`; of a dict of observables, `Estimates`.

        **Arguments:** `h`, JAX-traceable, from a state (levels,) to a scalar; evaluated in float64.
        **Raises:** `InputError` when h is no scalar, not finite at a state of the record, or not linear of `averages`.
        """
        observables = by_name(h)
        if self.averages:
            require_linear(observables, self._states.shape[1], self.n)
        values = evaluate(observables, self._x)[self._index]
        batches = self._batches(values, self.weights, self.chain)
        mean, stderr = batches.mean, batches.stderr
        share = self.weights / self.weights.sum()
        variance = share @ (values - mean) ** 2
        general = self._cautions()
        result = Estimates()
        for j, name in enumerate(observables):
            ess = float(len(values))
            if not self.averages and stderr[j] > 0:
                ess = min(ess, float(variance[j] / stderr[j] ** 2))
            result[name] = Estimate(
                mean=float(mean[j]), stderr=float(stderr[j]), name=name, dof=float(batches.dof), ess=ess,
                cautions=general + batches.cautions(j, ess), settings=self._settings(batches),
            )  # fmt: skip
        return result if isinstance(h, Mapping) else next(iter(result.values()))

    def checks(self) -> list[Check]:
        """The queue's identities tested on these rows, one a level, with the likely cause where one fails.

        Averages of runs say nothing of P(Q_i = n): from them only E Q_1 can be tested, and only without blocking.
        """
        if self.averages and not math.isinf(self.b):
            return []
        checks = self._identities(self._states[self._index], self.weights, self.chain, self._log)
        checks = checks[1:] if self._load is not None and self._load.from_occupancy else checks
        return [dataclasses.replace(c, cause=self._cause) if c.ok is False and self._cause else c for c in checks]

    def to_arviz(self, h: Any = None, draws: int | None = None) -> Any:
        """The chains for ArviZ, as a posterior: `x` (chain, draw, level), or a variable for each h.

        A draw is the row at one of `draws` equally spaced points of its chain's weight, so that draws count equally whatever
        the rows' weights are: the states at equally spaced times, where rows count by time.

        **Arguments:** `h`, or a dict of them; `draws`, of each chain; default as many as the shortest chain has rows.
        **Returns:** a `DataTree`, or `InferenceData` of ArviZ before 1.0. **Raises:** `InputError`, also without arviz.
        """
        parts = [slice(0, len(self._index))] if self.averages else slices(self.chain)
        count = min(part.stop - part.start for part in parts) if draws is None else integer("draws", draws, 1)
        picked = []
        for part in parts:
            total = np.cumsum(self.weights[part])
            points = (np.arange(count) + 0.5) / count * total[-1]
            picked.append(part.start + np.minimum(np.searchsorted(total, points, side="right"), len(total) - 1))
        rows = self._index[np.stack(picked)]
        nothing = np.zeros((len(self._index), 1))
        made = {**dict(self._settings(self._batches(nothing, self.weights, self.chain))), "draws": count}
        if h is None:
            return arviz_data({"x": self._x[rows]}, made, {"x": ["level"]})
        observables = by_name(h)
        values = evaluate(observables, self._x)
        return arviz_data({name: values[rows, j] for j, name in enumerate(observables)}, made)

    def __repr__(self) -> str:
        rows, levels = len(self._index), self._states.shape[1]
        what = "averages" if self.averages else "rows"
        chains = f" in {self.chains} chains" if self.chains > 1 and not self.averages else ""
        return f"Samples({rows} {what}{chains}, {levels} levels, n={self.n}, b={self.b}, beta={self.beta:g})"

    def _batches(self, values: np.ndarray, weights: np.ndarray, chain: np.ndarray) -> BatchMeans:
        if self.averages:
            return BatchMeans.of_runs(values, weights)
        count = BATCHES if self._span is None else round(self._span / (_BATCH * self._relaxation))
        return BatchMeans.of_chains(values, weights, slices(chain), min(max(count, FEWEST), BATCHES))

    def _estimated(self, q: np.ndarray, durations: np.ndarray, record: Record) -> Load:
        """lam from these rows; of E Q_1, still without its error."""
        record.refuse()  # nothing is estimated from rows that are wrong
        if self.averages and not math.isinf(self.b):
            raise InputError("lam cannot be estimated from averages of runs with a finite b: P_block is not in them")
        share = durations / durations.sum()
        full = 0.0 if math.isinf(self.b) else float(share @ (q[:, -1] == self.n))
        if self._log is not None:
            return from_arrivals(self._log, full, self.n)
        return from_occupancy(float(share @ q[:, 0]), full, self.n)

    def _load_stderr(self) -> float:
        """Of lam = E Q_1/(n (1 - P_block)), from batches of both."""
        q = self._states[self._index]
        full = np.zeros(len(q)) if math.isinf(self.b) else (q[:, -1] == self.n).astype(np.float64)
        residual = (q[:, 0] - self.n * self.lam * (1 - full))[:, None]
        spread = self._batches(residual, self.weights, self.chain).stderr[0]
        if not spread > 0:
            raise InputError(f"lam cannot be estimated: {len(q)} rows with no spread in Q_1 give it no error")
        return float(spread) / (self.n * (1 - float(self.weights @ full / self.weights.sum())))

    def _identities(self, q: np.ndarray, weights: np.ndarray, chain: np.ndarray, log: Log | None = None) -> list[Check]:
        levels = 1 if self.averages else q.shape[1]
        values = np.concatenate([q[:, :levels], q[:, :levels] == self.n], axis=1).astype(np.float64)
        batches = self._batches(values, weights, chain)
        units = batches.units
        means = units.means[:, :levels], units.means[:, levels:]
        stderr = None
        if log is not None:
            stderr = log.stderr(self.n, self.lam, self.b, batches.mean[:levels], batches.mean[levels:])
        return queue_identities(self.n, self.lam, self.b, *means, units.weights, stderr=stderr)

    def _other_hold(self, held: Holding, q: np.ndarray, order: np.ndarray, chain: np.ndarray) -> str:
        """The cause of failing identities when they hold with the other `hold`; "" else."""
        if (
            not isinstance(held.weights, str)
            or held.weights != "time"
            or not failures(self._identities(self._states[self._index], self.weights, self.chain))
        ):
            return ""
        other = dataclasses.replace(held, hold="previous" if held.hold == "next" else "next")
        durations, _ = _durations(other, order, chain, Record((), range(len(order))))
        keep = durations > 0
        if not keep.any() or failures(self._identities(q[keep], durations[keep], chain[keep])):
            return ""
        return f"with hold={other.hold!r} they hold: times are shifted against states by a row"

    def _refuse_waiting_only(self) -> None:
        """Counts that leave out the customer in service have no Q_1 in them: nothing is computed from them."""
        if self.averages:
            return
        share, first = self.weights / self.weights.sum(), self._states[self._index, 0]
        cause = "" if self._load is None else waiting_only(first, share)
        if self._load is None and share @ first < 0.5 * self.n * self.lam:
            check = self._identities(self._states[self._index], self.weights, self.chain, self._log)[0]
            cause = check.cause if check.ok is False and check.value < 0.5 * check.expected else ""
        if cause:
            raise InputError(cause)

    @property
    def _relaxation(self) -> float:
        """The relaxation time of the limit, which the queue's is near: see `JSQDiffusion.relaxation_time`."""
        return 1.0 + (4.5 / self.beta / self.beta if self.b else 0.0)

    def _cautions(self) -> tuple[str, ...]:
        found, relaxation = [], self._relaxation
        if self._span is not None and self._span < _RELAXATIONS * relaxation:
            found.append(
                f"the record spans {self._span:.4g} time units, {self._span / relaxation:.2g} relaxation times of the "
                f"queue (about {relaxation:.3g}); at least {_RELAXATIONS} are needed"
            )
        if self._starts_empty:
            found.append("the record starts from the empty system: drop the start (burn_in or burn_in_rows)")
        return tuple(found)

    def _settings(self, batches: BatchMeans) -> tuple[tuple[str, Any], ...]:
        unit = "runs" if self.averages else "batches"
        system = (("n", self.n), ("b", self.b), ("beta", self.beta))
        return (*system, ("rows", len(self._index)), (unit, batches.dof + 1), *provenance())


def _durations(held: Holding, order: np.ndarray, chain: np.ndarray, record: Record) -> tuple[np.ndarray, list[str]]:
    """How much each row counts, chain after chain; and what there is to say."""
    durations, parts = np.zeros(len(order)), slices(chain)
    holders: dict[str, list[int]] = {}
    for c, part in enumerate(parts):
        durations[part], said = held.durations(order[part], c, record)
        for note in said:
            holders.setdefault(note, []).append(c)
    notes = [note if len(of) == len(parts) else f"{_chains(of)}: {note}" for note, of in holders.items()]
    if len(notes) > _SHOWN:
        notes[_SHOWN:] = [f"of {len(notes)} notes on {len(parts)} chains, the first {_SHOWN} are shown"]
    return durations, notes


def _chains(of: list[int]) -> str:
    if len(of) == 1:
        return f"chain {of[0]}"
    return f"chains {', '.join(map(str, of[:_SHOWN]))}" + (f" and {len(of) - _SHOWN} more" if len(of) > _SHOWN else "")


def _by_time(held: Holding) -> bool:
    return isinstance(held.weights, str) and held.weights == "time"


def _time_span(held: Holding, weights: np.ndarray) -> float | None:
    """The time that the rows cover, when they say."""
    if held.time is None or not isinstance(held.weights, str):
        return None
    if held.weights == "time":
        return float(weights.sum())
    spacing = np.diff(held.time.astype(np.float64))
    spacing = spacing[spacing > 0]
    typical = np.median if held.weights == "regular" else np.mean  # a wild start has no place on a grid
    return float(typical(spacing)) * len(weights) if len(spacing) else None
