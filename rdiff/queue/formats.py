"""From what a simulator writes to occupancy: Q_i, the number of servers with i or more customers."""

import math
from typing import Literal, get_args

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.problems import Record
from rdiff.queue.system import System

Format = Literal["occupancy", "lengths", "fractions", "scaled", "customers"]
FORMATS: tuple[str, ...] = get_args(Format)
_MOST_LEVELS = 1000
FEW_DIGITS = 2e-3  # how far off an integer Q_i may be, for want of digits: six of them are enough up to n = 1000


def occupancy(array: np.ndarray, system: System, format: str, averages: bool, record: Record) -> tuple[np.ndarray, list[str]]:
    """Q (rows, levels) of rows written as `format`: int64, or float64 when rows are `averages` of runs.

    **Arguments:** `array` (rows, columns), real; faults are noted in `record`, whose columns name them.
    **Returns:** Q and notes of what was guessed.
    **Raises:** `InputError` for a wrong number of columns, when no row can be read.
    """
    if format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
    if format == "lengths":
        if averages:
            raise InputError("averages of lengths do not give E Q_i: average the occupancy Q_i of each run instead")
        return _from_lengths(array, system, record), []
    notes = []
    whole = {"occupancy": system.n, "fractions": 1}.get(format)
    if whole is not None and _leads_with_q0(array, whole, system):
        notes.append(f"column {record.columns[0]} is {whole} in every row: taken as Q_0 and left out")
        array, record.columns = array[:, 1:], record.columns[1:]
    _count_columns(array, system, record)
    if not _finite(array, record):
        return np.zeros((len(array), array.shape[1])), notes
    counts, tolerance = _counts(array, system.n, format)
    if not averages:
        off = float(np.abs(counts - np.rint(counts)).max())
        if format != "occupancy" and tolerance < off <= FEW_DIGITS:
            notes.append(f"the values have few digits: Q_i up to {off:.2g} off an integer, taken as the nearest one")
            tolerance = FEW_DIGITS
        counts = _integers(counts, array, tolerance, format, system, record)
    _in_order(counts, array, system, format, 1e-9 * system.n if averages else 0.0, record)
    return counts, notes


def _counts(array: np.ndarray, n: int, format: str) -> tuple[np.ndarray, float]:
    """Q as real numbers, and how far from an integer rounding of the input may have put it."""
    # Cast first: n - Q_1 and Q_1 Q_2 wrap in unsigned and short integers.
    tolerance = max(1e-6, 4 * n * float(np.finfo(array.dtype).eps)) if array.dtype.kind == "f" else 0.0
    values = array.astype(np.float64)
    if format == "fractions":
        return n * values, tolerance
    if format == "scaled":
        counts = math.sqrt(n) * values
        counts[:, 0] = n - counts[:, 0]
        return counts, tolerance
    return values, tolerance


def _leads_with_q0(array: np.ndarray, whole: int, system: System) -> bool:
    first = array[:, 0] if array.shape[1] else array[:0]
    if system.levels is None:
        return array.shape[1] >= 3 and len(array) >= 2 and bool(np.all(np.abs(first - whole) < 1e-9))
    return array.shape[1] == system.levels + 1 and bool(np.all(np.abs(first - whole) < 1e-9))


def _count_columns(array: np.ndarray, system: System, record: Record) -> None:
    columns = array.shape[1]
    if system.levels is None:
        if columns < 2:
            raise InputError(f"b = inf needs at least the columns Q_1 and Q_2, got {columns}")
        if columns > _MOST_LEVELS:
            raise InputError(f"{columns} columns of occupancy: per-server lengths? then say format='lengths'")
        return
    if columns != system.levels:
        cause = "b leaves out the customer in service, and the columns are Q_1..Q_{b+1}"
        if len(array) > 2 and bool(np.all(np.diff(array[:, 0].astype(np.float64)) > 0)):
            cause = f"column {record.columns[0]} grows from row to row: a time or an index beside the states?"
        elif columns == system.n:
            cause = "per-server lengths? then say format='lengths'"
        raise InputError(
            f"b = {system.b} needs {system.levels} columns, Q_1..Q_{system.levels}, got {columns} "
            f"({_listed(record.columns)}): {cause}"
        )


