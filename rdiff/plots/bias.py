"""A picture of the time-step bias of the schemes, computed, not sampled."""

import os

import numpy as np

from rdiff.functionals import Observable
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.numerical_chain import stationary_mean
from rdiff.plots.figure import SMALL, label, matplotlib, save
from rdiff.solvers import BridgeEuler, BridgeHeun, ProjectedEuler

STEPS = (0.4, 0.2, 0.1, 0.05)
_SCHEMES = ((ProjectedEuler(), "v", ":"), (BridgeEuler(), "s", "--"), (BridgeHeun(), "o", "-"))
_FLOOR = 2e-5  # what the computation can tell


def bias(
    file: str | os.PathLike[str],
    process: JSQDiffusion,
    h: Observable,
    steps: tuple[float, ...] = STEPS,
    title: str | None = None,
) -> None:
    """Draw |bias| of E h against the step for the three schemes, with the slopes of their orders: 1/2, 1 and 2.

    Each point is the stationary mean of the numerical chain less the exact one; points below 2e-5 are left out.

    **Arguments:** `file` ending in .png, .pdf or .svg; `process`, of b <= 1; `h`, smooth; `steps` of time; `title`.
    **Raises:** `InputError` as `rdiff.numerical_chain.stationary_mean` does, and when matplotlib is missing.

    ```python
    >>> import rdiff, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rdiff.plots.bias(f"{folder}/bias.png", rdiff.JSQDiffusion(1.0), lambda y: y[1], steps=(0.2, 0.4))

    ```
    """
    exact = float(StationaryLaw(process).expect(h).mean)  # pyright: ignore[reportAttributeAccessIssue]
    figure = matplotlib()(figsize=(5.5, 4.2), layout="constrained")
    axis, h_steps = figure.subplots(), np.array(sorted(steps))
    for solver, marker, dash in _SCHEMES:
        found = np.abs([float(stationary_mean(process, solver, dt, h)) - exact for dt in h_steps])
        seen = found > _FLOOR
        name = f"{type(solver).__name__}, order {'1/2' if solver.weak_order == 0.5 else f'{solver.weak_order:g}'}"
        axis.loglog(h_steps[seen], found[seen], marker, color="black", markersize=5, label=name)
        if seen.any():
            middle = np.flatnonzero(seen)[seen.sum() // 2]
            line = found[middle] * (h_steps / h_steps[middle]) ** solver.weak_order
            axis.loglog(h_steps[seen], line[seen], dash, color="0.45", linewidth=1.0)
    axis.set_xticks(h_steps, [f"{step:g}" for step in h_steps])
    axis.minorticks_off()
    label(axis, "step $h$", "$|$bias of $E\\,h|$")
    axis.set_title(title or f"Bias of the stationary mean, $\\beta = {process.beta:g}$; lines: the orders", **SMALL)
    axis.margins(x=0.05)
    axis.legend(frameon=False, **SMALL)
    save(figure, file)
