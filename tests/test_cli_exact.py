"""`rdiff exact`, the exact limit of `rdiff compare`, and `rdiff bench exact`."""

import csv
import io
import json
import math

import numpy as np
import pytest
from cli_tools import refused, run, strict_json
from test_limit import CONSTANTS, MEANS, SLOPES, TAILS
from test_limit import printed as reference

import rdiff
from rdiff import table
from rdiff.cli import compare as compare_module
from rdiff.cli.exact import digits

SMOOTH = ("y2", "y2**2", "y2**3", "y1*y2", "exp(-y1-y2)")  # the columns of MEANS
FIRST = ("y2", "y2**2", "y1*y2", "y1**2", "exp(-y1-y2)")  # and of CONSTANTS


def printed(text):
    """The number, to a unit of its last digit."""
    value, tolerance = reference(text)
    return pytest.approx(value, abs=tolerance, rel=0)


def exact(*args):
    result = run("exact", *args, "--json")
    assert result.exit_code == 0, result.output
    return strict_json(result.stdout)


def each(option, values):
    return [word for value in values for word in (option, value)]


# ---- the numbers


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_means_and_tails_of_the_reference(beta):
    tails = {x: text for (at, x), text in TAILS.items() if at == beta}
    names = [*SMOOTH, f"(y1-{beta:g})**2"]
    found = exact("--beta", beta, *each("--observable", names), *each("--tail", tails))
    assert found["schema"] == 1 and found["command"] == "exact" and found["settings"]["beta"] == beta
    means = [row["mean"] for row in found["results"]]
    assert means[:-1] == [printed(text) for text in MEANS[beta]]
    assert means[-1] == pytest.approx(1 - beta / 2 * means[0], abs=1e-9)  # Var Y1
    for row, name in zip(found["results"], names, strict=True):
        assert row["observable"] == name and row["stderr"] is None and row["reliable"] and row["cautions"] == []
        assert row["dbeta"] is None and row["constant"] is None and row["refined"] is None
        assert row["ci"] == pytest.approx([row["mean"] - row["error"], row["mean"] + row["error"]], rel=1e-15)
        assert 0 < row["error"] < 1e-8 * max(row["mean"], 1)
    assert [row["x"] for row in found["tail"]] == list(tails)
    assert [row["value"] for row in found["tail"]] == [printed(text) for text in tails.values()]
    assert len(found["identities"]) >= 4
    assert all({"name", "left", "right", "residual"} <= set(i) and i["residual"] < 1e-8 for i in found["identities"])


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_constants_slopes_and_refined_values(beta):
    names = ["y1", *FIRST]
    found = exact("--beta", beta, "--sensitivity", "--constant", "--n", 400, *each("--observable", names))
    rows = {row["observable"]: row for row in found["results"]}
    for name, truth in zip(FIRST, CONSTANTS[beta], strict=True):
        row = rows[name]
        assert row["constant"] == printed(truth), name
        assert row["refined"] == pytest.approx(row["mean"] + row["constant"] / 20, rel=1e-14)
    assert rows["y1"]["dbeta"] == pytest.approx(1, abs=1e-8)
    assert rows["y2"]["dbeta"] == printed(SLOPES[beta])
    if beta == 1.0:  # the queue, exact: E X2 at n = 400; C(h) explains nine tenths of the gap
        queue = 0.6993050204
        assert abs(rows["y2"]["refined"] - queue) < abs(rows["y2"]["mean"] - queue) / 10


@pytest.mark.parametrize(("beta", "truth"), [(0.1, "1.936294"), (0.2, "1.824249"), (0.3, "1.694653")])
def test_small_beta(beta, truth):
    assert beta * exact("--beta", beta, "--observable", "y2")["results"][0]["mean"] == printed(truth)


@pytest.mark.parametrize(("beta", "truth"), [(3, "1.17979"), (4, "1.08239"), (5, "1.04751")])
def test_large_beta(beta, truth):
    phi = math.exp(-(beta**2) / 2) / math.sqrt(2 * math.pi)
    assert exact("--beta", beta, "--observable", "y2")["results"][0]["mean"] / phi == printed(truth)


def test_quantiles():
    found = exact("--quantile", "0.5,1e-60", "--quantile", 0.99, "--tail", 0.7, "--observable", "y2")
    assert [row["p"] for row in found["quantile"]] == [0.5, 1e-60, 0.99]
    law = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    for row in found["quantile"]:
        assert row["value"] == pytest.approx(math.exp(row["log"]), rel=1e-12)
    assert law.tail(found["quantile"][2]["value"]) == pytest.approx(0.01, rel=1e-9)
    assert found["quantile"][1]["log"] < -300


