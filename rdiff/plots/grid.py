"""A picture of a sweep: means along one parameter, with their bands."""

import os
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.estimate import t_quantile
from rdiff.plots.figure import SMALL, label, matplotlib, mean_of, save
from rdiff.sweeps.result import Sweep

_MARKERS = ("o", "s", "^", "v")


def sweep(
    file: str | os.PathLike[str], found: Sweep, exact: Sweep | None = None, level: float = 0.95, title: str | None = None
) -> None:
    """Draw the means of a sweep along its one parameter that varies, a panel an observable, with their intervals.

    **Arguments:** `file` ending in .png, .pdf or .svg; `found`, a sweep whose points differ in one numerical parameter;
    `exact`, the same observables from exact laws, drawn as a line; `level` of the intervals; `title`.
    **Raises:** `InputError` when several parameters vary or none does, and when matplotlib is missing or does not know
    the ending of `file`.

    ```python
    >>> import pathlib, rdiff, tempfile
    >>> from rdiff import plots
    >>> found = rdiff.sweep({"beta": [0.5, 1.0, 2.0]}, {"y2": lambda y: y[1]}, law="exact")
    >>> plots.sweep(pathlib.Path(tempfile.mkdtemp()) / "sweep.png", found)

    ```
    """
    parameter = _varying(found)
    names = found.observables
    figure = matplotlib()(figsize=(1.0 + 3.6 * min(len(names), 2), 0.6 + 2.8 * -(-len(names) // 2)), layout="constrained")
    axes = figure.subplots(-(-len(names) // 2), min(len(names), 2), squeeze=False).ravel()
    for axis, name in zip(axes, names):
        _panel(axis, found, exact, parameter, name, level)
    axes[0].legend(frameon=False, **SMALL)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    if title:
        figure.suptitle(title)
    save(figure, file)


def _panel(axis: Any, found: Sweep, exact: Sweep | None, parameter: str, name: str, level: float) -> None:
    at, means = found[parameter].astype(float), found.mean(name)
    order = np.argsort(at)
    errors = np.nan_to_num(found.stderr(name))
    if errors.any():
        half = t_quantile(level, np.inf) * errors
        axis.fill_between(at[order], (means - half)[order], (means + half)[order], color="0.8", linewidth=0,
                          label=f"{100 * level:g}% interval")  # fmt: skip
    axis.plot(at[order], means[order], "o", color="black", markersize=3, label="simulated" if errors.any() else "exact")
    if exact is not None:
        where = exact[parameter].astype(float)
        rank = np.argsort(where)
        axis.plot(where[rank], exact.mean(name)[rank], color="black", linewidth=1.0, label="exact")
    label(axis, f"$\\{parameter}$" if parameter == "beta" else parameter, mean_of(name))
    axis.margins(x=0.02)


def _varying(found: Sweep) -> str:
    several = [name for name in found.parameters if len({point[name] for point in found.points}) > 1]
    numbers = [name for name in several if all(isinstance(value, (int, float)) for value in found[name].tolist())]
    if len(several) != 1 or not numbers:
        raise InputError(f"a picture of a sweep needs one number that varies, got {', '.join(several) or 'none'}")
    return numbers[0]
