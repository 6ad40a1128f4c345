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
from rdiff.summary import diagnose, summarise


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
