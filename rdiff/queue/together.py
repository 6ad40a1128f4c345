"""Several files as the chains of one record."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.columns import Columns, Source


class Together(Columns):
    """Files that hold the same columns, one after the other: each is a chain, or several by a column of its own.

    **Raises:** `InputError` naming the first file whose columns are not those of the first.
    """

    def __init__(self, parts: Sequence[tuple[str, Source]]) -> None:
        self.parts = parts
        first, source = parts[0]
        self.names = source.names
        for path, other in parts[1:]:
            if other.names != self.names:
                raise InputError(
                    f"{path} has {other.listed()}, but {first} has {source.listed()}: files that are chains of one record "
                    "need the same columns"
                )

    def counts_up(self, name: str) -> bool:
        """Whether the column is an index in every file."""
        return all(source.counts_up(name) for _, source in self.parts)

    def groups(self) -> dict[str, list[str]]:
        """The arrays of several columns that the first file has."""
        return self.parts[0][1].groups()

    def labels(self, name: str) -> np.ndarray:
        """The chain of each row, file by file: chains of two files are two chains whatever they are called."""
        return np.concatenate([self._chain(path, source, name) for path, source in self.parts])

    def servers(self, name: str) -> np.ndarray:
        """The servers of all rows; those of two files may have the same names."""
        return np.concatenate([np.ravel(source.servers(name)).astype(str) for _, source in self.parts])

    def chains(self, names: Sequence[str]) -> np.ndarray:
        """The file of each row, and the chain in it where the arrays of a file have chains of their own."""
        labels = []
        for path, source in self.parts:
            shape = _read(path, source, names, True)[0].shape[:-1]
            inside = [path] if len(shape) == 1 else [f"{path} chain {c}" for c in range(shape[0])]
            labels.append(np.repeat(np.array(inside, dtype=object), shape[-1]))
        return np.concatenate(labels)

    def read(self, names: Sequence[str], missing: bool = False) -> tuple[np.ndarray, Any]:
        """The columns as one array (rows, columns), and where each row stands."""
        values, lines = [], []
        for path, source in self.parts:
            array, of = _read(path, source, names, missing)
            array = array.reshape(-1, array.shape[-1])
            values.append(array)
            where = (f"row {k}" for k in range(len(array))) if of is None else (f"line {k}" for k in of)
            lines.extend(f"{path}: {place}" for place in where)
        return np.concatenate(values), lines

    @staticmethod
    def _chain(path: str, source: Source, name: str) -> np.ndarray:
        return np.array([f"{path}: {label}" for label in np.ravel(source.labels(name)).tolist()], dtype=object)


def _read(path: str, source: Source, names: Sequence[str], missing: bool) -> tuple[np.ndarray, Any]:
    try:
        return source.read(names, missing)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
