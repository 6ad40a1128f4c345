"""`rdiff sweep` and `rdiff merge`."""

import csv

import numpy as np
import pytest
from cli_tools import refused, run, strict_json

from rdiff.sweeps.result import Sweep
from rdiff.sweeps.tasks import Task

QUICK = ["--chains", 32, "--horizon", 20, "--beta", "0.5:2:0.5", "--observable", "y2"]


def found(*words, code=0):
    result = run(*words, "--json")
    assert result.exit_code == code, result.output
    return strict_json(result.stdout)


def test_a_grid():
    answer = found("sweep", *QUICK)
    assert answer["schema"] == 1 and answer["command"] == "sweep" and answer["interrupted"] is False
    assert answer["settings"]["horizon"] == 20.0 and answer["settings"]["law"] == "simulated"
    assert [row["beta"] for row in answer["rows"]] == [0.5, 1.0, 1.5, 2.0]
    row = answer["rows"][0]
    assert row["observable"] == "y2" and row["stderr"] > 0 and row["ci"][0] < row["mean"] < row["ci"][1]
    assert row["failed"] is None and row["ess"] > 0
    assert found("sweep", *QUICK, "--seed", 1)["rows"] != answer["rows"]
    assert found("sweep", *QUICK, "--batch", 1)["rows"] == answer["rows"]


def test_a_table():
    result = run("sweep", *QUICK)
    assert result.exit_code == 0 and [line.split()[:2] for line in result.stdout.splitlines()[2:6]] == [
        ["0.5", "y2"], ["1.0", "y2"], ["1.5", "y2"], ["2.0", "y2"],
    ]  # fmt: skip


def test_exact_laws():
    rows = found("sweep", "--beta", "0.5,1", "--b", 2, "--exact", "--observable", "y2")["rows"]
    assert np.allclose([row["mean"] for row in rows], [2.84361201, 0.814059663], rtol=1e-8)
    assert [(row["b"], row["stderr"]) for row in rows] == [(2, None)] * 2
    rows = found("sweep", "--n", "25,100", "--exact", "--observable", "y2")["rows"]
    assert np.allclose([row["mean"] for row in rows], [0.4318311140, 0.5998094576], rtol=1e-9)


def test_parts_are_merged(tmp_path):
    whole = found("sweep", *QUICK)
    for part, missing in (("1/2", 2), ("2/2", 0)):
        found("sweep", *QUICK, "--out", tmp_path / "points", "--shard", part)
        merged = found("merge", tmp_path / "points", code=1 if missing else 0)
        assert len(merged["missing"]) == missing
    assert merged["rows"] == whole["rows"] and merged["command"] == "merge"
    refused(run("sweep", *QUICK, "--out", tmp_path / "points", "--dt", 0.05), "other settings", "dt was 0.1, now 0.05")
    refused(run("merge", tmp_path), "sweep.json is not there")


@pytest.mark.parametrize("command", ["merge", "show"])
def test_what_is_shown_of_a_folder(command, tmp_path):
    words = ["sweep", "--exact", "--observable", "y2", "--out", tmp_path / "points"]
    found(*words, "--beta", "1,2", "--shard", "1/2")
    part = run(command, tmp_path / "points")
    assert part.exit_code == 1 and "1 of 2 points are not done: beta=2" in part.stdout and "0.81405966" in part.stdout
    assert "Exit code 1" in " ".join(run(command, "--help").stdout.split())
    found(*words, "--beta", "3,4")
    whole = run(command, tmp_path / "points")
    assert whole.exit_code == 0 and "holds 1 more points that are done, of grids asked for before" in whole.stderr


def test_files(tmp_path):
    whole = found("sweep", *QUICK, "--save", tmp_path / "a.csv")
    with open(tmp_path / "a.csv") as file:
        assert [float(row["mean"]) for row in csv.DictReader(file)] == [row["mean"] for row in whole["rows"]]
    found("sweep", *QUICK, "--save", tmp_path / "a.npz")
    for name in ("a.csv", "a.npz"):
        assert Sweep.load(tmp_path / name).mean().tolist() == [row["mean"] for row in whole["rows"]]
    found("sweep", *QUICK, "--save", tmp_path / "a.json")
    assert strict_json((tmp_path / "a.json").read_text())["rows"] == whole["rows"]


