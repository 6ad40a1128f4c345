"""Rows of plain dicts, which is what every result is to a file or another tool: as JSON, as CSV, flat, and back."""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

SCHEMA = 1
SETTINGS = "settings"  # the column of a CSV, or the array of an npz, that says how the numbers beside it were made
LISTS = ("results", "rows", "columns")  # where a result keeps its rows
_WORDS = ("observable", "name")  # columns of text, whatever it looks like


def rows_of(result: Any, part: str | None = None) -> list[dict[str, Any]]:
    """The rows in what `to_dict` answers: a list of rows, one row, or a dict that holds them, as `part` or one of `LISTS`."""
    if isinstance(result, list):
        return result
    if part is None:
        part = next((name for name in LISTS if isinstance(result.get(name), list)), None)
        return [dict(result)] if part is None else result[part]
    return result.get(part, [])


def parts_of(result: Mapping[str, Any]) -> list[str]:
    """The names under which a result holds rows."""
    return [k for k, v in result.items() if isinstance(v, list) and v and all(isinstance(row, Mapping) for row in v)]


def index_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that tell the rows apart: all up to `observable`, which stands behind the parameters of a grid, and n.

    ```python
    >>> from rdiff.records import index_of
    >>> index_of([{"beta": 1.0, "observable": "y2", "mean": 0.8}, {"beta": 2.0, "observable": "y2", "mean": 0.1}])
    ['beta', 'observable']

    ```
    """
    names = list(rows[0]) if rows else []
    index = names[: names.index("observable") + 1] if "observable" in names else names[:1]
    same = len({tuple(map(str, (row.get(name) for name in index))) for row in rows}) < len(rows)
    return [*index, "n"] if same and "n" in names and "n" not in index else index


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with one value a column: an interval as two, a dict as one for each of its keys, words as one text.

    ```python
    >>> from rdiff.records import flat
    >>> flat({"ci": [0.1, 0.2], "cautions": ["short", "few"], "terms": {"a": 1.0}})
    {'ci_low': 0.1, 'ci_high': 0.2, 'cautions': 'short; few', 'terms_a': 1.0}

    ```
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name == "ci" and isinstance(value, (list, tuple)) and len(value) == 2:
            found |= {"ci_low": value[0], "ci_high": value[1]}
        elif isinstance(value, Mapping):
            found |= {f"{name}_{key}": each for key, each in value.items()}
        elif isinstance(value, (list, tuple)):
            found[name] = "; ".join(map(str, value))
        else:
            found[name] = value
    return found


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Flat rows as columns of one kind each: in a column of numbers, and in an empty one, None becomes NaN."""
    flats = [flat(row) for row in rows]
    found: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for row in flats for name in row):
        values = [row.get(name) for row in flats]
        known = [value for value in values if value is not None]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
            values = [math.nan if value is None else value for value in values]
        elif all(isinstance(value, str) for value in known):
            values = ["" if value is None else value for value in values]
        found[name] = values
    return found


def clean(value: Any) -> Any:
    """Plain Python for JSON: NaN and infinity become None, arrays lists."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(k): clean(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v) for v in value]
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return clean(value.tolist()) if hasattr(value, "tolist") else str(value)


def dumps(result: Mapping[str, Any], indent: int | None = 2) -> str:
    """The JSON text of a result."""
    return json.dumps(clean({"schema": SCHEMA, **result}), allow_nan=False, indent=indent)


def csv_text(rows: Sequence[Mapping[str, Any]], settings: Mapping[str, Any] | None = None) -> str:
    """Rows as CSV; a list becomes its entries with semicolons between them.

    How they were made goes into a last column, `settings`, as JSON in the first row: every reader of CSV takes that.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*names, SETTINGS] if settings else names, lineterminator="\n")
    writer.writeheader()
    for k, row in enumerate(rows):
        cells = {name: _cell(value) for name, value in row.items()}
        writer.writerow({**cells, SETTINGS: json.dumps(clean(settings))} if settings and k == 0 else cells)
    return text.getvalue()


def csv_of_numbers(columns: Sequence[str], lines: Iterable[str], settings: Mapping[str, Any] | None) -> Iterator[str]:
    """Lines of numbers, commas between them, as CSV: like `csv_text`, of any length.

    ```python
    >>> from rdiff.records import csv_of_numbers
    >>> print("".join(csv_of_numbers(["t", "Q1"], ["0,4", "1,3"], {"n": 4})), end="")
    t,Q1,settings
    0,4,"{""n"": 4}"
    1,3,

    ```
    """
    yield ",".join([*columns, SETTINGS] if settings else columns) + "\n"
    told = f',"{json.dumps(clean(settings)).replace(chr(34), 2 * chr(34))}"' if settings else ""
    for k, line in enumerate(lines):
        yield f"{line}{told if k == 0 else ',' if settings else ''}\n"


def read_csv(text: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows and settings that `csv_text` wrote.

    ```python
    >>> from rdiff.records import csv_text, read_csv
    >>> read_csv(csv_text([{"observable": "y2", "ci": [0.5, 1.0], "bias": None}], {"beta": 1.0}))
    ([{'observable': 'y2', 'ci': [0.5, 1.0], 'bias': None}], {'beta': 1.0})

    ```
    """
    rows: list[dict[str, Any]] = []
    settings: dict[str, Any] = {}
    for row in csv.DictReader(io.StringIO(text)):
        told = row.pop(SETTINGS, None)
        settings |= json.loads(told) if told else {}
        rows.append({name: _value(name, cell) for name, cell in row.items() if name is not None})
    return rows, settings


def _cell(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return ";".join(map(str, value))
    return json.dumps(clean(value)) if isinstance(value, Mapping) else value


def _value(name: str, cell: Any) -> Any:
    if name == "cautions":
        return re.split(";(?! )", cell) if cell else []
    if name in _WORDS:
        return cell
    if cell in (None, "", "None"):
        return None
    if cell in ("True", "False"):
        return cell == "True"
    if name == "ci" and ";" in cell:
        return [_value("", part) for part in cell.split(";")]
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return json.loads(cell) if cell.startswith("{") else cell
