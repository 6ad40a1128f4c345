"""Occupancy on a grid of times to a file that `read_samples` reads."""

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.records import SETTINGS, clean, csv_of_numbers

ENDINGS = (".csv", ".csv.gz", ".npz")


def write_occupancy(
    path: str | os.PathLike[str], times: np.ndarray, q: np.ndarray, settings: Mapping[str, Any] | None = None
) -> None:
    """Writes columns chain, t, Q1, ..., Q_{b+1}, chain after chain: CSV (also .gz) or npz, by the path's ending.

    **Arguments:** `times` (rows,); `q`, integers (chains, rows, levels); `settings`, how they were made, as JSON: in the first
    row of a last column, `settings`, or an array of that name.
    **Raises:** `InputError` for another ending, before anything is written.

    ```python
    >>> import numpy as np, pathlib, rdiff, tempfile
    >>> from rdiff.queue.write import write_occupancy
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.csv.gz"
    >>> write_occupancy(path, np.arange(200.0), np.tile([[4, 1], [3, 0]], (2, 100, 1)))
    >>> options = dict(columns="Q1:Q2", time_column="t", chain_column="chain", weights="regular")
    >>> rdiff.read_samples(path, n=4, b=1, beta=1.0, **options).chains
    2

    ```
    """
    name = os.fspath(path).lower()
    if not name.endswith(ENDINGS):
        raise InputError(f"{path}: samples are written to files that end with {', '.join(ENDINGS)}")
    chains, rows, levels = q.shape
    columns = {"chain": np.repeat(np.arange(chains), rows), "t": np.tile(times, chains)}
    columns |= {f"Q{i + 1}": q[..., i].ravel() for i in range(levels)}
    if name.endswith(".npz"):
        if settings:
            columns[SETTINGS] = np.array(json.dumps(clean(settings)))
        np.savez_compressed(path, **columns)  # pyright: ignore[reportArgumentType]
        return
    lines = (f"{chain},{t:.12g},{','.join(map(str, row))}" for chain, path_of in enumerate(q.tolist())
             for t, row in zip(times.tolist(), path_of))  # fmt: skip
    text = "".join(csv_of_numbers([*columns], lines, settings))
    if name.endswith(".gz"):
        # Without a time stamp: the same samples make the same file.
        Path(path).write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        Path(path).write_text(text)
