"""Arrays in memory as named columns."""

from collections.abc import Mapping, Sequence

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.columns import Columns


class Arrays(Columns):
    """Named arrays: (rows,) each a column, (rows, columns) one column after the other.

    Beside an array (chains, rows, columns), one of shape (chains, rows) is a column too.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.columns: dict[str, np.ndarray] = {}
        self._groups: dict[str, list[str]] = {}
        series = {array.shape[:2] for array in arrays.values() if array.ndim == 3}
        for key, array in arrays.items():
            if array.size == 0:
                raise InputError(f"array {key or 'in the file'} has shape {array.shape}: a run that wrote nothing?")
            if array.dtype.names:
                self._add({name: array[name] for name in array.dtype.names})
            elif key and (array.ndim == 1 or array.shape in series):
                self._add({key: array})
            elif array.ndim in (2, 3):
                parts = {(f"{key}[{j}]" if key else str(j)): array[..., j] for j in range(array.shape[-1])}
                self._groups[key] = list(parts)
                self._add(parts)
            elif key == "":
                raise InputError(
                    f"expected (rows, columns) or (chains, rows, columns), got shape {array.shape}: one state or one "
                    "column, not rows of states?"
                )
        self.names = list(self.columns)
        if not self.names:
            raise InputError("the file holds no array of rows")

    @classmethod
    def of(cls, columns: Mapping[str, np.ndarray]) -> "Arrays":
        """Arrays that are one column each, all of shape (rows,) or all of (chains, rows)."""
        made = cls({name: array.reshape(-1) for name, array in columns.items()})
        made.columns = dict(columns)
        return made

    def _add(self, columns: dict[str, np.ndarray]) -> None:
        for name in columns.keys() & self.columns.keys():
            raise InputError(f"2 columns are called {name!r}, and either may be meant: rename them")
        self.columns |= columns

    def counts_up(self, name: str) -> bool:
        """Never: the columns of an array have no place for an index."""
        return False

    def labels(self, name: str) -> np.ndarray:
        """A column, as it is."""
        return self.columns[name]

    def groups(self) -> dict[str, list[str]]:
        """The columns of each array of two or three dimensions."""
        return self._groups

    def read(self, names: Sequence[str], missing: bool = False) -> tuple[np.ndarray, None]:
        """The columns as one array (rows, columns) or (chains, rows, columns)."""
        chosen = [self.columns[name] for name in names]
        shapes = {array.shape for array in chosen}
        if len(shapes) > 1:
            lengths = ", ".join(f"{name} {array.shape}" for name, array in zip(names, chosen, strict=True))
            raise InputError(f"columns of unequal length: {lengths}")
        for name, array in zip(names, chosen, strict=True):
            if array.dtype.kind not in "iuf":
                raise InputError(f"column {name} holds {array.dtype}, expected numbers")
        return np.stack(chosen, axis=-1), None