def test_no_buffer():
    found = exact("--b", 0, "--constant", "--sensitivity")
    (row,) = found["results"]
    assert row["observable"] == "y1" and row["mean"] == pytest.approx(1.28759997, abs=1e-8)
    assert all(identity["residual"] < 1e-10 for identity in found["identities"])


def test_deeper_buffer_has_the_same_law():
    one, three = (exact("--b", b, "--observable", "y2")["results"][0] for b in (1, 3))
    assert one["mean"] == three["mean"]


def test_jump_has_no_constant():
    found = exact("--observable", "y2>1", "--observable", "y2", "--constant", "--n", 100)
    jump, smooth = found["results"]
    assert jump["constant"] is None and jump["refined"] is None and "jumps" in jump["cautions"][0]
    assert jump["reliable"] and jump["mean"] == printed("0.2851928528")  # what is shown can be trusted
    assert smooth["refined"] == pytest.approx(0.567313, abs=1e-6) and smooth["cautions"] == []


# ---- what is printed


def test_table_and_files(tmp_path):
    words = ["--observable", "y2", "--observable", "y2>1", "--constant", "--n", 100, "--tail", 1, "--quantile", 0.5]
    result = run("exact", *words, "--out", tmp_path / "e.csv")
    assert result.exit_code == 0 and result.stderr == "", result.output
    for text in ("0.81405966", "-2.467468", "0.5673127", "0.28519285", "0.3929492997", "E Y1 Y2 = beta/2 E Y2", "error"):
        assert text in result.stdout
    assert "second derivatives" in result.stdout and result.stdout.count("C(h) needs") == 1
    rows = list(csv.DictReader(io.StringIO((tmp_path / "e.csv").read_text())))
    assert [row["observable"] for row in rows] == ["y2", "y2>1"] and float(rows[0]["mean"]) == pytest.approx(0.814059663)
    assert run("exact", *words, "--out", tmp_path / "e.json", "--json").exit_code == 0
    assert len(strict_json((tmp_path / "e.json").read_text())["tail"]) == 1


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.8140596634, 1.5e-10, "0.81405966340"),
        (1.0, 5e-11, "1.00000000000"),
        (6.2656e-9, 5.6e-16, "6.26560000e-09"),
        (1.0, 0.2, "1.0"),
        (-4e-14, 5e-11, "0 +- 5e-11"),
        (math.nan, math.inf, "-"),
        (None, None, "-"),
    ],
)
def test_digits(value, error, text):
    assert digits(value, error) == text


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    law, f = tmp_path / "law.png", tmp_path / "f.svg"
    result = run("exact", "--observable", "y2", "--plot", law, "--plot-f", f)
    assert result.exit_code == 0 and "0.81405966" in result.stdout, result.output
    assert law.read_bytes().startswith(b"\x89PNG") and "<svg" in f.read_text()
    here, there = (exact("--observable", "y2", *more)["settings"] for more in ([], ["--plot-f", f]))
    assert here == there


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("--beta 0", "beta must"),
        ("--beta -1", "beta must"),
        ("--beta nan", "beta"),
        ("--beta 0.001", "[0.01, 6]"),
        ("--beta 7", "[0.01, 6]"),
        ("--b -1", "b must"),
        ("--b inf", "--b"),
        ("--quantile 0", "between 0 and 1"),
        ("--quantile 1", "between 0 and 1"),
        ("--quantile 0.5,-2", "-2"),
        ("--quantile nan", "between 0 and 1"),
        ("--tail nan", "real"),
        ("--tail a", "--tail"),
        ("--b 0 --tail 1", "no Y2"),
        ("--b 0 --quantile 0.5", "no Y2"),
        ("--b 0 --observable y2", "only y1"),
        ("--n 0", "n must"),
        ("--beta 3 --n 9", "beta^2"),
        ("--n 2.5", "--n"),
        ("--observable exp(y2)", "exp(y2)"),
        ("--observable y2 --observable exp(y1**2/2)", "exp(y1**2/2)"),
        ("--observable 1/y1", "finite"),
        ("--observable y4", "y4"),
        ("--observable y1+", "y1+"),
        ("--plot p.docx", "p.docx"),
        ("--plot-f nowhere/p.png", "nowhere"),
        ("--out x.txt", "x.txt"),
        ("--dt 0.1", "--dt"),
        ("stray", "stray"),
    ],
)
def test_bad_input(args, words):
    refused(run("exact", *args.split()), words)


