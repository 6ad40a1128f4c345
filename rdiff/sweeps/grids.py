"""Grids of parameters: what points a sweep has, from Python values, from text such as `0.5:2:0.1`, or from a TOML file."""

import decimal
import itertools
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from rdiff.errors import InputError

MOST_POINTS = 1_000_000


def points(grid: Mapping[str, Any], paired: bool = False) -> list[dict[str, Any]]:
    """The points of a grid in order, each a dict of plain numbers and words.

    **Arguments:** `grid`, parameter -> values (one alone is a constant); `paired`: the k-th point has the k-th value of each
    parameter, instead of every combination (the last parameter varies fastest).
    **Raises:** `InputError` for an empty grid, no numbers, lengths that do not fit, and a point that is there twice.

    ```python
    >>> from rdiff.sweeps.grids import points
    >>> points({"beta": [0.5, 1.0], "b": 2})
    [{'beta': 0.5, 'b': 2}, {'beta': 1.0, 'b': 2}]

    ```
    """
    if not isinstance(grid, Mapping) or not grid:
        raise InputError(f'a grid is a dict of parameters and their values, such as {{"beta": [0.5, 1.0]}}, got {grid!r}')
    axes = {str(name): _axis(str(name), values) for name, values in grid.items()}
    if paired:
        length = max(map(len, axes.values()))
        wrong = [f"{name}: {len(values)}" for name, values in axes.items() if len(values) not in (1, length)]
        if wrong:
            raise InputError(f"a paired grid has one value a point of each parameter, {length} here, got {', '.join(wrong)}")
        rows = zip(*(values * (length if len(values) == 1 else 1) for values in axes.values()), strict=True)
        count = length
    else:
        count = int(np.prod([float(len(values)) for values in axes.values()]))
        rows = itertools.product(*axes.values())
    if count > MOST_POINTS:
        raise InputError(f"the grid has {count:,} points, more than {MOST_POINTS:,}: split it")
    found = [dict(zip(axes, row)) for row in rows]
    seen = set()
    for point in found:
        values = tuple(point.values())
        if values in seen:
            raise InputError(f"the grid has {label(point)} twice: each point once")
        seen.add(values)
    return found


def parse_axis(text: str) -> list[Any]:
    """Values from text: numbers, words, and ranges `start:end:step` (the end included), with commas between them.

    The numbers are those of the decimals written: `0.5:2:0.1` has 0.6 and not 0.6000000000000001.

    **Raises:** `InputError`.

    ```python
    >>> from rdiff.sweeps.grids import parse_axis
    >>> parse_axis("0.5:0.8:0.1,2"), parse_axis("1,2")
    ([0.5, 0.6, 0.7, 0.8, 2], [1, 2])

    ```
    """
    values = []
    for part in str(text).split(","):
        if ":" in part:
            values += _range(part.strip())
        else:
            values.append(_value(part.strip()))
    return values


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a grid file says: a table `[grid]` of parameters, and what else stands beside it.

    ```toml
    observables = ["y2", "y2>1"]
    paired = false
    [grid]
    beta = "0.5:2:0.1"
    dt = [0.1, 0.05]
    ```

    **Raises:** `InputError`.
    """
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML file: {error}") from None
    kinds = {"observables": (list, "a list of texts"), "seed": (int, "an integer")}
    kinds |= dict.fromkeys(("paired", "common", "exact"), (bool, "true or false"))
    unknown = sorted(set(found) - {"grid", *kinds})
    if unknown or not isinstance(found.get("grid"), dict):
        what = f"it says {', '.join(unknown)}" if unknown else "it has none"
        raise InputError(f"{path} must hold a table [grid] of parameters, and may say {', '.join(kinds)}: {what}")
    for name, (kind, what) in kinds.items():
        if name in found and not isinstance(found[name], kind):
            raise InputError(f"{path}: {name} must be {what}, got {found[name]!r}")
    found["grid"] = {name: _axis(name, parse_axis(x) if isinstance(x, str) else x) for name, x in found["grid"].items()}
    return found


def label(point: Mapping[str, Any]) -> str:
    """A point in words.

    ```python
    >>> from rdiff.sweeps.grids import label
    >>> label({"beta": 0.5, "b": 2})
    'beta=0.5, b=2'

    ```
    """
    return ", ".join(f"{name}={value}" for name, value in point.items())


def _axis(name: str, values: Any) -> list[Any]:
    values = values.tolist() if isinstance(values, (np.ndarray, np.generic, jax.Array)) else values
    values = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not plain:
        raise InputError(f"the grid has no values of {name}")
    for value in plain:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)) or value != value:
            raise InputError(f"values of {name} must be numbers or words, got {value!r} (a range is text: '0.5:2:0.1')")
    return plain


def _range(text: str) -> list[Any]:
    try:
        start, end, step = (decimal.Decimal(part.strip()) for part in text.split(":"))
        count = math.floor((end - start) / step) + 1
    except (ValueError, ArithmeticError):
        start, step, count = decimal.Decimal(), decimal.Decimal(), 0
    if count < 1:
        raise InputError(f"{text!r} must be start:end:step with a step that leads from start to end, such as 0.5:2:0.1")
    if count > MOST_POINTS:
        raise InputError(f"{text!r} has {count:,} values, more than {MOST_POINTS:,} (usual cause: the order is start:end:step)")
    return [_value(str(start + k * step)) for k in range(count)]


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if not text:
        raise InputError("a value is missing: numbers with commas between them, such as 0.5,1,2")
    return text
