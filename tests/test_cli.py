"""The command line: what it prints and how it ends. What it refuses is in `test_cli_refusals.py`."""

import csv
import gzip
import io
import math
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from cli_tools import SMALL, refused, run, shell, strict_json

import rdiff

SAMPLE = Path(rdiff.__file__).parent / "data" / "jsq_n100_b2_beta1.csv.gz"


# ---- what there is


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_help(args):
    result = run(*args)
    assert result.exit_code == 0 and result.stderr == ""
    for command in ("average", "exact", "queue", "compare", "rate", "distance", "path", "bench"):
        assert f"rdiff {command}" in result.stdout


@pytest.mark.parametrize("command", ["average", "exact", "queue", "compare", "rate", "distance", "path", "bench"])
def test_help_of_a_command(command):
    result = run(command, "--help")
    assert result.exit_code == 0 and "Example" in result.stdout and f"rdiff {command} " in result.stdout


def test_version():
    result = run("--version")
    assert result.exit_code == 0 and result.stdout.startswith("rdiff, version ")


def test_module_runs_and_help_does_not_start_jax():
    result = shell("--help")
    assert result.returncode == 0 and "rdiff average" in result.stdout
    code = "import sys, rdiff\nfrom rdiff.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    code += "assert not {'jax', 'numpy', 'rich', 'diffrax'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---- average


def test_average_json():
    result = run("average", *SMALL, "--observable", "y2", "--observable", "y2>1", "--seed", 3, "--level", 0.9, "--json")
    assert result.exit_code == 0, result.output
    found = strict_json(result.stdout)
    assert found["schema"] == 1 and found["interrupted"] is False
    settings = found["settings"]
    assert settings["beta"] == 1.0 and settings["b"] == 1 and settings["seed"] == 3 and settings["chains"] == 64
    assert settings["solver"] == "bridge-heun" and settings["burn_in"] > 0 and settings["observables"] == ["y2", "y2>1"]
    assert [row["observable"] for row in found["results"]] == ["y2", "y2>1"]
    for row, truth in zip(found["results"], [0.814059663, 0.2851928528], strict=True):
        assert {"mean", "stderr", "ci", "reliable", "ess", "rhat", "bias"} <= set(row)
        assert row["ci"][0] < row["mean"] < row["ci"][1] and row["level"] == 0.9
        assert abs(row["mean"] - truth) < 5 * row["stderr"] + 0.001


def test_average_is_reproducible_and_seeded():
    first, again, other = (run("average", *SMALL, "--seed", seed, "--json").stdout for seed in (1, 1, 2))
    assert first == again
    assert strict_json(first)["results"][0]["mean"] != strict_json(other)["results"][0]["mean"]


def test_average_table_and_files(tmp_path):
    result = run("average", *SMALL, "--out", tmp_path / "a.csv")
    assert result.exit_code == 0, result.output
    for name in ("y1", "y2", "y1*y2", "y2>1", "stderr", "95% interval"):
        assert name in result.stdout
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [row["observable"] for row in rows] == ["y1", "y2", "y1*y2", "y2>1"]
    assert float(rows[1]["mean"]) > 0 and ";" in rows[1]["ci"]
    assert run("average", *SMALL, "--out", tmp_path / "a.json").exit_code == 0
    assert strict_json((tmp_path / "a.json").read_text())["schema"] == 1


def test_average_of_the_loss_system():
    result = run("average", "--b", 0, *SMALL, "--solver", "bridge-euler", "--json")
    assert result.exit_code == 0, result.output
    (row,) = strict_json(result.stdout)["results"]
    assert row["observable"] == "y1" and abs(row["mean"] - 1.28759997) < 5 * row["stderr"] + 0.02


def test_average_x64():
    result = run("average", *SMALL, "--x64", "--y0", "0.5,0.25", "--json")
    assert result.exit_code == 0, result.output
    assert strict_json(result.stdout)["settings"]["dtype"] == "float64"


def test_average_too_short_says_so():
    result = run("average", "--chains", 4, "--horizon", 5)
    assert result.exit_code == 0 and "not reliable" in result.stdout
    lines = result.stdout.splitlines()
    notes = [line for line in lines if line.startswith("not reliable")]
    assert len(notes) >= 2 and lines[-len(notes) :] == notes  # a line each, under the table
    result = run("average", "--chains", 4, "--horizon", 5, "--json")
    assert not any(row["reliable"] for row in strict_json(result.stdout)["results"])


@pytest.fixture
def ctrl_c(monkeypatch):
    """Ctrl-C after a number of chunks of the engine."""
    from rdiff import engine

    real = engine.run

    def press_after(chunks):
        def stopped(*args, **kwargs):
            for count, state in enumerate(real(*args, **kwargs)):
                if count == chunks:
                    signal.raise_signal(signal.SIGINT)
                yield state

        monkeypatch.setattr(engine, "run", stopped)

    return press_after


def test_interrupted(ctrl_c):
    # Where the key is pressed depends on the chunks that the engine chooses: press late enough for one to be done.
    ctrl_c(3)
    long = ["average", "--chains", 16, "--horizon", 2e5, "--burn-in", 1, "--observable", "y2"]
    result = run(*long, "--json")
    assert result.exit_code == 130
    found = strict_json(result.stdout)
    assert found["interrupted"] is True and found["results"][0]["mean"] > 0
    result = run(*long)
    assert result.exit_code == 130 and "y2" in result.stdout and "interrupted" in result.stdout


def test_interrupted_before_anything_is_reached(ctrl_c):
    ctrl_c(0)
    result = run("average", *SMALL)
    assert result.exit_code == 130 and result.stdout == "" and "interrupted" in result.stderr
    ctrl_c(0)
    result = run("average", *SMALL, "--json")
    assert result.exit_code == 130 and strict_json(result.stdout)["interrupted"] is True


@pytest.fixture(scope="module")
def slow_start(tmp_path_factory):
    """An environment in which importing the commands takes long, and says so when it begins."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "sitecustomize.py").write_text(
        "import sys, time, importlib.abc\n"
        "class Slow(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'rdiff.cli':\n"
        "            print('importing', file=sys.stderr, flush=True)\n"
        "            time.sleep(30)\n"
        "sys.meta_path.insert(0, Slow())\n"
    )
    root = str(Path(rdiff.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), root])}


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_interrupted_while_importing(slow_start, words):
    command = [sys.executable, "-m", "rdiff", "average", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=slow_start) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == "importing\n"
        for _ in range(3):
            process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 130 and said == "rdiff: interrupted\n"
    assert strict_json(out) == {"schema": 1, "interrupted": True} if words else out == ""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_keys_pressed_again_do_not_lose_what_was_reached(tmp_path):
    """Three times Ctrl-C within 0.15 s, as an impatient hand or a terminal's process group does."""
    (tmp_path / "run.py").write_text(
        "import os, signal, sys, threading, time\n"
        "from rdiff import engine\n"
        "from rdiff.__main__ import main\n"
        "real = engine.run\n"
        "def press():\n"
        "    for _ in range(12):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(0.05)\n"
        "def run(*args, **kwargs):\n"
        "    for count, state in enumerate(real(*args, **kwargs)):\n"
        "        if count == 3:\n"
        "            threading.Thread(target=press, daemon=True).start()\n"
        "        yield state\n"
        "engine.run = run\n"
        "main()\n"
    )
    words = ["average", "--chains", "16", "--horizon", "2e5", "--burn-in", "1", "--observable", "y2", "--json"]
    root = str(Path(rdiff.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py"), *words], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    found = strict_json(done.stdout)
    assert found["interrupted"] is True and found["results"][0]["mean"] > 0 and "Traceback" not in done.stderr


# ---- compare


def test_compare_embedded():
    result = run("compare", "--json")
    assert result.exit_code == 0, result.output
    found = strict_json(result.stdout)
    assert found["schema"] == 1 and found["settings"]["n"] == 100 and found["settings"]["b"] == 2
    rows = {row["observable"]: row for row in found["results"]}
    assert list(rows) == ["y1", "y2", "y1*y2", "y2>1"]
    y2 = rows["y2"]
    assert {"prelimit", "limit", "difference", "stderr", "scaled", "z"} <= set(y2)
    # exact: E X2 = 0.59996, E Y2 = 0.81406
    assert abs(y2["difference"] - (0.5999611116 - 0.814059663)) < 5 * y2["stderr"]
    assert y2["limit"] == pytest.approx(0.814059663, abs=1e-9) and y2["refined"] == pytest.approx(0.567313, abs=1e-6)
    assert y2["stderr"] < 0.012 and y2["z"] < -10
    assert y2["scaled"] == pytest.approx(10 * y2["difference"])
    assert len(found["checks"]) >= 2 and all(check["ok"] for check in found["checks"])
    assert {"name", "value", "expected", "stderr", "z", "ok", "cause"} <= set(found["checks"][0])


def test_compare_file_like_embedded(tmp_path):
    """A file with the same rows gives the same numbers as the embedded sample; --lam says the same as --beta."""
    fast = ["--chains", 64, "--horizon", 20, "--observable", "y2", "--json"]
    inside = strict_json(run("compare", *fast).stdout)
    file = tmp_path / "run.csv"
    file.write_bytes(gzip.decompress(SAMPLE.read_bytes()))
    words = ["--n", 100, "--b", 2, "--lam", 0.9, "--columns", "Q1:Q3", "--time-column", "t", "--weights", "regular"]
    words += ["--chain-column", "chain"]
    outside = strict_json(run("compare", file, *words, *fast).stdout)
    assert outside["results"][0]["prelimit"] == pytest.approx(inside["results"][0]["prelimit"])
    assert outside["results"][0]["limit"] == pytest.approx(inside["results"][0]["limit"], rel=1e-5)


def test_compare_table():
    for words in ([], ["--chains", 64, "--horizon", 20]):
        result = run("compare", *words)
        assert result.exit_code == 0 and "y1*y2" in result.stdout and ("refined" in result.stdout) is not bool(words)


@pytest.mark.skipif("RDIFF_DATA" not in os.environ, reason="needs the shared data folder")
def test_compare_of_another_simulator():
    file = Path(os.environ["RDIFF_DATA"]) / "ciw_loadbalancing_n25.csv"
    words = ["--n", 25, "--b", "inf", "--beta", 1, "--format", "lengths", "--columns", "node_2:node_26"]
    words += ["--time-column", "time", "--weights", "time", "--end-time", 800, "--burn-in", 30]
    found = strict_json(run("compare", file, *words, *SMALL, "--json").stdout)
    y2 = next(row for row in found["results"] if row["observable"] == "y2")
    assert y2["prelimit"] == pytest.approx(0.489, abs=0.002) and 0.05 < y2["prelimit_stderr"] < 0.08
    z = [check["z"] for check in found["checks"]]
    assert z[0] == pytest.approx(1.1, abs=0.4) and z[1] == pytest.approx(-0.1, abs=0.4)


# ---- path


def test_path_csv():
    result = run("path", "--horizon", 2, "--paths", 2, "--every", 0.1, "--y0", "0,1")
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert list(rows[0]) == ["path", "time", "y1", "y2", "U"] and len(rows) == 2 * 21
    assert float(rows[0]["y2"]) == 1.0 and float(rows[-1]["time"]) == pytest.approx(2.0)
    y1, u = (np.array([float(row[name]) for row in rows]).reshape(2, 21) for name in ("y1", "U"))
    assert np.all(y1 >= 0) and np.all(np.diff(u, axis=1) >= 0) and not np.array_equal(y1[0], y1[1])


@pytest.mark.parametrize(
    "words, count",
    [
        (["--horizon", 20, "--points", 7], 9),  # 2000 steps split into 8 parts, not into 7
        (["--horizon", 1, "--dt", 0.1], 11),
        (["--horizon", 0.3, "--dt", 0.1, "--points", 1], 2),
        (["--horizon", 2, "--every", 0.5], 5),
    ],
)
def test_path_ends_at_the_horizon(words, count):
    result = run("path", *words)
    assert result.exit_code == 0, result.output
    times = [float(row["time"]) for row in csv.DictReader(io.StringIO(result.stdout))]
    assert len(times) == count and times[0] == 0 and times[-1] == pytest.approx(words[1], rel=1e-9)
    np.testing.assert_allclose(np.diff(times), times[-1] / (count - 1), rtol=1e-6)


def test_path_files(tmp_path):
    words = ["path", "--horizon", 1, "--points", 10, "--b", 2]
    for name in ("p.csv", "p.npz", "p.json"):
        result = run(*words, "--out", tmp_path / name)
        assert result.exit_code == 0 and result.stdout == "", result.output
    with np.load(tmp_path / "p.npz") as file:
        arrays = dict(file)
    assert arrays["values"].shape == (1, 11, 3) and arrays["local_time"].shape == (1, 11)
    found = strict_json(run(*words, "--json").stdout)
    assert found["schema"] == 1 and len(found["time"]) == 11
    np.testing.assert_allclose(found["paths"][0]["y"], arrays["values"][0], rtol=1e-6)
    np.testing.assert_allclose(found["paths"][0]["U"], arrays["local_time"][0], rtol=1e-6)
    assert found["paths"] == strict_json((tmp_path / "p.json").read_text())["paths"]


def test_path_plot(tmp_path):
    pytest.importorskip("matplotlib")
    result = run("path", "--horizon", 1, "--plot", tmp_path / "p.png")
    assert result.exit_code == 0 and result.stdout == "", result.output
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_plot_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused(run("path", "--plot", tmp_path / "p.png"), "matplotlib", "plot")


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_reader_that_stops_early():
    command = [sys.executable, "-m", "rdiff", "path", "--horizon", "200", "--points", "20000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "path,time,y1,y2,U\n"
        process.stdout.close()
        assert process.stderr.read() == "" and process.wait(timeout=60) == 0


# ---- bench


def test_bench_shows_what_the_measurement_gives(monkeypatch):
    from rdiff import bench, table

    fake = types.ModuleType("rdiff.bench.fake")
    rows = [{"name": "bridge-heun", "value": 2.5, "unit": "steps/s", "ratio": math.nan}]
    fake.run = lambda full, progress: {"rows": rows, "settings": {"full_run": full}}
    fake.table = lambda result: table.build(["name", "value"], [[row["name"], row["value"]] for row in result["rows"]])
    monkeypatch.setitem(sys.modules, "rdiff.bench.fake", fake)
    monkeypatch.setattr(bench, "NAMES", ("fake",))
    found = strict_json(run("bench", "fake", "--full", "--json").stdout)
    assert found["schema"] == 1 and found["settings"]["full_run"] is True and found["settings"]["name"] == "fake"
    assert found["rows"] == [{"name": "bridge-heun", "value": 2.5, "unit": "steps/s", "ratio": None}]
    result = run("bench", "fake")
    assert result.exit_code == 0 and "bridge-heun" in result.stdout
    refused(run("bench", "throughput"), "fake")
