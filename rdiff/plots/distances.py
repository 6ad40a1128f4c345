"""Pictures of the distances between the queue and its limit: sqrt(n) times them along n, and the h that attains d_{M_2}."""

import os
from typing import Any

import numpy as np

from rdiff.distances.along import Distances
from rdiff.distances.between import Distance
from rdiff.plots.figure import SMALL, label, label_contours, matplotlib, save

_STYLES = {"d_M2": ("o", "-"), "d_M1": ("s", "--"), "w1_1": ("^", "-."), "ks_1": ("v", ":")}
_BELOW = ("d_M2", "w1_1")  # the limit's number, clear of the one above
_NAMES = {"d_M2": "$d_{M_2}$", "d_M1": "$d_{M_1}$", "w1_1": "$W_1$ of $X_1$", "ks_1": "KS of $X_1$"}


def distances(file: str | os.PathLike[str], found: Distances, title: str | None = None) -> None:
    """Draw sqrt(n) d along n^{-1/2}, with the limits at 0, beside the h that attains d_{M_2} at the largest n.

    Markers are the n computed, lines the polynomials of the extrapolation through the last three, open markers at 0 the limits.
    h is drawn as contours (b = 0: as a curve): E h(X) - E h(Y) = d_{M_2}, and no function of the class does better.

    **Arguments:** `file` ending in .png, .pdf or .svg; `found`, from `distance`; `title`.
    **Raises:** `InputError` when matplotlib is not installed or does not know the ending of `file`.

    ```python
    >>> import pathlib, tempfile
    >>> from rdiff import plots
    >>> from rdiff.distances.along import distance
    >>> plots.distances(pathlib.Path(tempfile.mkdtemp()) / "distance.png", distance([16, 64], beta=1.0))

    ```
    """
    last = found[-1]
    figure = matplotlib()(figsize=(9.0, 4.2), layout="constrained")
    figure.suptitle(title or f"Distance of the queue from its limit, $\\beta = {last.beta:g}$, $b = {last.b}$")
    left, right = figure.subplots(1, 2)
    _along(left, found)
    _optimal(right, last)
    save(figure, file)


def _along(axis: Any, found: Distances) -> None:
    roots = np.array([row.n for row in found]) ** -0.5
    limits = found.limits
    # one coordinate has one W1, which is d_M1
    shown = [name for name in _STYLES if found[0].b or name != "w1_1"]
    for name in shown:
        marker, line = _STYLES[name]
        values = np.array(found.scaled()[name])
        axis.plot(roots, values, marker, color="black", markersize=5, label=_NAMES[name])
        limit = limits[name]
        if limit is None:
            continue
        axis.plot([0], [limit[0]], marker, color="black", markerfacecolor="white", markersize=7, clip_on=False, zorder=5)
        few = min(3, len(found))
        through = np.polynomial.Polynomial.fit(np.append(0.0, roots[-few:]), np.append(limit[0], values[-few:]), few - 1)
        at = np.linspace(0, roots[-few], 100)
        axis.plot(at, through(at), line, color="0.35", linewidth=1.0)
        shift = (8, -15 if name in _BELOW else 6)
        axis.annotate(f"{limit[0]:.4g}", (0, limit[0]), xytext=shift, textcoords="offset points", **SMALL)
    label(axis, "$n^{-1/2}$", "$\\sqrt{n}$ times the distance")
    axis.set_xlim(0, 1.08 * roots[0])
    axis.set_ylim(0, 1.12 * axis.get_ylim()[1])
    axis.legend(frameon=False, loc="upper right", ncols=2, **SMALL)


def _optimal(axis: Any, last: Distance) -> None:
    y1 = np.linspace(0, last.beta + 3.0, 200)
    states = np.zeros((200, 200, last.b + 1))
    states[..., 0] = y1
    if last.b == 0:
        axis.plot(y1, last.h_M2(states)[0], color="black", linewidth=1.0)
        label(axis, "$y_1$", "$h$")
    else:
        y2 = np.linspace(0, 4.0 / last.beta, 200)
        states[..., 1] = y2[:, None]
        lines = axis.contour(y1, y2, last.h_M2(states), levels=12, colors="black", linewidths=0.8)
        label_contours(axis, lines)
        label(axis, "$y_1$", "$y_2$")
    axis.set_title(f"$h$ of $d_{{M_2}}$ at $n = {last.n}$", **SMALL)
