"""What every result answers: a table on print and in a notebook, and itself for other tools and for files."""

import importlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from rdiff import table
from rdiff.records import columns_of, csv_text, dumps, index_of, parts_of, rows_of

_EXTRAS = {"pandas": "io", "xarray": "xarray", "arviz": "xarray"}


class Exports:
    """A result that shows itself and hands itself on.

    A class says what it is by `to_dict()` (a row, a list of rows, or a dict that holds them as `rows`), what it shows by
    `_shown()`, and how it was made by `settings`; the rest follows.
    """

    _indent: ClassVar[int | None] = 2  # of JSON
    _complete: ClassVar[bool] = False  # whether `settings` says all that is known, as of a file

    def to_dict(self) -> Any:
        """Plain values for JSON."""
        raise NotImplementedError

    def _shown(self) -> tuple[list[Any], list[str]]:
        """The `rich` tables to show, and the lines under them."""
        raise NotImplementedError

    def __str__(self) -> str:
        tables, notes = self._shown()
        return "\n\n".join([*map(table.text, tables), *(["\n".join(notes)] if notes else [])])

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.text import Text

        tables, notes = self._shown()
        for each in tables:
            yield from table.blocks(each, options.max_width)
        yield from map(Text, notes)

    def _repr_html_(self) -> str:
        from html import escape

        tables, notes = self._shown()
        return "".join([*map(table.html, tables), *(f"<p>{escape(note)}</p>" for note in notes)])

    def to_json(self, path: str | os.PathLike[str] | None = None, **how: Any) -> str:
        """One JSON object: the kind of result, its settings with versions, device and seed, and `to_dict(**how)`.

        **Arguments:** `path`, of a file to write too, which `rdiff.load` and `rdiff show` read; `how`, such as `level=0.9`.
        **Returns:** the text. NaN and infinity are null.
        """
        parts = _data(self, how)
        parts = parts if _is_table(parts) else {"results": rows_of(parts)}
        told = {"kind": type(self).__name__, "settings": made(self), "notes": self._shown()[1], **parts}
        return written(path, dumps(told, self._indent) + "\n")

    def to_csv(self, path: str | os.PathLike[str] | None = None, part: str | None = None, **how: Any) -> str:
        """The rows as CSV, with the settings as JSON in the first row of a last column; `rdiff.load` reads it.

        **Arguments:** `path`, of a file to write too; `part`, of a result of several tables (such as "slopes" of a `Rate`).
        **Returns:** the text.
        """
        return written(path, csv_text(_rows(self, part, how), made(self)))

    def to_latex(self, path: str | os.PathLike[str] | None = None) -> str:
        """The tables that `print` shows as LaTeX `tabular`s, with the digits that their errors leave; for booktabs.

        Notes and settings are comments under them. **Arguments:** `path`, of a file to write too. **Returns:** the text.
        """
        tables, notes = self._shown()
        return written(path, table.latex_file(tables, notes, made(self)))

    def to_pandas(self, part: str | None = None, **how: Any) -> Any:
        """A `pandas.DataFrame`, a row for each row of `to_dict`; None is NaN; `.attrs` has the settings.

        **Arguments:** `part`, of a result of several tables. **Raises:** `InputError` without pandas.
        """
        frame = need("pandas").DataFrame(columns_of(_rows(self, part, how)))
        frame.attrs = made(self)
        return frame

    def to_xarray(self, part: str | None = None, **how: Any) -> Any:
        """An `xarray.Dataset`: a dimension for each of n, the observable and the parameters of a grid; settings in `.attrs`.

        Where the rows fill no grid (paired parameters), they have one dimension, `row`, and the parameters are coordinates.

        **Arguments:** `part`, of a result of several tables. **Raises:** `InputError` without xarray.
        """
        rows = _rows(self, part, how)
        found = dataset(columns_of(rows), index_of(rows))
        found.attrs = attributes(made(self))
        return found


def made(result: Any) -> dict[str, Any]:
    """How a result was made: its settings, and the versions and the device where it does not say them itself."""
    from rdiff.provenance import provenance

    own = getattr(result, "settings", ())
    own = dict(own.items() if isinstance(own, Mapping) else own)
    if "jax" in own or getattr(result, "_complete", False):
        return own
    return {**own, **{name: value for name, value in provenance() if name not in own}}


