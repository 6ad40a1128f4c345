"""What goes wrong for people who do this work, 21 to 25: numbers and files. One test for each, by its number."""

import gzip
import math
import re
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from cli_tools import refused as refused_by_command
from cli_tools import run, save, shell
from queue_by_hand import refused, y1, y2

import rdiff
from rdiff import engine
from rdiff.errors import InputError
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.queue.elimination import Elimination
from rdiff.queue.inspect import inspect_file
from rdiff.queue.poisson import Potential
from rdiff.queue.read import read_samples
from rdiff.queue.samples import Samples

EY2 = 0.8140597  # at beta = 1
ROWS = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
SYSTEM = dict(n=4, b=1, beta=1.0)


def counter():
    """A diffusion that counts time: drift 1, hardly any noise, a wall far away."""
    return rdiff.ReflectedDiffusion(
        drift=lambda y: jnp.ones_like(y), diffusion=np.array([[1e-9]]),
        domain=rdiff.HalfSpace(normal=np.array([1.0]), direction=np.array([1.0])),
    )  # fmt: skip


def test_21_narrow_numbers_do_not_wrap(tmp_path, monkeypatch):
    """n - Q_1 and Q_1 Q_2 in bytes, codes and counts past 2^31, time in single precision: nothing wraps and no clock stops."""
    q = np.array([[90, 0], [100, 100], [97, 30], [100, 40]] * 50)
    h = {"y1": y1, "y1*y2": lambda y: y[0] * y[1], "y2**2": lambda y: y[1] ** 2}
    S = Samples(q, n=100, b=1, beta=1.0, weights="regular")
    for dtype in (np.uint8, np.uint16, np.int8, np.float16, np.float32):
        T = Samples(q.astype(dtype), n=100, b=1, beta=1.0, weights="regular")
        assert [e.mean for e in S.expect(h).values()] == [e.mean for e in T.expect(h).values()]
        assert [check.value for check in S.checks()] == [check.value for check in T.checks()]
        np.savez(tmp_path / "q.npz", Q=q.astype(dtype))
        assert np.array_equal(read_samples(tmp_path / "q.npz", n=100, b=1, beta=1.0, weights="regular").x, S.x)
    # States are told apart by one number each, which passes 2^31, and with more levels 2^63.
    for n, levels in ((10**6, 2), (10**6, 5)):
        wide = np.full((200, levels), 5)
        wide[:, 0] = n - np.arange(200) % 7
        wide[100:, -1] = 4
        found = Samples(wide, n=n, b=levels - 1, beta=1.0, weights="regular").expect({"y1": y1, "last": lambda y: y[-1]})
        assert found["last"].mean == pytest.approx(4.5e-3, rel=1e-14)
        assert found["y1"].mean == pytest.approx((np.arange(200) % 7).mean() / 1000, rel=1e-14)
    # Times in single precision stop telling events apart: said. rdiff's own run keeps no time, only steps.
    time = np.linspace(1e7, 1e7 + 500, 200).astype(np.float32)
    assert any("float32 and resolve only 1" in note for note in Samples(ROWS, **SYSTEM, time=time).notes)
    with pytest.raises(InputError, match="16777216"):
        rdiff.sample_paths(JSQDiffusion(1.0), np.array([0.01 * 2**25]), key=0, dt=0.01)
    far = rdiff.long_run_average(counter(), y1, key=0, dt=0.01, chains=2, horizon=1.0, burn_in=0.0, y0=np.array([1e6]),
                                 dtype=jnp.float64, solver=rdiff.ProjectedEuler())  # fmt: skip
    assert far.mean == pytest.approx(1e6 + 0.505, abs=1e-6)
    # Steps past 2^32, as the engine itself counts them: each call of the device adds its steps to every sum.
    made = []

    def fast(static, layout, arrays, carry, steps, burning):
        made.append(int(steps[0]) * engine.BLOCK + int(steps[1]))
        carry = carry._replace(sums=tuple(total.add(jnp.full_like(total.high, made[-1])) for total in carry.sums))
        return carry, engine._together(carry)

    monkeypatch.setattr(engine, "_advance", fast)
    law = rdiff.JSQQueue(900, 1, beta=1.0).simulate(chains=4, horizon=3e6, burn_in=0.0, chunk=2**24)
    assert law.expect(y2).mean == pytest.approx(1.0, rel=1e-12)
    assert sum(made) == math.ceil(3e6 * law.clock) > 2**32


