"""Text of numbers as named columns: CSV, whatever separates it."""

import csv
import logging
from collections.abc import Sequence

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.columns import Columns
from rdiff.records import SETTINGS

_log = logging.getLogger(__name__)
MISSING = ("", "nan", "na", "n/a", "none", "null", "<na>")
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


class Text(Columns):
    """A CSV; only the columns asked for are read."""

    def __init__(self, data: bytes) -> None:
        if b"\0" in data[:65536]:
            raise InputError("this is a binary file, not a CSV (a parquet, pickle or spreadsheet file?)")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"this is not text in UTF-8, so no CSV (a binary file? {error.reason})") from error
        lines = [line.rstrip("\r") for line in text.split("\n")]
        kept = [k for k, line in enumerate(lines) if line.strip() and not line.startswith("#")]
        if not kept:
            raise InputError("the file holds no rows, only blanks or comments: a run that wrote nothing?")
        self.rows = [lines[k] for k in kept]
        self.lines = np.array(kept) + 1
        head = self.rows[0]
        self.delimiter = max(_DELIMITERS, key=head.count)
        if head.count(self.delimiter) == 0:
            self.delimiter = None if len(head.split()) > 1 else ","
        if self.delimiter != ",":
            _log.warning("columns taken as separated by %s", _DELIMITERS.get(self.delimiter or "", "blanks"))
        cells = self._cells(head)
        if all(_is_number(cell) for cell in cells):
            self.names = [str(j) for j in range(len(cells))]
            _log.warning("the first line holds numbers: columns are named 0, 1, ...")
        else:
            self.names = [cell.strip() for cell in cells]
            self.rows, self.lines = self.rows[1:], self.lines[1:]
        self._width = len(self.names)
        if self.names[-1] == SETTINGS and self._width > 1:  # how rdiff made the numbers
            self.names.pop()
        if not self.rows:
            raise InputError("the file has a header and no rows: a run that wrote nothing?")
        self._equal_lengths()

    def counts_up(self, name: str) -> bool:
        """Whether an unnamed column counts 0, 1, 2, ..., as an index does."""
        if name != "":
            return False
        values, _ = self.read([name])
        return bool(np.array_equal(values[:, 0], np.arange(len(values))))

    def labels(self, name: str) -> np.ndarray:
        """A column as text."""
        labels = self.servers(name).tolist()
        if "" in labels:
            line = self.lines[labels.index("")]
            raise InputError(f"line {line}, column {name or '(unnamed)'}: the cell is empty, expected the label of a chain")
        return np.array(labels)

    def servers(self, name: str) -> np.ndarray:
        """A column as text, with what is missing in it."""
        j = self.names.index(name)
        return np.array([self._cells(row)[j].strip() for row in self.rows])

    def read(self, names: Sequence[str], missing: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The columns as float64 (rows, columns), and the line that each row stands on.

        An empty cell is NaN where some may be `missing`, and refused else.
        """
        wanted = [self.names.index(name) for name in names]
        if missing:
            return self._slowly(wanted, missing), self.lines
        try:
            values = np.loadtxt(self.rows, delimiter=self.delimiter, usecols=wanted, comments=None, quotechar='"', ndmin=2)
        except ValueError:
            values = self._slowly(wanted)
        return values, self.lines

    def _slowly(self, wanted: list[int], missing: bool = False) -> np.ndarray:
        """The same cell by cell, to say which one is no number."""
        values = np.empty((len(self.rows), len(wanted)))
        for k, row in enumerate(self.rows):
            cells = self._cells(row)
            for i, j in enumerate(wanted):
                if missing and cells[j].strip().lower() in MISSING:
                    values[k, i] = np.nan
                    continue
                try:
                    values[k, i] = float(cells[j].replace("_", "?"))  # Python's 1_000 is no number in a file
                except ValueError:
                    found = f"found {cells[j].strip()!r:.40}" if cells[j].strip() else "the cell is empty"
                    raise InputError(
                        f"line {self.lines[k]}, column {self.names[j] or '(unnamed)'}: {found}, expected a number"
                    ) from None
        return values

    def _cells(self, row: str) -> list[str]:
        try:
            return row.split() if self.delimiter is None else next(csv.reader([row], delimiter=self.delimiter))
        except csv.Error as error:
            raise InputError(f"this line is no CSV: {error}: {row!r:.60}") from error

    def _equal_lengths(self) -> None:
        sign = self.delimiter
        counts = (len(self._cells(r)) if sign is None or '"' in r else r.count(sign) + 1 for r in self.rows)
        widths = np.fromiter(counts, int, len(self.rows))
        bad = np.flatnonzero(widths != self._width)
        if len(bad):
            k = int(bad[0])
            cause = "a file cut off while it was written" if k == len(self.rows) - 1 else "columns of unequal length"
            raise InputError(
                f"line {self.lines[k]}: found {widths[k]} cells, expected {self._width} as in the first line "
                f"({len(bad)} such lines): {cause}?"
            )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
