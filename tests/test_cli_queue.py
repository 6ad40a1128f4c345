"""`rdiff queue exact` and `rdiff queue simulate`, and the pictures and samples that they write."""

import os
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest
from cli_tools import refused, run, strict_json

import rdiff
from rdiff import engine
from rdiff.queue.simulate import SimulatedQueueLaw

SHORT = ["--chains", 64, "--horizon", 200]


def found(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return strict_json(result.stdout)


# ---- exact


def test_exact():
    answer = found("queue", "exact", "--n", 100, "--b", 2, "--beta", 1)
    rows = {row["observable"]: row for row in answer["results"]}
    assert list(rows) == ["y1", "y2", "y1*y2", "y2>1"]
    assert rows["y2"]["mean"] == pytest.approx(0.5999611116, abs=1e-10)  # of the reference tables
    assert all(row["stderr"] is None and 0 < row["error"] < 1e-11 and row["reliable"] for row in rows.values())
    assert rows["y2"]["ci"] == [rows["y2"]["mean"] - rows["y2"]["error"], rows["y2"]["mean"] + rows["y2"]["error"]]
    assert answer["states"] == 176851 and answer["residual"] < 1e-12 and answer["outside"] == 0
    assert len(answer["checks"]) == 3 and all(check["ok"] for check in answer["checks"])
    assert answer["checks"][0]["value"] == pytest.approx(90)
    settings = answer["settings"]
    assert (
        settings["command"] == "queue exact" and settings["lam"] == 0.9 and settings["beta"] == 1 and settings["alpha"] == 0.5
    )


def test_exact_table_shows_the_digits_that_the_error_leaves():
    result = run("queue", "exact", "--n", 64, "--beta", 1, "--observable", "y2", "--window", 5, "--cap", 6)
    assert result.exit_code == 0, result.output
    row = next(line for line in result.stdout.splitlines() if line.strip().startswith("y2")).split()
    mean, error = float(row[1]), float(row[2])
    true = rdiff.JSQQueue(64, 1, 1.0).exact().expect(lambda x: x[1]).mean
    assert 1e-5 < abs(mean - true) < error  # cut hard, and it knows
    shown = 10.0 ** -len(row[1].split(".")[1])
    assert error / 100 <= shown <= error
    assert "outside the window" in result.stdout and "cuts off states" in result.stdout and "FAILS" in result.stdout


def test_exact_without_buffer_is_erlang_b():
    answer = found("queue", "exact", "--n", 10, "--b", 0, "--lam", 0.5, "--observable", "y1==0")
    load = 5.0 ** np.arange(11) / np.cumprod([1, *range(1, 11)])
    assert answer["results"][0]["mean"] == pytest.approx(load[-1] / load.sum(), rel=1e-12)
    assert answer["blocking"] == pytest.approx(load[-1] / load.sum(), rel=1e-12)


def test_a_window_keeps_less_and_gives_the_same():
    whole, cut = (found("queue", "exact", "--n", 400, "--beta", 1, *words) for words in ([], ["--window", "auto"]))
    less = found("queue", "exact", "--n", 400, "--beta", 1, "--tol", 1e-6)
    assert less["states"] < cut["states"] < whole["states"] and 0 < less["outside"] < 1e-4
    for one, other in zip(whole["results"], cut["results"], strict=True):
        assert abs(one["mean"] - other["mean"]) <= one["error"] + other["error"]


def test_another_regime_names_alpha():
    result = run("queue", "exact", "--n", 100, "--alpha", 0.75, "--beta", 1)
    assert result.exit_code == 0 and "alpha = 0.75" in result.stdout
    half, other = (found("queue", "exact", "--n", 100, *load) for load in (["--lam", 0.9], ["--alpha", 0, "--beta", 0.1]))
    assert half["results"] == other["results"]  # one queue, two names of its load


def test_exact_writes_its_rows_and_picture(tmp_path):
    pytest.importorskip("matplotlib")
    words = ["--n", 25, "--beta", 1, "--plot", tmp_path / "law.png", "--out", tmp_path / "law.csv"]
    assert found("queue", "exact", *words)["results"]
    assert (tmp_path / "law.png").stat().st_size > 10_000
    head, *rows = (tmp_path / "law.csv").read_text().splitlines()
    assert head.startswith("observable,mean,") and len(rows) == 4
    alone = run("queue", "exact", "--n", 25, "--beta", 1, "--alpha", 0.75, "--plot", tmp_path / "alone.svg")
    assert alone.exit_code == 0 and (tmp_path / "alone.svg").exists()  # a queue without this limit


def test_compare_draws_the_samples(tmp_path):
    pytest.importorskip("matplotlib")
    answer = found("compare", "--plot", tmp_path / "law.png", "--observable", "y2")
    assert (tmp_path / "law.png").stat().st_size > 10_000 and answer["settings"].get("plot") is None
    np.save(tmp_path / "means.npy", np.tile([[0.7, 0.2], [0.8, 0.3]], (10, 1)))
    words = ["--n", 10, "--b", "inf", "--beta", 1, "--format", "fractions", "--averages", "--observable", "y2"]
    refused(run("compare", tmp_path / "means.npy", *words, "--plot", tmp_path / "means.png"), "Samples of states")


# ---- simulate


def test_simulate():
    words = ["--n", 10, "--b", 2, "--beta", 1, "--chains", 256, "--horizon", 400]
    answer, exact = found("queue", "simulate", *words), found("queue", "exact", *words[:6])
    for row, truth in zip(answer["results"], exact["results"], strict=True):
        assert 0 < row["stderr"] < 0.02 and row["reliable"]
        assert abs(row["mean"] - truth["mean"]) < 4.5 * row["stderr"]
    assert len(answer["checks"]) == 3 and all(check["ok"] for check in answer["checks"])
    settings = answer["settings"]
    assert settings["policy"] == "jsq" and settings["chains"] == 256 and settings["burn_in"] > 0 and settings["seed"] == 0
    assert answer["interrupted"] is False and answer["samples"] is None
    assert found("queue", "simulate", *words)["results"] == answer["results"]
    assert found("queue", "simulate", *words, "--seed", 1)["results"] != answer["results"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "npz"])
