"""Pictures of the limit's exact law, and of f in its Poisson equation."""

import math
import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from rdiff.errors import AccuracyWarning
from rdiff.functionals import Observable
from rdiff.limit.law import StationaryLaw
from rdiff.plots.figure import SMALL, label, label_contours, matplotlib, save, symbols


def law(file: str | os.PathLike[str], law: StationaryLaw, title: str | None = None) -> None:
    """Draw the exact stationary law to a file: the joint density with its marginals, and Y2 alone on logarithmic scales.

    The density of Y2, y^(k-1) near 0 with k < 1, is infinite there: on two logarithmic axes it is the straight line that it
    follows. Its tail is drawn beside C x exp(-beta x), which it approaches. b = 0: the density of Y1.

    **Arguments:** `file` ending in .png, .pdf or .svg; `law`; `title`.
    **Raises:** `InputError` when matplotlib is not installed or does not know the ending of `file`.

    ```python
    >>> import rdiff, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rdiff.plots.law(f"{folder}/law.png", rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0)))

    ```
    """
    flat = law.b == 0
    figure = matplotlib()(figsize=(6.0, 4.0) if flat else (7.5, 8.0), layout="constrained")
    figure.suptitle(title or f"Stationary law of the limit, $\\beta = {law.beta:g}$, $b = {law.b}$")
    if flat:
        axis = figure.subplots()
        y1 = np.linspace(0, law.beta + 4.5, 400)
        axis.plot(y1, law.marginal(1, y1), color="black", linewidth=1.0)
        label(axis, "$y_1$", "density of $Y_1$")
        axis.set_ylim(bottom=0)
    else:
        grid = figure.add_gridspec(3, 2, height_ratios=(1, 2.6, 2.6), width_ratios=(2.6, 1))
        middle = figure.add_subplot(grid[1, 0])
        top, right = figure.add_subplot(grid[0, 0], sharex=middle), figure.add_subplot(grid[1, 1], sharey=middle)
        _joint(middle, top, right, law)
        left, far = figure.add_subfigure(grid[2, :]).subplots(1, 2)
        _singularity(left, law)
        _tail(far, law)
    save(figure, file)


def poisson(file: str | os.PathLike[str], law: StationaryLaw, h: Mapping[str, Observable], title: str | None = None) -> None:
    """Draw f of the Poisson equation, G f = h - E h(Y), D f = 0 at y1 = 0, f(0) = 0, as contours: one panel an observable.

    Negative contours are dashed. b = 0: f as a curve. The region shown carries about 99% of the mass.

    **Arguments:** `file` ending in .png, .pdf or .svg; `law`; `h`, observables by name; `title`.
    **Raises:** `InputError` as `law.poisson` does, and when matplotlib is missing.
    **Warns:** `AccuracyWarning` where h is not smooth enough for f; the panel says so too.

    ```python
    >>> import rdiff, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rdiff.plots.poisson(f"{folder}/f.png", rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0)), {"y2": lambda y: y[1]})

    ```
    """
    columns = min(len(h), 2)
    rows = math.ceil(len(h) / columns)
    figure = matplotlib()(figsize=(1.0 + 3.7 * columns, 0.6 + 3.2 * rows), layout="constrained")
    figure.suptitle(title or f"$f$ with $G f = h - E\\,h(Y)$, $\\beta = {law.beta:g}$, $b = {law.b}$")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    y1, y2 = np.linspace(0, law.beta + 3.0, 120), np.linspace(0, _reach(law) if law.b else 0.0, 120)
    states = np.zeros((len(y2), len(y1), law.b + 1))
    states[..., 0] = y1
    if law.b:
        states[..., 1] = y2[:, None]
    for axis, (name, function) in zip(axes, h.items()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AccuracyWarning)
            f = law.poisson(function)(states)
        for warning in caught:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        axis.set_title(f"$h$ = {symbols(name)}" + (" (not smooth: rough)" if caught else ""), **SMALL)
        if law.b:
            lines = axis.contour(y1, y2, f, levels=12, colors="black", linewidths=0.8)
            label_contours(axis, lines)
        else:
            axis.plot(y1, f[0], color="black", linewidth=1.0)
        label(axis, "$y_1$", "$y_2$" if law.b else "$f$")
    for axis in axes[len(h) :]:
        axis.set_visible(False)
    save(figure, file)


