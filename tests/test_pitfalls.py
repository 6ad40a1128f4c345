"""What goes wrong with samples, one test for each item of the list that a file or an array can show, by its number."""

import logging
import math

import jax.numpy as jnp
import numpy as np
import pytest
import queue_by_hand as by_hand
from queue_by_hand import EX1, EX2, full_log, log, refused, within, y1, y2

from rdiff.errors import InputError
from rdiff.queue.samples import Samples


def test_pitfall_01_event_rows_count_by_time():
    times, lengths, _ = log()
    weighted = full_log().expect(y1).mean
    plain = Samples(lengths, n=4, b=1, beta=1.0, format="lengths", weights="regular")
    assert plain.expect(y1).mean < weighted - 0.05  # event rows are biased to busy states
    assert any(check.ok is False for check in plain.checks())
    assert "weights" in refused("must be stated", "regular", "arrivals", weights=None)
    # The last row has no end without end_time: left out, and said.
    S = Samples(lengths[:1000], n=4, b=1, beta=1.0, format="lengths", time=times[:1000])
    assert any("left out" in note and "row 999" in note for note in S.notes)
    assert len(S.weights) == 999
    given = Samples(lengths[:1000], n=4, b=1, beta=1.0, format="lengths", time=times[:1000], end_time=times[999] + 7)
    assert given.weights[-1] == pytest.approx(7) and not given.notes


def test_pitfall_02_snapshots_and_full_log():
    times, lengths, _ = log()
    grid = np.arange(20.0, 12000.0, 8.0)
    rows = lengths[np.searchsorted(times, grid, side="right") - 1]
    S = Samples(rows, n=4, b=1, beta=1.0, format="lengths", time=grid, weights="regular")
    sparse, dense = S.expect(y2), full_log().expect(y2)
    within(sparse, EX2[1])
    assert sparse.stderr > 1.2 * dense.stderr


def test_pitfall_03_irregular_grid():
    times, lengths, _ = log()
    refused(
        "row ", "20% of the median", "weights='time'",
        array=lengths[:500], format="lengths", time=times[:500], weights="regular",
    )  # fmt: skip
    time = np.arange(200.0)
    time[120:] += 0.5
    refused("row 120", "1.5 after", time=time)
    # an irregular start is dropped with the burn-in
    time = np.concatenate([[0.0, 0.1], np.arange(2.0, 200.0)])
    array = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    assert "grid of times: median spacing 1" in Samples(
        array, n=4, b=1, beta=1.0, weights="regular", time=time, burn_in=1.5
    ).notes[0]  # fmt: skip


def test_pitfall_04_hold():
    """Rows that show the state *before* the event need hold='previous'; the identities see the wrong one."""
    times, lengths, _ = log()
    options = dict(n=4, b=1, beta=1.0, format="lengths", burn_in=20)
    before = np.concatenate([lengths[:1], lengths[:-1]])
    right = Samples(before, time=times, hold="previous", **options)
    wrong = Samples(before, time=times, hold="next", end_time=12000.0, **options)
    within(right.expect(y1), EX1[1])
    within(right.expect(y2), EX2[1])
    assert all(check.ok for check in right.checks())
    failing = [check for check in wrong.checks() if check.ok is False]
    assert failing and all("hold='previous'" in check.cause for check in failing)
    assert any("held before" in note for note in right.notes)
    refused("hold must be", hold="after")


def test_pitfall_05_start_from_empty():
    times, lengths, _ = by_hand.simulate(25, 1, 0.8, 300.0, 5, start=0)
    options = dict(n=25, b=1, beta=1.0, format="lengths", time=times, end_time=300.0)
    assert any("starts from the empty system" in text for text in Samples(lengths, **options).expect(y1).cautions)
    assert not any("empty" in text for text in Samples(lengths, burn_in=30, **options).expect(y1).cautions)
    # A start far away that is not empty: the first batch stands out.
    q = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 500)
    rng = np.random.default_rng(0)
    q = q[rng.permutation(len(q))]
    assert Samples(q, n=4, b=1, beta=1.0, weights="regular").expect(y2).reliable
    q[:60] = [4, 4]
    found = Samples(q, n=4, b=1, beta=1.0, weights="regular").expect(y2)
    assert any("first batch" in text for text in found.cautions)
    assert Samples(q, n=4, b=1, beta=1.0, weights="regular", burn_in_rows=60).expect(y2).reliable