def test_22_what_is_pushed_is_kept():
    """Clamped after the step without keeping the amount, Y_2 would get nothing: E Y2 is the rate at which U grows."""
    paths = rdiff.sample_paths(JSQDiffusion(1.0), np.arange(0.0, 401.0, 1.0), key=0, paths=256, dt=0.1)
    y, u = np.asarray(paths.values, np.float64), np.asarray(paths.local_time, np.float64)
    assert y[..., 0].min() >= 0 and np.all(np.diff(u, axis=1) >= 0)
    rates, means = (u[:, -1] - u[:, 40]) / 360, y[:, 40:, 1].mean(axis=1)
    stderr = rates.std(ddof=1) / 16
    assert 0 < stderr < 0.02
    assert abs(rates.mean() - EY2) < 4.5 * stderr
    assert abs(means.mean() - rates.mean()) < 4.5 * (means - rates).std(ddof=1) / 16


def test_23_lanes_differ_and_no_step_is_added():
    """One key for all lanes would make all paths equal; chunks that do not divide the steps must not round them up."""
    ends = np.asarray(rdiff.sample_paths(JSQDiffusion(1.0), np.array([3.0]), key=1, paths=64, dt=0.01).values)[:, 0, 0]
    again = np.asarray(rdiff.sample_paths(JSQDiffusion(1.0), np.array([3.0]), key=1, paths=64, dt=0.01).values)[:, 0, 0]
    assert len(np.unique(ends)) == 64 and np.array_equal(ends, again)
    _, q = rdiff.JSQQueue(100, 1, beta=1.0).simulate(key=1, chains=16, burn_in=5.0).record(1.0, 20.0)
    assert len(np.unique(q.reshape(16, -1), axis=0)) == 16
    # A drift of 1 counts the steps: of a path, and of an average, over k = burn_in + 1, ..., burn_in + steps, of k dt.
    clock = counter()
    for steps in (1600, 1601, 999, 7):
        if steps == 1601:
            end = rdiff.sample_paths(clock, np.array([steps * 0.01]), key=1, paths=2, dt=0.01, solver=rdiff.ProjectedEuler())
            assert np.allclose(np.asarray(end.values)[:, 0, 0], steps * 0.01, atol=1e-3)
        for chunk in (None, 1000, 63):
            found = rdiff.long_run_average(
                clock, y1, key=1, dt=0.01, chains=3, horizon=steps * 0.01, burn_in=1.23, dtype=jnp.float64, chunk=chunk
            )
            assert found.mean == pytest.approx(0.01 * (123 + (steps + 1) / 2), abs=1e-6)


