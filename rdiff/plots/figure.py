"""What all pictures share: the figure, its axes and its file."""

import os
from typing import Any

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


def save(figure: Any, file: str | os.PathLike[str]) -> None:
    """Write the figure to `file`.

    **Raises:** `InputError` when matplotlib does not know its ending.
    """
    try:
        figure.savefig(file, dpi=150)
    except ValueError as e:
        raise InputError(f"cannot draw to {os.fspath(file)!r}: {e}") from None
