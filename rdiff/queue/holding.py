"""How much a row counts: by the time its state holds, equally, or by a given weight."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rdiff.errors import InputError, integer
from rdiff.queue.problems import Record

WORDS = ("time", "regular", "arrivals")
_SPACING = 0.2
_LATEST = 1e15  # beyond it a double no longer tells events apart


@dataclasses.dataclass(frozen=True)
class Holding:
    """What the user said about time: which rows count, and how much.

    **Fields:** `weights`: "time", "regular", "arrivals" or numbers (rows,); `time` (rows,) or None; `hold`: a row's
    state lasts until the "next" time or has lasted since the "previous"; `end_time`, one number a chain, when the
    last row ends; `burn_in`, time dropped from the start of each chain, or `burn_in_rows`, rows dropped.
    """

    weights: str | np.ndarray
    time: np.ndarray | None
    hold: str
    end_time: list[float] | None
    burn_in: float | None
    burn_in_rows: int | None

    @classmethod
    def of(
        cls, weights: Any, time: Any, hold: Any, end_time: Any, burn_in: Any, burn_in_rows: Any, rows: int,
        chains: Sequence[Any],
    ) -> "Holding":  # fmt: skip
        """The options checked against each other, the number of rows and the labels of the chains; raises `InputError`."""
        time = None if time is None else column("time", time, rows)
        if hold not in ("next", "previous"):
            raise InputError(f"hold must be 'next' or 'previous', got {hold!r}: until or since when a row's state holds")
        if weights is None:
            if time is None:
                raise InputError(
                    "weights must be stated when there is no time: 'regular' for rows on a grid of times, 'arrivals' "
                    "for rows seen by arrivals just before they join, or a column of weights; rows written at every "
                    "event need their times (an unweighted mean of them is off by O(1/sqrt(n)))"
                )
            weights = "time"
        if isinstance(weights, str):
            if weights not in WORDS:
                raise InputError(f"weights must be one of {', '.join(WORDS)} or a column of numbers, got {weights!r}")
            if weights == "time" and time is None:
                raise InputError("weights='time' needs the time of every row: time (in a file, time_column)")
        else:
            weights = column("weights", weights, rows)
        ends = None if end_time is None else _ends(end_time, chains)
        if ends is not None and time is None:
            raise InputError("end_time needs the time of every row: time (in a file, time_column)")
        if burn_in is not None and burn_in_rows is not None:
            raise InputError("give burn_in (a time) or burn_in_rows, not both")
        if burn_in is not None:
            array = _number_array("burn_in", burn_in)
            if array.ndim:
                raise InputError(f"burn_in must be one number for all chains, got {str(burn_in)[:60]!r}")
            burn_in = float(array)
            if burn_in < 0:
                raise InputError(f"burn_in must not be negative, got {burn_in:g}")
            if burn_in > 0 and time is None:
                raise InputError("burn_in is a time and needs the time of every row; for rows alone give burn_in_rows")
        rows_dropped = None if burn_in_rows is None else integer("burn_in_rows", burn_in_rows, 0)
        return cls(weights, time, hold, ends, burn_in, rows_dropped)

    def durations(self, rows: np.ndarray, chain: int, record: Record) -> tuple[np.ndarray, list[str]]:
        """How much each of the rows `rows` (indices, in order) of one chain counts; notes of what was dropped.

        Faults (times that decrease, a grid that is none, negative weights) go to `record`.
        """
        drop = np.zeros(len(rows), bool)
        drop[: self.burn_in_rows or 0] = True
        time = None if self.time is None else self.time[rows].astype(np.float64)
        if time is not None:
            if not _ordered(time, rows, record):
                return np.zeros(len(rows)), []
            start = time[0] + (self.burn_in or 0.0)
        if isinstance(self.weights, str) and self.weights == "time":
            assert time is not None
            end = None if self.end_time is None else self.end_time[chain]
            held, said = _held(time, self.hold, start, end, [record.row(k) for k in rows[[0, -1]]])
            return np.where(drop, 0.0, held), said + _coarse(self.time, time)
        if time is not None:
            drop |= time < start
            if self.end_time is not None:
                drop |= time > self.end_time[chain]
        notes: list[str] = []
        if isinstance(self.weights, str):
            if self.weights == "regular" and time is not None:
                notes = _grid(time[~drop], rows[~drop], record)
            return np.where(drop, 0.0, 1.0), notes
        weights = self.weights[rows].astype(np.float64)
        bad = ~((weights >= 0) & (weights <= _LATEST))
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            record.complain(f"{record.row(int(rows[k]))}: weight {weights[k]:g}, expected a number from 0 to {_LATEST:g}")
            return np.zeros(len(rows)), []
        return np.where(drop, 0.0, weights), notes


def column(name: str, values: Any, rows: int) -> np.ndarray:
    """A column of real numbers, one a row; (chains, rows) is laid out in the order of the rows."""
    array = _number_array(name, values, finite=False)
    if array.size != rows or array.ndim == 0:
        raise InputError(f"{name} must have one number a row, {rows}, got shape {array.shape}")
    return array.reshape(-1)


def _ends(end_time: Any, chains: Sequence[Any]) -> list[float]:
    """The end of each chain, in their order."""
    if isinstance(end_time, Mapping):
        # Labels from a CSV are text, whatever they look like.
        ends = {str(name): value for name, value in end_time.items()}
        odd = set(ends) ^ {str(name) for name in chains}
        if odd:
            raise InputError(
                f"end_time must name every chain and no other: there are {_few(chains)}, got {_few(list(end_time))}"
            )
        end_time = [ends[str(name)] for name in chains]
    array = _number_array("end_time", end_time)
    if array.ndim > 1 or array.size not in (1, len(chains)):
        raise InputError(f"end_time must be one number, or one a chain ({len(chains)}), got shape {array.shape}")
    if np.abs(array).max() > _LATEST:
        raise InputError(f"end_time must be at most {_LATEST:g}, got {np.abs(array).max():g}")
    return np.broadcast_to(array.reshape(-1), len(chains)).astype(np.float64).tolist()


def _few(names: Sequence[Any]) -> str:
    return ", ".join(str(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")


def _number_array(name: str, values: Any, finite: bool = True) -> np.ndarray:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty(0, object)
    if array.dtype.kind not in "iuf" or (finite and not (array.size and np.isfinite(array).all())):
        raise InputError(f"{name} must be made of {'finite ' if finite else ''}numbers, got {str(values)[:60]!r}")
    return array


def _ordered(time: np.ndarray, rows: np.ndarray, record: Record) -> bool:
    bad = ~(np.abs(time) <= _LATEST)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        cause = "a missing or damaged cell" if not abs(time[k]) < 1e30 else "nanoseconds? times are in mean service times"
        record.complain(
            f"{record.row(int(rows[k]))}: time {time[k]:g}, expected a finite number of at most {_LATEST:g}: {cause}"
        )
        return False
    falls = np.flatnonzero(np.diff(time) < 0)
    if len(falls):
        k = int(falls[0]) + 1
        record.complain(
            f"{record.row(int(rows[k]))}: time {time[k]:.10g} after {time[k - 1]:.10g}, expected times that do not "
            "decrease: unsorted rows, or several runs one after the other (then name their chains)"
        )
        return False
    return True


def _held(time: np.ndarray, hold: str, start: float, end: float | None, ends: list[str]) -> tuple[np.ndarray, list[str]]:
    """The time that each row's state holds within [start, end]; repeated times hold for none."""
    notes = []
    if hold == "next":
        if end is None:
            notes = [f"{ends[1]} is left out: nothing says how long its state holds (end_time would)"]
        edges = np.append(time, max(time[-1], time[-1] if end is None else end))
    else:
        notes = [f"{ends[0]} is left out: its state held before the first time (hold='previous')"]
        if end is not None and end > time[-1]:
            notes.append(f"nothing is known between the last time {time[-1]:g} and end_time {end:g}")
        edges = np.append(time[0], time)
    edges = np.clip(edges, start, math.inf if end is None else max(end, start))
    return np.diff(edges), notes