def _joint(middle: Any, top: Any, right: Any, law: StationaryLaw) -> None:
    """Contours of the joint density, decades and thirds of them, between the two marginals."""
    y1 = np.linspace(0, law.beta + 4.5, 1000)
    mass = np.cumsum(law.marginal(1, y1))
    y1 = np.linspace(0, y1[np.argmax(mass > 0.9985 * mass[-1])], 140)
    y2 = _reach(law) * np.linspace(0, 1, 200)[1:] ** 2  # closer together at 0, where it is infinite
    joint = law.density(y1, y2[:, None])
    peak = math.floor(math.log10(joint[len(y2) // 20 :].max()))
    levels = np.array([step * 10.0**k for k in range(peak - 3, peak + 2) for step in (1, 3)])
    shades = [str(grey) for grey in np.linspace(0.98, 0.55, len(levels))]
    middle.contourf(y1, y2, joint, levels=levels, colors=shades, extend="max")
    lines = middle.contour(y1, y2, joint, levels=levels, colors="black", linewidths=0.6)
    # labelled where the contours cross the diagonal, clear of the crowd at the bottom
    across = np.linspace(0.06, 0.97, 300)
    crossed = [across[np.argmin(np.abs(np.log(_along(law, across, y1[-1], y2[-1]) / level)))] for level in levels]
    spots = [(s * y1[-1], s * y2[-1]) for s in sorted(set(crossed)) if across[0] < s < across[-1]]
    middle.clabel(lines, fmt="%g", fontsize="x-small", manual=spots)
    label(middle, "$y_1$", "$y_2$")
    middle.set_ylim(0, y2[-1])
    top.plot(y1, law.marginal(1, y1), color="black", linewidth=1.0)
    label(top, None, "density of $Y_1$")
    top.set_ylim(bottom=0)
    second = law.marginal(2, y2)
    right.plot(second, y2, color="black", linewidth=1.0)
    label(right, "density of $Y_2$\n(infinite at 0)", None)
    right.set_xlim(0, 1.5 * float(np.interp(0.05 * y2[-1], y2, second)))
    for axis, shared in ((top, "x"), (right, "y")):
        axis.tick_params(axis=shared, **{"labelbottom" if shared == "x" else "labelleft": False})


def _along(law: StationaryLaw, s: np.ndarray, width: float, height: float) -> np.ndarray:
    """The joint density on the diagonal of the picture."""
    return np.maximum(law.density(s * width, s * height), 1e-300)


def _singularity(axis: Any, law: StationaryLaw) -> None:
    """The density of Y2 from far below the scale of the picture, beside the power that it follows at 0."""
    y = np.geomspace(1e-9, _reach(law), 300)
    density = law.marginal(2, y)
    slope = math.log(density[20] / density[0]) / math.log(y[20] / y[0])
    axis.loglog(y, density, color="black", linewidth=1.0, label="density of $Y_2$")
    power = density[0] * (y / y[0]) ** slope
    axis.loglog(y, power, ":", color="black", linewidth=1.4, label=f"$c\\,y^{{k-1}}$, $k = {slope + 1:.4g}$")
    axis.set_ylim(bottom=density[-1] / 2)
    label(axis, "$y_2$", "density of $Y_2$")
    axis.legend(frameon=False, loc="lower left", **SMALL)


def _tail(axis: Any, law: StationaryLaw) -> None:
    x = np.linspace(0, 3 * _reach(law), 300)
    tail = law.tail(x)
    axis.semilogy(x, tail, color="black", linewidth=1.0, label="$P(Y_2 > x)$")
    far = 40 / law.beta
    line = law.tail(far) * (x / far) * np.exp(-law.beta * (x - far))
    axis.semilogy(x[3:], line[3:], "--", color="0.45", linewidth=1.0, label="$C\\,x\\,e^{-\\beta x}$")
    label(axis, "$x$", "tail of $Y_2$")
    axis.legend(frameon=False, loc="upper right", **SMALL)


def _reach(law: StationaryLaw) -> float:
    """The y2 up to which a picture shows the law: nearly all of it, and what little there is at large beta."""
    return max(float(law.quantile(0.995)), 4 / law.beta)