def test_a_grid_file(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text('observables = ["y2"]\n[grid]\nbeta = "0.5:2:0.5"\nchains = 32\nhorizon = 20\n')
    assert found("sweep", path)["rows"] == found("sweep", *QUICK)["rows"]
    path.write_text("paired = true\nexact = true\n[grid]\nbeta = [0.5, 1]\nb = [1, 2]\n")
    rows = found("sweep", path, "--observable", "y1", "--beta", "0.7,0.9")["rows"]
    assert [(row["beta"], row["b"], round(row["mean"], 8)) for row in rows] == [(0.7, 1, 0.7), (0.9, 2, 0.9)]


def test_a_failed_point_is_told_and_the_exit_code_is_1():
    words = ["sweep", *QUICK[:4], "--beta", "1,2", "--observable", "y2", "--observable", "log(2 - y1)"]
    result = run(*words)
    assert result.exit_code == 1 and "failed at beta=1: observable 'log(2 - y1)' is not finite in chain" in result.stdout
    rows = found(*words, code=1)["rows"]
    assert rows[0]["mean"] is None and "not finite" in rows[0]["failed"]


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    work, calls = Task.run, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return work(self, *args)

    monkeypatch.setattr(Task, "run", interrupted)
    result = run("sweep", *QUICK, "--batch", 1, "--out", tmp_path / "points")
    assert result.exit_code == 130 and "goes on from here" in result.stdout and "2 of 4 points are not done" in result.stdout
    monkeypatch.undo()
    assert found("sweep", *QUICK, "--out", tmp_path / "points")["rows"] == found("sweep", *QUICK)["rows"]


@pytest.mark.parametrize("words", [["sweep", *QUICK], ["average", "--chains", 32], ["sweep", "--exact"], ["merge", "."]])
def test_ctrl_c_before_anything_is_done_says_what_was_asked(words, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for module in ("rdiff.sweeps.sweep.points", "rdiff.sweeps.sweep.manifest", "rdiff.averages._plan"):
        monkeypatch.setattr(module, interrupted)
    answer = found(*words, code=130)
    assert answer["schema"] == 1 and answer["command"] == words[0] and answer["interrupted"] is True
    assert answer["settings"]["level"] == 0.95 and answer["settings"].get("chains") in ([32], 32, None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--beta", "2:1:0.1"], "start:end:step"), (["--beta", "-1"], "beta must be a positive"), (["--b", "-1"], "b must be"),
        (["--beta", "1,1"], "beta=1 twice"), (["--n", "100"], "--n: queues are computed"), (["--shard", "5/4"], "shard"),
        (["--solver", "euler"], "solver must be one of"), (["--beta", "1,2", "--b", "1,2,3", "--paired"], "one value a point"),
        (["--out", __file__], "is a file"), (["--observable", "y3"], "names y3"), (["--save", "x.txt"], "must end in"),
        (["--exact", "--dt", "0.1", "--seed", "0"], "--dt, --seed: of no use to --exact"), (["--beta", "x"], "a positive"),
        (["--beta", "1", "--beta", "2"], "'--beta': given 2 times"), (["--beta", "0:1e9:1"], "1,000,000,001 values"),
        (["--b", "5000"], "b must be at most 1000"), (["--checkpoint", "nan"], "checkpoint must be seconds"),
    ],
)  # fmt: skip
def test_refusals(words, said):
    refused(run("sweep", *words), said)


def test_bad_grid_files(tmp_path):
    path = tmp_path / "grid.toml"
    for text, said in [
        ("beta = 1", "[grid]"),
        ("[grid", "no TOML"),
        ("seed = 1.5\n[grid]\nbeta = 1", "seed must be an integer"),
        ("exact = true\n[grid]\ndt = 0.1", "dt in"),
        ("[grid]\nn = 100", "n in"),
    ]:
        path.write_text(text)
        refused(run("sweep", path), said)
    refused(run("sweep", tmp_path / "none.toml"), "does not exist")


def test_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    file = tmp_path / "sweep.png"
    assert found("sweep", "--beta", "0.5,1,2", "--exact", "--plot", file)["rows"] and file.stat().st_size > 10_000
    for words, seen in ((["--beta", "0.5,1", "--b", "1,2"], "beta, b"), ([], "none")):
        refused(run("sweep", "--exact", *words, "--plot", file), f"the one parameter that varies, got {seen}")
