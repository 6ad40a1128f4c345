"""From a run's sums to estimates: standard error over lanes, ESS and R-hat from batches, and what to be wary of."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff.engine import Progress
from rdiff.estimate import Estimate, Estimates, t_quantile

FEW_LANES = 16
FEW_MEMORIES = 20
SMALL_ESS = 100
LARGE_RHAT = 1.01
CHANCE_RHAT = 1e-2  # chances that a settled run is said not to be, whatever its lanes and its ESS
CHANCE_DRIFT = 6.8e-6  # that of 4.5 standard errors of a normal


def summarise(
    names: Sequence[str],
    at: Progress,
    settings: tuple[tuple[str, Any], ...] = (),
    paired_order: float | None = None,
    memories: float | None = None,
    cautions: tuple[str, ...] = (),
    draws: bool = False,
) -> Estimates:
    """Estimates of what `names` names from the engine's sums, shape (lanes, observables).

    **Arguments:** `paired_order`: weak order of the solver when the second half of the observables is the run at dt/2;
    `memories`: relaxation times averaged over, all lanes together; `draws`: whether to keep the batch means.

    The bias of a scheme of order p is extrapolated as (mean at dt - mean at dt/2)/(1 - 2^-p).
    """
    lanes = at.sums / at.steps
    batches = at.batches.sums
    estimates = Estimates()
    for i, name in enumerate(names):
        means = lanes[:, i]
        stderr = float(np.std(means, ddof=1) / math.sqrt(len(means)))
        ess, rhat, drift = diagnose(batches[:, :, i] if batches.size else np.zeros((0, len(means))))
        bias = None
        if paired_order is not None:
            bias = float(np.mean(means - lanes[:, len(names) + i]) / (1 - 2.0**-paired_order))
        estimates[name] = Estimate(
            float(np.mean(means)), stderr, name, dof=len(means) - 1, ess=ess, rhat=rhat, bias=bias, settings=settings,
            cautions=(*cautions, *_cautions(len(means), memories, ess, rhat, drift)),
            draws=at.block_means[:, :, i].T if draws and batches.size else None,
        )  # fmt: skip
    return estimates


def diagnose(batches: np.ndarray) -> tuple[float, float, float]:
    """ESS and R-hat of batch means, shape (batches, lanes), and the z-score of second half less first half.

    R-hat is nested: the two halves of the run, all lanes of each together, are its superchains, so it asks whether the run
    has settled. (Split R-hat compares single lanes, and with thousands of short ones shows only that they are short.)
    NaN with fewer than 4 batches; a constant observable has every batch effective and R-hat 1.

    With two superchains R-hat^2 = 1 + z^2 s^2/(2 w), z the z-score, s its standard error, w the variance of a batch; and
    2 w is about s^2 ESS/2. So R-hat is about 1 + z^2/ESS, and in a settled run z is Student's t with lanes - 1 degrees of
    freedom: with an ESS of 400, R-hat passes 1.01 by chance once in 20 runs. Hence it counts only where z is large as well.

    Sources: Vehtari et al., Rank-normalization, folding, and localization, Bayesian Analysis 16 (2021); Margossian et al.,
    Nested R-hat, Bayesian Analysis (2024); both from arviz-stats.
    """
    count, lanes = batches.shape
    if count < 4:
        return math.nan, math.nan, math.nan
    if np.ptp(batches) == 0:
        return float(count * lanes), 1.0, 0.0
    from arviz_stats.base.array import array_stats

    draws = batches[: count // 2 * 2].T
    first, second = np.split(draws, 2, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = np.asarray(array_stats.ess(draws, method="mean")).item()
        halves = np.repeat([0, 1], lanes)
        rhat = np.asarray(
            array_stats.rhat_nested(np.concatenate([first, second]), superchain_ids=halves, method="identity")
        ).item()
    change = second.mean(axis=1) - first.mean(axis=1)
    mean, spread = float(change.mean()), float(np.std(change, ddof=1)) / math.sqrt(lanes)
    if spread == 0:  # lanes that all do the same
        return ess, rhat, math.copysign(math.inf, mean) if mean else 0.0
    return ess, rhat, mean / spread


def _cautions(lanes: int, memories: float | None, ess: float, rhat: float, drift: float) -> list[str]:
    found = []
    if lanes < FEW_LANES:
        found.append(f"{lanes} chains are too few for an error from their spread, {FEW_LANES} are needed")
    if memories is not None and memories < FEW_MEMORIES:
        found.append(f"the run is short: {memories:.3g} relaxation times in all chains together, {FEW_MEMORIES} are needed")
    if math.isnan(ess):
        found.append("too few steps for an autocorrelation time: the run cannot be diagnosed")
    elif ess < SMALL_ESS:
        found.append(f"effective sample size {ess:.0f}, {SMALL_ESS} are needed: a longer horizon or more chains")
    if rhat > LARGE_RHAT and abs(drift) > t_quantile(1 - CHANCE_RHAT, lanes - 1):
        found.append(f"R-hat {rhat:.3f} is over {LARGE_RHAT}: the two halves of the run disagree")
    if abs(drift) > t_quantile(1 - CHANCE_DRIFT, lanes - 1):
        found.append(f"the second half differs from the first by {drift:+.1f} standard errors: a longer burn-in is needed")
    return found
