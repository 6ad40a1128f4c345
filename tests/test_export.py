"""Results for other tools and for files: the same numbers everywhere, with how they were made."""

import csv
import io
import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import rdiff
from rdiff import table
from rdiff.records import csv_text, read_csv

Y = rdiff.JSQDiffusion(beta=1.0)
H = {"y2": lambda y: y[1], "y1*y2": lambda y: y[0] * y[1]}


@pytest.fixture(scope="module")
def simulated():
    return rdiff.long_run_average(Y, H, key=7, chains=32, horizon=60.0, draws=True)


@pytest.fixture(scope="module")
def exact():
    return rdiff.StationaryLaw(Y).expect(H)


@pytest.fixture(scope="module")
def queue():
    return rdiff.JSQQueue(25, 1, 1.0)


@pytest.fixture(scope="module")
def results(simulated, exact, queue):
    """One of each kind, with its rows."""
    law = rdiff.StationaryLaw(Y)
    rate = rdiff.rate([25, 64], beta=1.0, h=H)
    distances = rdiff.distance([16, 25], beta=1.0)
    sweep = rdiff.sweep({"beta": [0.5, 1.0], "b": [1, 2]}, H, law="exact")
    return {
        "estimate": (exact["y2"], [exact["y2"].to_dict()]),
        "exact": (exact, exact.to_dict()),
        "simulated": (simulated, simulated.to_dict()),
        "comparison": ((c := rdiff.compare(queue.exact(), law, H)), c.to_dict()),
        "rate": (rate, rate.to_dict()["rows"]),
        "distance": (distances[0], [distances[0].to_dict()]),
        "distances": (distances, distances.to_dict()["rows"]),
        "sweep": (sweep, sweep.to_dict()["rows"]),
        "stein": ((s := rdiff.stein_factors([16, 25], beta=1.0, h=H)), s.to_dict()),
        "generator": ((g := rdiff.generator.classical(queue.exact(), law, H)), g.to_dict()),
    }


KINDS = ("estimate", "exact", "simulated", "comparison", "rate", "distance", "distances", "sweep", "stein", "generator")


def same(found, row, name):
    value = row[name]
    if value is None:
        return found is None or (isinstance(found, float) and np.isnan(found))
    return found == value


