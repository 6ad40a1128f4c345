"""A picture of a long run: how its mean settles, and how its stretches compare."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.estimate import Estimate, t_quantile
from rdiff.plots.figure import SMALL, label, matplotlib, mean_of, save


def diagnostics(
    file: str | os.PathLike[str], found: Estimate | Mapping[str, Estimate], level: float = 0.95, title: str | None = None
) -> None:
    """Draw the running mean of each observable with its confidence band, and the means of the stretches of the run beside it.

    A band that does not narrow like 1/sqrt(time), or a stretch that lies apart, shows a burn-in too short; R-hat says the same
    in one number. Bands are Student t over the chains.

    **Arguments:** `file` ending in .png, .pdf or .svg; `found`, of `long_run_average(..., draws=True)`; `level`; `title`.
    **Raises:** `InputError` when `found` has no draws, and when matplotlib is missing or does not know the ending of `file`.

    ```python
    >>> import pathlib, rdiff, tempfile
    >>> from rdiff import plots
    >>> found = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), lambda y: y[1], key=0, chains=64, horizon=50.0, draws=True)
    >>> plots.diagnostics(pathlib.Path(tempfile.mkdtemp()) / "run.png", found)

    ```
    """
    estimates = {found.name: found} if isinstance(found, Estimate) else found
    for name, estimate in estimates.items():
        if estimate.draws is None or np.ndim(estimate.draws) != 2:
            raise InputError(f"{name!r} has no means of stretches to draw: run long_run_average(..., draws=True)")
    figure = matplotlib()(figsize=(8.0, 0.8 + 2.1 * len(estimates)), layout="constrained")
    axes = figure.subplots(len(estimates), 2, squeeze=False)
    axes[0, 0].set_title("running mean", **SMALL)
    axes[0, 1].set_title("means of stretches", **SMALL)
    for row, (name, estimate) in zip(axes, estimates.items(), strict=True):
        _running(row[0], name, estimate, level)
        _stretches(row[1], estimate, level)
    axes[0, 0].legend(frameon=False, loc="best", **SMALL)
    for axis in axes[-1]:
        axis.set_xlabel("stretch of the run")
    if title:
        figure.suptitle(title)
    save(figure, file)


def _running(axis: Any, name: str, estimate: Estimate, level: float) -> None:
    draws = np.asarray(estimate.draws, float)
    stretch = np.arange(1, draws.shape[1] + 1)
    means = np.cumsum(draws, axis=1) / stretch
    middle, half = means.mean(axis=0), _half(means, level)
    axis.fill_between(stretch, middle - half, middle + half, color="0.8", linewidth=0, label=f"{100 * level:g}% interval")
    axis.plot(stretch, middle, color="black", linewidth=1.0, label="running mean")
    label(axis, None, mean_of(name))


def _stretches(axis: Any, estimate: Estimate, level: float) -> None:
    draws = np.asarray(estimate.draws, float)
    stretch = np.arange(1, draws.shape[1] + 1)
    axis.errorbar(stretch, draws.mean(axis=0), _half(draws, level), fmt="o", color="black", markersize=2.5, elinewidth=0.7)
    axis.axhline(float(estimate.mean), color="0.45", linestyle="--", linewidth=1.0)
    rhat = float(estimate.rhat)
    if not np.isnan(rhat):
        axis.set_title(f"means of stretches, R-hat {rhat:.3f}", **SMALL)
    label(axis, None, None)
    axis.margins(x=0.03)


def _half(draws: np.ndarray, level: float) -> np.ndarray:
    chains = len(draws)
    return t_quantile(level, chains - 1) * draws.std(axis=0, ddof=1) / np.sqrt(chains)
