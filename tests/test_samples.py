"""The adapter: rows, weights, chains and errors against exact laws, and every fault that rows can show."""

import math
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
    assert estimate.dof == 9
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


# Chains, and what a short record is worth


def test_chains_count_in_order_of_first_appearance():
    rows = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    time = np.tile(np.arange(100.0), 2)
    options = dict(n=4, b=1, beta=1.0, time=time)
    for labels in (np.repeat([7, 3], 100), np.repeat(["b", "a"], 100), np.repeat(["b", "a"], 100).astype(object)):
        last, first = labels[0], labels[-1]
        for ends in ([104.0, 150.0], {last: 104.0, first: 150.0}):
            S = Samples(rows, chain=labels, end_time=ends, **options)
            assert S.weights[99] == 5 and S.weights[199] == 51 and S.chain[0] == 0
    with pytest.raises(InputError, match="every chain and no other"):
        Samples(rows, chain=labels, end_time={"b": 104.0}, **options)


def test_chain_labels_that_are_none():
    array = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    refused("row 0", "label is missing", array=array, chain=[None] * 200)
    refused("row 3", "label is missing", array=array, chain=["a", "a", "a", " ", *["b"] * 196])
    refused("row 3", "label is missing", array=array, chain=[1.0, 1.0, 1.0, math.nan, *[2.0] * 196])
    refused("row 0", "label is missing", array=array, chain=np.ma.masked_array(np.ones(200), np.arange(200) == 0))
    refused("text or numbers", array=array, chain=np.array([*[{}] * 200], dtype=object))
    refused("one label a row", array=array, chain=[[1], [1, 2]])
    mixed = Samples(array, n=4, b=1, beta=1.0, weights="regular", chain=[*["a"] * 100, *[1] * 100])
    assert mixed.chains == 2


def test_numbers_of_time_that_are_none():
    array = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    time = np.arange(200.0)
    refused("burn_in must be one number", array=array, time=time, burn_in=[1.0, 2.0])
    refused("burn_in", array=array, time=time, burn_in="1")
    refused("row 199", "time 1e+300", array=array, time=np.append(time[:-1], 1e300), weights=None)
    refused("row 0", "time -1e+16", "nanoseconds", array=array, time=np.append(-1e16, time[1:]), weights=None)
    refused("end_time must be at most", array=array, time=time, end_time=1e300, weights=None)
    refused("row 7: weight 1e+300", array=array, weights=np.where(time == 7, 1e300, 1.0))
    late = Samples(array, n=4, b=1, beta=1.0, time=time + 1e15 - 200, end_time=1e15)
    assert any("float64 and resolve only" in note for note in late.notes)


def test_batches_are_five_relaxation_times_long():
    """1 + 4.5/beta^2 = 5.5 at beta = 1: 10 batches below 275 time units, 30 from 825 on."""
    rows = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 250)
    for span, count in [(100, 10), (275, 10), (550, 20), (825, 30), (5000, 30)]:
        S = Samples(rows, n=4, b=1, beta=1.0, time=np.arange(1000) * span / 1000, end_time=span)
        assert S.expect(y1).dof == count - 1
        assert any("relaxation times" in text for text in S.expect(y1).cautions) is (span < 440)


def test_reliable_intervals_cover():
    """95% intervals of the shortest records called reliable: at least 90% in truth, so 84% of 200 is 3 errors off."""
    inside, count = {"y1": 0, "sq": 0, "y2": 0}, dict.fromkeys(("y1", "sq", "y2"), 0)
    exact = {"y1": EX1[1], "sq": EX1_SQUARED, "y2": EX2[1]}
    for seed in range(200):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 460.0, 1000 + seed)
        S = Samples(lengths, n=4, b=1, beta=1.0, format="lengths", time=times, end_time=460.0, burn_in=15)
        for name, est in S.expect({"y1": y1, "sq": lambda y: y[0] ** 2, "y2": y2}).items():
            low, high = est.ci()
            count[name] += est.reliable
            inside[name] += est.reliable and low < exact[name] < high
    assert all(count[name] > 150 for name in count), count
    assert all(inside[name] > 0.84 * count[name] for name in count), (inside, count)


def test_all_faults_are_found_before_the_first_refusal():
    array = np.array([[5, 0], [4, -1], [2, 3], [3.5, 0]])
    message = refused("row 0", "row 1", "row 2", "row 3", array=array, time=[0, 2, 1, 3], weights="time")
    assert message.count("; also: ") == 4 and "do not decrease" in message
