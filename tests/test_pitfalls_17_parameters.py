"""What goes wrong for people who do this work, 17 to 20: the parameters of the queue. One test for each, by its number."""

import math
import re

import numpy as np
import pytest
import queue_by_hand as by_hand
from cli_tools import refused as refused_by_command
from cli_tools import run, save, strict_json
from queue_by_hand import EX2, full_log, log, refused, within, y1, y2

import rdiff
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.queue.inspect import inspect_file
from rdiff.queue.read import read_samples
from rdiff.queue.samples import Samples

EY2 = 0.8140597  # at beta = 1
ROWS = np.array([[25, 0], [20, 1], [18, 3], [25, 5]] * 50)


def save_log(folder, times, lengths):
    q = by_hand.occupancy(lengths, 2)
    return save(folder, {"t": times, "Q1": q[:, 0], "Q2": q[:, 1]})


def served(texts):
    """The service rate that a note names: about what it is, for it is read from the departures."""
    found = re.findall(r"busy servers serve at rate (\S+): times are not in mean service times", " ".join(texts))
    return pytest.approx(float(found[0]), rel=0.05) if found else None


def test_17_the_load_is_compared_with_lam(tmp_path):
    """Rate and mean swapped, or a service rate other than 1: E Q_1/n shows it. Only Lambda/(n mu) matters, not the clock."""
    times, lengths, _ = log(mu=0.8, b=3)
    S = Samples(lengths, n=4, b=3, beta=1.0, format="lengths", time=times, end_time=12000.0, burn_in=20)
    check = S.checks()[0]
    assert check.ok is False and "service rate" in check.cause and "E Q1/n = 0.6" in check.cause and "lam = 0.5" in check.cause
    assert served(S.notes) == 0.8 and "Lambda/(n mu)" in S.notes[0]
    # The mean of a service taken for its rate: 0.4 is no small part of 2.5.
    for mu in (1.25, 2.5):
        times, lengths, _ = log(n=25, b=2, lam=0.8, horizon=400.0, mu=mu)
        options = dict(n=25, b=2, beta=1.0, format="lengths", time=times)
        if mu < 2:
            first = Samples(lengths, **options).checks()[0]
            assert first.ok is False and "rate and mean swapped" in first.cause and "E Q1/n = 0.6" in first.cause
        else:
            told = refused("E Q1/n = 0.3", "lam = 0.8", "rate and mean swapped", array=lengths, weights="time", **options)
            assert "Lambda/(n mu)" in told
        assert Samples(lengths, **(options | dict(beta=None, lam=0.8 / mu))).checks()[0].ok  # as it should be given
    # The same log by a clock that runs ten times as fast: the same numbers and the same verdicts, and the clock is named.
    times, lengths, _ = log()
    fast = Samples(lengths, n=4, b=1, beta=1.0, format="lengths", time=10 * times, end_time=120000.0, burn_in=200)
    assert fast.expect(y2).mean == pytest.approx(full_log().expect(y2).mean, rel=1e-12)
    assert [c.z for c in fast.checks()] == pytest.approx([c.z for c in full_log().checks()], rel=1e-9)
    assert served(fast.notes) == 0.1 and full_log().notes == ()
    # lam from the arrivals is in units of the clock, and then does not agree with E Q_1/n: said.
    path = save_log(tmp_path, 10 * times[:8000], lengths[:8000])
    said = " ".join(inspect_file(path, n=4).lines())
    assert "a service rate other than 1" in said and "not JSQ" not in said and served([said]) == 0.1
    assert served(inspect_file(path, n=4, beta=1.0).lines()) == 0.1
    words = ["--n", 4, "--b", 1, "--columns", "Q1:Q2", "--time-column", "t", "--observable", "y2"]
    assert served([run("compare", path, *words, "--beta", 1).stdout]) == 0.1
    path = save_log(tmp_path, times[:8000] / 4, lengths[:8000])
    refused_by_command(run("compare", path, *words, "--lam", "estimated"), "which is not in (0, 1)", "another unit of time")


