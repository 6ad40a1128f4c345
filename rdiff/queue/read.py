"""`read_samples`: a simulator's file as `Samples`."""

import logging
import os
from collections.abc import Sequence
from typing import Any, Literal

from rdiff.errors import InputError
from rdiff.queue.files import Source, load
from rdiff.queue.formats import Format
from rdiff.queue.holding import WORDS
from rdiff.queue.samples import Samples

_log = logging.getLogger(__name__)


def read_samples(
    path: str | os.PathLike[str], *, n: Any, b: Any, beta: Any = None, lam: Any = None, format: Format = "occupancy",
    columns: str | int | Sequence[str | int] | None = None, time_column: str | int | None = None,
    weights: str | None = None, hold: Literal["next", "previous"] = "next", end_time: Any = None,
    burn_in: Any = None, burn_in_rows: int | None = None, chain_column: str | int | None = None,
    averages: bool = False,
) -> Samples:  # fmt: skip
    """Samples of a queue from a file: CSV (also .gz), npy or npz.

    A CSV may separate by comma, semicolon, tab or blanks; without a header its columns are named 0, 1, ..., as those of
    an npy file are. In an npz, one-dimensional arrays are columns and an array A of more dimensions holds the columns
    A[0], A[1], ...; "A" stands for all of them.

    **Arguments:** those of `Samples` (`format`, `hold`, `end_time`, `burn_in`, `burn_in_rows`, `averages`), and

    - `columns`: the states, in order: names, ranges "a:b" (both ends included), or a list of these. Without it, every
      column that has no other use, which is announced.
    - `time_column`, `chain_column`: names; a CSV's chain labels are text. `weights`: "time", "regular", "arrivals", or
      the name of a column.

    **Raises:** `InputError`, for whatever is wrong with the file, naming line and column.

    ```python
    >>> import rdiff, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.csv"
    >>> _ = path.write_text("t,Q1,Q2\\n" + "".join(f"{k},{3 + k % 2},{k % 3 % 2}\\n" for k in range(400)))
    >>> rdiff.read_samples(path, n=4, b=1, beta=1.0, columns="Q1:Q2", time_column="t", end_time=400)
    Samples(400 rows, 2 levels, n=4, b=1, beta=1)

    ```
    """
    try:
        source = load(path)
        time = None if time_column is None else source.find(time_column, "time_column")
        chain = None if chain_column is None else source.find(chain_column, "chain_column")
        by = None
        if weights is not None and weights not in WORDS:
            by = source.find(weights, f"weights (one of {', '.join(WORDS)}, or a column)")
        used = [name for name in (time, chain, by) if name is not None]
        states, said = _states(source, columns, used)
        values, lines = source.read(states)  # apart from the times: their types differ
        samples = Samples(
            values, n=n, b=b, beta=beta, lam=lam, format=format, averages=averages,
            time=None if time is None else source.read([time])[0][..., 0],
            weights=weights if by is None else source.read([by])[0][..., 0],
            hold=hold, end_time=end_time, burn_in=burn_in, burn_in_rows=burn_in_rows,
            chain=None if chain is None else source.labels(chain), names=states, lines=lines,
        )  # fmt: skip
    except InputError as error:
        raise InputError(f"{path}: {error}") from error.__cause__
    samples.notes = (*said, *samples.notes)
    return samples


def _states(source: Source, columns: Any, used: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns that hold states, and what was guessed."""
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