def test_pitfall_05_burn_in_in_time_and_rows():
    array = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    time = 100 + np.arange(200.0)
    by_time = Samples(array, n=4, b=1, beta=1.0, time=time, weights="regular", burn_in=50)
    by_rows = Samples(array, n=4, b=1, beta=1.0, time=time, weights="regular", burn_in_rows=50)
    assert len(by_time.x) == len(by_rows.x) == 150
    held = Samples(array, n=4, b=1, beta=1.0, time=time, end_time=300.0, burn_in=50.5)
    assert held.weights.sum() == pytest.approx(149.5)
    refused("not both", time=time, burn_in=1, burn_in_rows=1)
    refused("must not be negative", time=time, burn_in=-1)
    refused("burn_in_rows", burn_in_rows=-1)
    refused("needs the time", burn_in=5.0)
    refused("no row counts", time=time, burn_in=900)


def test_pitfall_06_constant_column():
    rows = np.array([[4, 0, 0], [4, 1, 0], [3, 1, 0], [3, 0, 0]] * 50)
    S = Samples(rows, n=4, b=2, beta=1.0, weights="regular")
    found = S.expect({"y3": lambda y: y[2], "y2": y2})
    assert found["y3"].mean == 0 and found["y3"].stderr == 0
    assert found["y2"].mean == 0.25 and math.isfinite(found["y2"].stderr)
    assert not any(math.isnan(v) for e in found.values() for v in (e.mean, e.stderr, e.ess, *e.ci()))
    assert S.checks()[2].ok and S.checks()[2].z == 0


@pytest.mark.parametrize("rows", [2, 5, 30])
def test_pitfall_07_too_few_rows(rows):
    array = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 8)[:rows]
    found = Samples(array, n=4, b=1, beta=1.0, weights="regular").expect(y1)
    assert not found.reliable and math.isfinite(found.mean)
    assert any(f"only {rows} rows" in text for text in found.cautions)
    assert "not reliable" in str(found)


def test_pitfall_07_one_row_and_independent_rows():
    S = Samples(np.array([[4, 1]]), n=4, b=1, beta=1.0, weights="regular")
    one = S.expect(y2)
    assert one.mean == 0.5 and math.isnan(one.stderr) and not one.reliable
    assert all(check.ok is None for check in S.checks())
    runs = np.random.default_rng(1).normal([2.0, 0.3], 0.05, (50, 2))
    found = Samples(runs, n=4, b=1, beta=1.0, averages=True).expect(y2)
    assert found.ess == 50 and found.reliable and found.dof == 49
    assert found.stderr == pytest.approx(runs[:, 1].std(ddof=1) / math.sqrt(50) / 2)


def test_pitfall_07_correlated_rows_are_not_independent():
    """Two long stretches: 10^4 rows worth two."""
    rows = np.repeat([[4, 1], [3, 0]], 5000, axis=0)
    found = Samples(rows, n=4, b=1, beta=1.0, weights="regular").expect(y2)
    assert not found.reliable and found.ess < 50


