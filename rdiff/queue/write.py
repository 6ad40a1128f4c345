"""Occupancy on a grid of times to a file that `read_samples` reads."""

import gzip
import os
from pathlib import Path

import numpy as np

from rdiff.errors import InputError

ENDINGS = (".csv", ".csv.gz", ".npz")


def write_occupancy(path: str | os.PathLike[str], times: np.ndarray, q: np.ndarray) -> None:
    """Writes columns chain, t, Q1, ..., Q_{b+1}, chain after chain: CSV (also .gz) or npz, by the path's ending.

    **Arguments:** `times` (rows,); `q`, integers (chains, rows, levels).
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
        np.savez_compressed(path, **columns)  # pyright: ignore[reportArgumentType]
        return
    lines = [",".join(columns)]
    lines += [f"{chain},{t:.12g},{','.join(map(str, row))}" for chain, path_of in enumerate(q.tolist())
              for t, row in zip(times.tolist(), path_of)]  # fmt: skip
    text = "\n".join(lines) + "\n"
    if name.endswith(".gz"):
        # Without a time stamp: the same samples make the same file.
        Path(path).write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        Path(path).write_text(text)