@pytest.mark.parametrize("kind", KINDS)
def test_json_and_csv_are_read_back_equal(results, kind, tmp_path):
    result, rows = results[kind]
    text = result.to_json(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == text
    found = rdiff.load(tmp_path / "a.json")
    assert found.rows == rows == json.loads(json.dumps(found.rows))
    for name in ("version", "jax", "device") if kind != "sweep" else ("version", "jax"):
        told = found.settings.get(name)
        assert told == {"version": rdiff.__version__}.get(name, told) and told is not None
    result.to_csv(tmp_path / "a.csv")
    again = rdiff.load(tmp_path / "a.csv")
    assert again.settings == found.settings
    for one, other in zip(again.rows, rows, strict=True):
        assert all(one[name] == value for name, value in other.items() if not isinstance(value, dict)), (one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_pandas_has_the_same_numbers(results, kind):
    pytest.importorskip("pandas")
    result, rows = results[kind]
    frame = result.to_pandas()
    assert len(frame) == len(rows) and frame.attrs["jax"]
    for k, row in enumerate(rows):
        for name in set(row) & set(frame.columns) - {"cautions", "notes"}:
            found = frame[name].iloc[k]
            assert same(found.item() if hasattr(found, "item") else found, row, name), (name, found, row[name])
        if row.get("ci"):
            assert [frame["ci_low"].iloc[k], frame["ci_high"].iloc[k]] == row["ci"]


@pytest.mark.parametrize("kind", KINDS)
def test_xarray_has_the_same_numbers_at_their_coordinates(results, kind, tmp_path):
    xarray = pytest.importorskip("xarray")
    result, rows = results[kind]
    found = result.to_xarray()
    where = {"distance": ["n"], "distances": ["n"], "rate": ["n", "observable"], "sweep": ["beta", "b", "observable"]}
    expected = where.get(kind, ["observable"] + ["n"] * (kind == "stein"))
    assert list(found.sizes) == expected
    for row in rows:
        at = found.sel({name: np.nan if row[name] is None else row[name] for name in expected if row[name] is not None})
        if any(row[name] is None for name in expected):
            continue  # the limit of Stein factors is at n = NaN, which no label finds
        for name in set(row) & set(found.data_vars) - {"cautions", "notes"}:
            assert same(at[name].item(), row, name), (name, at[name].item(), row[name])
    pytest.importorskip("h5netcdf"), pytest.importorskip("h5py")
    found.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with xarray.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as read:
        assert read.attrs["jax"] == found.attrs["jax"] and list(read.sizes) == list(found.sizes)


@pytest.mark.parametrize("name", ["a.csv", "a.npz"])
def test_a_sweep_is_a_sweep_again(results, name, tmp_path):
    sweep = results["sweep"][0]
    sweep.save(tmp_path / name)
    found = rdiff.load(tmp_path / name)
    assert isinstance(found, rdiff.Sweep) and found.settings == sweep.settings
    assert np.array_equal(found.mean("y2"), sweep.mean("y2")) and found["beta"].tolist() == sweep["beta"].tolist()


def test_rows_that_fill_no_grid_have_one_dimension():
    pytest.importorskip("xarray")
    found = rdiff.sweep({"beta": [0.5, 1.0], "b": [1, 2]}, H["y2"], law="exact", paired=True)
    data = found.to_xarray()
    assert dict(data.sizes) == {"row": 2} and data["beta"].values.tolist() == [0.5, 1.0] and data["b"].values.tolist() == [1, 2]
    assert np.array_equal(data["mean"].values, found.mean())


@pytest.mark.parametrize("kind", KINDS)
def test_shown(results, kind):
    """Print, notebook and LaTeX show the same cells."""
    result, _ = results[kind]
    tables, notes = result._shown()
    cells = [cell for each in tables for row in table.cells(each) for cell in row]
    page, latex = result._repr_html_(), result.to_latex()
    assert page.count("<table") == len(tables) == latex.count(r"\begin{tabular}")
    assert len(page) < 400 + 100 * len(cells) + sum(map(len, notes)) + 20 * len(notes)
    assert page.count("<td") + page.count("<th ") == len(cells)
    printed = " ".join(str(result).split())
    assert all(" ".join(cell.split()) in printed for cell in cells)
    assert latex.count(r" \\") == sum(len(table.cells(each)) for each in tables) and "% settings: {" in latex
    assert all(note.split("\n")[0] in str(result) for note in notes)


def numbers(text):
    return sorted(re.findall(r"-?\d[\d.e+-]*", text))


@pytest.mark.parametrize("width", [40, 60, 120])
@pytest.mark.parametrize("kind", ("comparison", "rate", "sweep", "distances"))
def test_no_number_is_lost_or_broken_in_a_narrow_terminal(results, kind, width):
    from rich.console import Console

    console = Console(width=width, file=io.StringIO())
    console.print(results[kind][0])
    shown = console.file.getvalue()
    assert max(map(len, shown.splitlines())) <= width and "…" not in shown
    tables = results[kind][0]._shown()[0]
    for each in tables:
        narrow = table.text(each, width)
        broken = (kind, width) == ("sweep", 40)  # beta, b, the observable and an interval do not fit
        assert (max(map(len, narrow.splitlines())) <= width) is not broken
        for row in table.cells(each)[1:]:
            assert all(set(numbers(cell)) <= set(numbers(narrow)) for cell in row), row
            assert broken or all(set(numbers(cell)) <= set(numbers(shown)) for cell in row), row
        wide = table.text(each)
        assert len(wide.splitlines()) == len(each.rows) + 2 + 2 * bool(each.title)  # one line a row, however long


def test_the_columns_that_tell_rows_apart_are_in_every_block():
    rows = [[beta, name, 1 / 3, 2 / 3, 0.1] for beta in (0.5, 1.0) for name in ("y1", "y2")]
    made = table.build(["beta", "observable", "mean", "stderr", "bias"], rows, "A title longer than the terminal is wide")
    blocks = [table.cells(block) for block in table.blocks(made, 32)]
    assert [block[0] for block in blocks] == [["beta", "observable", name] for name in ("mean", "stderr", "bias")]
    assert [row[:2] for row in blocks[2][1:]] == [row[:2] for row in table.cells(made)[1:]]
    assert len(table.blocks(made, 200)) == 1


def test_latex_of_a_cell():
    text = table.latex(table.build(["100%", "a_b"], [["y2>=1", "1e-06"], ["y1**2", "-2 +- 3e+10"], ["E Q1 & x", "-"]]))
    assert r"100\% & a\_b \\" in text and r"$y_2\ge 1$ & $1 \times 10^{-6}$ \\" in text
    assert r"$y_1^{2}$ & $-2 \pm 3 \times 10^{10}$ \\" in text and r"E Q1 \& x & - \\" in text


def test_settings_travel(simulated, queue):
    made = dict(simulated["y2"].settings)
    assert made["seed"] == 7 and made["version"] == rdiff.__version__ and made["jax"] and made["device"].startswith("cpu")
    assert simulated.settings == made
    assert dict(pickle.loads(pickle.dumps(simulated))["y2"].settings) == made
    import jax

    word = rdiff.long_run_average(Y, H["y2"], key=jax.random.key(7), chains=16, horizon=10.0)
    assert dict(word.settings)["seed"] == (0, 7) and word.mean == pytest.approx(word.to_dict()["mean"])
    law = queue.simulate(key=3, chains=16, horizon=50.0)
    assert dict(law.expect(H["y2"]).settings)["seed"] == 3
    both = rdiff.compare(law, rdiff.StationaryLaw(Y), H["y2"])
    assert both.settings["prelimit"]["seed"] == 3 and both.settings["limit"]["method"]


@pytest.mark.parametrize("chunk", [None, 64])
def test_arviz_has_the_chains(simulated, chunk):
    pytest.importorskip("arviz")
    found = rdiff.long_run_average(Y, H, key=7, chains=32, horizon=60.0, draws=True, chunk=chunk)
    data = found.to_arviz()["posterior"]
    for name, estimate in found.items():
        draws = data[name].values
        assert draws.shape == estimate.draws.shape == (32, 12)
        assert np.array_equal(draws, simulated[name].draws)
        assert draws.mean() == pytest.approx(float(estimate.mean), rel=1e-12)  # 12 stretches of 50 steps are all of it
    assert data.attrs["seed"] == 7


def test_draws_of_a_run_that_blocks_divide_average_to_the_mean():
    found = rdiff.long_run_average(Y, H["y2"], key=1, dt=0.1, chains=16, horizon=64 * 64 * 0.1, burn_in=10.0, draws=True)
    assert found.draws.shape == (16, 64)
    assert found.draws.mean() == pytest.approx(float(found.mean), rel=1e-12)
    assert np.std(found.draws.mean(axis=1), ddof=1) / 4 == pytest.approx(float(found.stderr), rel=1e-9)


def test_chains_that_were_not_kept(exact, queue):
    with pytest.raises(rdiff.InputError, match="draws=True"):
        exact.to_arviz()
    assert rdiff.long_run_average(Y, H["y2"], key=0, chains=16, horizon=10.0).draws is None
    import jax

    with pytest.raises(rdiff.InputError, match="draws"):
        jax.jit(
            lambda b: rdiff.long_run_average(rdiff.JSQDiffusion(b), H["y2"], key=0, chains=16, burn_in=1.0, draws=True).mean
        )(1.0)


def test_samples_for_arviz(queue):
    pytest.importorskip("arviz")
    law = queue.simulate(key=0, chains=16, horizon=50.0, draws=True)
    assert law.expect(H).to_arviz()["posterior"]["y2"].shape[0] == 16
    samples = law.samples()
    data = samples.to_arviz()["posterior"]["x"].values
    assert data.shape == (16, 51, 2) and np.array_equal(data.reshape(-1, 2), samples.x)
    data = samples.to_arviz(H)["posterior"]
    assert data["y2"].values.mean() == pytest.approx(float(samples.expect(H["y2"]).mean))


def test_rows_of_unequal_weight_become_draws_that_count_equally():
    pytest.importorskip("arviz")
    rows, time = np.array([[4, 0], [3, 0], [4, 1]]), np.array([0.0, 1.0, 4.0])
    samples = rdiff.Samples(rows, n=4, b=1, beta=1.0, weights="time", time=time, end_time=8.0)
    data = samples.to_arviz(draws=8)["posterior"]["x"].values
    assert data[0, :, 0].tolist() == [0.0, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]
    assert data[0, :, 1].mean() == samples.expect(lambda x: x[1]).mean


def test_paths():
    pytest.importorskip("xarray"), pytest.importorskip("arviz"), pytest.importorskip("pandas")
    paths = rdiff.sample_paths(Y, np.arange(0, 1.1, 0.5), key=4, paths=3)
    frame, data, chains = paths.to_pandas(), paths.to_xarray(), paths.to_arviz()["posterior"]
    assert frame.shape == (9, 5) and np.array_equal(frame["y2"].to_numpy().reshape(3, 3), paths.values[..., 1])
    assert np.array_equal(data["y"].values, paths.values) and np.array_equal(data["U"].values, paths.local_time)
    assert np.array_equal(chains["y"].values, paths.values)
    assert data.attrs["seed"] == 4 == frame.attrs["seed"] and data.attrs["dt"] == 0.01
    told = json.loads(paths.to_json())
    assert told["kind"] == "Paths" and told["settings"]["seed"] == 4 and told["time"] == [0.0, 0.5, 1.0]
    assert np.array_equal(np.float32([row["y"] for row in told["paths"]]), paths.values)
    rows = list(csv.DictReader(io.StringIO(paths.to_csv())))
    assert [np.float32(row["U"]) for row in rows] == np.ravel(paths.local_time).tolist() and json.loads(rows[0]["settings"])
    assert "3 paths of dimension 2 at 3 times" in str(paths) and "<table" in paths._repr_html_() and "y_1" in paths.to_latex()
    assert next(paths.csv(settings=False)) == "path,time,y1,y2,U\n"
    with pytest.raises(rdiff.InputError, match="npz"):
        paths.save("p.parquet")


def test_parts_of_a_result(results):
    pytest.importorskip("pandas")
    rate = results["rate"][0]
    assert rate.to_pandas("slopes")["constant"].iloc[0] == pytest.approx(-2.467469, abs=1e-6)
    for result, word in ((rate, "rows"), (results["exact"][0], "one table")):
        with pytest.raises(rdiff.InputError, match=word):
            result.to_pandas("nothing")


@pytest.mark.parametrize(("library", "method"), [("pandas", "to_pandas"), ("xarray", "to_xarray"), ("arviz", "to_arviz")])
def test_a_missing_library_is_said(simulated, monkeypatch, library, method):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(rdiff.InputError, match=f"pip install {library}"):
        getattr(simulated, method)()


def test_levels(exact, simulated):
    wide, narrow = (json.loads(simulated.to_json(level=level))["results"][0]["ci"] for level in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert simulated.to_csv(level=0.5) != simulated.to_csv()


def test_estimates_of_arrays_are_shown_without_a_table():
    import jax

    found = jax.vmap(lambda b: rdiff.Estimates(y=rdiff.Estimate(b, b, "y")))(np.array([1.0, 2.0]))
    assert "y:" in str(found) and found._repr_html_().startswith("<p>")


def test_csv_keeps_words():
    rows = [{"observable": "1", "mean": 0.1 + 0.2, "cautions": ["a; b", "c"], "ok": True, "n": 3, "error": None}]
    assert read_csv(csv_text(rows, {"seed": [1, 2]})) == (rows, {"seed": [1, 2]})


# ---- what importing does


def test_import_is_light_and_silent_and_names_are_there():
    code = """
import sys, rdiff
assert "jax" not in sys.modules
import rdiff.compare, rdiff.rate
assert callable(rdiff.compare) and callable(rdiff.rate) and rdiff.compare is rdiff.compare
for name in rdiff.__all__:
    assert getattr(rdiff, name) is not None and name in dir(rdiff)
from rdiff import *
import jax
assert jax.config.jax_enable_x64 is False
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == done.stderr == "", done.stderr
    with pytest.raises(AttributeError, match="nothing"):
        rdiff.nothing  # noqa: B018
