"""A first look at a file: what it is taken for, and that the command it prints works."""

import math
import shlex

import numpy as np
import pytest
import queue_by_hand as by_hand
from cli_tools import run, save, strict_json
from click.testing import CliRunner

from rdiff.cli.inspect import inspect
from rdiff.errors import InputError
from rdiff.queue.inspect import inspect_file
from rdiff.queue.read import read_samples

N, B, LAM = 25, 1, 0.8


@pytest.fixture(scope="module")
def log():
    times, lengths, _ = by_hand.simulate(N, B, LAM, 200.0, 7)
    return times, lengths, by_hand.occupancy(lengths, B + 1)


@pytest.fixture(scope="module")
def grid():
    return by_hand.on_a_grid(N, B, LAM, 2.0, 400, 20, 1)


def follow(found):
    """The command that was printed, run."""
    assert found.command is not None, found
    words = shlex.split(found.command)
    assert words[:2] == ["rdiff", "compare"]
    result = run(*words[1:], "--observable", "y1", "--json")
    assert result.exit_code == 0, result.output
    return strict_json(result.stdout)


def states(q):
    return {f"Q{i + 1}": level for i, level in enumerate(q.T)}


def test_event_rows(log, tmp_path):
    times, lengths, q = log
    path = save(tmp_path, {"t": times, **states(q)})
    found = inspect_file(path, n=N, beta=1.0)
    assert dict(found.options) == {
        "n": N, "b": B, "beta": 1.0, "columns": "Q1:Q2", "time_column": "t", "weights": "time",
    }  # fmt: skip
    assert [c.role for c in found.columns] == ["time", "state", "state"] and found.columns[1].kind == "integers"
    assert found.rows == len(times) and len(found.checks) == 2 and all(check.ok for check in found.checks)
    follow(found)
    # as lengths of servers, where n shows
    found = inspect_file(save(tmp_path, {"t": times} | {f"s{k}": x for k, x in enumerate(lengths.T)}))
    assert found.options["format"] == "lengths" and found.options["n"] == N and found.options["lam"] == "estimated"
    assert follow(found)["settings"]["beta_stderr"] > 0


def test_grids(grid, tmp_path):
    times = 2.0 * np.arange(len(grid))
    for columns, given, expected in [
        ({"t": times, **states(grid)}, {"n": N}, {"weights": "regular", "columns": "Q1:Q2"}),
        (states(grid), {"n": N}, {"weights": "regular", "columns": "Q1:Q2"}),
        ({"Q0": np.full(len(grid), N), **states(grid)}, {}, {"n": N, "b": B, "columns": "Q1:Q2"}),
        ({"one": np.ones(len(grid)), **states(grid / N)}, {}, {"n": N, "format": "fractions"}),
        ({**states(np.stack([N - grid[:, 0], grid[:, 1]], axis=1) / 5)}, {"n": N}, {"format": "scaled"}),
        ({"t": times, "run": np.repeat([0, 1], 200), **states(grid)}, {"n": N}, {"chain_column": "run"}),
        ({"t": times, "Q": grid}, {"n": N}, {"columns": "Q", "time_column": "t"}),
    ]:
        found = inspect_file(save(tmp_path, columns, "run.npz" if "Q" in columns else "run.csv"), **given)
        assert expected.items() <= dict(found.options).items(), found
        assert all(check.ok for check in found.checks) and found.checks
        assert follow(found)["results"]


def test_customers(tmp_path):
    rng = np.random.default_rng(0)
    arrival = np.sort(rng.uniform(0, 400, 4000))
    leave = np.array([f"{x:.6f}" for x in arrival + rng.exponential(0.1, 4000)])
    leave[-2:] = ""
    path = save(tmp_path, {"id": np.arange(4000), "arrival_date": arrival, "exit_date": leave, "node": np.arange(4000) % 25})
    found = inspect_file(path, b=math.inf)
    assert found.options["format"] == "customers" and found.options["n"] == 25
    assert found.options["columns"] == "arrival_date,exit_date,node"
    follow(found)


def test_where_nothing_is_found(tmp_path, grid):
    for columns, given, word in [
        ({"a": ["x", "y"], "b": ["z", "w"]}, {}, "no column holds numbers"),
        (states(grid), {}, "n is not known"),
        ({"u": np.linspace(-1, 1, 50) ** 2, "v": np.linspace(-1, 0, 50)}, {"n": 4}, "look like no states"),
        ({"Q1": [4, 3] * 50, "Q2": [0, 0] * 50}, {"n": 4}, "written at events"),
        ({"t": np.arange(100.0), "Q1": [9, 8] * 50, "Q2": [0, 1] * 50}, {"n": 4}, "it is refused: "),
        ({"Q1": ["4", ""] * 50, "Q2": [1, 2] * 50}, {"n": 4}, "text or missing cells: Q1"),
    ]:  # fmt: skip
        found = inspect_file(save(tmp_path, columns), **given)
        assert found.options is None or word.startswith("text"), found
        assert any(word in note for note in found.notes), found
        assert (found.command is None) == (found.options is None)
    for path, word in [(tmp_path / "none.csv", "No such file"), (save(tmp_path, {}, "empty.csv"), "no rows")]:
        with pytest.raises(InputError, match=word):
            inspect_file(path)


def test_files_of_other_simulators(data):
    ciw = inspect_file(data / "ciw_loadbalancing_n25.csv", n=25, beta=1)
    assert ciw.options["format"] == "lengths" and ciw.options["columns"] == "node_2:node_26" and ciw.options["burn_in"] > 0
    assert all(check.ok for check in ciw.checks)
    pod = inspect_file(data / "pod_n64.csv", beta=1.0)
    assert pod.options["n"] == 64 and pod.options["b"] == 3 and pod.options["columns"] == "s_1:s_4"
    assert pod.checks[0].ok and "not JSQ" in pod.checks[1].cause
    means = inspect_file(data / "rmf_tool" / "exp_rho95_d4_N100.npy", lam=0.95)
    assert means.options["averages"] and means.options["n"] == 100 and all(check.ok for check in means.checks)
    assert follow(means)["results"]
    broken = inspect_file(data / "rmf_tool" / "exp_rho90_d2_N10_NEW.npy", lam=0.9)
    assert broken.command is None and any("row 1050 and 9 more" in note for note in broken.notes)
    assert read_samples(data / "pod_n64.csv", **pod.options).n == 64


def test_command_line(log, tmp_path):
    times, _, q = log
    path = save(tmp_path, {"t": times, **states(q)}, "my run.csv")
    shown = CliRunner().invoke(inspect, [str(path), "--n", "25", "--beta", "1"])
    assert shown.exit_code == 0, shown.output
    for word in ("guess: t is the time", "E Q1 = n lam", "my run.csv'", "taken as"):
        assert word in shown.stdout
    payload = strict_json(CliRunner().invoke(inspect, [str(path), "--n", "25", "--b", "inf", "--lam", "0.8", "--json"]).stdout)
    assert payload["options"]["b"] == "inf" and payload["columns"][0]["name"] == "t"
    assert payload["schema"] == 1 and len(payload["checks"]) == 2
