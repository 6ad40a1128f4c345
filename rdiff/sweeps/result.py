"""`Sweep`: what a sweep gives, a row for each point and observable; as a table, as arrays, and as a file."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rdiff import table
from rdiff.errors import InputError
from rdiff.estimate import Estimate, Estimates
from rdiff.export import Exports
from rdiff.sweeps.grids import label

_NUMBERS = ("mean", "stderr", "dof", "error", "ess", "rhat", "bias")
_TEXTS = ("observable", "cautions", "failed")


class Sweep(Exports):
    """Estimates along a grid. Prints as a table.

    **Attributes:**

    - `points`: the points of the grid in order, dicts of values.
    - `found`: for each point its `Estimates`, or a text that says why there are none.
    - `observables`: the names of what was averaged.
    - `settings`: how it was made. `notes`: what went wrong on the way. `missing`: points that are not done.

    ```python
    >>> import rdiff
    >>> found = rdiff.sweep({"beta": [0.5, 1.0]}, {"y2": lambda y: y[1]}, law="exact")
    >>> found["beta"].tolist(), found.mean("y2").round(6).tolist()
    ([0.5, 1.0], [2.843612, 0.81406])

    ```
    """

    def __init__(
        self, points: Sequence[dict[str, Any]], found: Sequence[Estimates | str], observables: Sequence[str],
        settings: Mapping[str, Any] | None = None, notes: Sequence[str] = (), missing: Sequence[dict[str, Any]] = (),
    ) -> None:  # fmt: skip
        self.points, self.found, self.observables = tuple(points), tuple(found), tuple(observables)
        self.settings, self.notes, self.missing = dict(settings or {}), tuple(notes), tuple(missing)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the grid's parameters."""
        return tuple(dict.fromkeys(name for point in self.points for name in point))

    @property
    def failures(self) -> dict[str, str]:
        """What went wrong, by point in words; empty when every point has its numbers."""
        return {label(point): found for point, found in zip(self.points, self.found) if isinstance(found, str)}

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, parameter: str) -> np.ndarray:
        """The values of a parameter, one a point."""
        if parameter not in self.parameters:
            raise InputError(f"the grid has {', '.join(self.parameters)}, not {parameter!r}")
        return np.array([point[parameter] for point in self.points])

    def mean(self, observable: str | None = None) -> np.ndarray:
        """The estimates of one observable (the only one by default), one a point; NaN where it failed."""
        return self._column("mean", observable)

    def stderr(self, observable: str | None = None) -> np.ndarray:
        """Their standard errors; 0 for exact laws."""
        return self._column("stderr", observable)

    def error(self, observable: str | None = None) -> np.ndarray:
        """The bounds on the numerical error of exact laws; NaN for simulated ones."""
        return self._column("error", observable)

    def _column(self, field: str, observable: str | None) -> np.ndarray:
        if observable is None and len(self.observables) > 1:
            raise InputError(f"there are several observables, name one of them: {', '.join(self.observables)}")
        name = observable or next(iter(self.observables))
        if name not in self.observables:
            raise InputError(f"the sweep has {', '.join(self.observables)}, not {name!r}")
        values = [None if isinstance(found, str) else getattr(found[name], field) for found in self.found]
        return np.array([math.nan if value is None else value for value in values], float)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A dict for each point and observable: the parameters, `observable`, `mean`, `stderr`, `ci`, ..., `failed`."""
        return self.to_dict()["rows"]

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain data for JSON: NaN and infinity are None."""
        empty = dict.fromkeys(Estimate(math.nan, math.nan).to_dict())
        rows = []
        for point, found in zip(self.points, self.found):
            for name in self.observables:
                failed = found if isinstance(found, str) else None
                row = {**empty, "reliable": False, "cautions": []} if isinstance(found, str) else found[name].to_dict(level)
                rows.append({**point, **row, "observable": name, "level": level, "failed": failed})
        return {"settings": self.settings, "rows": rows, "notes": list(self.notes), "missing": list(self.missing)}

    def table(self, level: float = 0.95, title: str | None = None) -> Any:
        """The `rich` table that `print` shows as text."""
        exact = any(not isinstance(found, str) and any(e.error is not None for e in found.values()) for found in self.found)
        rows = []
        for point, found in zip(self.points, self.found):
            for name in self.observables:
                values = [str(value) for value in point.values()]
                if isinstance(found, str):
                    rows.append([*values, name, "failed", "-", "-"])
                    continue
                estimate = found[name]
                scale = estimate.stderr if estimate.error is None else estimate.error
                low, high = (table.number(x, scale) for x in estimate.ci(level))
                mark = "" if estimate.reliable else " *"
                rows.append([*values, name, table.number(estimate.mean, scale) + mark, table.number(scale), f"[{low}, {high}]"])
        columns = [*self.parameters, "observable", "mean", "error" if exact else "stderr", f"{100 * level:g}% interval"]
        return table.build(columns, rows, title)

    def remarks(self) -> list[str]:
        """Lines to print under the table: notes, what is missing or failed, and what is not reliable."""
        marked: dict[str, list[str]] = {}
        for point, found in zip(self.points, self.found):
            for estimate in () if isinstance(found, str) else found.values():
                for caution in estimate.cautions:
                    marked.setdefault(caution, []).append(f"{label(point)}: {estimate.name}")
        lines = [*self.notes]
        if self.missing:
            lines.append(f"{len(self.missing)} of {len(self) + len(self.missing)} points are not done: {_some(self.missing)}")
        lines += [f"failed at {point}: {why}" for point, why in self.failures.items()]
        return lines + [f"* not reliable ({_few(where)}): {caution}" for caution, where in marked.items()]

    def _shown(self) -> tuple[list[Any], list[str]]:
        return [self.table()], self.remarks()

    def save(self, path: str | Path) -> None:
        """Write an .npz (an array a column) or a .csv file; `Sweep.load` reads both.

        **Raises:** `InputError` for another ending.
        """
        path, columns = Path(path), self._columns()
        if path.suffix.lower() == ".npz":
            about = json.dumps([self.settings, self.notes, self.missing])
            np.savez_compressed(path, **{name: np.array(values) for name, values in columns.items()}, about=np.array(about))  # pyright: ignore
        elif path.suffix.lower() == ".csv":
            columns["settings"] = [json.dumps([self.settings, self.notes, self.missing]), *[""] * (len(columns["mean"]) - 1)]
            with open(path, "w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows(zip(*columns.values()))
        else:
            raise InputError(f"a sweep is saved as .npz or .csv, got {str(path)!r}")

    @staticmethod
    def load(path: str | Path) -> "Sweep":
        """A sweep from the file that `save` wrote. **Raises:** `InputError` when it is not one."""
        path, about = Path(path), "[{}, [], []]"
        try:
            if path.suffix.lower() == ".npz":
                with np.load(path) as file:
                    columns = {name: file[name].tolist() for name in file.files}
                about = columns.pop("about")
            else:
                with open(path, newline="", encoding="utf-8") as file:
                    names, *rows = csv.reader(file)
                columns = {name: [_read(name, row[i]) for row in rows] for i, name in enumerate(names)}
                about = columns.pop("settings", [about])[0]
            return _rebuilt(columns, *json.loads(about))
        except (ValueError, KeyError, IndexError, EOFError) as error:
            raise InputError(f"{path} does not hold a sweep: {error}") from None

    def _columns(self) -> dict[str, list[Any]]:
        """Long format: a value for each point and observable."""
        rows = []
        for point, found in zip(self.points, self.found):
            for name in self.observables:
                row: dict[str, Any] = {**point, "observable": name, "cautions": "", "failed": ""}
                if isinstance(found, str):
                    row |= {**dict.fromkeys(_NUMBERS, math.nan), "failed": found}
                else:
                    values = {field: getattr(found[name], field) for field in _NUMBERS}
                    row |= {field: math.nan if value is None else float(value) for field, value in values.items()}
                    row["cautions"] = "; ".join(found[name].cautions)
                rows.append(row)
        return {name: [row[name] for row in rows] for name in (*self.parameters, "observable", *_NUMBERS, *_TEXTS[1:])}


def _rebuilt(columns: dict[str, list[Any]], settings: dict, notes: list, missing: list) -> Sweep:
    parameters = [name for name in columns if name not in (*_NUMBERS, *_TEXTS)]
    observables = list(dict.fromkeys(columns["observable"]))
    points, found = [], []
    for start in range(0, len(columns["observable"]), len(observables)):
        points.append({name: columns[name][start] for name in parameters})
        if columns["failed"][start]:
            found.append(columns["failed"][start])
            continue
        estimates = Estimates()
        for i in range(start, start + len(observables)):
            numbers = {field: columns[field][i] for field in _NUMBERS}
            known = {field: None if math.isnan(numbers[field]) else numbers[field] for field in ("bias", "error")}
            cautions = tuple(columns["cautions"][i].split("; ")) if columns["cautions"][i] else ()
            name = columns["observable"][i]
            estimates[name] = Estimate(**{**numbers, **known}, name=name, cautions=cautions)
        found.append(estimates)
    return Sweep(points, found, observables, settings, notes, missing)


def _read(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text
    for kind in (int, float) if name not in _NUMBERS else (float,):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _some(points: Sequence[Mapping[str, Any]]) -> str:
    return _few([label(point) for point in points])


def _few(words: Sequence[str], most: int = 3) -> str:
    return "; ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
