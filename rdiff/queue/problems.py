"""What is wrong with a record: every fault is found before the first is refused, each with its place."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from rdiff.errors import InputError


@dataclasses.dataclass
class Record:
    """Where the rows of a record came from, and what was found wrong with them so far.

    **Fields:** `columns`, their names; `lines`, how each row is numbered where the user sees it; `word`, what such a
    number is called ("row" of an array from 0, "line" of a file from 1); `problems`, complaints found.
    """

    columns: Sequence[str]
    lines: Sequence[object] | np.ndarray
    word: str = "row"
    problems: list[str] = dataclasses.field(default_factory=list)

    def row(self, k: int) -> str:
        """Row `k` as the user numbers it."""
        return f"{self.word} {self.lines[k]}"

    def rows(self, bad: np.ndarray) -> str:
        """Rows where `bad` is true: the first, and how many more."""
        where = np.flatnonzero(bad)
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        return self.row(int(where[0])) + more

    def complain(self, message: str) -> None:
        """Note a fault that belongs to no single cell."""
        self.problems.append(message)

    def cell(self, bad: np.ndarray, values: np.ndarray, expected: str, cause: str) -> bool:
        """Note the first cell of `values` (rows, columns) where `bad`; says whether there was one."""
        places = np.argwhere(bad)
        if not len(places):
            return False
        k, j = (int(i) for i in places[0])
        more = f" ({len(places) - 1} more such cells)" if len(places) > 1 else ""
        name = self.columns[j] if j < len(self.columns) else str(j)
        self.complain(f"{self.row(k)}, column {name}: found {values[k, j]:.10g}, expected {expected}{more}: {cause}")
        return True

    def refuse(self) -> None:
        """Raise one `InputError` with every complaint, if there are any."""
        if self.problems:
            raise InputError("; also: ".join(self.problems))
