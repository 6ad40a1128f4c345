"""Results as tables: one way to lay them out, for `print`, for a terminal and for a file."""

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

_DIGITS = 12  # of a bounded number, shown at most


def build(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, notes: Sequence[str] = ()):
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
        table.add_column(escape(column), justify="left" if i == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(cell if isinstance(cell, str) else number(cell)) for cell in row))
    return table


def text(table: Any, width: int = 200) -> str:
    """The same table as plain text, without trailing blanks."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n")


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
