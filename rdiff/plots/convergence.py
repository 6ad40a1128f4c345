"""The picture of the theorem: gaps between the queue and its limit along n."""

import math
import os
from typing import Any

import numpy as np

from rdiff.plots.figure import SMALL, label, matplotlib, save, symbols
from rdiff.study import Rate, RateRow

_STYLES = [("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", (0, (6, 1.5, 1, 1.5, 1, 1.5))), ("X", (0, (1, 3)))]


def rate(file: str | os.PathLike[str], study: Rate, title: str | None = None) -> None:
    """Draw |E h(X) - E h(Y)| against n on logarithmic scales, beside the error of the refined E h(Y) + C(h)/sqrt(n).

    Observables are told apart by marker and dash, markers filled where the gap is positive and open where it is negative. Grey
    lines have the slopes -1/2 and -1. Sampled gaps have bars of 1.96 standard errors; without a C(h) the second panel is left
    out.

    **Arguments:** `file` ending in .png, .pdf or .svg; `study`, from `rate`; `title`.
    **Raises:** `InputError` when matplotlib is not installed or does not know the ending of `file`.

    ```python
    >>> import pathlib, tempfile
    >>> from rdiff import plots
    >>> from rdiff.rate import rate
    >>> plots.rate(pathlib.Path(tempfile.mkdtemp()) / "rate.png", rate([25, 100, 400], beta=1.0, h=lambda y: y[1]))

    ```
    """
    refined = any(math.isfinite(row.refined_gap) for row in study.rows)
    figure = matplotlib()(figsize=(9.4 if refined else 5.2, 4.6), layout="constrained")
    figure.suptitle(title or f"The queue against its limit, $\\beta = {study.beta:g}$, $b = {study.b}$")
    axes = figure.subplots(1, 1 + refined, squeeze=False)[0]
    _panel(axes[0], study, "gap", -0.5, "$|E\\,h(X) - E\\,h(Y)|$")
    if refined:
        _panel(axes[1], study, "refined_gap", -1.0, "$|E\\,h(X) - E\\,h(Y) - C(h)/\\sqrt{n}|$")
    note = axes[0].annotate("filled: positive, open: negative", (0.02, 0.02), xycoords="axes fraction", **SMALL)
    note.set_color("0.35")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(names)), frameon=False, **SMALL)
    save(figure, file)


def _panel(axis: Any, study: Rate, which: str, slope: float, name: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    for k, observable in enumerate(study.fits):
        marker, dash = _STYLES[k % len(_STYLES)]
        _curve(axis, study.of(observable), which, marker, dash, f"$h$ = {symbols(observable)}")
    label(axis, "$n$", name)
    axis.margins(x=0.06, y=0.08)
    _guide(axis, study, which, slope)
    sizes = [abs(getattr(row, which)) for row in study.rows if math.isfinite(getattr(row, which)) and getattr(row, which) != 0]
    if sizes:
        axis.set_ylim(bottom=0.4 * min(sizes))  # bars may reach down to 0
    axis.set_xticks(study.ns, [str(n) for n in study.ns])
    axis.minorticks_off()


def _curve(axis: Any, rows: tuple[RateRow, ...], which: str, marker: str, dash: Any, name: str) -> None:
    """One observable: a gap of exactly 0 or none is left out."""
    shown = [row for row in rows if math.isfinite(getattr(row, which)) and getattr(row, which) != 0]
    ns, gaps = np.array([row.n for row in shown]), np.array([getattr(row, which) for row in shown])
    axis.plot(ns, np.abs(gaps), linestyle=dash, color="0.35", linewidth=0.9)
    # an empty line with both, for the legend
    axis.plot([], [], marker=marker, linestyle=dash, color="black", markersize=5, linewidth=0.9, label=name)
    for sign, face in ((1, "black"), (-1, "white")):
        some = np.sign(gaps) == sign
        axis.plot(ns[some], np.abs(gaps[some]), marker, color="black", markerfacecolor=face, markersize=5)
    spread = 1.96 * np.array([row.stderr for row in shown])
    if np.any(spread > 0):
        low = np.minimum(spread, 0.999 * np.abs(gaps))  # a logarithm has no room below 0
        axis.errorbar(ns, np.abs(gaps), yerr=[low, spread], fmt="none", ecolor="black", elinewidth=0.9, capsize=3)


def _guide(axis: Any, study: Rate, which: str, slope: float) -> None:
    """The slope of the theory, above all curves."""
    ns = np.array(study.ns, dtype=float)
    tops = [abs(getattr(row, which)) * row.n**-slope for row in study.rows if math.isfinite(getattr(row, which))]
    if len(ns) < 2 or not tops or max(tops) == 0:
        return
    line = 1.6 * max(tops) * ns**slope
    axis.plot(ns, line, color="0.6", linewidth=2.5, zorder=0)
    middle = math.sqrt(ns[0] * ns[-1])
    text = "slope $-1/2$" if slope == -0.5 else f"slope ${slope:g}$"
    axis.annotate(text, (middle, 1.6 * max(tops) * middle**slope), xytext=(4, 6), textcoords="offset points", **SMALL)
