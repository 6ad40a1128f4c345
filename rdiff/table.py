"""Results as tables: one way to lay them out, for `print`, for a terminal and for a file."""

import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_ENDLESS = 100_000  # a width that no table has
_BETWEEN, _EDGE = 3, 1  # blanks that a column, and a row, take besides their cells
_DIGITS = 12  # of a bounded number, shown at most


def build(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, notes: Sequence[str] = ()) -> Any:
    """A `rich.table.Table`; the first column is text, the others are numbers set to the right."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    caption = "\n".join(escape(note) for note in notes) or None
    table = Table(
        title=escape(title) if title else None, caption=caption, box=box.SIMPLE_HEAD, title_justify="left",
        caption_justify="left", title_style="bold", caption_style="", min_width=len(title) if title else None,
    )  # fmt: skip
    for i, column in enumerate(columns):
        table.add_column(escape(column), justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell if isinstance(cell, str) else number(cell)) for cell in row))
    return table


def text(table: Any, width: int | None = None, colour: bool = False) -> str:
    """The same table as plain text, without trailing blanks; with the codes of a terminal when `colour`.

    **Arguments:** `width` that there is: a wider table is laid out in `blocks`; None: as wide as it is.

    ```python
    >>> from rdiff.table import build, text
    >>> print(text(build(["h", "mean", "stderr"], [["y2", 0.81406, 0.0031]]), width=16))
      h       mean
     ──────────────
      y2   0.81406
    <BLANKLINE>
      h    stderr
     ─────────────
      y2   0.0031

    ```
    """
    from rich.console import Console

    width, system = width or _ENDLESS, "standard" if colour else None
    shown = []
    for block in blocks(table, width):
        out, room = io.StringIO(), max(width, _least(block))  # beyond the terminal's edge rather than broken
        Console(file=out, width=room, color_system=system, force_terminal=colour, legacy_windows=False).print(block)
        shown.append("\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n"))
    return "\n\n".join(shown)


def blocks(table: Any, width: int) -> list[Any]:
    """The table, or where it is wider than `width`, tables of some of its columns each.

    The columns that tell the rows apart, such as n and the observable, are in each of them. So no number is cut, and none is
    broken that fits beside these.
    """
    from rich.text import Text

    columns = list(zip(*cells(table)))
    sizes = _sizes(table)
    length = len(columns[0]) if columns else 0
    first = next((k for k in range(1, len(columns)) if len(set(zip(*columns[:k]))) == length), 1)
    groups: list[list[int]] = [[]]
    for i in range(first, len(columns)):
        if groups[-1] and _EDGE + sum(sizes[k] for k in (*range(first), *groups[-1], i)) > width:
            groups.append([])
        groups[-1].append(i)
    title = Text.from_markup(str(table.title)).plain if table.title else None
    table.min_width = min(len(title), width) if title else None
    if len(groups) == 1:
        return [table]
    found = []
    for k, group in enumerate(groups):
        head, *rows = zip(*(columns[i] for i in (*range(first), *group)))
        found.append(build(head, rows, title if k == 0 else None))
        found[-1].min_width = min(len(title), width) if title and k == 0 else None
    return found


def _sizes(table: Any) -> list[int]:
    """The widths of the columns, with what stands between them."""
    return [max(map(len, column)) + _BETWEEN for column in zip(*cells(table))]


def _least(table: Any) -> int:
    """The width at which no number is broken: words of the first column alone may be on several lines."""
    first, *others = _sizes(table)
    words = (len(word) + _BETWEEN for line in cells(table) for word in line[0].split())
    return _EDGE + min(first, max([*words, *others], default=0)) + sum(others)


def number(value: Any, error: Any = None) -> str:
    """`value` with as many digits as its standard error carries (two of them), else six.

    ```python
    >>> from rdiff.table import number
    >>> number(0.8140597, 0.00312), number(0.8140597), number(float("nan"))
    ('0.8141', '0.81406', '-')

    ```
    """
    if value is None:
        return "-"
    if isinstance(value, (bool, int)):
        return str(value)
    value = float(value)
    if math.isnan(value):
        return "-"
    if error is not None and 0 < float(error) < math.inf and math.isfinite(value):
        places = 1 - math.floor(math.log10(float(error)))
        if places >= 0 and abs(value) < 1e7:
            return f"{value:.{min(places, 12)}f}"
    return f"{value:.5g}" if value != 0 else "0"


def digits(value: float | None, error: float) -> str:
    """`value` with the digits that its error bound leaves, at most twelve, and two that are not certain.

    ```python
    >>> from rdiff.table import digits
    >>> digits(0.8140596634, 2e-6), digits(1e-9, 1e-6)
    ('0.8140597', '0 +- 1e-06')

    ```
    """
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) <= error:
        return f"0 +- {error:.0e}"
    places = _DIGITS if error == 0 else min(_DIGITS, math.floor(math.log10(abs(value) / error)) + 2)
    return f"{value:#.{places}g}"


def cells(table: Any) -> list[list[str]]:
    """The text of a `rich` table: the heads, and the rows."""
    from rich.text import Text

    def plain(cell: Any) -> str:
        return Text.from_markup(str(cell)).plain

    columns = [[plain(column.header), *map(plain, column.cells)] for column in table.columns]
    return [list(row) for row in zip(*columns)]


def html(table: Any) -> str:
    """The same table for a notebook: plain HTML, the first column to the left.

    ```python
    >>> from rdiff.table import build, html
    >>> html(build(["h", "mean"], [["y2>1", 0.285]])).count("<td"), "y2&gt;1" in html(build(["h", "mean"], [["y2>1", 0.285]]))
    (2, True)

    ```
    """
    from html import escape

    def row(line: Sequence[str], tag: str) -> str:
        sides = ["left", *["right"] * (len(line) - 1)]
        return "".join(f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>' for side, cell in zip(sides, line))

    head, *body = cells(table)
    title = f"<caption>{escape(str(table.title))}</caption>" if table.title else ""
    lines = "".join(f"<tr>{row(line, 'td')}</tr>" for line in body)
    return f"<table>{title}<thead><tr>{row(head, 'th')}</tr></thead><tbody>{lines}</tbody></table>"


def latex(table: Any) -> str:
    r"""The same table as a LaTeX `tabular`, for the package booktabs; numbers and observables are set as mathematics.

    ```python
    >>> from rdiff.table import build, latex
    >>> print(latex(build(["h", "mean"], [["y1*y2", "-0.5"]])))
    \begin{tabular}{lr}
    \toprule
    h & mean \\
    \midrule
    $y_1 y_2$ & $-0.5$ \\
    \bottomrule
    \end{tabular}

    ```
    """
    head, *body = (" & ".join(map(_latex, line)) + r" \\" for line in cells(table))
    columns = "l" + "r" * (len(table.columns) - 1)
    return "\n".join(
        [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    )


def latex_file(tables: Iterable[Any], notes: Iterable[str], settings: Mapping[str, Any]) -> str:
    """Tables as LaTeX, with notes and settings as comments below them."""
    said = [f"% {' '.join(note.split())}" for note in (*notes, f"settings: {json.dumps(settings, default=str)}")]
    return "\n\n".join(map(latex, tables)) + "\n" + "\n".join(said) + "\n"


_POWER = re.compile(r"(\d)e([+-]?)0*(\d+)")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
}


def _latex(cell: str) -> str:
    number = _POWER.sub(lambda m: rf"{m[1]} \times 10^{{{m[2].replace('+', '')}{m[3]}}}", cell)
    if re.fullmatch(r"[-+\d.,\[\] ]*\d[-+\d.,\[\] ]*(\\times 10\^\{-?\d+\}[-+\d.,\[\] ]*)*", number):
        return f"${number.replace('+-', chr(92) + 'pm')}$"
    if re.fullmatch(r"[xy\d*+\-<>= ().]*[xy]\d[xy\d*+\-<>= ().]*", cell):  # an observable
        sign = re.sub(r"([xy])(\d)", r"\1_\2", re.sub(r"\*\*(\d+)", r"^{\1}", cell))
        return f"${sign.replace('*', ' ').replace('>=', chr(92) + 'ge ').replace('<=', chr(92) + 'le ')}$"
    return "".join(_SPECIAL.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in cell)
