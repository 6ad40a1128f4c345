"""Columns by name: what every kind of input offers to the adapter."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from rdiff.errors import InputError, integer


class Source(Protocol):
    """Columns by name, read when asked for."""

    names: list[str]

    def find(self, column: Any, what: str = ...) -> str: ...
    def select(self, columns: Any) -> list[str]: ...
    def listed(self) -> str: ...
    def counts_up(self, name: str) -> bool: ...
    def labels(self, name: str) -> np.ndarray: ...
    def servers(self, name: str) -> np.ndarray: ...
    def read(self, names: Sequence[str], missing: bool = False) -> tuple[np.ndarray, Any]: ...
    def groups(self) -> dict[str, list[str]]: ...


class Columns:
    """What sources share: finding columns by name or range."""

    names: list[str]

    def labels(self, name: str) -> np.ndarray:
        """A column, as it is."""
        raise NotImplementedError

    def servers(self, name: str) -> np.ndarray:
        """A column of names, some of which may be missing."""
        return self.labels(name)

    def groups(self) -> dict[str, list[str]]:
        """The arrays of several columns, each by its name; there are none in text and in tables."""
        return {}

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
