"""`rdiff rate`: the theorem from the shell, its JSON, its picture and what it refuses."""

import csv
import math

import numpy as np
import pytest
from cli_tools import refused, run, strict_json
from test_limit import CONSTANTS

import rdiff
from rdiff import plots
from rdiff.rate import rate as study

FIRST = ("y2", "y2**2", "y1*y2", "y1**2", "exp(-y1-y2)")  # the columns of CONSTANTS
ROW = {"n", "observable", "prelimit", "limit", "gap", "scaled_gap", "refined"}
SLOPE = {"observable", "raw", "corrected", "constant", "constant_fitted"}


def rate(*args):
    result = run("rate", *args, "--json")
    assert result.exit_code == 0, result.output
    return strict_json(result.stdout)


def each(names):
    return [word for name in names for word in ("--observable", name)]


@pytest.mark.parametrize(("beta", "ns"), [(1, "64,128,256,512"), (2, "64,128,256,512,1024")])
def test_the_theorem(beta, ns):
    found = rate("--beta", beta, "--b", 2, "--n", ns, *each(FIRST[:4]))
    assert found["schema"] == 1 and found["command"] == "rate" and found["interrupted"] is False
    settings = found["settings"]
    assert settings["beta"] == beta and settings["b"] == 2 and settings["n"] == [int(n) for n in ns.split(",")]
    assert settings["observables"] == list(FIRST[:4]) and settings["method"] is None
    for slope, text in zip(found["slopes"], CONSTANTS[float(beta)], strict=False):
        assert slope.keys() >= SLOPE and slope["constant"] == pytest.approx(float(text), abs=1e-5)
        assert slope["corrected"] == pytest.approx(-0.5, abs=0.05) and slope["refined_slope"] == pytest.approx(-1, abs=0.05)
        assert slope["constant_fitted"] == pytest.approx(slope["constant"], rel=0.02)
        assert slope["raw_stderr"] is None and slope["raw_error"] < 1e-4
    assert len(found["rows"]) == 4 * len(settings["n"])
    for row in found["rows"]:
        assert row.keys() >= ROW and row["stderr"] is None and row["reliable"] is True and 0 < row["error"] < 1e-5
        assert row["gap"] == pytest.approx(row["prelimit"] - row["limit"], abs=1e-14)
        assert row["scaled_gap"] == pytest.approx(math.sqrt(row["n"]) * row["gap"], rel=1e-12)
        assert abs(row["refined_gap"]) < abs(row["gap"])


def test_plain_command_answers():
    result = run("rate")
    assert result.exit_code == 0 and result.stderr == ""
    assert max(map(len, result.stdout.splitlines()[:40])) <= 120
    for word in ("sqrt(n) gap", "6400", "corrected", "fitted C(h)", "-2.4675", "exp(-y1-y2)", "s of log|gap|"):
        assert word in result.stdout
    loss = run("rate", "--b", 0, "--n", "25,100,400")
    assert loss.exit_code == 0 and "y1**2" in loss.stdout and "y2" not in loss.stdout.replace("y1**2", "")


def test_numbers_that_are_not_there_are_null():
    found = rate("--beta", 2, "--n", "64,128", *each(["exp(-y1-y2)", "y2>1"]))
    first, second = found["slopes"]
    assert first["raw"] is None and first["corrected"] is None and "changes sign" in first["notes"][-1]
    assert second["constant"] is None and second["refined_slope"] is None and second["raw"] is not None
    assert [row["refined"] is None for row in found["rows"]] == [False, True] * 2


def test_simulated_with_error_bars(tmp_path):
    args = ["--n", "16,64", "--beta", 2, "--chains", 32, "--horizon", 400, *each(["y1**2"])]
    found = rate(*args, "--plot", tmp_path / "rate.png", "--out", tmp_path / "rate.csv")
    assert found["settings"]["method"] == "simulated" and found["settings"]["chains"] == 32
    exact = rate("--n", "16,64", "--beta", 2, *each(["y1**2"]))
    for row, truth in zip(found["rows"], exact["rows"], strict=True):
        assert row["stderr"] > 0 and abs(row["gap"] - truth["gap"]) < 4.5 * row["stderr"]
    assert (tmp_path / "rate.png").stat().st_size > 10_000
    rows = list(csv.DictReader((tmp_path / "rate.csv").read_text().splitlines()))
    assert [float(row["gap"]) for row in rows] == [row["gap"] for row in found["rows"]]
    assert rate(*args)["rows"] == found["rows"] != rate(*args, "--seed", 1)["rows"]
    assert "stderr" in run("rate", *args).stdout


def test_ctrl_c_keeps_what_was_reached(monkeypatch):
    solve = rdiff.JSQQueue.exact

    def stop(queue, **options):
        if queue.n == 64:
            raise KeyboardInterrupt
        return solve(queue, **options)

    monkeypatch.setattr(rdiff.JSQQueue, "exact", stop)
    result = run("rate", "--n", "16,25,64", "--observable", "y2", "--json")
    assert result.exit_code == 130
    found = strict_json(result.stdout)
    assert found["interrupted"] is True and [row["n"] for row in found["rows"]] == [16, 25]


@pytest.mark.parametrize(("args", "words"), [
    (["--n", "100,25"], ["increase"]), (["--n", "25,25"], ["increase"]), (["--n", "25,100.5"], ["100.5", "whole numbers"]),
    (["--n", ""], ["whole numbers"]), (["--n", "1,25"], ["beta"]), (["--n", "-4"], ["n", "at least 1"]),
    (["--beta", "-1"], ["beta"]), (["--beta", 9], ["beta"]), (["--b", "-1"], ["b must be at least 0"]),
    (["--observable", "y9"], ["y9"]), (["--observable", "log(y2)"], ["log(y2)"]), (["--method", "guess"], ["guess"]),
    (["--states", 0], ["states"]),
    (["--method", "exact", "--chains", 8], ["--chains"]), (["--chains", 1], ["chains"]), (["--plot", "rate.txt"], [".png"]),
    (["--method", "exact", "--n", "3000", "--b", 3, "--beta", 0.1], ["states"]),
])  # fmt: skip
def test_refusals(args, words):
    refused(run("rate", *args), *words)


def test_the_picture(tmp_path, monkeypatch):
    Figure = pytest.importorskip("matplotlib.figure").Figure
    figures, real = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: (figures.append(figure), real(figure, *a, **k))[1])
    h = {"y2": lambda y: y[1], "y1**2": lambda y: y[0] ** 2}
    found = study([25, 100, 400], beta=1.0, h=h)
    plots.rate(tmp_path / "rate.pdf", found)
    gaps, refined = figures[0].axes
    for axis, slope, values in ((gaps, -0.5, "gap"), (refined, -1.0, "refined_gap")):
        assert axis.get_xscale() == axis.get_yscale() == "log"
        curves = [line.get_data() for line in axis.get_lines() if len(line.get_xdata()) == 3]
        guide = curves[-1]
        assert np.allclose(np.diff(np.log(guide[1])) / np.diff(np.log(guide[0])), slope)
        for name in h:
            drawn = np.abs([getattr(row, values) for row in found.of(name)])
            assert any(np.array_equal(y, drawn) for _, y in curves) and np.all(drawn < guide[1])
    styles = {(line.get_marker(), line.get_linestyle()) for line in gaps.get_lines() if line.get_label().startswith("$h$")}
    assert len(styles) == 2
    plots.rate(tmp_path / "jump.png", study([25], beta=1.0, h=lambda y: y[1] > 1))  # one point, nothing refined
    assert len(figures[1].axes) == 1