def test_samples_are_read_back_by_the_command_printed(tmp_path, ending):
    file = tmp_path / f"run 1.{ending}"
    words = ["queue", "simulate", "--n", 100, "--b", 2, "--beta", 1, *SHORT, "--out", file, "--every", 4]
    result = run(*words)
    assert result.exit_code == 0, result.output
    name, *command = shlex.split(result.stdout.splitlines()[-1])
    assert name == "rdiff"
    answer = found(*command)
    (y2,) = (row for row in answer["results"] if row["observable"] == "y2")
    assert abs(y2["prelimit"] - 0.5999611116) < 4.5 * y2["prelimit_stderr"]
    assert all(check["ok"] for check in answer["checks"]) and answer["settings"]["n"] == 100


def test_samples_of_a_queue_without_buffer_and_of_an_odd_load(tmp_path):
    for words in (["--b", 0, "--beta", 1], ["--lam", 0.87654321]):
        answer = found("queue", "simulate", "--n", 7, *words, *SHORT, "--out", tmp_path / "run.csv")
        again = found(*shlex.split(answer["samples"]["command"])[1:])
        one, other = again["results"][0], answer["results"][0]
        assert abs(one["prelimit"] - other["mean"]) < 4.5 * (one["prelimit_stderr"] + other["stderr"]) < 0.1
    other = found("queue", "simulate", "--n", 7, "--alpha", 1, "--beta", 1, *SHORT, "--out", tmp_path / "run.csv")
    assert other["samples"]["command"] is None  # no limit to compare with


