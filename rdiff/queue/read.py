"""`read_samples`: a simulator's file as `Samples`."""

import logging
import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rdiff.errors import InputError
from rdiff.queue import customers
from rdiff.queue.columns import Source
from rdiff.queue.files import opened
from rdiff.queue.formats import Format
from rdiff.queue.holding import WORDS
from rdiff.queue.samples import Samples
from rdiff.queue.text import MISSING
from rdiff.queue.together import Together

_log = logging.getLogger(__name__)


def read_samples(
    path: Any, *, n: Any, b: Any, beta: Any = None, lam: Any = None, format: Format = "occupancy",
    columns: str | int | Sequence[str | int] | None = None, time_column: str | int | None = None,
    weights: str | None = None, hold: Literal["next", "previous"] = "next", end_time: Any = None,
    burn_in: Any = None, burn_in_rows: int | None = None, chain_column: str | int | None = None,
    averages: bool = False, array: str | None = None,
) -> Samples:  # fmt: skip
    """Samples of a queue from a file (CSV, also .gz, npy, npz, parquet) or a table (pandas, polars, pyarrow, xarray).

    Several files, as a list or a pattern such as "run*.csv", are chains of one record: they need the same columns.

    A CSV may separate by comma, semicolon, tab or blanks; without a header its columns are named 0, 1, ..., as those of
    an npy file are. In an npz, one-dimensional arrays are columns and an array A of more dimensions holds the columns
    A[0], A[1], ...; "A" stands for all of them. In an xarray Dataset or DataArray the dimension "chain" (or the one
    named by `chain_column`) holds chains, and coordinates along the rows, such as the time, are columns.

    **Arguments:** those of `Samples` (`format`, `hold`, `end_time`, `burn_in`, `burn_in_rows`, `averages`), and

    - `columns`: the states, in order: names, ranges "a:b" (both ends included), or a list of these. Without it, every
      column that has no other use, which is announced.
    - `time_column`, `chain_column`: names; a CSV's chain labels are text. `weights`: "time", "regular", "arrivals", or
      the name of a column.
    - `array`: the array of an npz that holds the states, where it has several.
    - with `format="customers"`, one row a customer, `columns` are arrival, departure and server, in this order; by
      default those of these names. An empty departure is a customer who is still present.

    **Raises:** `InputError`, for whatever is wrong with the file, naming line and column.

    ```python
    >>> import rdiff, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.csv"
    >>> _ = path.write_text("t,Q1,Q2\\n" + "".join(f"{k},{3 + k % 2},{k % 3 % 2}\\n" for k in range(400)))
    >>> rdiff.read_samples(path, n=4, b=1, beta=1.0, columns="Q1:Q2", time_column="t", end_time=400)
    Samples(400 rows, 2 levels, n=4, b=1, beta=1)

    ```
    """
    name = str(path) if isinstance(path, (str, os.PathLike)) else ""
    try:
        source, chain_column = opened(path, chain_column)
        time = None if time_column is None else source.find(time_column, "time_column")
        chain = None if chain_column is None else source.find(chain_column, "chain_column")
        by = None
        if weights is not None and weights not in WORDS:
            by = source.find(weights, f"weights (one of {', '.join(WORDS)}, or a column)")
        used = [column for column in (time, chain, by) if column is not None]
        if format == "customers":
            states, said = source.select(customers.COLUMNS if columns is None else columns), []
            values, lines = _customers(source, states)
        else:
            states, said = _states(source, columns, array, used)
            values, lines = source.read(states)  # apart from the times: their types differ
        samples = Samples(
            values, n=n, b=b, beta=beta, lam=lam, format=format, averages=averages,
            time=None if time is None else source.read([time])[0][..., 0],
            weights=weights if by is None else source.read([by])[0][..., 0],
            hold=hold, end_time=end_time, burn_in=burn_in, burn_in_rows=burn_in_rows,
            chain=_chain(source, chain, states), names=states, lines=lines,
        )  # fmt: skip
    except InputError as error:
        if not name:  # a table, or several files, of which the message names one
            raise
        raise InputError(f"{name}: {error}") from error.__cause__
    samples.notes = (*said, *samples.notes)
    return samples


def _chain(source: Source, chain: str | None, states: Sequence[str]) -> Any:
    """The chain of each row: by its column, by its file, or none."""
    if chain is not None:
        return source.labels(chain)
    return source.chains(states) if isinstance(source, Together) else None


def _customers(source: Source, columns: Sequence[str]) -> tuple[np.ndarray, Any]:
    """Arrivals, departures and servers as numbers: servers may have names."""
    if len(columns) != 3:
        raise InputError(f"format='customers' needs 3 columns, arrival, departure, server, got {', '.join(columns)}")
    times, lines = source.read(columns[:2], missing=True)
    servers = np.ravel(source.servers(columns[2])).astype(str)
    codes = np.unique(servers, return_inverse=True)[1].astype(np.float64)
    codes[np.isin(np.char.lower(np.char.strip(servers)), MISSING)] = np.nan
    return np.column_stack([times, codes]), lines


def _states(source: Source, columns: Any, array: Any, used: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns that hold states, and what was guessed."""
    groups = {name: of for name, of in source.groups().items() if name}
    if array is not None:
        if columns is not None:
            raise InputError("give columns or array, not both: an array stands for all of its columns")
        if array not in groups:
            there = f"it has {', '.join(groups)}" if groups else "there are no named arrays of rows in this input"
            raise InputError(f"array: there is no array {array!r} of rows; {there}")
        return groups[array], []
    if columns is None and len(groups) > 1:
        shown = ", ".join(f"{name} ({len(of)} columns)" for name, of in groups.items())
        raise InputError(f"several arrays may hold the states: {shown}; choose one by array")
    if columns is None and len(groups) == 1 and len(source.names) > len(used):
        name, of = next(iter(groups.items()))
        said = [f"array {name} taken as the states"] if set(source.names) - set(of) - set(used) else []
        for note in said:
            _log.warning(note)
        return of, said
    if columns is not None:
        states = source.select(columns)
        clash = [name for name in states if name in used]
        if clash:
            raise InputError(f"column {clash[0]} cannot be a state and a time, weight or chain at once: check columns")
        return states, []
    left = [name for name in source.names if name not in used]
    index = [name for name in left[:1] if source.counts_up(name)]
    left = [source.find(name, "columns (none were named)") for name in left[len(index) :]]
    if not left:
        raise InputError(f"no column is left for the states; the file has {source.listed()}")
    if len(left) == len(source.names):
        return left, []  # nothing to choose
    said = [f"columns taken as the states, in order: {', '.join(left)}"]
    if index:
        said.insert(0, f"column {index[0] or '(unnamed)'} counts 0, 1, 2, ...: taken as an index and left out")
    for note in said:
        _log.warning(note)
    return left, said
