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
    result = run("sweep", *QUICK[:4], "--beta", "1,2", "--observable", "y2", "--observable", "log(2 - y1)")
    assert result.exit_code == 1 and "failed at beta=1: observable 'log(2 - y1)' is not finite in chain" in result.stdout
    rows = found("sweep", *QUICK[:4], "--beta", "1,2", "--observable", "log(2 - y1)", code=1)["rows"]
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--beta", "2:1:0.1"], "start:end:step"), (["--beta", "-1"], "beta must be a positive"), (["--b", "-1"], "b must be"),
        (["--beta", "1,1"], "beta=1 twice"), (["--n", "100"], "n is a parameter of the queue"), (["--shard", "5/4"], "shard"),
        (["--solver", "euler"], "solver must be one of"), (["--beta", "1,2", "--b", "1,2,3", "--paired"], "one value a point"),
        (["--out", __file__], "is a file"), (["--observable", "y3"], "names y3"), (["--save", "x.txt"], "must end in"),
        (["--exact", "--dt", "0.1"], "takes beta, b"), (["--beta", "x"], "beta must be a positive"),
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
