"""`load`: what a file that rdiff wrote says, as a result again: it prints, and hands itself on."""

import gzip
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rdiff import table
from rdiff.errors import InputError
from rdiff.export import Exports
from rdiff.records import flat, parts_of, read_csv, rows_of

_DAMAGED = (
    ValueError, KeyError, IndexError, EOFError, AttributeError, TypeError, gzip.BadGzipFile, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_FINEST = 1e-9  # digits below this are not shown
_MEASURED = ("mean", "prelimit", "limit", "difference", "gap", "refined", "refined_gap")
_ASIDE = ("level", "cautions", "notes", "reliable")  # not in a table: notes below it say what is not reliable
_RESULT = {"observable", "name", "settings"}  # columns of a result, which a table of numbers has not


class Saved(Exports):
    """A result from a file: the rows it holds, with the settings, versions, device and seed they were made with.

    Prints as tables, and has the `to_...` of every result; `rows`, the numbers; `kind`, of what.

    **Arguments:** `told`, what `to_json` writes.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = {name: value for name, value in told.items() if name != "schema"}

    @property
    def kind(self) -> str:
        """The command or the class that wrote it."""
        return str(self._told.get("command") or self._told.get("kind") or "table")

    @property
    def settings(self) -> dict[str, Any]:
        """How it was made."""
        return dict(self._told.get("settings") or {})

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The numbers, a dict a row."""
        return self._told.get("results") or self._told.get("rows") or []

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
        made = "; ".join(f"{name} = {_said(value)}" for name, value in self.settings.items() if value not in (None, [], ()))
        return tables, [*said, *([f"made with {made}"] if made else [])]

    def __repr__(self) -> str:
        return f"Saved({self.kind}, {len(self.rows)} rows)"


def load(path: str | os.PathLike[str]) -> Any:
    """The result in a file that rdiff wrote: .json and .csv of any result or command, and what a sweep saved.

    Sample paths and samples of a queue are read as a summary of their columns: their numbers are for your own tools, or for
    `read_samples`.

    **Returns:** a `Saved`, or a `Sweep` for a file or folder of one. **Raises:** `InputError` for other files.

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
    readers: dict[str, Callable[[Path], Any]] = {".json": _json, ".csv": _csv, ".csv.gz": _columns, ".npz": _npz}
    if path.is_dir():
        from rdiff.sweeps.sweep import merge

        return merge(path)
    reader = next((read for ending, read in readers.items() if path.name.lower().endswith(ending)), None)
    if reader is None:
        raise InputError(f"{path} is no file that rdiff writes: those end in {', '.join(readers)}")
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
    if not any(rows_of(told, name) and name in parts_of(told) for name in ("results", "rows", "paths")):
        raise ValueError("no rows")
    if told.get("command") == "path":
        return _summary(
            {f"y{i + 1}": [y[i] for row in told["paths"] for y in row["y"]] for i in range(len(told["paths"][0]["y"][0]))}
            | {"U": [u for row in told["paths"] for u in row["U"]]},
            told.get("settings"),
        )
    return Saved(told)


def _csv(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    head = text.partition("\n")[0].split(",")
    if {"observable", "dof", "failed"} <= set(head):
        from rdiff.sweeps.result import Sweep

        return Sweep.load(path)
    if not _RESULT & set(head):
        return _columns(path)
    rows, settings = read_csv(text)
    if not rows:
        raise ValueError("no rows")
    return Saved({"kind": settings.get("command", "table"), "settings": settings, "rows": rows})


def _npz(path: Path) -> Any:
    import numpy as np

    with np.load(path) as file:
        if "about" in file.files:
            from rdiff.sweeps.result import Sweep

            return Sweep.load(path)
        columns = {name: file[name] for name in file.files if file[name].ndim}
        return _summary(columns, {name: file[name].item() for name in file.files if not file[name].ndim})


def _columns(path: Path) -> Any:
    import numpy as np

    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        head = file.readline().strip().split(",")
        lines = file.read().splitlines()
    if not lines:
        raise ValueError("no rows")
    numbers = np.loadtxt(lines, delimiter=",", ndmin=2)
    return _summary(dict(zip(head, numbers.T, strict=True)))


def _summary(columns: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> Saved:
    """Of columns of numbers: their extremes and means."""
    import numpy as np

    arrays = {name: np.asarray(values, float) for name, values in columns.items()}
    rows = [
        {"name": k, "numbers": int(x.size), "min": float(x.min()), "mean": float(x.mean()), "max": float(x.max())}
        for k, x in arrays.items()
    ]
    return Saved({"kind": "columns of numbers", "settings": dict(settings or {}), "rows": rows})


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
