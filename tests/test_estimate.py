import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import rdiff
from rdiff import table
from rdiff.engine import Progress
from rdiff.summary import _cautions, diagnose, summarise


def test_interval_is_students_t_widened_by_what_sampling_cannot_take_away():
    est = rdiff.Estimate(1.0, 0.1, dof=9)
    low, high = est.ci(0.9)
    assert high - 1 == pytest.approx(1 - low) == pytest.approx(0.1 * stats.t.ppf(0.95, 9))
    assert rdiff.Estimate(1.0, 0.1, dof=9, bias=-0.05).ci(0.9)[1] == pytest.approx(high + 0.05)
    exact = rdiff.Estimate(1.0, 0.0, error=1e-9)
    assert exact.ci() == (1 - 1e-9, 1 + 1e-9)
    assert all(math.isnan(x) for x in rdiff.Estimate(1.0, math.nan, dof=0).ci())


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, math.nan, "0.9"])
def test_level_is_checked(level):
    with pytest.raises(rdiff.InputError, match="strictly between 0 and 1"):
        rdiff.Estimate(1.0, 0.1).ci(level)


def test_plain_dict_has_no_nan():
    d = rdiff.Estimate(1.0, math.nan, "y2", dof=0, cautions=("why",)).to_dict()
    assert d["stderr"] is None and d["ci"] == [None, None] and d["ess"] is None and d["reliable"] is False
    exact = rdiff.Estimate(1.0, 0.0, "y2", error=0.5).to_dict()
    assert exact["stderr"] is None and exact["ci"] == [0.5, 1.5] and exact["reliable"] is True


def test_is_a_pytree_and_pickles():
    both = rdiff.Estimates(a=rdiff.Estimate(1.0, 0.1, "a"), b=rdiff.Estimate(2.0, 0.1, "b", cautions=("x",)))
    doubled = jax.jit(lambda e: jax.tree.map(lambda x: 2 * x, e))(both)
    assert isinstance(doubled, rdiff.Estimates) and list(doubled) == ["a", "b"]
    assert float(doubled["b"].mean) == 4 and doubled["b"].cautions == ("x",)
    assert str(pickle.loads(pickle.dumps(both))) == str(both)
    batch = jax.vmap(lambda m: rdiff.Estimates(a=rdiff.Estimate(m, 0.1 * m)))(jnp.array([1.0, 2.0]))
    assert batch["a"].mean.shape == (2,) and "a" in str(batch)


def test_prints_digits_that_the_error_carries_and_every_caution():
    a, b = rdiff.Estimate(0.8140597, 0.00312, "a", dof=50), rdiff.Estimate(0.0, 0.0, "b", cautions=("few",))
    text = str(rdiff.Estimates(a=a, b=b))
    assert "0.8141" in text and "0.81406" not in text and "not reliable (b): few" in text
    assert table.number(math.nan) == "-" and table.number(0.0) == "0" and table.number(1234567.0, 250.0) == "1.2346e+06"


def progress(lanes):
    """A run of `lanes`, shape (batches, lanes): one observable, one step a batch."""
    at = Progress(len(lanes), len(lanes), rdiff.engine.Batches(), lanes.sum(axis=0)[:, None], len(lanes))
    for row in lanes:
        at.batches.add(row[:, None])
    return at


def test_error_covers_independent_lanes():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        est = summarise(["x"], progress(rng.normal(size=(64, 20))))["x"]
        low, high = est.ci(0.9)
        hits += low <= 0 <= high
    assert abs(hits / 300 - 0.9) < 4.5 * math.sqrt(0.09 / 300)


def test_effective_size_sees_autocorrelation_and_rhat_a_trend():
    rng = np.random.default_rng(1)
    white = rng.normal(size=(64, 100))
    ess, rhat, drift = diagnose(white)
    assert 0.7 * white.size < ess < 1.3 * white.size and rhat < 1.005 and abs(drift) < 4.5
    slow = np.zeros_like(white)
    for i in range(1, 64):
        slow[i] = 0.8 * slow[i - 1] + white[i]
    assert diagnose(slow)[0] < 0.3 * white.size  # (1 - 0.8)/(1 + 0.8) = 0.11 in a long run
    ess, rhat, drift = diagnose(white + np.linspace(0, 1, 64)[:, None])
    assert rhat > 1.01 and drift > 4.5
    assert diagnose(np.zeros((64, 10))) == (640.0, 1.0, 0.0)
    assert all(math.isnan(x) for x in diagnose(white[:3]))
    assert diagnose(np.repeat(np.arange(64.0)[:, None], 10, axis=1))[2] == math.inf  # lanes that all do the same


def stretches(rng, lanes, memory=0.5, count=32):
    """Means of stretches of settled lanes: an autoregression from its own law."""
    noise = rng.normal(size=(count, lanes)) * np.r_[1.0, np.full(count - 1, math.sqrt(1 - memory**2))][:, None]
    for i in range(1, count):
        noise[i] += memory * noise[i - 1]
    return noise


def test_rhat_of_a_settled_run_is_students_t_and_no_alarm():
    """R-hat - 1 is z^2/ESS: it passes 1.01 in a sixth of such runs, which are settled; one in a hundred may be flagged."""
    rng, runs, lanes = np.random.default_rng(2), 600, 16
    found = np.array([diagnose(stretches(rng, lanes)) for _ in range(runs)])
    ess, rhat, drift = found.T
    for chance in (0.3, 0.05):
        beyond = np.mean(np.abs(drift) > stats.t.isf(chance / 2, lanes - 1))
        assert abs(beyond - chance) < 4.5 * math.sqrt(chance * (1 - chance) / runs)
    assert abs(np.median((rhat - 1) * ess / drift**2) - 1) < 0.2 and 0.1 < np.mean(rhat > 1.01) < 0.25
    flagged = [any("halves" in caution for caution in _cautions(lanes, None, *each)) for each in found]
    assert sum(flagged) <= 17  # 6 are expected; more than 17 by a chance of 5e-5


@pytest.mark.parametrize("chains", [16, 32])
def test_a_run_that_has_not_settled_is_flagged(chains):
    """Started far apart in Y2, whose mean is 0.81 and which falls by about 1 a unit of time; half the run is on the way."""
    start = np.stack([np.zeros(chains), np.linspace(0, 60, chains)], axis=1)
    options = {"chains": chains, "horizon": 60.0, "burn_in": 1.0, "y0": start}
    est = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), lambda y: y[1], key=0, **options)
    assert est.rhat > 1.1 and any("R-hat" in caution for caution in est.cautions) and est.mean > 5
