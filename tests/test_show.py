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
QUEUE = ["queue", "simulate", "--n", 16, "--beta", 1, "--chains", 32, "--horizon", 20, "--seed", 3]
PATHS = ["path", "--paths", 2, "--points", 10, "--horizon", 5, "--b", 2, "--seed", 3]
SWEEP = ["sweep", "--beta", "0.5,1", "--chains", 16, "--horizon", 5, "--observable", "y2", "--seed", 3]
# What a command writes, how, and what in it is a number by a name.
FILES = {
    **{f"{name}.csv": [*words, "--out"] for name, words in COMMANDS.items()},  # and f"{name}.json", see below
    "samples.csv": [*QUEUE, "--out"], "samples.csv.gz": [*QUEUE, "--out"], "samples.npz": [*QUEUE, "--out"],
    "queue.json": [*QUEUE, "--json"], "inspect.json": ["inspect", "samples.csv", "--n", 16, "--json"],
    "paths.csv": [*PATHS, "--out"], "paths.npz": [*PATHS, "--out"], "paths.json": [*PATHS, "--out"],
    "stdout.json": [*PATHS, "--json"], "double.csv": [*PATHS, "--x64", "--out"], "double.npz": [*PATHS, "--x64", "--out"],
    "sweep.csv": [*SWEEP, "--save"], "sweep.npz": [*SWEEP, "--save"], "sweep.json": [*SWEEP, "--save"],
    "folder": [*SWEEP, "--out"], "merged.npz": ["merge", "folder", "--save"],
}  # fmt: skip


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


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of every kind of file that a command writes, and what each command answers in JSON."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("files")
        patch.chdir(folder)
        answers = {}
        for name, words in FILES.items():
            wanted = [*words[:-1], "--json"] if words[-1] == "--json" else [*words, name, "--json"]
            result = run(*wanted)
            assert result.exit_code == 0, result.output
            answers[name] = strict_json(result.stdout)
            if words[-1] == "--json" or name.removesuffix(".csv") in COMMANDS:
                name = name.removesuffix(".csv")
                (folder / name).with_suffix(".json").write_text(result.stdout)
                answers[f"{name.removesuffix('.json')}.json"] = strict_json(result.stdout)
        yield folder, answers


@pytest.mark.parametrize("name", [*FILES, *(f"{name}.json" for name in COMMANDS)])
def test_every_file_says_how_it_was_made_and_has_the_numbers(written, name):
    folder, answer = written[0], written[1][name]
    found, shown = rdiff.load(folder / name), run("show", folder / name)
    assert shown.exit_code == 0 and shown.stderr == "" and "…" not in shown.stdout, shown.output
    made = answer["settings"]
    for key in ("version", "jax", *(["device"] if "device" in made else [])):
        assert found.settings[key] == made[key] if isinstance(found, (rdiff.Sweep, rdiff.Saved)) else dict(found.settings)[key]
        assert f"{key} = {made[key]}" in shown.stdout
    seed = made.get("seed", made.get("key"))
    assert ("seed = " in shown.stdout or "key = " in shown.stdout) is (seed is not None)
    if isinstance(found, rdiff.Paths):
        assert dict(found.settings) == made
        values = np.asarray([row["y"] for row in answer["paths"]], found.values.dtype)
        assert np.array_equal(found.values, values) and found.ts.tolist() == np.asarray(answer["time"], values.dtype).tolist()
        assert values.dtype == (np.float64 if made["x64"] else np.float32)
        assert np.array_equal(found.local_time, np.asarray([row["U"] for row in answer["paths"]], values.dtype))
    elif name.startswith("samples"):
        rows = rdiff.JSQQueue(16, 1, 1.0).simulate(key=3, chains=32, horizon=20.0).record()[1]
        assert np.array_equal(np.stack([found.columns["Q1"], found.columns["Q2"]], axis=1), rows.reshape(-1, 2))
        assert found.settings["every"] == 1.0 and found.settings["policy"] == "jsq"
        read = rdiff.read_samples(folder / name, n=16, b=1, beta=1.0, time_column="t", chain_column="chain", weights="regular")
        assert np.array_equal(read.x[:, 1] * 4, rows.reshape(-1, 2)[:, 1])  # the settings are no states
    elif not isinstance(found, rdiff.Sweep) or name in ("sweep.csv", "sweep.npz", "merged.npz", "folder"):
        part = next(part for part in ("results", "rows", "columns") if isinstance(answer.get(part), list))
        for one, other in zip(found.rows, answer[part], strict=True):
            assert all(one[key] == value for key, value in other.items() if key != "notes"), (one, other)
            assert str(one.get("observable", one.get("name", one.get("n")))) in shown.stdout
        told = strict_json(run("show", folder / name, "--json").stdout)
        assert told["settings"] == made and found.to_dict()["settings"] == made


def test_a_pandas_frame_of_samples_is_read_too(written):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(written[0] / "samples.csv")
    samples = rdiff.read_samples(frame, n=16, b=1, beta=1.0, time_column="t", chain_column="chain", weights="regular")
    assert samples.x.shape == (32 * 21, 2) and json.loads(frame["settings"][0])["seed"] == 3


def test_a_run_that_was_interrupted_at_once(tmp_path):
    (tmp_path / "a.json").write_text('{"schema": 1, "command": "rate", "settings": {"beta": 1.0}, "interrupted": true}')
    refused(run("show", tmp_path / "a.json"), "a.json", "interrupted before it had any numbers")


def test_columns_without_settings(tmp_path):
    """As `rdiff path > p.csv` makes them, and programs other than rdiff."""
    done = run("path", "--paths", 2, "--points", 10, "--horizon", 5)
    (tmp_path / "p.csv").write_text(done.stdout)
    found = rdiff.load(tmp_path / "p.csv")
    assert isinstance(found, rdiff.Paths) and found.values.shape == (2, 11, 2) and found.settings == ()
    assert "made with" not in run("show", tmp_path / "p.csv").stdout
    (tmp_path / "s.csv").write_text("t,Q1\n0,4\n1,3\n")
    shown = run("show", tmp_path / "s.csv").stdout
    assert "columns of numbers" in shown and "3.5" in shown and "made with" not in shown
    assert rdiff.load(tmp_path / "s.csv").columns["Q1"].tolist() == [4.0, 3.0]


def test_paths_from_one_format_to_another(written, tmp_path):
    folder, _ = written
    for source, target in (("paths.npz", "b.json"), ("b.json", "c.csv")):
        place = folder if (folder / source).exists() else tmp_path
        assert run("show", place / source, "--out", tmp_path / target).exit_code == 0
    assert (tmp_path / "c.csv").read_text() == (folder / "paths.csv").read_text()


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
