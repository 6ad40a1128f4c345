"""The load of a queue from its record: lam estimated with its error, and what a complete log knows exactly.

From a complete log lam is the number of accepted arrivals over n times the time when not everything is full: arrivals
are Poisson then, so this is the maximum-likelihood estimate, and its standard error is sqrt(lam/(n T)). From
snapshots lam is solved from E Q_1 = n lam (1 - P_block), with the error of batch means; service noise is in it too,
which makes it about sqrt(2) larger for a record of the same length.
"""

import dataclasses
import math

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.rows import slices

FEWEST_ARRIVALS = 10
_SERVED = 1000  # departures that a service rate is read from
_OFTEN = 3  # times that an empty system comes back: once is a start


@dataclasses.dataclass(frozen=True)
class Log:
    """Every move of the queue while it was watched.

    **Fields:** `accepted`, arrivals that joined, and `served`, departures; `time`, how long in all; `growth` (chains,
    levels), by how much Q_i + Q_{i+1} + ... grew in each chain.
    """

    accepted: int
    served: int
    time: float
    growth: np.ndarray

    def stderr(self, n: int, lam: float, b: float, occupancy: np.ndarray, full: np.ndarray) -> np.ndarray:
        """Standard errors (levels,) of E Q_i - n lam (P(Q_{i-1} = n) - P_block) from this log.

        Q_i + Q_{i+1} + ... grows at rate n lam (1{Q_{i-1} = n} - 1{all full}) and falls at rate Q_i: what is left is a
        martingale whose variance is the time integral of both rates. What it grew by is beside it. Time is counted in mean
        service times, which the departures tell, whatever the unit of the clock.
        """
        blocked = 0.0 if math.isinf(b) else float(full[-1])
        rates = n * lam * (np.concatenate([[1.0], full[:-1]]) - blocked) + occupancy
        time = self.time * (self.service_rate(float(occupancy[0])) or 1.0)
        return np.sqrt(np.maximum(rates, 0.0) / time + (self.growth**2).sum(axis=0) / time**2)

    def service_rate(self, busy: float) -> float:
        """Departures a unit of time from each of `busy` servers: 1 where time is in mean service times."""
        return self.served / (self.time * busy) if busy > 0 else 0.0


@dataclasses.dataclass(frozen=True)
class Load:
    """lam as it was estimated, its standard error, and whether E Q_1 was used for it (then it cannot test it)."""

    lam: float
    stderr: float
    from_occupancy: bool

    def __str__(self) -> str:
        how = "E Q_1 = n lam (1 - P_block)" if self.from_occupancy else "the arrivals of the log"
        return f"lam = {self.lam:.6g} +- {self.stderr:.2g}, estimated from {how}"


def complete_log(q: np.ndarray, durations: np.ndarray, chain: np.ndarray) -> Log | None:
    """The moves between rows, when each is by one customer at one level (or none): None when some rows are no log."""
    accepted, served, growth = 0, 0, []
    for part in slices(chain):
        held = np.flatnonzero(durations[part] > 0)
        if not len(held):
            continue
        inside = q[part][held[0] : held[-1] + 1]
        moves = np.diff(inside, axis=0)
        if (np.abs(moves).sum(axis=1) > 1).any():
            return None
        accepted += int((moves > 0).sum())
        served += int((moves < 0).sum())
        growth.append(np.cumsum((inside[-1] - inside[0])[::-1])[::-1])
    if not accepted:
        return None
    return Log(accepted, served, float(durations.sum()), np.array(growth, np.float64))


def from_arrivals(log: Log, full: float, n: int) -> Load:
    """lam from the arrivals of a complete log, of whose time the part `full` found every place taken."""
    if log.accepted < FEWEST_ARRIVALS:
        raise InputError(f"lam cannot be estimated from {log.accepted} arrivals; at least {FEWEST_ARRIVALS} are needed")
    exposure = n * log.time * (1 - full)
    return _sane(Load(log.accepted / exposure, math.sqrt(log.accepted) / exposure, False))


def from_occupancy(busy: float, full: float, n: int) -> Load:
    """lam from the mean of Q_1; its error has to be filled in from batches."""
    return _sane(Load(busy / (n * (1 - full)) if full < 1 else math.inf, math.nan, True))


def waiting_only(first: np.ndarray, share: np.ndarray) -> str:
    """Why `first` (rows,), of which each counts for `share`, is no Q_1 but the servers where somebody waits; "" if it may be.

    All servers are idle for at most about e^{-E Q_1} of the time, as many as if they were independent; that nobody waits is
    not rare at all. This needs no lam, so that one is not estimated from such counts.
    """
    none = first == 0
    most, idle = math.exp(-float(share @ first)), float(share @ none)
    if np.count_nonzero(none[1:] & ~none[:-1]) < _OFTEN or idle < max(0.05, 3 * most):
        return ""
    return (
        f"Q_1 is 0 for {idle:.2g} of the time, expected at most e^(-E Q_1) = {most:.2g}: the counts seem to leave out the "
        "customer in service (waiting only), from which neither Q_1 nor lam can be recovered"
    )


def other_clock(log: Log, busy: float) -> list[str]:
    """A note where a log of `busy` servers counts time in other units than mean service times."""
    rate = log.service_rate(busy)
    if log.served < _SERVED or abs(rate - 1) < 0.1 + 5 / math.sqrt(log.served):
        return []
    return [
        f"busy servers serve at rate {rate:.3g}: times are not in mean service times, or mu is not 1 (only Lambda/(n mu) "
        "matters)"
    ]


def _sane(load: Load) -> Load:
    if not 0 < load.lam < 1:
        raise InputError(
            f"lam = {load.lam:.6g} is what the record gives, which is not in (0, 1): there is no stationary limit to "
            "compare with; a wrong n or b, another unit of time than the mean service time, or a record too short?"
        )
    return load