def _coarse(given: np.ndarray | None, time: np.ndarray) -> list[str]:
    """A clock far from 0, or kept in single precision, stops telling events apart."""
    spacing = np.diff(time)
    if given is None or given.dtype.kind != "f" or not (spacing > 0).any():
        return []
    resolution = float(np.spacing(np.abs(given[np.isfinite(given)]).max()))
    if resolution < 0.01 * np.median(spacing[spacing > 0]):
        return []
    return [f"times are {given.dtype} and resolve only {resolution:.2g}: holding times are rounded"]


def _grid(time: np.ndarray, rows: np.ndarray, record: Record) -> list[str]:
    """Rows on a grid count equally, but a column of times must then be one."""
    if len(time) < 2:
        return []
    spacing = np.diff(time)
    median = float(np.median(spacing))
    bad = ~(np.abs(spacing - median) <= _SPACING * median) | (median <= 0)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        record.complain(
            f"{record.row(int(rows[k + 1]))}: time {time[k + 1]:.10g} comes {spacing[k]:.4g} after the row before, "
            f"expected a grid, within 20% of the median spacing {median:.4g} ({int(bad.sum())} of {len(bad)} spacings "
            "are not): rows written at events need weights='time'"
        )
        return []
    return [f"grid of times: median spacing {median:.4g}, from {spacing.min():.4g} to {spacing.max():.4g}"]