def test_pitfall_08_chains_are_kept_apart():
    runs = []
    for seed in range(32):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 300.0, seed)
        grid = np.arange(10.0, 300.0, 1.0)
        runs.append(by_hand.occupancy(lengths[np.searchsorted(times, grid, side="right") - 1], 2))
    array = np.stack(runs)
    S = Samples(array, n=4, b=1, beta=1.0, weights="regular")
    estimate = S.expect(y2)
    assert S.chains == 32 and estimate.dof == 31
    means = array[..., 1].mean(axis=1) / 2
    assert estimate.stderr == pytest.approx(means.std(ddof=1) / math.sqrt(32))
    within(estimate, EX2[1])
    # the same rows mixed, with labels
    labels = np.repeat(np.arange(32), array.shape[1])
    order = np.argsort(np.tile(np.arange(array.shape[1]), 32), kind="stable")
    mixed = Samples(array.reshape(-1, 2)[order], n=4, b=1, beta=1.0, weights="regular", chain=labels[order])
    assert mixed.expect(y2).stderr == pytest.approx(estimate.stderr)
    # a burn-in and a last row belong to each chain
    time = np.tile(np.arange(array.shape[1]) * 1.0, (32, 1))
    held = Samples(array, n=4, b=1, beta=1.0, time=time, burn_in=5)
    assert held.weights.sum() == pytest.approx(32 * (array.shape[1] - 1 - 5))
    # few chains: batches do not straddle
    few = Samples(array[:2], n=4, b=1, beta=1.0, weights="regular")
    assert few.expect(y2).dof == 29
    assert few.expect(y2).mean == pytest.approx(array[:2, :, 1].mean() / 2)


def test_pitfall_09_end_time_and_repeated_times():
    rows = np.array([[4, 0], [3, 0], [2, 0], [4, 1]])
    S = Samples(rows, n=4, b=1, beta=1.0, time=[0.0, 2.0, 2.0, 5.0], end_time=4.0)
    assert S.weights.tolist() == [2.0, 2.0] and S.x[:, 0].tolist() == [0.0, 1.0]
    refused("row 2", "do not decrease", array=rows, time=[0.0, 3.0, 2.0, 5.0], weights="time")
    refused("finite", array=rows, time=[0.0, math.nan, 2.0, 5.0], weights="time")
    refused("one number a row", array=rows, time=[0.0, 1.0], weights="time")
    refused("end_time", array=rows, time=[0.0, 1.0, 2.0, 3.0], end_time=math.nan)


def test_pitfall_11_waiting_only_lengths_are_named():
    times, lengths, _ = log()
    S = Samples(np.maximum(lengths - 1, 0), n=4, b=1, beta=1.0, format="lengths", time=times, end_time=12000.0)
    check = S.checks()[0]
    assert check.ok is False and "leave out the customer in service" in check.cause


def test_pitfall_12_capacity_for_buffer():
    _, lengths, _ = log()
    refused("b leaves out the customer in service", "at most 1 customers", array=lengths, b=0, format="lengths")
    refused("needs 3 columns", "b leaves out the customer in service", b=2)


@pytest.mark.parametrize(
    "policy, low, high, cause",
    [
        (by_hand.idle_first, 3.5, 30, "in service ignored"),
        (by_hand.with_replacement, 1.15, 3.5, "with replacement"),
        (by_hand.at_random, 30, math.inf, "random routing"),
    ],
)
def test_pitfall_13_policies_are_named(policy, low, high, cause):
    times, lengths, _ = log(policy=policy, n=25, b=math.inf, lam=0.8, horizon=600.0)
    S = Samples(lengths, n=25, b="inf", beta=1.0, format="lengths", time=times, end_time=600.0, burn_in=40)
    first, second = S.checks()[:2]
    assert first.ok
    assert second.ok is False and low < second.value / second.expected < high
    assert cause in second.cause


def test_pitfall_13_random_routing_blocks_too():
    times, lengths, _ = log(policy=by_hand.at_random, n=25, b=2, lam=0.8, horizon=600.0)
    S = Samples(lengths, n=25, b=2, beta=1.0, format="lengths", time=times, end_time=600.0, burn_in=40)
    first, second = S.checks()[:2]
    assert first.ok is False and "others have room" in first.cause
    assert second.ok is False and "not JSQ" in second.cause


