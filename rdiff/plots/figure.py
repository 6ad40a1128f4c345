"""What all pictures share: the figure, its axes and its file."""

import os
import re
from typing import Any

import numpy as np

from rdiff.errors import InputError

SMALL = {"fontsize": "small"}


def matplotlib() -> Any:
    """The `Figure` class of matplotlib, which draws without a display.

    **Raises:** `InputError` when matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a plot needs matplotlib: install rdiff with its extra `plot`, or matplotlib itself") from None
    return Figure


def label(axis: Any, x: str | None, y: str | None) -> None:
    """Name the axes, and leave out what carries nothing."""
    axis.set_xlabel(x or "")
    axis.set_ylabel(y or "")
    axis.margins(x=0)
    axis.spines[["top", "right"]].set_visible(False)


_PLAIN = re.compile(r"(?:[xyz]\d*|exp|sqrt|sin|cos|log|abs|\d|[ .+*<>=()-])+")


def symbols(name: str, capital: bool = False) -> str:
    r"""An observable in the symbols of the paper; a name of another kind as it is.

    ```python
    >>> from rdiff.plots.figure import symbols
    >>> symbols("y1*y2**2"), symbols("exp(-y1-y2)", capital=True), symbols("waiting")
    ('$y_1\\,y_2^{2}$', '$\\exp(-Y_1-Y_2)$', 'waiting')

    ```
    """
    if not _PLAIN.fullmatch(name):
        return name
    text = re.sub(r"\*\* *(\d+)", r"^{\1}", name).replace("*", r"\,").replace(">=", r"\geq ").replace("<=", r"\leq ")
    text = re.sub(r"(?<=[xyz\d]) (?=[xyz])", r"\\,", re.sub(r"\b(exp|sin|cos|log)\b", r"\\\1", text))
    text = re.sub(r"\b(sqrt|abs)\b", r"\\mathrm{\1}", text)
    text = re.sub(r"\b([xyz])(\d*)\b", lambda m: (m[1].upper() if capital else m[1]) + (f"_{m[2]}" if m[2] else ""), text)
    return f"${text}$"


def mean_of(name: str) -> str:
    r"""E h(Y) as the name of an axis.

    ```python
    >>> from rdiff.plots.figure import mean_of
    >>> mean_of("y2"), mean_of("y1*y2"), mean_of("x y"), mean_of("y2>1"), mean_of("waiting")
    ('$E\\,Y_2$', '$E[Y_1\\,Y_2]$', '$E[X\\,Y]$', '$P(Y_2>1)$', 'E waiting')

    ```
    """
    text = symbols(name, capital=True)
    if text == name:
        return f"E {name}"
    inside = text.strip("$")
    if re.search(r"[<>]|\\[gl]eq", inside):
        return f"$P({inside})$"
    return f"$E\\,{inside}$" if re.fullmatch(r"[XYZ](_\d+)?", inside) else f"$E[{inside}]$"


def label_contours(axis: Any, lines: Any) -> None:
    """The level of each contour line, in the middle of its longest piece, away from the edges of the picture."""
    corners = np.array([axis.get_xlim(), axis.get_ylim()])
    low, size = corners[:, 0], corners[:, 1] - corners[:, 0]
    spots = []
    for pieces in lines.allsegs:
        inside = [piece[np.all(np.abs((piece - low) / size - 0.5) < 0.42, axis=1)] for piece in pieces if len(piece)]
        longest = max(inside, key=len, default=())
        if len(longest):
            spots.append(tuple(longest[len(longest) // 2]))
    if spots:
        axis.clabel(lines, manual=spots, **SMALL)


def save(figure: Any, file: str | os.PathLike[str]) -> None:
    """Write the figure to `file`.

    **Raises:** `InputError` when matplotlib does not know its ending.
    """
    try:
        figure.savefig(file, dpi=150)
    except ValueError as e:
        raise InputError(f"cannot draw to {os.fspath(file)!r}: {e}") from None
