"""What goes wrong for people who do this work, 11 to 16: what the columns mean. One test for each, by its number."""

import logging
import math
import random

import jax.numpy as jnp
import numpy as np
import pytest
import queue_by_hand as by_hand
from cli_tools import refused as refused_by_command
from cli_tools import run, save, strict_json
from queue_by_hand import EX1, EX2, full_log, log, refused, within, y1, y2

from rdiff.errors import InputError
from rdiff.queue.inspect import inspect_file
from rdiff.queue.read import read_samples
from rdiff.queue.samples import Samples

ROWS = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
SYSTEM = dict(n=4, b=1, beta=1.0)
WORDS = ["--n", 4, "--b", 1, "--beta", 1, "--weights", "regular", "--observable", "y2"]


class Stale:
    """Joins a shortest queue as it was up to `every` arrivals ago."""

    def __init__(self, every):
        self.every, self.count, self.seen = every, 0, []

    def __call__(self, lengths, rng):
        if self.count % self.every == 0:
            self.seen = list(lengths)
        self.count += 1
        return rng.choice([k for k, x in enumerate(self.seen) if x == min(self.seen)])


def ties_at_random(lengths: list[int], rng: random.Random) -> int:
    return rng.choice([k for k, x in enumerate(lengths) if x == min(lengths)])


def columns_of(array, *names):
    return dict(zip(names, array.T, strict=True))


def test_11_lengths_without_the_customer_in_service_are_refused(tmp_path):
    """From lengths that leave out the customer in service Q_1 cannot be had: refused, with that reason."""
    reason = "leave out the customer in service (waiting only), from which"
    times, lengths, _ = log()
    options = dict(format="lengths", time=times, end_time=12000.0)
    told = refused(reason, "Q_1 cannot be recovered", "E Q1/n = 0.067", "lam = 0.5", array=lengths - (lengths > 0),
                   weights=None, **options)  # fmt: skip
    assert "\n" not in told
    times, lengths, seen = by_hand.simulate(25, 1, 0.8, 400.0, 7)
    waiting, servers = np.maximum(lengths - 1, 0), [f"s{k}" for k in range(25)]
    system = dict(n=25, b=1, beta=1.0)
    for b in (0, 1, "inf"):  # whatever b is said to be, with times or without
        refused(reason, array=waiting, **(system | dict(b=b)), format="lengths", time=times, weights="time")
        refused(reason, array=waiting, **(system | dict(b=b)), format="lengths")
    refused(reason, array=by_hand.occupancy(waiting, 2), **system, time=times, weights="time")
    refused(reason, array=np.maximum(seen[:, 1:3], 0), **system, weights="arrivals")
    # No lam is estimated from them either: it would be the load of the waiting places.
    estimated = dict(array=waiting, n=25, b="inf", beta=None, lam="estimated", format="lengths")
    refused(reason, "neither Q_1 nor lam", **estimated)
    refused(reason, "neither Q_1 nor lam", **estimated, time=times, weights="time")
    # The same servers with the one in service are taken, and so is a queue that really is so lightly loaded.
    assert Samples(lengths, **system, format="lengths", time=times).checks()[0].ok
    light, few, _ = by_hand.simulate(25, 1, 0.1, 400.0, 7, start=0)
    for load in (dict(lam=0.1), dict(lam="estimated")):
        assert Samples(few, n=25, b=1, **load, format="lengths", time=light, burn_in=10).checks()[0].ok
    path = save(tmp_path, {"t": times[:6000], **columns_of(waiting[:6000], *servers)})
    words = ["--n", 25, "--format", "lengths", "--columns", "s0:s24", "--time-column", "t"]
    for load in (["--beta", 1], ["--lam", "estimated"]):
        refused_by_command(run("compare", path, *words, *load), path.name, reason)
    for load in (dict(beta=1.0), {}):
        found = inspect_file(path, n=25, **load)
        assert found.command is None and any("refused" in note and reason in note for note in found.notes)


def test_12_capacity_is_not_buffer(tmp_path):
    """Who takes the capacity for b is told that b leaves out the customer in service and the columns are Q_1..Q_{b+1}."""
    _, lengths, _ = log()
    told = "b leaves out the customer in service"
    refused(told, "at most 1 customers", array=lengths, b=0, format="lengths")
    refused(told, "b = 2 needs 3 columns", "Q_1..Q_3", "got 2", "columns are Q_1..Q_{b+1}", b=2)
    refused(told, "b = 0 needs 1 column", "got 2", b=0)
    refused(told, "at most 1", b=0, format="customers", weights=None,
            array=np.array([[0.0, 9.0, 0.0], [1.0, 8.0, 0.0]]))  # fmt: skip
    path = save(tmp_path, columns_of(ROWS, "Q1", "Q2"))
    refused_by_command(run("compare", path, *WORDS, "--b", 2), "Q1, Q2", told, "Q_1..Q_{b+1}")
    refused_by_command(run("compare", path, *WORDS, "--b", 0), "Q1, Q2", told, "Q_1..Q_{b+1}")
    four = save(tmp_path, columns_of(lengths, *"abcd"), "lengths.csv")
    words = ["--b", 0, "--format", "lengths", "--columns", "a:d"]
    refused_by_command(run("compare", four, *WORDS, *words), "found 2, expected at most 1 customers", told)
    assert "not counting the one in service" in " ".join(run("compare", "--help").stdout.split())


