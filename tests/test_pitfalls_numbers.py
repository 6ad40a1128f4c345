"""What goes wrong with numbers and parameters: the items of the list of pitfalls that are of rdiff's own computing."""

import math
import tracemalloc

import jax
import numpy as np
import pytest
import queue_by_hand as by_hand
from queue_by_hand import EX2, refused, y2

import rdiff
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.queue.samples import Samples

EY2 = 0.8140597  # at beta = 1


def test_pitfall_10_missing_departures_are_still_present():
    """Four servers, one customer each who never leaves: dropped, they would make the system empty."""
    rows = np.array([[0.0, math.nan, k] for k in range(4)] + [[1.0, 3.0, 0], [2.0, 5.0, 1], [5.0, math.nan, 2]])
    S = Samples(rows, n=4, b=1, beta=1.0, format="customers", end_time=9.0)
    found = dict.fromkeys(map(tuple, S.x.tolist()), 0.0)
    for x, weight in zip(S.x.tolist(), S.weights.tolist(), strict=True):
        found[tuple(x)] += weight
    # Q = (4, 0), (4, 1), (4, 2), (4, 1), (4, 1) from 0, 1, 2, 3, 5 on.
    assert found == {(0.0, 0.0): 1.0, (0.0, 0.5): 7.0, (0.0, 1.0): 1.0}
    assert any("5 customers without a departure are taken as still present" in note for note in S.notes)


def test_pitfall_18_estimated_lam_carries_its_error():
    """At T = 100 the error of lam, sqrt(lam/(n T)), is one of sqrt(lam/T) in beta whatever n, and of 0.2 in E Y2."""
    slope = StationaryLaw(JSQDiffusion(1.0)).sensitivity(y2).mean
    carried = {}
    for n in (25, 100):
        times, lengths, _ = by_hand.simulate(n, 1, 1 - 1 / math.sqrt(n), 120.0, 3)
        S = Samples(lengths, n=n, b=1, lam="estimated", format="lengths", time=times, end_time=120.0, burn_in=20)
        assert S.beta_stderr == pytest.approx(math.sqrt(S.lam / 100), rel=0.05)
        found = rdiff.compare(S, StationaryLaw(JSQDiffusion(S.beta)), y2)
        at = StationaryLaw(JSQDiffusion(S.beta)).sensitivity(y2).mean
        assert found.carried == pytest.approx(abs(at) * S.beta_stderr)
        assert found.stderr == pytest.approx(math.hypot(found.prelimit.stderr, found.carried))
        assert found.to_dict()["carried"] == found.carried and "beta = " in " ".join(found.notes)
        carried[n] = abs(slope) * S.beta_stderr
        given = Samples(lengths, n=n, b=1, beta=S.beta, format="lengths", time=times, end_time=120.0, burn_in=20)
        assert given.beta_stderr == 0
        assert rdiff.compare(given, StationaryLaw(JSQDiffusion(S.beta)), y2).stderr == found.prelimit.stderr
    assert carried[25] == pytest.approx(0.2, abs=0.05) and carried[100] == pytest.approx(carried[25], rel=0.15)


def test_pitfall_18_the_difference_is_covered():
    """The interval of E h(X) - E h(Y) with lam from the same log holds the truth at least as often as it says."""
    exact = EX2[1] - EY2
    inside = 0
    for seed in range(40):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 600.0, 500 + seed)
        S = Samples(lengths, n=4, b=1, lam="estimated", format="lengths", time=times, end_time=600.0, burn_in=10)
        slope = -1.9  # of E Y2 at beta = 1, near enough here
        est = S.expect(y2)
        limit = EY2 + slope * (S.beta - 1)
        inside += abs(est.mean - limit - exact) < 1.96 * math.hypot(est.stderr, slope * S.beta_stderr)
    assert inside >= 36


def test_pitfall_22_what_is_pushed_is_kept():
    """E Y2 is the rate at which U grows: a clamp that forgot the amount would leave Y2 = 0."""
    paths = rdiff.sample_paths(JSQDiffusion(1.0), np.arange(0.0, 401.0, 1.0), key=0, paths=256, dt=0.1)
    y, u = np.asarray(paths.values, np.float64), np.asarray(paths.local_time, np.float64)
    assert y[..., 0].min() >= 0 and np.all(np.diff(u, axis=1) >= 0)
    rates, means = (u[:, -1] - u[:, 40]) / 360, y[:, 40:, 1].mean(axis=1)
    stderr = rates.std(ddof=1) / 16
    assert 0 < stderr < 0.02
    assert abs(rates.mean() - EY2) < 4.5 * stderr
    assert abs(means.mean() - rates.mean()) < 4.5 * (means - rates).std(ddof=1) / 16


@pytest.mark.parametrize("steps", [1600, 1601, 999])
def test_pitfall_23_lanes_differ_and_steps_are_counted(steps):
    """No chunk may round the number of steps up: the average of 1 over the run would not see it, that of time would."""
    paths = rdiff.sample_paths(JSQDiffusion(1.0), np.array([steps * 0.01]), key=1, paths=64, dt=0.01)
    ends = np.asarray(paths.values)[:, 0, 0]
    assert len(np.unique(ends)) == 64
    again = rdiff.sample_paths(JSQDiffusion(1.0), np.array([steps * 0.01]), key=1, paths=64, dt=0.01)
    assert np.array_equal(ends, np.asarray(again.values)[:, 0, 0])
    # E Y1 of a lane that starts at 0 without reflection grows with the steps; with drift 1 and no noise it counts them.
    count = rdiff.ReflectedDiffusion(
        drift=lambda y: jax.numpy.ones_like(y), diffusion=np.array([[1e-6]]),
        domain=rdiff.HalfSpace(normal=np.array([1.0]), direction=np.array([1.0])),
    )  # fmt: skip
    end = rdiff.sample_paths(count, np.array([steps * 0.01]), key=1, paths=2, dt=0.01)
    assert np.allclose(np.asarray(end.values)[:, 0, 0], steps * 0.01, atol=1e-3)


def test_pitfall_24_the_exact_queue_stays_sparse_and_looks_at_its_residual():
    """20301 states at n = 200: a dense matrix is 3.3 GB; the answer is checked, not trusted."""
    tracemalloc.start()
    law = rdiff.JSQQueue(n=200, b=1, beta=1.0).exact()
    mean = law.expect({"y1": lambda y: y[0], "y2": y2})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6
    assert all(check.ok for check in law.checks()) and all(check.stderr == 0 for check in law.checks())
    assert mean["y1"].error < 1e-6 and 0.5 < mean["y2"].mean < EY2


def test_pitfall_17_19_estimated_load_is_refused_without_a_limit():
    rows = np.tile([[4, 4], [4, 3]], (50, 1))
    assert "no stationary limit" in refused("not in (0, 1)", array=rows, beta=None, lam="estimated")
