"""What people have: tables of other libraries, parquet, several files, arrays by name, and one row a customer."""

import math
import subprocess
import sys

import numpy as np
import pytest
import queue_by_hand as by_hand
from cli_tools import refused as refused_cli
from cli_tools import run, strict_json
from queue_by_hand import EX1, EX2, within, y1, y2

from rdiff.errors import InputError
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.queue.read import read_samples
from rdiff.queue.samples import Samples

Q = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
T = np.arange(200.0)
SYSTEM = dict(n=4, b=1, beta=1.0)
COLUMNS = {"t": T, "run": np.repeat([0, 1], 100), "Q1": Q[:, 0], "Q2": Q[:, 1]}


def csv_text(rows=slice(None), columns=("t", "Q1", "Q2")):
    body = zip(*(COLUMNS[name][rows].tolist() for name in columns), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in body)]) + "\n"


def same(S, T):
    assert np.array_equal(S.x, T.x) and np.array_equal(S.weights, T.weights) and np.array_equal(S.chain, T.chain)
    assert S.expect(y2).stderr == T.expect(y2).stderr


# Tables


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library):
    module = pytest.importorskip(library)
    frame = module.table(COLUMNS) if library == "pyarrow" else module.DataFrame(COLUMNS)
    options = dict(columns="Q1:Q2", time_column="t", chain_column="run", **SYSTEM)
    same(read_samples(frame, **options), Samples(Q, time=T, chain=COLUMNS["run"], **SYSTEM))
    with pytest.raises(InputError, match="no column 'Q3'; the file has 4 columns: t, run, Q1, Q2"):
        read_samples(frame, **(options | {"columns": "Q1:Q3"}))


def test_frames_are_samples_when_all_columns_are_states():
    for library in ("pandas", "polars"):
        frame = pytest.importorskip(library).DataFrame({"Q1": Q[:, 0], "Q2": Q[:, 1]})
        same(Samples(frame, weights="regular", **SYSTEM), Samples(Q, weights="regular", **SYSTEM))


def test_frames_that_are_damaged():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    options = dict(columns="Q1:Q2", time_column="t", end_time=200.0, **SYSTEM)
    frame = pandas.DataFrame(COLUMNS)
    same(read_samples(frame.set_index("t"), **options), Samples(Q, time=T, end_time=200.0, **SYSTEM))
    for bad, word in [
        (frame.assign(Q1=frame.Q1.astype("Int64").mask(frame.t == 7)), "row 7, column Q1: found nan"),
        (frame.assign(Q1=[*["3"] * 7, "three", *["3"] * 192]), "column Q1"),
        (frame.assign(t=pandas.date_range("2020-01-01", periods=200)), "column t holds dates"),
        (frame.iloc[:0], "wrote nothing"),
        (polars.DataFrame(COLUMNS).with_columns(Q1=polars.Series([None, *Q[1:, 0].tolist()])), "row 0, column Q1: found nan"),
        (polars.DataFrame(COLUMNS).with_columns(Q1=polars.lit(True)), "column Q1 holds bool"),
        (frame.rename(columns={"run": "Q1"}), "2 columns are called 'Q1'"),
    ]:
        with pytest.raises(InputError, match=word):
            read_samples(bad, **options)