def test_13_other_policies_are_named_by_the_identity(tmp_path):
    """A policy that is no JSQ shows in E Q_2/(n lam P(Q_1 = n)), which is 1 for JSQ, and its size names the policy."""
    policies = [
        (by_hand.idle_first, 3.5, 30, "the one in service ignored"),
        (by_hand.with_replacement, 1.15, 3.5, "with replacement"),
        (Stale(3), 3.5, 30, "stale information"),
        (by_hand.at_random, 30, math.inf, "random routing"),
    ]
    for policy, low, high, cause in policies:
        times, lengths, _ = log(policy=policy, n=25, b=math.inf, lam=0.8, horizon=600.0)
        S = Samples(lengths, n=25, b="inf", beta=1.0, format="lengths", time=times, end_time=600.0, burn_in=40)
        first, second = S.checks()[:2]
        assert first.ok  # every policy serves what arrives
        assert second.ok is False and low < second.value / second.expected < high
        assert cause in second.cause and f"{second.value / second.expected:.3g} times" in second.cause
        levels = S.x.shape[1]
        q = by_hand.occupancy(lengths[:8000], levels)
        path = save(tmp_path, {"t": times[:8000], **columns_of(q, *(f"Q{i + 1}" for i in range(levels)))})
        said = inspect_file(path, n=25, b=math.inf, beta=1.0).lines()
        assert sum("not JSQ" in line for line in said) == 1  # one line for all levels
        assert any(cause in line and "E Q2" in line for line in said), said
    words = ["--n", 25, "--b", "inf", "--beta", 1, "--columns", "Q1:Q2", "--time-column", "t", "--burn-in", 40]
    found = strict_json(run("compare", path, *words, "--observable", "y2", "--json").stdout)
    assert "random routing" in found["checks"][1]["cause"] and found["results"][0]["reliable"] is False
    # With a finite buffer other policies block too.
    times, lengths, _ = log(policy=by_hand.at_random, n=25, b=2, lam=0.8, horizon=600.0)
    first, second = Samples(
        lengths, n=25, b=2, beta=1.0, format="lengths", time=times, end_time=600.0, burn_in=40
    ).checks()[:2]  # fmt: skip
    assert first.ok is False and "others have room" in first.cause
    assert second.ok is False and "not JSQ" in second.cause
    first, second = full_log().checks()
    assert first.ok and second.ok and second.value / second.expected == pytest.approx(1, abs=0.1)


def test_14_only_occupancy_matters():
    """Servers in any order, and ties broken in any way: permuting the servers changes nothing."""
    times, lengths, _ = log()
    options = dict(SYSTEM, format="lengths", time=times, end_time=12000.0, burn_in=20)
    for other in (np.random.default_rng(0).permuted(lengths, axis=1), np.sort(lengths), lengths[:, ::-1]):
        S = Samples(other, **options)
        assert np.array_equal(S.x, full_log().x) and S.expect(y2).mean == full_log().expect(y2).mean
        assert [check.z for check in S.checks()] == [check.z for check in full_log().checks()]
    times, lengths, _ = log(policy=ties_at_random, seed=2)
    S = Samples(lengths, **(options | dict(time=times)))
    within(S.expect(y1), EX1[1])
    within(S.expect(y2), EX2[1])
    assert all(check.ok for check in S.checks())