def test_pitfall_14_permuting_servers_changes_nothing():
    times, lengths, _ = log()
    rng = np.random.default_rng(0)
    mixed = rng.permuted(lengths, axis=1)
    S = Samples(mixed, n=4, b=1, beta=1.0, format="lengths", time=times, end_time=12000.0, burn_in=20)
    assert S.expect(y2).mean == full_log().expect(y2).mean
    assert np.array_equal(S.x, full_log().x)


def test_pitfall_15_q0_and_other_columns(caplog):
    q = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    whole = np.hstack([np.full((200, 1), 4), q])
    with caplog.at_level(logging.WARNING):
        S = Samples(whole, n=4, b=1, beta=1.0, weights="regular")
        T = Samples(whole / 4, n=4, b=1, beta=1.0, weights="regular", format="fractions")
    assert "Q_0" in S.notes[0] and caplog.text.count("taken as Q_0") == 2
    assert np.array_equal(S.x, T.x) and S.x.shape == (200, 2)
    refused("a time or an index beside", array=np.hstack([np.arange(200)[:, None], q]))
    refused("format='fractions'", array=q / 4)
    refused("format='lengths'", array=np.tile(q, 3), n=6)
    refused("one column a server", array=whole, format="lengths", n=2, beta=1.0)


def test_pitfall_16_fractions_and_averages():
    q = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    S = Samples(q / 4 * (1 + 1e-10), n=4, b=1, beta=1.0, weights="regular", format="fractions")
    assert np.array_equal(S.x[:, 1], q[:, 1] / 2)
    f32 = Samples((np.array([[60, 3], [64, 4]] * 99) / 64).astype(np.float32), n=64, b=1, beta=1.0,
                  weights="regular", format="fractions")  # fmt: skip
    assert f32.x[0, 1] == 3 / 8
    half = q.astype(float)
    half[17, 1] = 0.5
    refused("row 17, column 1", "found 0.5", "an integer", "averages=True", array=half)
    refused("multiple of 1/n", array=half / 4, format="fractions")
    runs = np.random.default_rng(1).normal([2.0, 0.3], 0.05, (50, 2))
    refused("averages=True", array=runs)
    S = Samples(runs, n=4, b=1, beta=1.0, averages=True)
    assert S.expect(lambda y: 2 * y[0] - y[1] + 1).mean == pytest.approx((2 * (4 - runs[:, 0]) - runs[:, 1]).mean() / 2 + 1)
    for h in (lambda y: y[1] ** 2, lambda y: y[0] * y[1], lambda y: y[1] > 1, lambda y: jnp.exp(-y[0])):
        with pytest.raises(InputError, match="Jensen"):
            S.expect(h)
    assert S.checks() == []
    refused("no time", array=runs, averages=True, weights="time")


def test_pitfall_17_service_rate_and_load():
    times, lengths, _ = log(mu=0.8, b=3)
    S = Samples(lengths, n=4, b=3, beta=1.0, format="lengths", time=times, end_time=12000.0, burn_in=20)
    check = S.checks()[0]
    assert check.ok is False and "service rate" in check.cause and "E Q1/n = 0.6" in check.cause


@pytest.mark.parametrize(
    "options, word",
    [
        ({"beta": 0.0}, "a positive"), ({"beta": -1.0}, "beta must be"), ({"beta": math.nan}, "beta must be"),
        ({"beta": math.inf}, "beta must be"), ({"beta": None, "lam": 1.0}, "below 1"), ({"beta": "1"}, "beta must be"),
        ({"beta": None, "lam": 1.2}, "no stationary limit"), ({"beta": None, "lam": 0.0}, "lam must be"),
        ({"beta": None}, "beta or lam is missing"), ({"beta": 2.0}, "n must exceed beta^2"), ({"beta": 2.5}, "beta^2"),
        ({"n": 4.5}, "n must be an integer"), ({"n": 0}, "n must be at least 1"), ({"b": -1}, "b must be at least 0"),
        ({"b": 1.5}, "b must be an integer"), ({"b": "many"}, "'inf'"), ({"b": math.nan}, "b must be"),
        ({"lam": 0.7}, "contradict"), ({"format": "counts"}, "format must be"), ({"weights": "equal"}, "weights"),
    ],
)  # fmt: skip
def test_pitfall_19_parameters(options, word):
    refused(word, **options)