def test_24_a_solver_is_checked_before_it_answers(monkeypatch):
    """No dense matrix of 20301 states; and what a solver returns is looked at, residual and sign, before anyone sees it."""
    tracemalloc.start()
    law = rdiff.JSQQueue(n=200, b=1, beta=1.0).exact()
    mean = law.expect({"y1": y1, "y2": y2})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200e6  # a dense one has 3.3e9
    assert rdiff.JSQQueue(n=200, b=1, beta=1.0).generator().nnz < 4 * 20301
    assert law.least >= 0 and law.residual < 1e-12
    assert all(check.ok for check in law.checks()) and all(check.stderr == 0 for check in law.checks())
    assert mean["y1"].error < 1e-6 and 0.5 < mean["y2"].mean < EY2
    limit = StationaryLaw(JSQDiffusion(1.0))
    assert all(identity.residual < 1e-8 for identity in limit.identities()) and np.all(limit.quadrature()[1] > -1e-16)
    # Solvers that went wrong, as they do: nothing comes out.
    excursions, solve = Elimination.excursions, Potential.solve

    def spoilt(spoil):
        def levels(self):
            for level, v in excursions(self):
                yield level, spoil(v.copy())

        return levels

    def one_negative(v):
        v[-1] = -v[-1]
        return v

    def not_converged(v):
        return v * (1 + 1e-6 * np.cos(np.arange(len(v))))

    def lost(v):
        v[-1] = math.nan
        return v

    for spoil in (one_negative, not_converged, lost):
        monkeypatch.setattr(Elimination, "excursions", spoilt(spoil))
        with pytest.raises(ArithmeticError, match="failed its own checks"):
            rdiff.JSQQueue(n=20, b=1, beta=1.0).exact()
        with pytest.raises(ArithmeticError, match="failed its own checks"):  # a window leaves fewer identities to see it
            rdiff.JSQQueue(n=20, b=1, beta=1.0).exact(window=2)
    result = run("queue", "exact", "--n", 20, "--beta", 1)
    assert result.exit_code == 1 and result.stdout == "" and "failed its own checks" in result.stderr
    monkeypatch.setattr(Elimination, "excursions", excursions)
    law = rdiff.JSQQueue(n=20, b=1, beta=1.0).exact()
    for factor in (1e58, 1 + 1e-6, math.nan):
        monkeypatch.setattr(Potential, "solve", lambda self, wanted, by=factor: by * solve(self, wanted))
        with pytest.raises(ArithmeticError, match="is left with a residual of"):
            law.poisson(y2)


