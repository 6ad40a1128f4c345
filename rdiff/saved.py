"""`load`: what a file that rdiff wrote says, as a result again: it prints, and hands itself on."""

import csv
import gzip
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rdiff import table
from rdiff.errors import InputError
from rdiff.export import Exports
from rdiff.records import LISTS, SETTINGS, flat, parts_of, read_csv, rows_of

_DAMAGED = (
    ValueError, KeyError, IndexError, EOFError, AttributeError, TypeError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_FINEST = 1e-9  # digits below this are not shown
_MEASURED = ("mean", "prelimit", "limit", "difference", "gap", "refined", "refined_gap")
_ASIDE = ("level", "cautions", "notes", "reliable")  # not in a table: notes below it say what is not reliable
_PARTS = (*LISTS, "paths")  # of a file, one of which it has


class Saved(Exports):
    """A result from a file: the rows it holds, with the settings, versions, device and seed they were made with.

    Prints as tables, and has the `to_...` of every result; `rows`, the numbers; `kind`, of what. Of a file of columns, such as
    the samples of a queue, the rows sum them up, and `columns` has their numbers by name.

    **Arguments:** `told`, what `to_json` writes; `columns`.

    ```python
    >>> import rdiff, tempfile
    >>> found = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0)).expect({"y2": lambda y: y[1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = found.to_json(f"{folder}/y2.json")
    ...     again = rdiff.load(f"{folder}/y2.json")
    >>> again.rows[0]["mean"] == found["y2"].mean
    True

    ```
    """

    _complete = True

    def __init__(self, told: Mapping[str, Any], columns: Mapping[str, np.ndarray] | None = None) -> None:
        self._told: dict[str, Any] = {name: value for name, value in told.items() if name != "schema"}
        self.columns: dict[str, np.ndarray] = dict(columns or {})

    @property
    def kind(self) -> str:
        """The command or the class that wrote it."""
        names = (self.settings.get("command"), self._told.get("command"), self._told.get("kind"), "table")
        return str(next(name for name in names if name))

    @property
    def settings(self) -> dict[str, Any]:
        """How it was made."""
        return dict(self._told.get("settings") or {})

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The numbers, a dict a row."""
        return next((self._told[part] for part in _PARTS if part in parts_of(self._told)), [])

    def to_dict(self) -> dict[str, Any]:
        """All that the file says."""
        return dict(self._told)

    def _shown(self) -> tuple[list[Any], list[str]]:
        parts = [part for part in parts_of(self._told) if part != "missing"]
        tables = [_table(self._told[part], self.kind if k == 0 else part) for k, part in enumerate(parts)]
        said = self._told.get("notes") or []
        if not said:
            names = {
                c: [str(r.get("observable", "")) for r in self.rows if c in r.get("cautions", ())] for c in _cautions(self.rows)
            }
            said = [f"not reliable ({', '.join(holders)}): {caution}" for caution, holders in names.items()]
        return tables, [*said, *made_with(self.settings)]

    def __repr__(self) -> str:
        return f"Saved({self.kind}, {len(self.rows)} rows)"


def made_with(settings: Mapping[str, Any]) -> list[str]:
    """The line that says it, or none; what is None or empty is left out.

    ```python
    >>> from rdiff.saved import made_with
    >>> made_with({"beta": 1.0, "seed": 0, "columns": None})
    ['made with beta = 1; seed = 0']

    ```
    """
    known = (f"{name} = {_said(value)}" for name, value in settings.items() if value not in (None, [], (), {}))
    said = "; ".join(known)
    return [f"made with {said}"] if said else []


def load(path: str | os.PathLike[str]) -> Any:
    """The result in a file that rdiff wrote: .json and .csv of any result or command, what a sweep saved, paths, and samples.

    **Returns:** a `Sweep` for a file or folder of one, `Paths` for a file of paths, else a `Saved`. Samples of a queue are a
    `Saved` with `columns`; to compare them, `read_samples` reads them. **Raises:** `InputError` for other files.

    ```python
    >>> import rdiff, tempfile
    >>> est = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0)).expect({"y2": lambda y: y[1]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = est.to_json(f"{folder}/y2.json")
    ...     found = rdiff.load(f"{folder}/y2.json")
    >>> found.rows[0]["mean"] == est["y2"].mean, found.settings["beta"]
    (True, 1.0)

    ```
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], Any]] = {".json": _json, ".csv": _csv, ".csv.gz": _csv, ".npz": _npz}
    if path.is_dir():
        from rdiff.sweeps.sweep import merge

        return merge(path)
    reader = next((read for ending, read in readers.items() if path.name.lower().endswith(ending)), None)
    if reader is None:
        raise InputError(f"{path} is no file of results that can be read again: those end in {', '.join(readers)}")
    try:
        return reader(path)
    except _DAMAGED as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} does not hold what rdiff writes ({error}): it is damaged, or of another program") from None