def test_negative_x_is_certain():
    assert exact("--observable", "y1", "--tail", "-1,0,1e6")["tail"] == [
        {"x": -1.0, "value": 1.0}, {"x": 0.0, "value": 1.0}, {"x": 1e6, "value": 0.0}]  # fmt: skip


# ---- compare


def sample(tmp_path, beta=None):
    """A sample of nothing in particular, at n = 100, b = 1."""
    rng = np.random.default_rng(1)
    rows = np.stack([100 - rng.integers(0, 20, 200), rng.integers(0, 10, 200)], axis=1)
    file = tmp_path / "run.csv"
    np.savetxt(file, rows, "%d", delimiter=",", header="Q1,Q2", comments="")
    words = ["compare", file, "--n", 100, "--columns", "Q1:Q2", "--weights", "regular", "--observable", "y2"]
    return [*words, "--beta", beta] if beta else words


def test_compare_is_exact_by_default():
    found = strict_json(run("compare", "--json").stdout)
    rows = {row["observable"]: row for row in found["results"]}
    settings = found["settings"]
    assert settings["limit"] == "exact" and settings["dt"] is None and settings["seed"] is None
    assert rows["y2"]["limit"] == printed("0.814059663") and rows["y2>1"]["limit"] == printed("0.2851928528")
    assert rows["y2"]["stderr"] == rows["y2"]["prelimit_stderr"] and rows["y2"]["z"] < -10
    # C(h) halves the gap at least, up to the error of the sample
    assert rows["y2"]["refined"] == pytest.approx(0.567313, abs=1e-6)
    assert abs(rows["y2"]["prelimit"] - rows["y2"]["refined"]) < abs(rows["y2"]["difference"]) / 2
    assert rows["y2>1"]["refined"] is None


def test_compare_says_what_refined_is():
    result = run("compare", "--observable", "y2", "--observable", "y2>1", "--limit", "exact")
    assert result.exit_code == 0 and "C(h)/sqrt(n)" in result.stdout and "no refined value for y2>1" in result.stdout


def test_endless_buffer(tmp_path):
    found = strict_json(run(*sample(tmp_path, 1), "--b", "inf", "--json").stdout)
    assert found["results"][0]["limit"] == printed("0.814059663")


@pytest.mark.parametrize("words", [["--chains", 64, "--horizon", 20], ["--limit", "simulated", "--horizon", 5]])
def test_simulated_when_asked(tmp_path, words):
    found = strict_json(run(*sample(tmp_path, 1), *words, "--json").stdout)
    settings = found["settings"]
    assert settings["limit"] == "simulated" and settings["dt"] == 0.1 and settings["seed"] == 0
    assert settings["horizon"] == words[-1] and settings["chains"] == (64 if "--chains" in words else 4096)
    assert found["results"][0]["limit_stderr"] > 0 and found["results"][0]["refined"] is None


def test_beta_out_of_range_is_simulated_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr(compare_module, "SIMULATION", {"dt": 0.1, "chains": 64, "horizon": 20.0})
    result = run(*sample(tmp_path, 7), "--json")
    assert result.exit_code == 0, result.output
    assert strict_json(result.stdout)["settings"]["limit"] == "simulated"
    assert "note: the limit is simulated: beta must lie in [0.01, 6]" in result.stderr
    refused(run(*sample(tmp_path, 7), "--limit", "exact"), "[0.01, 6]")


def test_steps_of_an_exact_limit_are_refused():
    refused(run("compare", "--limit", "exact", "--dt", 0.1), "--dt", "simulated")


def test_growth_is_refused_and_not_simulated():
    refused(run("compare", "--observable", "exp(y2)"), "tail")


# ---- bench


def test_bench():
    from rdiff.bench import benchmark

    measure = benchmark("exact")
    result = measure.run(betas=(1.0, 2.0), grid=3, repetitions=1, chains=64, horizon=20.0)
    json.dumps(result, allow_nan=False)
    rows = result["rows"]
    assert [row["kind"] for row in rows] == ["beta", "beta", "h", "grid", "simulated"]
    assert all(row["value"] > 0 for row in rows)
    assert all(row["error"] <= measure.ACCURACY for row in rows if row["kind"] != "simulated")
    assert all(row["other"] < 1e-8 for row in rows[:2])  # the two methods agree
    slow = rows[-1]
    assert slow["value"] == pytest.approx(slow["seconds"] * (slow["stderr"] / slow["error"]) ** 2)
    assert slow["mean"] == pytest.approx(0.81406, abs=6 * slow["stderr"]) and slow["ratio"] > 1e3
    text = "\n".join(table.text(part) for part in measure.table(result))
    assert "extrapolated" in text and "further h" in text
