"""Files of numbers as named columns: CSV (also gzipped), npy, npz. Whatever is wrong with one is an `InputError`."""

import csv
import gzip
import io
import logging
import os
import re
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from rdiff.errors import InputError, integer

_log = logging.getLogger(__name__)
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


class Source(Protocol):
    """Columns by name, read when asked for."""

    names: list[str]

    def find(self, column: Any, what: str) -> str: ...
    def select(self, columns: Any) -> list[str]: ...
    def listed(self) -> str: ...
    def counts_up(self, name: str) -> bool: ...
    def labels(self, name: str) -> np.ndarray: ...
    def read(self, names: Sequence[str]) -> tuple[np.ndarray, Any]: ...


def load(path: str | os.PathLike[str]) -> Source:
    """The file's columns; raises `InputError` when it is missing, empty, damaged, or not what its name says."""
    try:
        name = os.fspath(path)
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, TypeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"the file cannot be read: {reason}") from error
    if not data:
        raise InputError("the file is empty: a run that wrote nothing?")
    suffix = os.path.splitext(str(name).lower().removesuffix(".gz"))[1]
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"the gzip file is damaged or truncated ({error})") from error
    is_numpy = data.startswith(b"\x93NUMPY") or data.startswith(b"PK")
    if suffix in (".npy", ".npz"):
        if not is_numpy:
            raise InputError(f"this is not a NumPy {suffix} file, whatever its name says (truncated, or text?)")
        return Arrays(_arrays(data))
    if is_numpy:
        kind = "npy" if data.startswith(b"\x93NUMPY") else "npz (or another zip archive)"
        raise InputError(f"this is a NumPy {kind} file, not text: give it that ending")
    return Text(data)


class Columns:
    """What sources share: finding columns by name or range."""

    names: list[str]

    def listed(self) -> str:
        """The columns there are, for a message."""
        shown = [name or "(unnamed)" for name in self.names]
        if len(shown) > 24:
            shown = [*shown[:12], "...", *shown[-4:]]
        return f"{len(self.names)} columns: {', '.join(shown)}"

    def find(self, column: Any, what: str = "columns") -> str:
        """The one column of this name (or position, as an int)."""
        if not isinstance(column, str):
            column = integer(what, column, 0, "columns go by name, or by position counted from 0")
            if column >= len(self.names):
                raise InputError(f"{what}: there is no column {column} (counted from 0); the file has {self.listed()}")
            column = self.names[column]
        count = self.names.count(column)
        if count == 0:
            raise InputError(f"{what}: there is no column {column!r}; the file has {self.listed()}")
        if count > 1:
            raise InputError(f"{what}: {count} columns are called {column!r}, and either may be meant: rename them")
        return column

    def select(self, columns: Any) -> list[str]:
        """Columns by names and ranges a:b (both ends included), in the order given."""
        if isinstance(columns, str):
            columns = [columns] if columns in self.names else [part.strip() for part in columns.split(",")]
        elif isinstance(columns, (int, np.integer)):
            columns = [columns]
        if not isinstance(columns, Sequence) or not columns:
            raise InputError(f"columns must be names or ranges a:b, got {columns!r}; the file has {self.listed()}")
        chosen = [name for column in columns for name in self._range(column)]
        twice = [name for name in chosen if chosen.count(name) > 1] if len(set(chosen)) < len(chosen) else []
        if twice:
            raise InputError(f"columns: {twice[0]!r} is named twice")
        return chosen

    def _range(self, column: Any) -> list[str]:
        if not isinstance(column, str) or column in self.names or ":" not in column:
            part = [name for name in self.names if isinstance(column, str) and name.startswith(f"{column}[")]
            return part if part and column not in self.names else [self.find(column)]
        first, _, last = column.partition(":")
        i, j = (self.names.index(self.find(end.strip())) for end in (first, last))
        if i > j:
            raise InputError(f"columns: in the range {column!r} the last column comes before the first")
        return self.names[i : j + 1]


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
        j = self.names.index(name)
        labels = [self._cells(row)[j].strip() for row in self.rows]
        if "" in labels:
            line = self.lines[labels.index("")]
            raise InputError(f"line {line}, column {name or '(unnamed)'}: the cell is empty, expected the label of a chain")
        return np.array(labels)

    def read(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The columns as float64 (rows, columns), and the line that each row stands on."""
        wanted = [self.names.index(name) for name in names]
        try:
            values = np.loadtxt(self.rows, delimiter=self.delimiter, usecols=wanted, comments=None, quotechar='"', ndmin=2)
        except ValueError:
            values = self._slowly(wanted)
        return values, self.lines

    def _slowly(self, wanted: list[int]) -> np.ndarray:
        """The same cell by cell, to say which one is no number."""
        values = np.empty((len(self.rows), len(wanted)))
        for k, row in enumerate(self.rows):
            cells = self._cells(row)
            for i, j in enumerate(wanted):
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
        quoted = self.delimiter is None or any('"' in row for row in self.rows)
        counts = (len(self._cells(r)) if quoted else r.count(self.delimiter or "") + 1 for r in self.rows)
        widths = np.fromiter(counts, int, len(self.rows))
        bad = np.flatnonzero(widths != len(self.names))
        if len(bad):
            k = int(bad[0])
            cause = "a file cut off while it was written" if k == len(self.rows) - 1 else "columns of unequal length"
            raise InputError(
                f"line {self.lines[k]}: found {widths[k]} cells, expected {len(self.names)} as in the first line "
                f"({len(bad)} such lines): {cause}?"
            )


class Arrays(Columns):
    """The arrays of an npy or npz file: (rows,) each a column, (rows, columns) one column after the other.

    Beside an array (chains, rows, columns), one of shape (chains, rows) is a column too.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.columns: dict[str, np.ndarray] = {}
        series = {array.shape[:2] for array in arrays.values() if array.ndim == 3}
        for key, array in arrays.items():
            if array.size == 0:
                raise InputError(f"array {key or 'in the file'} has shape {array.shape}: a run that wrote nothing?")
            if array.dtype.names:
                self._add({name: array[name] for name in array.dtype.names})
            elif key and (array.ndim == 1 or array.shape in series):
                self._add({key: array})
            elif array.ndim in (2, 3):
                self._add({(f"{key}[{j}]" if key else str(j)): array[..., j] for j in range(array.shape[-1])})
            elif key == "":
                raise InputError(
                    f"expected (rows, columns) or (chains, rows, columns), got shape {array.shape}: one state or one "
                    "column, not rows of states?"
                )
        self.names = list(self.columns)
        if not self.names:
            raise InputError("the file holds no array of rows")

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

    def read(self, names: Sequence[str]) -> tuple[np.ndarray, None]:
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


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    try:
        loaded = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"": loaded}
        with loaded:
            found = {key: loaded[key] for key in loaded.files}
            return {key: array for key, array in found.items() if isinstance(array, np.ndarray)}
    except Exception as error:  # a damaged file can make NumPy and zipfile raise almost anything
        text = re.sub(r"\s+", " ", str(error))
        if "allow_pickle" in text or "Object arrays" in text:
            text = "it holds Python objects, which are not read"
        raise InputError(f"the NumPy file is damaged, truncated or not one: {text}") from error


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
