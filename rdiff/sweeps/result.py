"""`Sweep`: what a sweep gives, a row for each point and observable; as a table, as arrays, and as a file."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rdiff import table
from rdiff.errors import InputError
from rdiff.estimate import Estimate, Estimates, cells, plain
from rdiff.export import Exports
from rdiff.records import columns_of, csv_text, read_csv
from rdiff.sweeps.grids import label

_NONE = {**dict.fromkeys(Estimate(math.nan, math.nan).to_dict()), "reliable": False, "cautions": [], "dof": None}


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
        self.points: tuple[dict[str, Any], ...] = tuple(points)
        self.found: tuple[Estimates | str, ...] = tuple(found)
        self.observables: tuple[str, ...] = tuple(observables)
        self.settings: dict[str, Any] = dict(settings or {})
        self.notes: tuple[str, ...] = tuple(notes)
        self.missing: tuple[dict[str, Any], ...] = tuple(missing)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the grid's parameters."""
        return tuple(dict.fromkeys(name for point in self.points for name in point))

    @property
    def failures(self) -> dict[str, str]:
        """What went wrong, by point in words; empty when every point has its numbers."""
        return {label(point): found for point, found in zip(self.points, self.found) if isinstance(found, str)}

    @property
    def complete(self) -> bool:
        """Whether every point asked for has its numbers, and nothing went wrong on the way."""
        return not (self.failures or self.missing or self.notes)

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
        rows = []
        for point, name, found in self._each():
            failed = found if isinstance(found, str) else None
            row = _NONE if isinstance(found, str) else {**found.to_dict(level), "dof": plain(found.dof)}
            rows.append({**point, **row, "observable": name, "level": level, "failed": failed})
        return {"settings": self.settings, "rows": rows, "notes": list(self.notes), "missing": list(self.missing)}

    def table(self, level: float = 0.95, title: str | None = None) -> Any:
        """The `rich` table that `print` shows as text."""
        rows, error = [], "stderr"
        for point, name, found in self._each():
            if isinstance(found, str):
                own = [name, "failed", "-", "-"]
            else:
                own = cells(name, found, level)[:4]
                own[1] += "" if found.reliable else " *"
                error = error if found.error is None else "error"
            rows.append([*map(str, point.values()), *own])
        return table.build([*self.parameters, "observable", "mean", error, f"{100 * level:g}% interval"], rows, title)

    def remarks(self) -> list[str]:
        """Lines to print under the table: notes, what is missing or failed, and what is not reliable."""
        marked: dict[str, list[str]] = {}
        for point, name, found in self._each():
            for caution in () if isinstance(found, str) else found.cautions:
                marked.setdefault(caution, []).append(f"{label(point)}: {name}")
        lines = [*self.notes]
        if self.missing:
            count = len(self.missing)
            lines.append(f"{count} of {len(self) + count} points are not done: {_few([*map(label, self.missing)])}")
        lines += [f"failed at {point}: {why}" for point, why in self.failures.items()]
        return lines + [f"* not reliable ({_few(where)}): {caution}" for caution, where in marked.items()]

    def _each(self) -> Iterator[tuple[dict[str, Any], str, Estimate | str]]:
        """Point, observable, and what was found."""
        for point, found in zip(self.points, self.found):
            yield from ((point, name, found if isinstance(found, str) else found[name]) for name in self.observables)

    def _shown(self) -> tuple[list[Any], list[str]]:
        return [self.table()], self.remarks()

    def save(self, path: str | Path) -> None:
        """Write the rows as an .npz (an array a column) or a .csv file; `Sweep.load` reads both.

        **Raises:** `InputError` for another ending.
        """
        path, about = Path(path), {**self.settings, "notes": self.notes, "missing": self.missing}
        if path.suffix.lower() == ".npz":
            columns = {name: np.array(values) for name, values in columns_of(self.rows).items()}
            np.savez_compressed(path, **columns, about=np.array(json.dumps(about)))  # pyright: ignore[reportArgumentType]
        elif path.suffix.lower() == ".csv":
            path.write_text(csv_text(self.rows, about), encoding="utf-8")
        else:
            raise InputError(f"a sweep is saved as .npz or .csv, got {str(path)!r}")

    @staticmethod
    def load(path: str | Path) -> "Sweep":
        """A sweep from the file that `save` wrote. **Raises:** `InputError` when it is not one."""
        path = Path(path)
        try:
            if path.suffix.lower() == ".npz":
                with np.load(path) as file:
                    columns = {name: file[name].tolist() for name in file.files}
                about = json.loads(columns.pop("about"))
                columns["cautions"] = [text.split("; ") if text else [] for text in columns["cautions"]]
                rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
            else:
                rows, about = read_csv(path.read_text(encoding="utf-8"))
            return _rebuilt(rows, **{name: about.pop(name, ()) for name in ("notes", "missing")}, settings=about)
        except (ValueError, KeyError, IndexError, EOFError, TypeError, AttributeError, StopIteration) as error:
            raise InputError(f"{path} does not hold a sweep: {error}") from None


def _rebuilt(rows: Sequence[dict[str, Any]], settings: dict, notes: Sequence[str], missing: Sequence[dict]) -> Sweep:
    columns, observables = [*rows[0]], list(dict.fromkeys(row["observable"] for row in rows))
    points, found = [], []
    for each in zip(*[iter(rows)] * len(observables), strict=True):
        points.append({name: each[0][name] for name in columns[: columns.index("observable")]})
        failed, estimates = each[0]["failed"], Estimates({row["observable"]: Estimate.of(row) for row in each})
        found.append(failed if isinstance(failed, str) and failed else estimates)
    return Sweep(points, found, observables, settings, notes, missing)


def _few(words: Sequence[str], most: int = 3) -> str:
    return "; ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