def test_pitfall_19_lam_and_beta_are_one_parameter():
    array = np.array([[25, 0], [20, 1]] * 100)
    S = Samples(array, n=25, b=1, lam=0.8, weights="regular")
    assert S.beta == 1.0
    assert Samples(array, n=25, b=1, lam=0.8, beta=1.0, weights="regular").lam == pytest.approx(0.8, abs=1e-15)


def test_pitfall_20_n_not_a_square():
    q = np.array([[10, 0], [9, 3], [7, 1], [10, 5]] * 50)
    S = Samples(q, n=10, b=1, beta=1.0, weights="regular")
    again = Samples(S.x, n=10, b=1, beta=1.0, weights="regular", format="scaled")
    assert np.array_equal(S.x, again.x)
    assert np.array_equal(S.x, np.stack([10 - q[:, 0], q[:, 1]], axis=1) / math.sqrt(10))
    # by division: 3 customers at n = 100 are 0.3, not 0.30000000000000004
    hundred = Samples(np.array([[100, 3]] * 200), n=100, b=1, beta=1.0, weights="regular")
    assert hundred.expect(lambda y: y[1] > 0.3).mean == 0


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.float32])
def test_pitfall_21_narrow_types(dtype):
    q = np.array([[90, 0], [100, 100], [97, 30], [100, 40]] * 50)
    S, T = (Samples(a, n=100, b=1, beta=1.0, weights="regular") for a in (q, q.astype(dtype)))
    h = {"y1": y1, "y1*y2": lambda y: y[0] * y[1]}
    assert [e.mean for e in S.expect(h).values()] == [e.mean for e in T.expect(h).values()]


def test_pitfall_21_times_in_float32():
    time = np.linspace(1e7, 1e7 + 500, 200).astype(np.float32)
    array = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
    assert any("float32" in note for note in Samples(array, n=4, b=1, beta=1.0, time=time).notes)


def test_pitfall_25_damaged_rows():
    rng = np.random.default_rng(0)
    q = np.stack([rng.integers(70, 101, 300), rng.integers(0, 60, 300)], axis=1)
    damaged = q.copy()
    damaged[290:] = 0
    refused("row 290 and 9 more", "the system is empty", "never filled in", array=damaged, n=100)
    refused("no rows", array=np.empty(0))
    refused("no rows", array=np.empty((0, 2)))
    refused("one state, or one column", array=np.array([4, 1]))
    refused("unequal length", array=[[4, 0], [4]])
    refused("row 3, column 1", "Q_1 >= Q_2", array=np.array([[4, 0], [4, 1], [3, 1], [1, 2]]))
    refused("row 1, column 0", "at most n = 4", "not the simulator's n", array=np.array([[4, 0], [5, 1]]))
    refused("row 1, column 1", "at least 0", array=np.array([[4, 0], [4, -1]]))
    refused("row 1, column 0", "found nan", array=np.array([[4, 0], [math.nan, 1]]))
    refused("found inf", array=np.array([[4, 0], [math.inf, 1]]))
    refused("integers or floats", array=np.array([["4", "0"]]))
    refused("integers or floats", array=np.array([[4, None]]))
    masked = np.ma.MaskedArray([[4, 0], [4, 1]], mask=[[0, 0], [0, 1]])
    refused("row 1, column 1", "found nan", array=masked)


def test_all_faults_are_found_before_the_first_refusal():
    array = np.array([[5, 0], [4, -1], [2, 3], [3.5, 0]])
    message = refused("row 0", "row 1", "row 2", "row 3", array=array, time=[0, 2, 1, 3], weights="time")
    assert message.count("; also: ") == 4 and "do not decrease" in message