def test_18_an_estimated_lam_carries_its_error(tmp_path):
    """The error of lam from the data, sqrt(lam/(n T)), is sqrt(lam/T) of beta whatever n: at T = 100 +-0.2 in E Y2."""
    slope = StationaryLaw(JSQDiffusion(1.0)).sensitivity(y2).mean
    carried = {}
    for n in (25, 100):
        times, lengths, _ = by_hand.simulate(n, 1, 1 - 1 / math.sqrt(n), 120.0, 3)
        options = dict(n=n, b=1, format="lengths", time=times, end_time=120.0, burn_in=20)
        S = Samples(lengths, **options, lam="estimated")
        given = Samples(lengths, **options, beta=S.beta)
        assert S.beta_stderr == pytest.approx(math.sqrt(S.lam / 100), rel=0.05) and given.beta_stderr == 0
        carried[n] = abs(slope) * S.beta_stderr
    assert carried[25] == pytest.approx(0.2, abs=0.05) and carried[100] == pytest.approx(carried[25], rel=0.15)
    limit = StationaryLaw(JSQDiffusion(S.beta))
    found, at = rdiff.compare(S, limit, y2), limit.sensitivity(y2).mean
    assert found.carried == pytest.approx(abs(at) * S.beta_stderr)
    assert found.stderr == pytest.approx(math.hypot(found.prelimit.stderr, found.carried))
    assert found.to_dict()["carried"] == found.carried and "beta = " in " ".join(found.notes)
    assert rdiff.compare(given, limit, y2).stderr == found.prelimit.stderr
    # On the command line the same; and with both, which of them?
    words = [save_log(tmp_path, times, lengths), "--n", 100, "--columns", "Q1:Q2", "--time-column", "t", "--observable", "y2"]
    more = ["--end-time", 120, "--burn-in", 20, "--lam", "estimated", "--json"]
    told = strict_json(run("compare", *words, *more).stdout)
    row = told["results"][0]
    assert row["carried"] == pytest.approx(found.carried) and row["stderr"] == pytest.approx(found.stderr)
    assert any("estimated from the arrivals of the log: beta = " in note for note in told["notes"])
    for lam in ("estimated", 0.9):
        refused_by_command(
            run("compare", *words, "--beta", 1, "--lam", lam), "--beta and --lam are both given", "one parameter"
        )
    refused_by_command(run("inspect", words[0], "--beta", 1, "--lam", "estimated"), "beta and lam are both given")
    refused("beta = 1.0 is given, and lam is to be estimated", beta=1.0, lam="estimated")
    # The interval of E h(X) - E h(Y) holds the truth at least as often as it says.
    exact, inside = EX2[1] - EY2, 0
    for seed in range(40):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 600.0, 500 + seed)
        S = Samples(lengths, n=4, b=1, lam="estimated", format="lengths", time=times, end_time=600.0, burn_in=10)
        near = -1.9  # the slope of E Y2 at beta = 1, good enough here
        est = S.expect(y2)
        limit = EY2 + near * (S.beta - 1)
        inside += abs(est.mean - limit - exact) < 1.96 * math.hypot(est.stderr, near * S.beta_stderr)
    assert inside >= 36
    # Snapshots know lam from E Q_1 only, with a larger error; the identity it came from is no check then.
    grid = np.arange(20.0, 590.0, 1.0)
    T = Samples(lengths[np.searchsorted(times, grid, side="right") - 1], n=4, b=1, lam="estimated", format="lengths",
                time=grid, weights="regular")  # fmt: skip
    assert T.beta_stderr > S.beta_stderr and [check.name[:4] for check in T.checks()] == ["E Q2"]


def test_19_no_limit_no_comparison(tmp_path):
    """beta <= 0, lam >= 1, n < beta^2, an n that is no integer, b < 0: refused; at lam >= 1 only a finite queue has a law."""
    for options, word in [
        ({"beta": 0.0}, "a positive"), ({"beta": -1.0}, "beta must be"), ({"beta": math.nan}, "beta must be"),
        ({"beta": math.inf}, "beta must be"), ({"beta": None, "lam": 1.0}, "below 1"), ({"beta": "1"}, "beta must be"),
        ({"beta": None, "lam": 1.2}, "no stationary limit"), ({"beta": None, "lam": 0.0}, "lam must be"),
        ({"beta": None}, "beta or lam is missing"), ({"beta": 2.0}, "n must exceed beta^2"), ({"beta": 2.5}, "beta^2"),
        ({"n": 4.5}, "n must be an integer"), ({"n": 4.0}, "n must be an integer"), ({"n": 0}, "n must be at least 1"),
        ({"b": -1}, "b must be at least 0"), ({"b": 1.5}, "b must be an integer"), ({"b": "many"}, "'inf'"),
        ({"b": math.nan}, "b must be"), ({"lam": 0.7}, "contradict"), ({"format": "counts"}, "format must be"),
        ({"weights": "equal"}, "weights"),
    ]:  # fmt: skip
        refused(word, **options)
    # beta and lam are one parameter.
    assert Samples(ROWS, n=25, b=1, lam=0.8, weights="regular").beta == 1.0
    assert Samples(ROWS, n=25, b=1, lam=0.8, beta=1.0, weights="regular").lam == pytest.approx(0.8, abs=1e-15)
    # Everywhere, in the same words.
    for make, words in [
        (lambda: JSQDiffusion(0.0), ["beta must be a positive", "got 0.0", "load"]),
        (lambda: StationaryLaw(JSQDiffusion(-1.0)), ["beta must be a positive", "got -1.0"]),
        (lambda: rdiff.JSQQueue(4, 1, beta=2.0), ["n must exceed beta^2 = 4, got n = 4"]),
        (lambda: rdiff.JSQQueue(10, 1, lam=1.2), ["got 1.2", "a queue of finite b still has a stationary law"]),
        (lambda: rdiff.JSQQueue(10, -1, beta=1.0), ["b must be at least 0, got -1"]),
        (lambda: rdiff.rate([4, 9], beta=2.5, b=1, h=y2), ["n must exceed beta^2 = 6.25, got n = 4"]),
    ]:
        with pytest.raises(rdiff.InputError) as caught:
            make()
        for word in words:
            assert word in str(caught.value)
    path = save(tmp_path, {"Q1": ROWS[:, 0], "Q2": ROWS[:, 1]})
    for options, word in [
        (["--n", 25, "--beta", 0], "beta must be a positive"), (["--n", 25, "--beta", -1], "no stationary limit"),
        (["--n", 25, "--beta", "nan"], "got nan"), (["--n", 25, "--lam", 1], "a stationary law"),
        (["--n", 4, "--beta", 2], "n must exceed beta^2"), (["--n", 25.5, "--beta", 1], "25.5"),
        (["--n", 0, "--beta", 1], "n must be at least 1"), (["--n", 25, "--beta", 1, "--b", -1], "b must be at least 0"),
        (["--n", 25, "--beta", 1, "--b", 1.5], "1.5"), (["--n", 25], "one of --beta and --lam is needed"),
    ]:  # fmt: skip
        refused_by_command(run("compare", path, "--weights", "regular", *options), word)
    refused_by_command(run("exact", "--beta", 0), "beta must be a positive")
    refused_by_command(run("queue", "exact", "--n", 10, "--lam", 1.2), "a stationary law")
    # A load that the record gives may be one without a limit, too.
    rows = np.tile([[4, 4], [4, 3]], (50, 1))
    assert "no stationary limit" in refused("not in (0, 1)", array=rows, beta=None, lam="estimated")


