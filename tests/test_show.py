"""`rdiff show` and `load`: every file that the commands write is shown again, and what is none is refused."""

import json

import numpy as np
import pytest
from cli_tools import refused, run, strict_json

import rdiff

SMALL = ["--chains", "32", "--horizon", "20", "--observable", "y2", "--observable", "y2>1"]
COMMANDS = {
    "average": ["average", *SMALL, "--seed", 5],
    "exact": ["exact", "--observable", "y2", "--tail", 1],
    "compare": ["compare", "--observable", "y2"],
    "queue": ["queue", "exact", "--n", 16, "--beta", 1, "--observable", "y2"],
    "rate": ["rate", "--n", "25,64,100", "--observable", "y2"],
    "distance": ["distance", "--n", "16,25"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_results_are_shown_again(name, tmp_path):
    words = COMMANDS[name]
    written = strict_json(run(*words, "--out", tmp_path / "a.csv", "--json").stdout)
    (tmp_path / "a.json").write_text(json.dumps(written))
    rows = written.get("results", written.get("rows"))
    for ending in ("json", "csv"):
        shown = run("show", tmp_path / f"a.{ending}")
        assert shown.exit_code == 0 and shown.stderr == "", shown.output
        for row in rows:
            assert str(row.get("observable", row.get("n"))) in shown.stdout
        assert f"version = {rdiff.__version__}" in shown.stdout and "device = cpu" in shown.stdout
        assert "…" not in shown.stdout
        told = strict_json(run("show", tmp_path / f"a.{ending}", "--json").stdout)
        assert told["settings"] == written["settings"]
        found = told.get("results", told.get("rows"))
        for one, other in zip(found, rows, strict=True):
            assert all(one[key] == value for key, value in other.items() if key != "notes")
    if name == "average":
        assert rdiff.load(tmp_path / "a.json").settings["seed"] == 5


def test_the_numbers_of_a_table(tmp_path):
    run(*COMMANDS["exact"], "--out", tmp_path / "a.json")
    shown = run("show", tmp_path / "a.json").stdout
    tail = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0)).tail(1.0)
    assert "0.814059663" in shown and f"{tail:.5g}" in shown and "tail" in shown


def test_cautions_are_said(tmp_path):
    run("average", "--chains", 4, "--horizon", 5, "--observable", "y2", "--out", tmp_path / "a.json")
    assert "not reliable (y2)" in run("show", tmp_path / "a.json").stdout


def test_from_one_format_to_another(tmp_path):
    run(*COMMANDS["average"], "--out", tmp_path / "a.json")
    for source, target in (("a.json", "b.csv"), ("b.csv", "c.json"), ("c.json", "d.tex")):
        assert run("show", tmp_path / source, "--out", tmp_path / target).exit_code == 0
    first, last = (rdiff.load(tmp_path / name) for name in ("a.json", "c.json"))
    assert first.rows == last.rows and first.settings == last.settings
    assert r"\begin{tabular}" in (tmp_path / "d.tex").read_text()


def test_a_saved_result_hands_itself_on(tmp_path):
    pytest.importorskip("pandas"), pytest.importorskip("xarray")
    estimates = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0)).expect({"y2": lambda y: y[1], "y1": lambda y: y[0]})
    estimates.to_json(tmp_path / "a.json")
    found = rdiff.load(tmp_path / "a.json")
    assert found.to_pandas().equals(estimates.to_pandas())
    assert found.to_xarray().equals(estimates.to_xarray())
    assert found.to_xarray().attrs == estimates.to_xarray().attrs
    assert json.loads(found.to_json()) == json.loads(estimates.to_json())


def test_columns_of_numbers(tmp_path):
    for name in ("p.csv", "p.npz", "p.json"):
        assert run("path", "--paths", 2, "--points", 10, "--horizon", 5, "--out", tmp_path / name).exit_code == 0
        shown = run("show", tmp_path / name)
        assert shown.exit_code == 0 and "columns of numbers" in shown.stdout
    values = np.load(tmp_path / "p.npz")["values"]
    rows = {row["name"]: row for row in rdiff.load(tmp_path / "p.csv").rows}
    assert rows["y2"]["max"] == pytest.approx(values[..., 1].max(), rel=1e-6) and rows["y2"]["numbers"] == values[..., 1].size
    assert rdiff.load(tmp_path / "p.json").rows[1]["mean"] == pytest.approx(values[..., 1].mean(), rel=1e-6)
    words = ["queue", "simulate", "--n", 16, "--beta", 1, "--chains", 4, "--horizon", 20]
    for name in ("s.csv.gz", "s.npz"):
        assert run(*words, "--out", tmp_path / name).exit_code == 0
        assert "Q1" in run("show", tmp_path / name).stdout or name == "s.npz"


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("a.json", "{", "damaged"), ("a.json", "[1]", "schema"), ("a.json", "{}", "schema"), ("a.json", "\xff", "damaged"),
        ("a.csv", "", "damaged"), ("a.csv", "observable,mean\n", "no rows"), ("a.csv", "a,b\n1\n", "damaged"),
        ("a.csv", "a,b\nx,y\n", "damaged"), ("a.npz", "PK", "damaged"), ("a.csv.gz", "a,b\n", "damaged"),
        ("a.txt", "", ".json"), ("a.csv", "observable,mean,settings\ny2,1,{\n", "damaged"),
        ("a.json", '{"schema": 1, "command": "path"}', "damaged"), ("a.json", '{"schema": 1, "results": 3}', "no rows"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_rdiff(tmp_path, name, text, word):
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    refused(run("show", tmp_path / name), name, word)


def test_no_file():
    refused(run("show", "nowhere.json"), "nowhere.json")