@pytest.mark.parametrize(("words", "cause", "low", "high"), [
    ([], "", 0.97, 1.03),
    (["--policy", "join-idle-queue"], "not JSQ", 0.8, 0.97),
    (["--policy", "power-of-d", "--d", 2], "not JSQ", 5, 1e3),
    (["--policy", "power-of-d", "--d", 10, "--replacement"], "not JSQ", 1.15, 4),
])  # fmt: skip
def test_policies_are_told_apart_by_the_identities(words, cause, low, high):
    system = ["--n", 10, "--b", 2, "--beta", 1, "--chains", 128, "--horizon", 1000, "--seed", 2]
    result = run("queue", "simulate", *system, *words)
    assert result.exit_code == 0 and ("FAILS" in result.stdout) is bool(cause) and cause in result.stdout
    second = found("queue", "simulate", *system, *words)["checks"][1]
    assert second["ok"] is not bool(cause) and low < second["value"] / second["expected"] < high


def test_power_of_all_servers_is_jsq():
    """Without replacement: only what an arrival may meet differs, nothing in law."""
    words = ["--n", 5, "--beta", 1, "--policy", "power-of-d", "--d", 5, *SHORT]
    assert all(check["ok"] for check in found("queue", "simulate", *words)["checks"])


@pytest.mark.skipif("RDIFF_DATA" not in os.environ, reason="needs the shared data folder")
def test_the_wrong_policy_of_another_simulator_is_named():
    words = ["--n", 64, "--b", 3, "--beta", 1, "--format", "fractions", "--columns", "s_1:s_4"]
    words += ["--time-column", "curr_time", "--weights", "regular", "--burn-in", 100, "--observable", "y2"]
    result = run("compare", Path(os.environ["RDIFF_DATA"]) / "pod_n64.csv", *words)
    assert result.exit_code == 0 and "the policy is not JSQ" in result.stdout and "with replacement" in result.stdout


def test_a_long_run_is_announced_and_ends_at_ctrl_c(monkeypatch):
    from rdiff.queue.elimination import Elimination

    def stopped(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Elimination, "excursions", stopped)
    result = run("queue", "exact", "--n", 300, "--b", 3, "--beta", 1)
    assert result.exit_code == 130 and "3.49e+08 states take about 2" in result.stderr and "interrupted" in result.stderr


def test_interrupted(monkeypatch, tmp_path):
    real = engine.run

    def stopped(*args, **kwargs):
        for count, state in enumerate(real(*args, **kwargs)):
            if count == 3:
                signal.raise_signal(signal.SIGINT)
            yield state

    monkeypatch.setattr(engine, "run", stopped)
    words = ["queue", "simulate", "--n", 20, "--beta", 1, "--chains", 16, "--horizon", 1e6, "--out", tmp_path / "run.csv"]
    result = run(*words, "--burn-in", 1, "--json")
    assert result.exit_code == 130
    answer = strict_json(result.stdout)
    assert answer["interrupted"] is True and answer["results"][0]["mean"] > 0 and answer["checks"] == []
    assert not (tmp_path / "run.csv").exists()
    result = run(*words, "--burn-in", 1)
    assert result.exit_code == 130 and "no samples were written" in result.stdout and "y2" in result.stdout


def test_interrupted_while_the_samples_are_made(monkeypatch, tmp_path):
    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(SimulatedQueueLaw, "record", stopped)
    (tmp_path / "run.csv").write_text("older")
    result = run("queue", "simulate", "--n", 20, "--beta", 1, "--chains", 16, "--horizon", 50, "--out", tmp_path / "run.csv")
    assert result.exit_code == 130 and "y2" in result.stdout and "no samples were written" in result.stdout
    assert (tmp_path / "run.csv").read_text() == "older"


# ---- what is refused