def test_nothing_heavy_is_imported():
    code = "import sys, rdiff.queue.read; print(sorted({'pandas', 'polars', 'pyarrow', 'xarray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_parquet(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(COLUMNS).to_parquet(tmp_path / "run.parquet")
    options = dict(columns="Q1:Q2", time_column="t", end_time=200.0, **SYSTEM)
    same(read_samples(tmp_path / "run.parquet", **options), Samples(Q, time=T, end_time=200.0, **SYSTEM))
    whole = (tmp_path / "run.parquet").read_bytes()
    for content, word in [(whole[: len(whole) // 2], "damaged"), (b"PAR1", "damaged"), (b"t,Q1\n1,2\n", "not a parquet file")]:
        (tmp_path / "bad.parquet").write_bytes(content)
        with pytest.raises(InputError, match=word):
            read_samples(tmp_path / "bad.parquet", **options)
    for name in ("pyarrow", "pyarrow.parquet", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match="needs pyarrow"):
        read_samples(tmp_path / "run.parquet", **options)


def test_xarray():
    xarray = pytest.importorskip("xarray")
    chains, times = Q.reshape(2, 100, 2), T[:100]
    direct = Samples(chains, time=np.tile(times, (2, 1)), **SYSTEM)
    one = xarray.DataArray(chains, dims=("chain", "t", "level"), coords={"t": times}, name="Q")
    same(read_samples(one, columns="Q", time_column="t", **SYSTEM), direct)
    same(read_samples(one.transpose("t", "level", "chain"), columns="Q", time_column="t", **SYSTEM), direct)
    same(read_samples(one.rename(chain="run"), columns="Q", time_column="t", chain_column="run", **SYSTEM), direct)
    several = xarray.Dataset({"Q1": (("chain", "t"), chains[..., 0]), "Q2": (("chain", "t"), chains[..., 1])}, {"t": times})
    same(read_samples(several, columns="Q1,Q2", time_column="t", **SYSTEM), direct)
    same(Samples(one.transpose("t", "chain", "level"), time=np.tile(times, (2, 1)), **SYSTEM), direct)
    with pytest.raises(InputError, match="name the dimension of the chains"):
        read_samples(one.rename(chain="run"), columns="Q", **SYSTEM)


# Arrays by name, and several files


def test_arrays_of_an_npz(tmp_path):
    np.savez(tmp_path / "two.npz", t=T, Q=Q, other=Q[:, ::-1])
    np.savez(tmp_path / "one.npz", t=T, Q=Q)
    direct = Samples(Q, time=T, end_time=200.0, **SYSTEM)
    options = dict(time_column="t", end_time=200.0, **SYSTEM)
    same(read_samples(tmp_path / "one.npz", **options), direct)
    same(read_samples(tmp_path / "two.npz", array="Q", **options), direct)
    with pytest.raises(InputError, match=r"Q \(2 columns\), other \(2 columns\); choose one by array"):
        read_samples(tmp_path / "two.npz", **options)
    with pytest.raises(InputError, match="no array 'P' of rows; it has Q, other"):
        read_samples(tmp_path / "two.npz", array="P", **options)
    with pytest.raises(InputError, match="not both"):
        read_samples(tmp_path / "two.npz", array="Q", columns="Q", **options)
    words = ["--n", 4, "--beta", 1, "--time-column", "t", "--observable", "y1", "--json"]
    assert run("compare", tmp_path / "two.npz", "--array", "Q", *words).exit_code == 0
    refused_cli(run("compare", tmp_path / "two.npz", *words), "choose one")


def test_several_files_are_chains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(csv_text(slice(0, 100)))
    (tmp_path / "b.csv").write_text(csv_text(slice(100, 200)))
    options = dict(columns="Q1:Q2", time_column="t", **SYSTEM)
    direct = Samples(Q, time=T, chain=COLUMNS["run"], **SYSTEM)
    same(read_samples(["a.csv", "b.csv"], **options), direct)
    same(read_samples("?.csv", **options), direct)
    same(read_samples(["a.csv", "b.csv"], end_time={"a.csv": 101.0, "b.csv": 201.0}, **options),
         Samples(Q, time=T, chain=COLUMNS["run"], end_time=[101.0, 201.0], **SYSTEM))  # fmt: skip
    np.savez("c.npz", t=T.reshape(2, 100), Q=Q.reshape(2, 100, 2))
    np.savez("d.npz", t=T.reshape(2, 100), Q=Q.reshape(2, 100, 2))
    assert read_samples(["c.npz", "d.npz"], time_column="t", **SYSTEM).chains == 4
    (tmp_path / "e.csv").write_text(csv_text(columns=("t", "Q2", "Q1")))
    (tmp_path / "f.csv").write_text(csv_text().replace("\n7.0,3,0\n", "\n7.0,9,0\n"))
    for files, word in [
        (["a.csv", "e.csv"], "e.csv has 3 columns: t, Q2, Q1, but a.csv has"), (["a.csv", "a.csv"], "named twice"),
        (["a.csv", "f.csv"], "f.csv: line 9, column Q1: found 9"), (["a.csv", "none.csv"], "none.csv"), ([], "no files"),
        ("z*.csv", "no file matches"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=word.replace("*", r"\*")):
            read_samples(files, **options)
    words = ["--n", 4, "--beta", 1, "--columns", "Q1:Q2", "--time-column", "t", "--observable", "y1", "--json"]
    found = run("compare", "a.csv", "b.csv", *words)
    assert found.exit_code == 0 and strict_json(found.stdout)["settings"]["file"] == ["a.csv", "b.csv"]
    refused_cli(run("compare", "a.csv", "e.csv", *words), "same columns")


# One row a customer


def customers(n, b, lam, horizon, seed):
    """Arrivals, departures and servers of a log: first come, first served at a shortest queue."""
    rng = np.random.default_rng(seed)
    waiting, rows, clock = [[] for _ in range(n)], [], 0.0
    while True:
        clock += rng.exponential(1 / (n * lam))
        if clock > horizon:
            break
        for k in range(n):
            waiting[k] = [leave for leave in waiting[k] if leave > clock]
        k = min(range(n), key=lambda k: len(waiting[k]))
        if len(waiting[k]) > b:
            continue
        leave = max([clock, *waiting[k]]) + rng.exponential()
        waiting[k].append(leave)
        rows.append((clock, leave, k))
    arrival, departure, server = map(np.array, zip(*rows, strict=True))
    return arrival, np.where(departure > horizon, math.nan, departure), server


def test_customers_become_occupancy():
    arrival, departure, server = customers(4, 1, 0.5, 12000.0, 3)
    S = Samples(np.stack([arrival, departure, server], axis=1), format="customers", burn_in=20, end_time=12000.0, **SYSTEM)
    within(S.expect(y1), EX1[1])
    within(S.expect(y2), EX2[1])
    assert all(check.ok for check in S.checks()) and any("still present" in note for note in S.notes)
    # by counting who is present at some times
    for t in np.random.default_rng(0).uniform(50, 11000, 20):
        here = server[(arrival <= t) & ~(departure <= t)]
        lengths = np.bincount(here, minlength=4)
        at = np.searchsorted(np.cumsum(S.weights), t - arrival[0] - 20)
        assert S.x[at].tolist() == [(4 - (lengths >= 1).sum()) / 2, (lengths >= 2).sum() / 2]


def test_customers_in_files(tmp_path):
    arrival, departure, server = customers(4, 1, 0.5, 300.0, 4)
    rows = zip(arrival.tolist(), departure.tolist(), server.tolist(), strict=True)
    lines = [f"{a!r},node {s},{'' if math.isnan(d) else repr(d)}" for a, d, s in rows]
    path = tmp_path / "log.csv"
    path.write_text("arrival,server,departure\n" + "\n".join(lines) + "\n")
    S = read_samples(path, format="customers", **SYSTEM)
    direct = Samples(np.stack([arrival, departure, server], axis=1), format="customers", **SYSTEM)
    same(S, direct)
    text = path.read_text()
    for bad, word in [
        (text.replace(lines[3], lines[3].replace(lines[3].split(",")[0], "")), "line 5, column arrival: found nan"),
        (text.replace(lines[3], f"{arrival[3]},node 1,0.0"), "line 5, column departure: found 0, expected a departure after"),
        (text.replace(lines[3], f"{arrival[3]},,"), "line 5: the server is missing"),
        (text + "1,node 7,2\n", "names 5 servers, expected at most n = 4"),
        (text + "".join(f"{arrival[9]},node 1,\n" for _ in range(4)), "holds [3-9] customers, expected at most 2"),
        (text.replace(lines[3], "soon,node 1,2"), "found 'soon'"),
    ]:
        path.write_text(bad)
        with pytest.raises(InputError, match=word):
            read_samples(path, format="customers", **SYSTEM)
    path.write_text(text)
    for options, word in [({"weights": "regular"}, "have their times"), ({"columns": "arrival,server"}, "3 columns")]:
        with pytest.raises(InputError, match=word):
            read_samples(path, format="customers", **SYSTEM, **options)


# lam from the record


def test_estimated_lam_of_a_complete_log():
    """The estimate is unbiased with the error it says: 40 runs, z has mean 0 and variance 1 (errors 0.16 and 0.22)."""
    z = []
    for seed in range(40):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 600.0, seed)
        S = Samples(lengths, n=4, b=1, lam="estimated", format="lengths", time=times, end_time=600.0, burn_in=10)
        assert S.beta_stderr == pytest.approx(2 * math.sqrt(0.5 / 4 / 590), rel=0.1)
        z.append((S.beta - 1.0) / S.beta_stderr)
    assert abs(np.mean(z)) < 0.7 and 0.45 < np.var(z) < 2.2
    assert any("estimated from the arrivals" in note for note in S.notes) and len(S.checks()) == 2


def test_estimated_lam_of_snapshots():
    z = []
    for seed in range(40):
        q = by_hand.on_a_grid(4, 1, 0.5, 1.0, 600, 20, seed)
        S = Samples(q, n=4, b=1, lam="estimated", time=np.arange(600.0), weights="regular")
        z.append((S.beta - 1.0) / S.beta_stderr)
    assert abs(np.mean(z)) < 0.8 and 0.45 < np.var(z) < 2.5
    assert S.beta_stderr == pytest.approx(2 * math.sqrt(2 * 0.5 / 4 / 600), rel=0.5)  # service noise is in it too
    # E Q_1 gave lam: it cannot test it
    assert [check.name[:4] for check in S.checks()] == ["E Q2"]


def test_estimated_lam_is_refused_where_there_is_none():
    for array, options, word in [
        (Q, {"beta": 1.0}, "one parameter"), (np.full((50, 2), 4), {}, "not in"), (Q * [1, 0] * 0 + [2, 0], {}, "no spread"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=word):
            Samples(array, n=4, b=1, weights="regular", lam="estimated", **options)
    with pytest.raises(InputError, match="P_block is not in them"):
        Samples(Q * 0.5 + 0.1, n=4, b=1, lam="estimated", averages=True)


def test_checks_of_a_complete_log_have_the_exact_error():
    """z of the martingale over 60 short logs from one state: mean 0, variance 1, wherever the log starts and ends."""
    z = []
    for seed in range(60):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 100.0, seed)
        S = Samples(lengths, n=4, b=1, beta=1.0, format="lengths", time=times, end_time=100.0)
        z.append([check.z for check in S.checks()])
    assert np.all(np.abs(np.mean(z, axis=0)) < 0.7) and np.all((np.var(z, axis=0) > 0.4) & (np.var(z, axis=0) < 2.0))


def test_estimated_lam_on_the_command_line(tmp_path):
    times, lengths, _ = by_hand.simulate(25, 1, 0.8, 300.0, 1)
    q = by_hand.occupancy(lengths, 2)
    path = tmp_path / "log.csv"
    path.write_text("t,Q1,Q2\n" + "".join(f"{t!r},{a},{b}\n" for t, (a, b) in zip(times.tolist(), q.tolist(), strict=True)))
    words = [path, "--n", 25, "--columns", "Q1:Q2", "--time-column", "t", "--burn-in", 30, "--json"]
    found = run("compare", *words, "--lam", "estimated")
    assert found.exit_code == 0, found.output
    payload = strict_json(found.stdout)
    stderr = payload["settings"]["beta_stderr"]
    row = next(row for row in payload["results"] if row["observable"] == "y2")
    S = read_samples(path, n=25, b=1, lam="estimated", columns="Q1:Q2", time_column="t", burn_in=30)
    slope = StationaryLaw(JSQDiffusion(S.beta)).sensitivity(y2).mean
    assert stderr == S.beta_stderr and row["carried"] == pytest.approx(abs(slope) * stderr)
    assert row["stderr"] == pytest.approx(math.hypot(row["prelimit_stderr"], row["carried"]))
    refused_cli(run("compare", *words, "--lam", "guessed"), "'estimated'")