def shared(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of several estimates in one: a value that all share, else a dict by estimate.

    ```python
    >>> from rdiff.export import shared
    >>> shared({"y1": {"beta": 1.0, "method": "march"}, "y2": {"beta": 1.0, "method": "closed"}})
    {'beta': 1.0, 'method': {'y1': 'march', 'y2': 'closed'}}

    ```
    """
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in settings.values() for name in each):
        values = {key: each[name] for key, each in settings.items() if name in each}
        first = next(iter(values.values()))
        found[name] = first if all(value == first for value in values.values()) else values
    return found


def attributes(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a netCDF file takes them: numbers and texts, what is deeper as JSON, what is None left out."""
    known = {name: value for name, value in settings.items() if value is not None}
    flat = (str, int, float)
    return {k: v if isinstance(v, flat) and not isinstance(v, bool) else json.dumps(v, default=str) for k, v in known.items()}


def need(name: str) -> Any:
    """A library that is an extra. **Raises:** `InputError` where it is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own affairs
            return importlib.import_module(name)
    except ImportError as error:
        from rdiff.errors import InputError

        raise InputError(
            f"this needs {name}, which is not installed: pip install {name}, or rdiff's extra `{_EXTRAS[name]}`"
        ) from error


def dataset(columns: Mapping[str, Sequence[Any]], index: Sequence[str]) -> Any:
    """Columns as an `xarray.Dataset` over the grid that the columns in `index` span."""
    import numpy as np

    xarray = need("xarray")
    levels = {name: list(dict.fromkeys(columns[name])) for name in index}
    length = len(next(iter(columns.values()), ()))
    spots = [tuple(levels[name].index(columns[name][k]) for name in index) for k in range(length)]
    shape = tuple(map(len, levels.values()))
    if not index or len(set(spots)) < length or int(np.prod(shape)) != length:
        coordinates = {name: ("row", np.array(columns[name])) for name in index}
        return xarray.Dataset({k: ("row", np.array(v)) for k, v in columns.items() if k not in index}, coordinates)
    found = {}
    for name in (name for name in columns if name not in index):
        values = np.array(columns[name])
        found[name] = (tuple(index), np.empty(shape, values.dtype))
        for spot, value in zip(spots, values, strict=True):
            found[name][1][spot] = value
    return xarray.Dataset(found, {name: np.array(values) for name, values in levels.items()})


def arviz_data(draws: Mapping[str, Any], settings: Mapping[str, Any], dims: Mapping[str, Sequence[str]] | None = None) -> Any:
    """Draws, (chains, draws, ...) by name, for ArviZ: a `DataTree`, or `InferenceData` of ArviZ before 1.0.

    **Raises:** `InputError` without arviz.
    """
    arviz = need("arviz")
    draws = {name.replace("/", "÷"): values for name, values in draws.items()}  # a / would be a group
    plain, coords = attributes(settings), {}
    for name, own in (dims or {}).items():
        coords |= {dim: list(range(1, size + 1)) for dim, size in zip(own, draws[name].shape[2:], strict=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more chains than draws, it says, as if the axes were swapped
        if int(arviz.__version__.split(".")[0]) < 1:
            return arviz.from_dict(posterior=dict(draws), dims=dims, coords=coords, posterior_attrs=plain)
        found = arviz.from_dict({"posterior": dict(draws)}, dims=dims, coords=coords)
    found["posterior"].attrs.update(plain)
    return found


def _data(result: Any, how: Mapping[str, Any]) -> Any:
    return result.to_dict(**how)


def _is_table(found: Any) -> bool:
    return isinstance(found, Mapping) and bool({"rows", "results", "paths"} & set(found))


def _rows(result: Any, part: str | None, how: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = _data(result, how)
    if part is not None and (not isinstance(found, Mapping) or not rows_of(found, part)):
        from rdiff.errors import InputError

        have = ", ".join(parts_of(found)) if isinstance(found, Mapping) else ""
        raise InputError(f"there is no part {part!r}: {f'there are {have}' if have else 'this result is one table'}")
    return rows_of(found, part)


def written(path: str | os.PathLike[str] | None, text: str) -> str:
    """The text, which a file of that path then has too."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