@pytest.mark.parametrize(("args", "words"), [
    ("exact --beta 1", ["--n"]),
    ("exact --n 4", ["--beta", "--lam"]),
    ("exact --n 4 --beta 1 --lam 0.5", ["--beta and --lam are one parameter"]),
    ("exact --n 25 --beta 0.5 --alpha 400", ["n^alpha must have a double"]),
    ("exact --n 25 --beta 1e-300", ["lam must be below 1"]),
    ("exact --n 4 --beta 1 --observable 1/y2", ["inf at the state (0, 0): it must be finite"]),
    ("exact --n 1 --b 1000 --beta 0.5", ["too deep", "--window auto"]),
    ("exact --n 4 --beta 2", ["n must exceed beta^2 = 4"]),
    ("exact --n 4 --beta 3 --alpha 0.75", ["n^alpha"]),
    ("exact --n 0 --beta 1", ["n must be at least 1"]),
    ("exact --n 4.5 --beta 1", ["--n"]),
    ("exact --n 4 --b -1 --beta 1", ["b must be at least 0"]),
    ("exact --n 4 --b inf --beta 1", ["--b"]),
    ("exact --n 4 --b 1001 --beta 1", ["b must be at most"]),
    ("exact --n 4 --beta 0", ["beta must be"]),
    ("exact --n 4 --beta nan", ["beta must be"]),
    ("exact --n 4 --lam 1", ["lam must be below 1"]),
    ("exact --n 4 --beta 1 --alpha -0.5", ["alpha must not be negative"]),
    ("exact --n 300 --b 4 --beta 1", ["states", "GiB", "a window fits", "--window 11", "--window auto"]),
    ("exact --n 1000000000 --beta 1", ["GiB", "too many servers"]),
    ("exact --n 100 --b 2 --beta 1 --memory 0.0001", ["states", "GiB"]),
    ("exact --n 4 --beta 1 --memory 0", ["memory"]),
    ("exact --n 4 --beta 1 --window wide", ["--window", "auto"]),
    ("exact --n 4 --beta 1 --cap -1", ["cap"]),
    ("exact --n 4 --beta 1 --observable y3", ["y3"]),
    ("exact --n 4 --beta 1 --observable log(y2)", ["log(y2)"]),
    ("exact --n 4 --beta 1 --plot law.docx", ["law.docx"]),
    ("exact --n 4 --beta 1 --out law.csv.gz", ["law.csv.gz"]),
    ("simulate --n 4 --beta 2", ["n must exceed"]),
    ("simulate --n 4", ["--beta"]),
    ("simulate --n 4 --beta 1 --policy best", ["--policy", "power-of-d"]),
    ("simulate --n 4 --beta 1 --d 3", ["--d is for"]),
    ("simulate --n 4 --beta 1 --replacement", ["--replacement is for"]),
    ("simulate --n 4 --beta 1 --policy power-of-d --d 0", ["d must be"]),
    ("simulate --n 4 --beta 1 --policy power-of-d --d 5", ["cannot be drawn"]),
    ("simulate --n 4 --beta 1 --chains 1", ["chains must be at least 2"]),
    ("simulate --n 4 --beta 1 --horizon 0.01", ["shorter than one event"]),
    ("simulate --n 4 --beta 1 --horizon -5", ["horizon"]),
    ("simulate --n 4 --beta 1 --burn-in -1", ["burn_in"]),
    ("simulate --n 4 --beta 1 --start 3,x", ["--start"]),
    ("simulate --n 4 --beta 1 --start 3,4", ["n >= Q_1"]),
    ("simulate --n 4 --beta 1 --every 2", ["--every", "--out"]),
    ("simulate --n 4 --beta 1 --out run.parquet", ["run.parquet"]),
    ("simulate --n 4 --beta 1 --out run.gz", ["run.gz"]),
    ("simulate --n 4 --beta 1 --every 0 --out run.csv", ["every"]),
    ("simulate --n 4 --beta 1 --every 2000 --out run.csv", ["every must not exceed"]),
    ("simulate --n 4 --beta 1 --every 1e-5 --out run.csv", ["--every", "numbers"]),
    ("nonsense", ["nonsense"]),
])  # fmt: skip
def test_bad_arguments(args, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(run("queue", *args.split()), *words)
    assert not list(tmp_path.iterdir())


def test_help():
    result = run("queue")
    assert result.exit_code == 0 and "rdiff queue exact" in result.stdout and "simulate" in result.stdout
    for command in ("exact", "simulate"):
        result = run("queue", command, "--help")
        assert result.exit_code == 0 and f"rdiff queue {command} --n" in result.stdout and "Example" in result.stdout