def test_20_n_need_not_be_a_square(tmp_path):
    """sqrt(n) is irrational unless n is a square: X is compared with tolerance, and X = Q/sqrt(n) by division."""
    q = np.array([[10, 0], [9, 3], [7, 1], [10, 5]] * 50)
    S = Samples(q, n=10, b=1, beta=1.0, weights="regular")
    again = Samples(S.x, n=10, b=1, beta=1.0, weights="regular", format="scaled")
    assert np.array_equal(S.x, again.x) and again.notes == ()
    assert np.array_equal(S.x, np.stack([10 - q[:, 0], q[:, 1]], axis=1) / math.sqrt(10))
    # By division: 3 customers at n = 100 are 0.3, not 0.30000000000000004.
    hundred = Samples(np.array([[100, 3]] * 200), n=100, b=1, beta=1.0, weights="regular")
    assert hundred.expect(lambda y: y[1] > 0.3).mean == 0
    # In single precision, by multiplication, or with six digits of text: the same states.
    for x in (S.x.astype(np.float32), np.stack([10 - q[:, 0], q[:, 1]], axis=1) * (1 / math.sqrt(10))):
        assert np.array_equal(Samples(x, n=10, b=1, beta=1.0, weights="regular", format="scaled").x, S.x)
    path = save(tmp_path, {f"x{i + 1}": [f"{value:.6g}" for value in column] for i, column in enumerate(S.x.T)})
    T = read_samples(path, n=10, b=1, beta=1.0, weights="regular", format="scaled")
    assert np.array_equal(T.x, S.x) and "few digits" in T.notes[0]
    found = inspect_file(path, n=10, beta=1.0)
    assert found.options["format"] == "scaled" and any("few digits" in note for note in found.notes)
    words = ["--n", 10, "--weights", "regular", "--format", "scaled", "--observable", "y2", "--json"]
    told = strict_json(run("compare", path, *words, "--lam", f"{1 - 1 / math.sqrt(10):.17g}").stdout)["results"][0]
    assert told["prelimit"] == S.expect(y2).mean
    assert told["scaled"] == pytest.approx(math.sqrt(10) * told["difference"], rel=1e-14)
    refused("row 1, column 0", "Q_1 an integer", "not the simulator's n", array=S.x, n=11, format="scaled")
    # beta and lam = 1 - beta/sqrt(n) agree to rounding; the law at n = 10 has its identities.
    assert Samples(q, n=10, b=1, beta=1.0, lam=1 - 1 / math.sqrt(10), weights="regular").beta == 1.0
    assert rdiff.JSQQueue(10, 1, lam=1 - 1 / math.sqrt(10)).beta == 1.0
    times, lengths, _ = log(n=10, lam=1 - 1 / math.sqrt(10), horizon=3000.0)
    law = rdiff.JSQQueue(10, 1, beta=1.0).exact().expect({"y1": y1, "y2": y2})
    S = Samples(lengths, n=10, b=1, beta=1.0, format="lengths", time=times, end_time=3000.0, burn_in=20)
    within(S.expect(y1), law["y1"].mean)
    within(S.expect(y2), law["y2"].mean)
