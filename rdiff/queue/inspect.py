"""`inspect_file`: a first look at a file of samples, and how to read it."""

import dataclasses
import math
import os
import re
import shlex
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from rdiff import table
from rdiff.checks import Check, checks_table, failures
from rdiff.errors import InputError
from rdiff.estimate import plain
from rdiff.queue.columns import Source
from rdiff.queue.files import opened
from rdiff.queue.guess import guess
from rdiff.queue.read import read_samples


@dataclasses.dataclass(frozen=True)
class Column:
    """A column: its `name`, its `kind` ("integers", "numbers", "text"), its range, how many cells are missing."""

    name: str
    kind: str
    least: float
    most: float
    missing: int
    role: str = ""


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What a file holds and what it looks like. Whatever was guessed is in `guesses`, in words; check it.

    **Fields:** `file`; `rows`; `columns`; `guesses`; `options`, the keywords of `read_samples` (None when no way to read
    it was found); `command`, the same for a shell; `checks`, the identities of the queue under these options; `notes`.

    ```python
    >>> import rdiff, tempfile, pathlib
    >>> from rdiff.queue.inspect import inspect_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.csv"
    >>> _ = path.write_text("t,Q1,Q2\\n" + "".join(f"{k},{3 + k % 2},{k % 3 % 2}\\n" for k in range(400)))
    >>> inspect_file(path, n=4, beta=1.0).options["columns"]
    'Q1:Q2'

    ```
    """

    file: str
    rows: int
    columns: tuple[Column, ...]
    guesses: tuple[str, ...]
    options: Mapping[str, Any] | None
    command: str | None
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        options = None
        if self.options is not None:
            options = {key: "inf" if value == math.inf else value for key, value in self.options.items()}
        return {
            "file": self.file,
            "rows": self.rows,
            "columns": [{**dataclasses.asdict(c), "least": plain(c.least), "most": plain(c.most)} for c in self.columns],
            "guesses": list(self.guesses),
            "options": options,
            "command": self.command,
            "checks": [check.to_dict() for check in self.checks],
            "notes": list(self.notes),
        }

    def table(self) -> Any:
        """The `rich` table of the columns."""
        rows = [
            [c.name or "(unnamed)", c.kind, table.number(c.least), table.number(c.most), str(c.missing or ""), c.role]
            for c in self.columns
        ]
        return table.build(["column", "kind", "least", "most", "missing", "taken as"], rows, f"{self.file}: {self.rows} rows")

    def checks_table(self) -> Any:
        """The `rich` table of the identities, or None without any."""
        return checks_table(self.checks) if self.checks else None

    def lines(self) -> list[str]:
        """What there is to say, in words: why identities fail, guesses, notes and the command to run next."""
        said = [*failures(self.checks), *(f"guess: {line}" for line in self.guesses), *self.notes]
        return [*said, *([] if self.command is None else ["next:", f"  {self.command}"])]

    def __str__(self) -> str:
        tables = [table.text(t) for t in (self.table(), self.checks_table()) if t is not None]
        return "\n\n".join([*tables, "\n".join(self.lines())])


def inspect_file(path: Any, *, n: Any = None, b: Any = None, beta: Any = None, lam: Any = None) -> Inspection:
    """A first look at samples: columns, ranges, what they look like, and how `read_samples` would take them.

    **Arguments:** `path`, as `read_samples` takes it; the system as far as it is known: `n`, `b`, `beta` or `lam`. What is
    not given is guessed, from the columns and the name of the file; without a load, lam is estimated.
    **Raises:** `InputError` when the file cannot be read as columns at all.

    ```python
    >>> import rdiff, tempfile
    >>> rows = "".join(f"{k},{3 + k % 2},{k % 3 % 2}\\n" for k in range(400))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/run.csv", "w") as file:
    ...         size = file.write("t,Q1,Q2\\n" + rows)
    ...     found = rdiff.inspect_file(f"{folder}/run.csv", n=4, beta=1.0)
    >>> found.rows, found.options["columns"]
    (400, 'Q1:Q2')

    ```
    """
    if beta is not None and lam is not None:
        raise InputError("beta and lam are both given, and are one parameter, lam = 1 - beta/sqrt(n): give one of them")
    name = str(path) if isinstance(path, (str, os.PathLike)) else "the table"
    try:
        source, _ = opened(path)
        cells = {column: _cells(source, column) for column in dict.fromkeys(source.names)}
    except InputError as error:
        raise InputError(f"{name}: {error}") from error.__cause__
    numbers = {column: values for column, values in cells.items() if values is not None}
    rows = max((values.size for values in numbers.values()), default=0)
    guessed = guess(source, numbers, name, {"n": n, "b": b, "beta": beta, "lam": lam})
    columns = tuple(_column(column, values, guessed.roles.get(column, "")) for column, values in cells.items())
    options, notes, checks = guessed.options, list(guessed.problems), ()
    if options is not None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                samples = read_samples(path, **options)
            checks = tuple(samples.checks())
            notes += samples.notes
        except InputError as error:
            notes.append(f"with these guesses it is refused: {error}")
            options = None
    command = None if options is None or name == "the table" else _command(name, options)
    return Inspection(name, rows, columns, tuple(guessed.said), options, command, checks, tuple(dict.fromkeys(notes)))


def _cells(source: Source, column: str) -> np.ndarray | None:
    """The numbers of a column, NaN where a cell is missing; None for text."""
    try:
        return np.asarray(source.read([source.find(column)], missing=True)[0][..., 0])
    except InputError:
        return None


def _column(name: str, values: np.ndarray | None, role: str) -> Column:
    if values is None:
        return Column(name, "text", math.nan, math.nan, 0, role)
    finite = values[np.isfinite(values)]
    whole = bool(len(finite)) and bool(np.all(finite == np.rint(finite)))
    ends = (float(finite.min()), float(finite.max())) if len(finite) else (math.nan, math.nan)
    return Column(name, "integers" if whole else "numbers", *ends, int(values.size - len(finite)), role)


def _command(name: str, options: Mapping[str, Any]) -> str:
    """The options as `rdiff compare` takes them."""
    words = ["rdiff", "compare", *([] if not name.startswith("-") else ["--"]), name]
    for key, value in options.items():
        option = "--" + key.replace("_", "-")
        words += [option] if value is True else [option, f"{value:.15g}" if isinstance(value, float) else str(value)]
    return " ".join(word if re.fullmatch(r"[\w:,./=+-]+", word) else shlex.quote(word) for word in words)
