"""The adapter: rows, weights, chains and errors against exact laws, and every fault that rows can show."""

import math
import os
import pathlib
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
import queue_by_hand as by_hand
from queue_by_hand import EX1, EX1_SQUARED, EX2, SATURATED, full_log, log, refused, within, y1, y2

from rdiff.errors import InputError
from rdiff.queue.samples import Samples

# What the numbers should be


@pytest.mark.parametrize("b", [1, 2])
def test_full_log_agrees_with_the_exact_law(b):
    found = full_log(b).expect({"y1": y1, "y2": y2})
    within(found["y1"], EX1[b])
    within(found["y2"], EX2[b])
    assert found["y1"].reliable and found["y2"].reliable


def test_moments_and_probabilities():
    found = full_log().expect({"sq": lambda y: y[0] ** 2, "full": lambda y: y[0] == 0})
    within(found["sq"], EX1_SQUARED)
    within(found["full"], SATURATED)


def test_unlimited_buffer_agrees_with_erlang_c():
    times, lengths, _ = log(b=math.inf, horizon=6000.0)
    S = Samples(lengths, n=4, b="inf", lam=0.5, format="lengths", time=times, end_time=6000.0)
    assert S.b == math.inf and S.x.shape[1] == max(2, lengths.max())
    # JSQ keeps E Q_1 = n lam whatever the buffer.
    within(S.expect(y1), 1.0)
    assert all(check.ok for check in S.checks())


def test_error_bars_cover():
    """The standard error is that of the mean: over 40 runs z has variance 1 (its own error 0.22), Student's t here."""
    z = []
    for seed in range(40):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 600.0, seed)
        S = Samples(lengths, n=4, b=1, beta=1.0, format="lengths", time=times, end_time=600.0, burn_in=10)
        estimate = S.expect(y2)
        z.append((estimate.mean - EX2[1]) / estimate.stderr)
    assert 0.55 < np.var(z) < 2.2
    assert abs(np.mean(z)) < 0.7


def test_batches_split_the_holding_time_of_a_row():
    """One row across most of the record: batches still have equal time, and the mean is the integral."""
    time = np.concatenate([np.linspace(0, 1, 200), [81.0]])
    rows = np.tile([[4, 0], [3, 0]], (101, 1))[:201]
    S = Samples(rows, n=4, b=1, beta=1.0, time=time, end_time=100.0)
    held = np.diff(np.append(time, 100.0))
    estimate = S.expect(y1)
    assert estimate.mean == pytest.approx((held * (4 - rows[:, 0]) / 2).sum() / 100)
    assert estimate.dof == 29
    assert not estimate.reliable


# Other options


def test_arrivals_see_time_averages():
    _, _, seen = log()
    S = Samples(seen[40:, :2], n=4, b=1, beta=1.0, weights="arrivals")
    within(S.expect(y1), EX1[1])
    within(S.expect(y2), EX2[1])
    assert all(check.ok for check in S.checks())


def test_a_column_of_weights():
    times, lengths, _ = log()
    weights = np.diff(np.append(times, 12000.0))
    by_weight = Samples(lengths, n=4, b=1, beta=1.0, format="lengths", weights=weights)
    by_time = Samples(lengths, n=4, b=1, beta=1.0, format="lengths", time=times, end_time=12000.0)
    assert by_weight.expect(y2).mean == pytest.approx(by_time.expect(y2).mean, rel=1e-12)
    assert by_weight.expect(y2).stderr == pytest.approx(by_time.expect(y2).stderr, rel=1e-9)
    array = np.array([[4, 0], [4, 1]])
    refused("row 1", "weight -1", array=array, weights=[1.0, -1.0])
    refused("no row counts", array=array, weights=[0.0, 0.0])
    refused("one number a row", array=array, weights=[1.0])


def test_observables():
    S = full_log()
    for h, word in [
        (lambda y: y, "one real number"),
        (lambda y: (y[0], y[1]), "one real number"),
        (lambda y: jnp.log(y[1]), "is -inf at the state"),
        (lambda y: y[7], "not there: the state has 2"),
        (lambda y: 1.0 if y[0] > 1 else 0.0, "cannot be evaluated by JAX"),
        ("y1", "must be a function"),
        ({}, "at least one observable"),
    ]:
        with pytest.raises(InputError, match=word):
            S.expect(h)
    assert S.expect({"a": y1})["a"].name == "a"


def test_rare_events_are_not_reliable():
    rows = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 500)
    rows[777] = [4, 3]
    found = Samples(rows, n=4, b=1, beta=1.0, weights="regular").expect(lambda y: y[1] > 1)
    assert found.mean == 1 / 2000 and any("rare event" in text for text in found.cautions)


def test_short_record_at_small_beta():
    """Relaxation takes about 4/beta^2 = 100 at beta = 0.2: a record of 500 is too short however many rows it has."""
    time = np.linspace(0, 500, 4000)
    q = np.array([[100, 30], [97, 20], [98, 25], [100, 28]] * 1000)
    S = Samples(q, n=100, b=1, beta=0.2, time=time)
    assert any("relaxation times" in text for text in S.expect(y1).cautions)


def test_attributes_and_pickle():
    S = full_log()
    assert (S.n, S.b, S.beta, S.lam, S.chains) == (4, 1, 1.0, 0.5, 1)
    assert S.x.dtype == np.float64 and S.x.shape == (len(S.weights), 2) == (len(S.chain), 2)
    again = pickle.loads(pickle.dumps(S))
    assert again.expect(y2).mean == S.expect(y2).mean and again.checks() == S.checks()
    assert "n=4" in repr(S)


# Files that other people's simulators wrote


@pytest.fixture
def data():
    folder = os.environ.get("RDIFF_DATA")
    if not folder or not pathlib.Path(folder).is_dir():
        pytest.skip("RDIFF_DATA names no folder")
    return pathlib.Path(folder)


def test_rmf_tool_averages(data):
    runs = np.load(data / "rmf_tool" / "exp_rho95_d4_N100.npy")
    S = Samples(runs, n=100, b="inf", lam=0.95, format="fractions", averages=True)
    assert S.beta == pytest.approx(0.5, rel=1e-9) and "Q_0" in S.notes[0]
    assert S.expect(y2).mean == pytest.approx(10 * runs[:, 2].mean()) and S.expect(y2).reliable
    assert [check.ok for check in S.checks()] == [True]


@pytest.mark.parametrize(
    "file, n, lam, word",
    [
        ("exp_rho90_d2_N10_NEW", 10, 0.9, "row 1050 and 9 more"),
        ("exp_rho94_d2_N50", 50, 0.94, "shape (0,)"),
        ("exp_rho200_d0.7_N10", 10, 0.7, "shape (20,)"),
    ],
)
@pytest.mark.parametrize("averages", [True, False])
def test_rmf_tool_defects(data, file, n, lam, word, averages):
    array = np.load(data / "rmf_tool" / f"{file}.npy")
    if "NEW" in file and not averages:
        word = "averages=True"
    refused(word, array=array, n=n, b="inf", lam=lam, beta=None, format="fractions", averages=averages)