def test_25_damaged_files_are_refused(tmp_path):
    """Empty rows among good ones, no rows, one state, Q_3 > Q_2, NaN, unequal lengths, a truncated file, a wrong name."""
    rng = np.random.default_rng(0)
    q = np.stack([rng.integers(70, 101, 1060), rng.integers(0, 60, 1060)], axis=1)
    damaged = q.copy()
    damaged[1050:] = 0
    assert abs(damaged.mean() / q.mean() - 1) < 0.02 and np.isfinite(damaged).all()  # nobody would see it
    refused("row 1050 and 9 more", "the system is empty", "never filled in", array=damaged, n=100)
    runs = np.concatenate([rng.normal([80, 9], 0.1, (40, 2)), np.zeros((3, 2))])
    refused("row 40 and 2 more", "the system is empty", array=runs, n=100, averages=True)
    for words, array in [
        (["no rows"], np.empty(0)), (["no rows"], np.empty((0, 2))), (["one state, or one column"], np.array([4, 1])),
        (["unequal length"], [[4, 0], [4]]), (["row 3, column 1", "Q_1 >= Q_2"], [[4, 0], [4, 1], [3, 1], [1, 2]]),
        (["row 1, column 0", "at most n = 4", "not the simulator's n"], [[4, 0], [5, 1]]),
        (["row 1, column 1", "found -1", "at least 0"], [[4, 0], [4, -1]]),
        (["row 1, column 0", "found nan", "a finite number"], [[4, 0], [math.nan, 1]]),
        (["row 1, column 0", "found inf", "a finite number"], [[4, 0], [math.inf, 1]]),
        (["integers or floats"], [["4", "0"]]), (["integers or floats"], [[4, None]]),
        (["row 1, column 1", "found nan"], np.ma.MaskedArray([[4, 0], [4, 1]], mask=[[0, 0], [0, 1]])),
    ]:  # fmt: skip
        refused(*words, array=array if isinstance(array, np.ndarray) or "unequal" in words[0] else np.array(array))
    refused("row 2, column 2", "found 2", "Q_1 >= Q_2", array=np.array([[4, 1, 0], [4, 1, 1], [3, 1, 2]]), b=2)
    # Text, line by line; and a first look refuses no less.
    clock = np.arange(200)
    lines = save(tmp_path, {"t": clock, "Q1": ROWS[:, 0], "Q2": ROWS[:, 1]}).read_text().splitlines()
    words = ["--n", 4, "--b", 1, "--beta", 1, "--columns", "Q1:Q2", "--time-column", "t", "--weights", "regular"]
    for line, said in [
        ("5,2,3", ["line 7, column Q2", "found 3", "Q_1 >= Q_2"]), ("5,nan,1", ["line 7, column Q1", "found nan"]),
        ("5,,1", ["line 7, column Q1", "the cell is empty"]), ("5,4", ["line 7", "found 2 cells, expected 3"]),
        ("5,4,x", ["line 7, column Q2", "found 'x'"]), ("5,9,1", ["line 7, column Q1", "found 9", "at most n = 4"]),
        ("5,-1,-2", ["line 7, column Q1", "found -1"]), ("5,3.5,1", ["line 7, column Q1", "found 3.5", "an integer"]),
        ("inf,3,1", ["line 7", "time inf"]),
    ]:  # fmt: skip
        path = tmp_path / "damaged.csv"
        path.write_text("\n".join([*lines[:6], line, *lines[7:]]))
        refused_by_command(run("compare", path, *words), "damaged.csv", *said)
        try:
            found = inspect_file(path, **SYSTEM)
            assert found.command is None or re.search(r"line 7|missing cells", found.lines()[0] + " ".join(found.notes)), line
        except InputError as error:
            assert "line 7" in str(error)
    path.write_text("\n".join(lines)[:-2])
    refused_by_command(run("compare", path, *words), "line 201", "cut off while it was written")
    # Files cut short, or not what their names say.
    np.save(tmp_path / "good.npy", ROWS)
    np.savez(tmp_path / "good.npz", Q=ROWS)
    npy, npz, text = (tmp_path / "good.npy").read_bytes(), (tmp_path / "good.npz").read_bytes(), "\n".join(lines).encode()
    np.savez(tmp_path / "unequal.npz", Q1=ROWS[:, 0], Q2=ROWS[:150, 1])
    np.save(tmp_path / "none.npy", np.empty(0))
    np.save(tmp_path / "one.npy", np.array([4, 1]))
    for name, content, said in [
        ("cut.npy", npy[:-40], "truncated"), ("cut.npz", npz[:300], "truncated"), ("end.npz", npz[:-30], "truncated"),
        ("cut.csv.gz", gzip.compress(text)[:-20], "gzip file is damaged or truncated"), ("empty.csv", b"", "the file is empty"),
        ("text.npz", text, "not a NumPy .npz file, whatever its name says"), ("text.npy", text, "whatever its name says"),
        ("zip.npy", npz, "a NumPy npz file, whatever its name says"), ("array.npz", npy, "a NumPy npy file, whatever its name"),
        ("zip.csv", npz, "npz (or another zip archive) file, not text"), ("array.csv", npy, "NumPy npy file, not text"),
        ("text.parquet", text, "not a parquet file, whatever its name says"), ("binary.csv", bytes(range(256)), "binary file"),
        ("unequal.npz", None, "columns of unequal length: Q1 (200,), Q2 (150,)"), ("none.npy", None, "shape (0,)"),
        ("one.npy", None, "one state or one column"), ("missing.csv", None, "No such file"),
    ]:  # fmt: skip
        if content is not None:
            (tmp_path / name).write_bytes(content)
        refused_by_command(run("compare", tmp_path / name, "--n", 4, "--beta", 1, "--weights", "regular"), name, said)
        looked = run("inspect", tmp_path / name, "--n", 4)
        assert "next:" not in looked.stdout and looked.exit_code in (0, 2)
    result = shell("compare", tmp_path / "cut.npz", "--n", 4, "--beta", 1, "--weights", "regular")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1 and "Traceback" not in result.stderr
