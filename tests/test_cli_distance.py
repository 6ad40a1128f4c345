"""`rdiff distance`."""

import csv
import subprocess
import sys

import pytest
from cli_tools import refused, run, strict_json


def test_json_is_the_librarys_answer():
    from rdiff.distances.along import distance

    done = run("distance", "--n", "16,64", "--beta", 1, "--json")
    assert done.exit_code == 0, done.output
    answer, expected = strict_json(done.stdout), distance([16, 64], beta=1.0).to_dict()
    assert answer["schema"] == 1 and answer["settings"]["n"] == [16, 64] and answer["settings"]["b"] == 1
    assert answer["rows"] == expected["rows"] and answer["limit"] == expected["limit"]
    assert [round(row["scaled_M2"], 3) for row in answer["rows"]] == [1.993, 2.238]
    assert answer["limit"]["d_M2"] > 2.4 and 0.1 < answer["limit"]["d_M2_error"] < 1  # of two points


def test_table_files_and_picture(tmp_path):
    done = run("distance", "--n", "16,64", "--b", 2, "--out", tmp_path / "d.csv", "--plot", tmp_path / "d.svg")
    assert done.exit_code == 0, done.output
    assert "b = 2" in done.stdout and "limit" in done.stdout and "E X_i over i >= 3" in done.stdout
    assert done.stderr == ""  # no progress: nobody looks
    with open(tmp_path / "d.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["n"] for row in rows] == ["16", "64"] and float(rows[0]["remainder"]) > 0
    picture = (tmp_path / "d.svg").read_text()
    assert picture.lstrip().startswith("<?xml") and len(picture) > 10_000


def test_loss_system(tmp_path):
    done = run("distance", "--n", "16", "--b", 0, "--plot", tmp_path / "d.png", "--out", tmp_path / "d.json")
    assert done.exit_code == 0, done.output
    assert "X2" not in done.stdout
    answer = strict_json((tmp_path / "d.json").read_text())
    assert answer["limit"]["d_M2"] is None and "w1_2" not in answer["rows"][0]
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


def test_interrupted_prints_what_was_reached(monkeypatch):
    from rdiff.distances import along

    calls, between = [], along.distance_between

    def stopped(*laws):
        calls.append(laws)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return between(*laws)

    monkeypatch.setattr(along, "distance_between", stopped)
    done = run("distance", "--n", "16,64", "--json")
    assert done.exit_code == 130
    answer = strict_json(done.stdout)
    assert answer["interrupted"] is True and [row["n"] for row in answer["rows"]] == [16]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--n", "16,x"], ["whole numbers"]),
        (["--n", "64,16"], ["increasing"]),
        (["--n", "1,16"], ["n must exceed beta^2"]),
        (["--n", "16", "--beta", "-1"], ["beta must be"]),
        (["--n", "16", "--b", "-1"], ["b must be"]),
        (["--n", "16", "--plot", "nowhere.txt"], [".png"]),
    ],
)
def test_bad_input_is_one_line(arguments, words):
    refused(run("distance", *arguments), *words)


def test_help_starts_without_the_numerical_libraries():
    code = (
        "import sys; from rdiff.cli import distance; from click.testing import CliRunner; "
        "assert CliRunner().invoke(distance.distance, ['--help']).exit_code == 0; "
        "sys.exit(any(name in sys.modules for name in ('scipy.optimize', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
