"""Rows as they are given: their shape, their chains, and what is the same in them."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.problems import Record

_MISSING = ("", "none", "nan", "nat", "<na>", "inf", "-inf")


def numbers(array: Any) -> np.ndarray:
    """The rows as an array of integers or floats, two- or three-dimensional."""
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    if "chain" in getattr(array, "dims", ()):
        array = array.transpose("chain", ...)
    try:
        array = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise InputError(f"the rows do not form an array, columns or rows of unequal length? ({error})") from None
    if array.size == 0:
        raise InputError(f"there are no rows: shape {array.shape}; a run that wrote nothing?")
    if array.dtype.kind not in "iuf":
        raise InputError(f"the rows must be integers or floats, got {array.dtype}: text or missing cells among them?")
    if array.ndim not in (2, 3):
        raise InputError(
            f"expected (rows, columns) or (chains, rows, columns), got shape {array.shape}"
            + (": one state, or one column? for one state give array[None, :]" if array.ndim == 1 else "")
        )
    return array


def flat(array: np.ndarray, chain: Any, record: Record) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """(rows, columns), the chain of each row as an integer from 0, and the chains' labels, in order of first appearance."""
    if array.ndim == 3:
        if chain is not None:
            raise InputError("chain labels are for (rows, columns); this array has its chains as the first axis")
        return array.reshape(-1, array.shape[2]), np.repeat(np.arange(array.shape[0]), array.shape[1]), [*range(len(array))]
    if chain is None:
        return array, np.zeros(len(array), np.int64), [0]
    try:
        labels = np.asarray(np.ma.filled(chain.astype(object), "") if isinstance(chain, np.ma.MaskedArray) else chain)
    except (TypeError, ValueError):
        labels = np.empty(0)
    if labels.shape != (len(array),):
        raise InputError(f"chain must have one label a row, {len(array)}, got shape {labels.shape}")
    numbers_of: dict[Any, int] = {}
    try:
        index = [numbers_of.setdefault(label, len(numbers_of)) for label in labels.tolist()]
    except TypeError:
        raise InputError("chain labels must be text or numbers, one a row") from None
    missing = {number for label, number in numbers_of.items() if str(label).strip().lower() in _MISSING}
    if missing:
        k = next(k for k, number in enumerate(index) if number in missing)
        raise InputError(f"{record.row(k)}: the chain label is missing, found {labels.tolist()[k]!r}")
    return array, np.array(index, np.int64), list(numbers_of)


def label(shape: tuple[int, ...], names: Sequence[str] | None, lines: Any) -> Record:
    """How the rows and columns of an array of this shape are called in messages."""
    names = list(names) if names is not None else [str(j) for j in range(shape[-1])]
    if lines is not None:
        return Record(names, lines, "line")
    if len(shape) == 3:
        return Record(names, [f"{k} of chain {c}" for c in range(shape[0]) for k in range(shape[1])])
    return Record(names, range(shape[0]))


def unique(q: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows and where each row is among them; h is evaluated once for each."""
    if q.dtype.kind == "i" and q.shape[1] * math.log2(n + 1) < 62:
        code = np.zeros(len(q), np.int64)
        for level in q.T:
            code = code * (n + 1) + level
        _, first, index = np.unique(code, return_index=True, return_inverse=True)
        return q[first], index.reshape(-1)
    states, index = np.unique(q, axis=0, return_inverse=True)
    return states, index.reshape(-1)


def slices(chain: np.ndarray) -> list[slice]:
    """Where each chain lies, when rows are in order of chains."""
    ends = [0, *(np.flatnonzero(np.diff(chain)) + 1).tolist(), len(chain)]
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def starts_empty(
    q: np.ndarray,
    durations: np.ndarray,
    chain: np.ndarray,
    order: np.ndarray,
    load: float,
    averages: bool,
    record: Record,
) -> bool:
    """Whether chains start from the empty system, which has probability below e^{-load} (load = n lam): a burn-in.

    Empty rows after full ones are a damaged record, and go to `record`: rows are `order` there.
    """
    empty = (q[:, 0] == 0) & (durations > 0)
    if not empty.any() or (not averages and len(q) * math.exp(-load) > 1e-3):
        return False
    before = np.concatenate([[True], (chain[1:] != chain[:-1]) | empty[:-1] | (durations[:-1] == 0)])
    # An event moves Q_1 by one: only a row that falls to empty from far above is impossible.
    falls = empty & ~before & (np.concatenate([[0], q[:-1, 0]]) > load / 2)
    if not averages and not falls.any():
        return True
    bad = np.zeros(len(q), bool)
    bad[order[empty if averages else _stretches(falls, empty)]] = True
    record.complain(
        f"{record.rows(bad)}: the system is empty, which has probability e^-{load:.0f}, expected about "
        f"n lam = {load:.4g} busy servers: rows that were never filled in, or several runs one after the other (then "
        "name their chains)"
    )
    return False


def _stretches(starts: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """The stretches of `inside` that begin at `starts`."""
    bad = starts.copy()
    for k in np.flatnonzero(starts):
        while k < len(inside) and inside[k]:
            bad[k] = True
            k += 1
    return bad