def _json(path: Path) -> Any:
    told = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(told, dict) or "schema" not in told:
        raise ValueError("no object with a schema")
    if not isinstance(told.get("settings", {}), dict):
        raise ValueError("its settings are no object")
    if not any(rows_of(told, name) and name in parts_of(told) for name in _PARTS):
        if told.get("interrupted"):
            raise InputError(f"{path}: the run was interrupted before it had any numbers")
        raise ValueError("no rows")
    if "paths" in told:
        values, local_time = ([row[name] for row in told["paths"]] for name in ("y", "U"))
        return _paths(told["time"], values, local_time, told.get("settings"))
    return Saved(told)


def _csv(path: Path) -> Any:
    with (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        text = file.read()
    head = text.partition("\n")[0].split(",")
    if {"observable", "dof", "failed"} <= set(head):
        from rdiff.sweeps.result import Sweep

        return Sweep.load(path)
    if not {"observable", "name"} & set(head) and (head[-1] != SETTINGS or {"path", "chain"} & set(head)):
        return _numbers(head, text)
    rows, settings = read_csv(text)
    if not rows:
        raise ValueError("no rows")
    return Saved({"kind": settings.get("command", "table"), "settings": settings, "rows": rows})


def _npz(path: Path) -> Any:
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    if "about" in arrays:
        from rdiff.sweeps.result import Sweep

        return Sweep.load(path)
    settings = json.loads(arrays.pop(SETTINGS).item()) if SETTINGS in arrays else {}
    if {"time", "values", "local_time"} <= set(arrays):
        return _paths(arrays["time"], arrays["values"], arrays["local_time"], settings)
    return _columns({name: array for name, array in arrays.items() if array.ndim}, settings)


def _numbers(head: Sequence[str], text: str) -> Any:
    """Columns of numbers, and in the first row their settings."""
    lines, settings = text.splitlines()[1:], {}
    if not lines:
        raise ValueError("no rows")
    if head[-1] == SETTINGS:
        head, settings = head[:-1], json.loads(next(csv.reader(lines[:1]))[-1])
    numbers = np.loadtxt(lines, delimiter=",", usecols=range(len(head)), quotechar='"', ndmin=2)
    columns = dict(zip(head, numbers.T, strict=True))
    if {"path", "time", "U"} <= set(head):
        paths = len(np.unique(columns["path"]))
        states = np.stack([columns[name] for name in head if name not in ("path", "time", "U")], axis=-1)
        times = len(numbers) // paths
        return _paths(columns["time"][:times], states.reshape(paths, times, -1), columns["U"].reshape(paths, times), settings)
    return _columns(columns, settings)


def _paths(time: Any, values: Any, local_time: Any, settings: Any) -> Any:
    """Paths in the precision that they were made in."""
    from rdiff.paths import Paths

    dtype = (settings or {}).get("dtype", getattr(values, "dtype", "float64"))
    arrays = (np.asarray(numbers, dtype) for numbers in (time, values, local_time))
    found = Paths(*arrays, settings=tuple((settings or {}).items()))  # pyright: ignore[reportArgumentType]
    if found.values.ndim != 3 or found.local_time.shape != found.values.shape[:2] or len(found.ts) != found.values.shape[1]:
        raise ValueError("paths of unequal length")
    return found


def _columns(columns: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> Saved:
    """Of columns of numbers: their extremes and means."""
    rows = [
        {"name": k, "numbers": int(x.size), "min": float(x.min()), "mean": float(x.mean()), "max": float(x.max())}
        for k, x in columns.items()
    ]
    return Saved({"kind": settings.get("command", "columns of numbers"), "settings": dict(settings), "rows": rows}, columns)


def _table(rows: Sequence[Mapping[str, Any]], title: str) -> Any:
    """Rows as a table: what is empty in all is left out, and numbers have the digits that their error leaves."""
    shown = [_shown(row) for row in rows]
    names = [k for k in dict.fromkeys(k for row in shown for k in row) if any(row.get(k) not in (None, "") for row in shown)]
    cells = []
    for row in shown:
        error = row.get("stderr") or row.get("error")
        error = max(error, _FINEST) if isinstance(error, (int, float)) else None
        cells.append([_said(row.get(name), error if name in _MEASURED else None) for name in names])
    return table.build(names, cells, title)


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row that a table has room for, the interval in one of them."""
    error = row.get("stderr") or row.get("error")
    kept = flat({k: v for k, v in row.items() if k not in (*_ASIDE, "ci")})
    kept = {k: v for k, v in kept.items() if not k.endswith(("_error", "_stderr", "_order", "_terms"))}
    ends = row.get("ci")
    if isinstance(ends, list) and len(ends) == 2 and row.get("stderr"):
        interval = f"[{', '.join(table.number(end, error) for end in ends)}]"
        kept[f"{100 * float(row.get('level') or 0.95):g}% interval"] = interval
    return kept


def _cautions(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(caution) for row in rows for caution in row.get("cautions") or ()))


def _said(value: Any, error: float | None = None) -> str:
    if isinstance(value, float):
        return table.number(value, error)
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_said, value))
    return table.number(value) if value is None else str(value)