def test_15_columns_are_mapped_explicitly(tmp_path, caplog):
    """Fractions, a leading Q_0, an index, a time, parameters in a file's name: mapped by hand; a guess is announced."""
    whole = np.hstack([np.full((200, 1), 4), ROWS])
    with caplog.at_level(logging.WARNING):
        S = Samples(whole, **SYSTEM, weights="regular")
        T = Samples(whole / 4, **SYSTEM, weights="regular", format="fractions")
    assert "Q_0" in S.notes[0] and caplog.text.count("taken as Q_0") == 2
    assert np.array_equal(S.x, T.x) and S.x.shape == (200, 2)
    refused("a time or an index beside", array=np.hstack([np.arange(200)[:, None], ROWS]))
    refused("row 0, column 0: found 0.75", "format='fractions'", array=np.array([[0.75, 0.0], [1.0, 0.5]]))
    refused("format='fractions'", array=ROWS / 4)
    refused("format='lengths'", array=np.tile(ROWS, 3), n=6)
    refused("one column a server", array=whole, format="lengths", n=2, beta=1.0)
    # In a file: what is named is taken, nothing else; what is not named is announced.
    clock = np.arange(200.0)
    path = save(tmp_path, {"": np.arange(200), "t": clock, "Q0": whole[:, 0], "Q1": ROWS[:, 0], "Q2": ROWS[:, 1]})
    named = read_samples(path, **SYSTEM, columns="Q1:Q2", weights="regular")
    assert np.array_equal(named.x, S.x) and named.notes == ()
    turned = read_samples(
        save(tmp_path, columns_of(ROWS[:, ::-1], "B", "A"), "b.csv"), **SYSTEM, columns="A,B", weights="regular"
    )
    assert np.array_equal(turned.x, S.x)
    guessed = read_samples(path, **SYSTEM, time_column="t", weights="regular")
    assert np.array_equal(guessed.x, S.x)
    for words in ("taken as an index", "taken as the states, in order: Q0, Q1, Q2", "taken as Q_0"):
        assert any(words in note for note in guessed.notes), words
    refused_by_command(run("compare", path, *WORDS), "t, Q0, Q1, Q2", "a time or an index beside the states")
    said = run("compare", path, *WORDS, "--time-column", "t").stdout
    assert "taken as the states, in order: Q0, Q1, Q2" in said and "column Q0 is 4 in every row: taken as Q_0" in said
    # What only the name of the file says is never read from it by a comparison, and named by a first look.
    path = save(tmp_path, columns_of(ROWS, "Q1", "Q2"), "jsq_n4.csv")
    refused_by_command(run("compare", path, "--beta", 1, "--weights", "regular"), "--n is needed")
    refused_by_command(run("compare", path, "--n", 4, "--weights", "regular"), "one of --beta and --lam is needed")
    guesses = inspect_file(path, beta=1.0).guesses
    assert "n = 4, from the name of the file" in guesses and "b = 1" in guesses


def test_16_fractions_are_rounded_and_averages_refused(tmp_path):
    """n times a fraction is rounded to its integer; half of one off is refused, and so are run averages, but for linear h."""
    S = Samples(ROWS / 4 * (1 + 1e-10), **SYSTEM, weights="regular", format="fractions")
    assert np.array_equal(S.x[:, 1], ROWS[:, 1] / 2) and S.notes == ()
    f32 = Samples((np.array([[60, 3], [64, 4]] * 99) / 64).astype(np.float32), n=64, b=1, beta=1.0,
                  weights="regular", format="fractions")  # fmt: skip
    assert f32.x[0, 1] == 3 / 8
    # As many digits as are usually printed, for an n that needs more: rounded, and said.
    q = by_hand.on_a_grid(30, 1, 0.8, 2.0, 300, 20, 1)
    short = save(tmp_path, {name: [f"{x:.6g}" for x in column / 30] for name, column in columns_of(q, "s1", "s2").items()})
    T = read_samples(short, n=30, b=1, lam=0.8, weights="regular", format="fractions")
    assert np.array_equal(T.x[:, 1], q[:, 1] / math.sqrt(30)) and "few digits" in T.notes[0]
    first_look = inspect_file(short, lam=0.8)
    assert (first_look.options["n"], first_look.options["format"]) == (30, "fractions")
    assert "averages" not in first_look.options
    half = ROWS.astype(float)
    half[17, 1] = 0.5
    refused("row 17, column 1", "found 0.5", "an integer", "averages=True", array=half)
    refused("row 17, column 1", "multiple of 1/n = 1/4", array=half / 4, format="fractions")
    refused("row 17, column 1", "multiple of 1/n", "digits cut off", array=ROWS / 4 + 0.002 * (half % 1), format="fractions")
    runs = np.random.default_rng(1).normal([2.0, 0.3], 0.05, (50, 2))
    refused("averages=True", array=runs)
    refused("averages=True", array=runs / 4, format="fractions")
    S = Samples(runs, **SYSTEM, averages=True)
    assert S.expect(lambda y: 2 * y[0] - y[1] + 1).mean == pytest.approx((2 * (4 - runs[:, 0]) - runs[:, 1]).mean() / 2 + 1)
    for h in (lambda y: y[0] ** 2, lambda y: y[1] ** 2, lambda y: y[0] * y[1], lambda y: y[1] > 1, lambda y: jnp.exp(-y[0])):
        with pytest.raises(InputError, match="Jensen"):
            S.expect(h)
    assert S.checks() == []
    refused("no time", array=runs, averages=True, weights="time")
    path = save(tmp_path, columns_of(runs, "Q1", "Q2"), "runs.csv")
    refused_by_command(run("compare", path, *WORDS), "line 2, column Q1", "run averages?")
    words = [*WORDS[:-4], "--averages", "--json", "--observable"]
    refused_by_command(run("compare", path, *words, "y1**2"), "y1**2 is not linear", "Jensen")
    linear = strict_json(run("compare", path, *words, "y1").stdout)["results"][0]
    assert linear["prelimit"] == pytest.approx((4 - runs[:, 0]).mean() / 2)