def _finite(array: np.ndarray, record: Record) -> bool:
    return not record.cell(
        ~np.isfinite(array), array, "a finite number", "a missing cell, or a run that broke off"
    )  # fmt: skip


def _integers(
    counts: np.ndarray, array: np.ndarray, tolerance: float, format: str, system: System, record: Record
) -> np.ndarray:
    rounded = np.rint(counts)
    bad = np.abs(counts - rounded) > tolerance
    if bad.any():
        if format == "occupancy" and array.min() >= 0 and array.max() <= 1:
            cause = "all values lie in [0, 1]: fractions Q_i/n? then say format='fractions'"
        elif format == "occupancy":
            cause = "run averages? then say averages=True, for h that are linear; or X itself: format='scaled'"
        else:
            cause = f"n = {system.n} is not the simulator's n, digits cut off, or run averages (then say averages=True)"
        j = int(np.argwhere(bad)[0][1])
        what = {
            "occupancy": "an integer number of servers",
            "fractions": f"a multiple of 1/n = 1/{system.n}",
            "scaled": f"Q_{j + 1} an integer, got {counts[bad][0]:.10g}",
        }[format]
        record.cell(bad, array, what, cause)
    # Out-of-range values are refused below; here they must only not overflow.
    return np.clip(rounded, -(2**53), 2**53).astype(np.int64)


def _in_order(counts: np.ndarray, array: np.ndarray, system: System, format: str, slack: float, record: Record) -> None:
    n = system.n
    shown = array if format == "scaled" else counts
    record.cell(counts < -slack, shown, "at least 0 servers", "a difference or a shifted column, not a count")
    cause = f"n = {n} is not the simulator's n, or the column holds lengths, a time or an index"
    record.cell(counts > n + slack, shown, f"at most n = {n} servers", cause)
    if counts.shape[1] > 1:
        rises = np.zeros(counts.shape, bool)
        rises[:, 1:] = np.diff(counts, axis=1) > slack
        cause = "columns out of order, or counts of servers with exactly i customers instead of i or more"
        record.cell(rises, shown, "Q_1 >= Q_2 >= ... in a row", cause)


def _from_lengths(array: np.ndarray, system: System, record: Record) -> np.ndarray:
    n = system.n
    if array.shape[1] != n:
        extra = " (a dummy node, a time or an index among them?)" if array.shape[1] > n else ""
        raise InputError(f"format='lengths' needs one column a server, n = {n}, got {array.shape[1]}{extra}")
    empty = np.zeros((len(array), system.levels or 2), np.int64)
    if not _finite(array, record):
        return empty
    values = array.astype(np.float64)
    rounded = np.rint(values)
    bad = record.cell(
        np.abs(values - rounded) > 1e-6,
        values,
        "an integer number of customers",
        "lengths are counts; a mean or a time?",
    )
    bad |= record.cell(rounded < 0, values, "at least 0 customers", "a length is a count")
    most = system.levels or _MOST_LEVELS
    if system.levels is None:
        cause = "a time, an arrival count or an id among the lengths?"
    else:
        cause = "b leaves out the customer in service, so a server holds at most b + 1"
    bad |= record.cell(rounded > most, values, f"at most {most} customers", cause)
    if bad:
        return empty
    levels = system.levels or max(2, int(rounded.max(initial=0)))
    # Only occupancy matters: permuting the servers of a row changes nothing.
    return np.stack([np.count_nonzero(rounded >= i, axis=1) for i in range(1, levels + 1)], axis=1).astype(np.int64)


def _listed(names, most: int = 8) -> str:
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
