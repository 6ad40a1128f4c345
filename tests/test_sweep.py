"""Sweeps: the same bits however they are cut, and right against the exact law."""

import errno
import functools
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

import rdiff
from rdiff.observables import parse, parse_all
from rdiff.sweeps.grids import parse_axis, points, read_toml
from rdiff.sweeps.store import Store
from rdiff.sweeps.sweep import Sweep, SweepInterrupted, merge, sweep
from rdiff.sweeps.tasks import Task

H = parse_all(["y1", "y2", "y2>1"])
BETAS = [0.5, 0.8, 1.0, 1.3, 1.6, 2.0]  # runs of 6, 3 and 1 points: each is compiled once
QUICK = {"chains": 32, "horizon": 20.0}


@functools.cache
def whole():
    return sweep({"beta": BETAS}, H, **QUICK)


def rows(found):
    return found.to_dict()["rows"]


def by_point(found):
    return {(row["beta"], row["observable"]): row for row in rows(found)}


# ---- grids


def test_grids_are_cartesian_or_paired():
    assert points({"a": [1, 2], "b": np.array([0.5, 1.5])}) == [
        {"a": 1, "b": 0.5}, {"a": 1, "b": 1.5}, {"a": 2, "b": 0.5}, {"a": 2, "b": 1.5},
    ]  # fmt: skip
    assert points({"a": range(2), "b": [3, 4], "c": "x"}, paired=True) == [
        {"a": 0, "b": 3, "c": "x"},
        {"a": 1, "b": 4, "c": "x"},
    ]
    assert points({"a": jnp.float32(0.5)}) == [{"a": 0.5}]
    for grid, paired, words in [
        ({}, False, "a grid is a dict"), ({"a": []}, False, "no values of a"), ({"a": [1, 1.0]}, False, "a=1.0 twice"),
        ({"a": [1, 2], "b": [1, 2, 3]}, True, "one value a point"), ({"a": [np.nan]}, False, "numbers or words"),
        ({"a": [[1, 2]]}, False, "numbers or words"), ({"a": range(2000), "b": range(2000)}, False, "more than 1,000,000"),
    ]:  # fmt: skip
        with pytest.raises(rdiff.InputError, match=words):
            points(grid, paired)


def test_ranges_are_read_as_decimals():
    assert parse_axis("0.5:2:0.1") == [round(0.5 + 0.1 * k, 1) for k in range(16)]
    assert parse_axis("3:1:-1, 7, bridge-heun") == [3, 2, 1, 7, "bridge-heun"]
    assert parse_axis("0:1:0.3") == [0, 0.3, 0.6, 0.9]
    for text in ("0.5:2", "2:1:0.1", "1:0:5", "1:2:0", "a:b:c", "", "1,,2", "0:1:nan", "1:inf:1"):
        with pytest.raises(rdiff.InputError):
            parse_axis(text)
    with pytest.raises(rdiff.InputError, match="has 1,000,000,001 values, more than 1,000,000"):
        parse_axis("0:1e9:1")


def test_a_grid_from_a_file(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text('observables = ["y2"]\nseed = 3\n[grid]\nbeta = "0.5:1:0.25"\nb = [1, 2]\ndt = 0.05\n')
    assert read_toml(path) == {"observables": ["y2"], "seed": 3, "grid": {"beta": [0.5, 0.75, 1.0], "b": [1, 2], "dt": [0.05]}}
    for text in ("beta = 1", "[grid\n", "[grid]\nbeta=1\n[other]\n", "seed = 'x'\n[grid]\nbeta=1"):
        path.write_text(text)
        with pytest.raises(rdiff.InputError, match="grid"):
            read_toml(path)


# ---- the same bits


@pytest.mark.parametrize("batch", [1, 3])
def test_no_batch_size_changes_a_bit(batch):
    assert rows(sweep({"beta": BETAS}, H, batch=batch, **QUICK)) == rows(whole())


def test_a_point_does_not_know_its_neighbours():
    other = by_point(sweep({"beta": [3.0, 1.0, 0.8]}, H, **QUICK))
    for key, row in by_point(whole()).items():
        assert key not in other or other[key] == row
    different = by_point(sweep({"beta": [1.0]}, H, key=1, **QUICK))
    assert different[1.0, "y2"]["mean"] != other[1.0, "y2"]["mean"]


def test_points_have_noise_of_their_own_unless_it_is_common():
    own = sweep({"beta": [1.0, 1.0001, 1.0002]}, H, **QUICK).mean("y1")
    same = sweep({"beta": [1.0, 1.0001, 1.0002]}, H, common=True, **QUICK).mean("y1")
    assert np.abs(np.diff(same)).max() < 1e-3 < np.abs(np.diff(own)).min()
    one = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H, key=0, **QUICK)["y1"]
    assert same[0] == pytest.approx(one.mean, rel=1e-4)


def test_shards_and_a_folder_give_the_whole(tmp_path):
    for i in (2, 1):
        part = sweep({"beta": BETAS}, H, out=tmp_path, shard=f"{i}/2", **QUICK)
        assert part["beta"].tolist() == BETAS[i - 1 :: 2]
        assert len(merge(tmp_path).missing) == (3 if i == 2 else 0)
    assert rows(merge(tmp_path)) == rows(whole()) and not merge(tmp_path).missing
    again = sweep({"beta": BETAS}, H, out=tmp_path, **QUICK)  # all read, nothing done
    assert rows(again) == rows(whole())
    for shard in ("0/3", "4/3", "x", "1", "1/2/3"):
        with pytest.raises(rdiff.InputError, match="shard must be i/n"):
            sweep({"beta": BETAS}, H, shard=shard, **QUICK)


def test_a_part_without_points_is_told(caplog):
    assert len(sweep({"beta": [1.0, 2.0]}, H, shard="3/4", **QUICK)) == 0
    assert "part 3/4 of the grid is empty: the grid has 2 points" in caplog.text


def test_points_of_grids_before_are_told(tmp_path, caplog):
    first = sweep({"beta": BETAS[:3]}, H, out=tmp_path, **QUICK)
    assert len(merge(tmp_path)) == 3 and not caplog.text
    sweep({"beta": BETAS[2:3]}, H, out=tmp_path, **QUICK)
    assert merge(tmp_path)["beta"].tolist() == BETAS[2:3] and "holds 2 more points that are done, of grids" in caplog.text
    assert rows(sweep({"beta": BETAS[:3]}, H, out=tmp_path, **QUICK)) == rows(first)  # as it says


def test_shards_in_folders_of_their_own(tmp_path):
    for i in (1, 2):
        sweep({"beta": BETAS}, H, out=tmp_path / str(i), shard=f"{i}/2", **QUICK)
    assert rows(merge(tmp_path / "1", tmp_path / "2")) == rows(whole())
    assert len(merge(tmp_path / "1").missing) == 3
    sweep({"beta": BETAS}, H, out=tmp_path / "3", **{**QUICK, "horizon": 10.0})
    with pytest.raises(rdiff.InputError, match="different settings: horizon"):
        merge(tmp_path / "1", tmp_path / "3")


# ---- interruptions


def test_a_worker_that_fails_leaves_its_points_undone(tmp_path):
    class Refusing(ThreadPoolExecutor):
        def submit(self, function, task):
            if task.points[0].values["beta"] == 1.0:
                return super().submit(divmod, 1, 0)
            return super().submit(function, task)

    with Refusing(1) as pool:
        found = sweep({"beta": [0.5, 1.0, 2.0]}, H, batch=1, executor=pool, out=tmp_path, **QUICK)
    assert found["beta"].tolist() == [0.5, 2.0] and found.missing == ({"beta": 1.0},)
    assert "a worker failed at 1 points (beta=1.0): ZeroDivisionError" in found.notes[0]
    assert len(sweep({"beta": [0.5, 1.0, 2.0]}, H, out=tmp_path, **QUICK)) == 3


@pytest.mark.parametrize("noise", [rdiff.Xoshiro(), rdiff.Threefry()])
def test_a_checkpoint_is_gone_on_from(noise, tmp_path, monkeypatch):
    class Stopped(Exception):
        pass

    keep, kept = Store.keep, []

    def stop(self, names, at):
        keep(self, names, at)
        kept.append(at.done)
        if len(kept) in (2, 5):
            raise Stopped

    monkeypatch.setattr(Store, "keep", stop)
    long = {"chains": 32, "horizon": 400.0, "noise": noise}
    for _ in range(2):
        with pytest.raises(Stopped):
            sweep({"beta": BETAS}, H, out=tmp_path, checkpoint=0.0, **long)
    found = sweep({"beta": BETAS}, H, out=tmp_path, checkpoint=0.0, **long)
    assert kept == sorted(set(kept)) and len(kept) > 5  # each went on from where the last had stopped
    assert rows(found) == rows(sweep({"beta": BETAS}, H, **long))
    assert not list((tmp_path / "running").iterdir())


def test_what_changed_since_is_refused(tmp_path):
    sweep({"beta": BETAS}, {"h": lambda y: y[1]}, out=tmp_path, **QUICK)
    with pytest.raises(rdiff.InputError, match="another function than it was"):
        sweep({"beta": BETAS}, {"h": lambda y: y[0]}, out=tmp_path, **QUICK)
    with pytest.raises(rdiff.InputError, match=r"other settings: chains was 32, now 64; horizon was 20\.0, now 30\.0"):
        sweep({"beta": BETAS}, {"h": lambda y: y[1]}, out=tmp_path, chains=64, horizon=30.0)
    assert len(merge(tmp_path)) == 6


def test_ctrl_c_keeps_what_is_done(tmp_path, monkeypatch):
    run, calls = Task.run, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(self, *args)

    monkeypatch.setattr(Task, "run", interrupted)
    with pytest.raises(SweepInterrupted) as stop:
        sweep({"beta": BETAS}, H, batch=1, out=tmp_path, **QUICK)
    partial = stop.value.partial
    assert len(partial) == 2 and len(partial.missing) == 4 and "goes on from here" in partial.notes[0]
    assert rows(sweep({"beta": BETAS}, H, out=tmp_path, **QUICK)) == rows(whole())


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch, caplog):
    flush, calls = os.fsync, []

    def full(file):
        calls.append(1)
        if len(calls) > 4:  # the folder, and some of its points
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(file)

    monkeypatch.setattr(os, "fsync", full)
    found = sweep({"beta": BETAS}, H, out=tmp_path, **QUICK)
    assert rows(found) == rows(whole())
    assert len(found.notes) == 1 and "points could not be written" in found.notes[0] and "No space left" in found.notes[0]
    monkeypatch.undo()
    assert 0 < len(merge(tmp_path).missing) < 6
    assert rows(sweep({"beta": BETAS}, H, out=tmp_path, **QUICK)) == rows(whole())


def test_a_folder_in_the_place_of_a_point_costs_that_point_alone(tmp_path, caplog):
    sweep({"beta": BETAS}, H, out=tmp_path, **QUICK)
    path = next((tmp_path / "points").iterdir())
    path.unlink(), path.mkdir()
    found = sweep({"beta": BETAS}, H, out=tmp_path, **QUICK)
    assert len(caplog.records) == 1 and f"{path.name} is a folder, where the file of a point should be" in caplog.text
    assert rows(found) == rows(whole()) and not found.complete and len(found.notes) == 1
    assert "1 points could not be written" in found.notes[0] and "a folder is in the place" in found.notes[0]
    assert len(merge(tmp_path).missing) == 1
    path.rmdir()
    assert sweep({"beta": BETAS}, H, out=tmp_path, **QUICK).complete and merge(tmp_path).complete


def test_a_damaged_checkpoint_costs_only_time(tmp_path, monkeypatch, caplog):
    keep = Store.keep

    def stop(self, names, at):
        keep(self, names, at)
        raise InterruptedError

    monkeypatch.setattr(Store, "keep", stop)
    with pytest.raises(InterruptedError):
        sweep({"beta": BETAS}, H, out=tmp_path, checkpoint=0.0, **QUICK)
    monkeypatch.undo()
    (path,) = (tmp_path / "running").iterdir()
    path.write_bytes(path.read_bytes()[:-100])
    assert rows(sweep({"beta": BETAS}, H, out=tmp_path, **QUICK)) == rows(whole())
    assert caplog.text.count("is damaged") == 1 and not list((tmp_path / "running").iterdir())


def test_a_lane_that_leaves_the_numbers_fails_its_point_alone(tmp_path):
    class Cubic(rdiff.JSQDiffusion):
        def drift(self, y):
            return super().drift(y) + jnp.where(self.beta > 1.9, y[0] ** 3, jnp.zeros_like(y[0]))

    model = lambda beta: Cubic(beta)  # noqa: E731
    found = sweep({"beta": BETAS}, H, model=model, out=tmp_path, **QUICK)
    ((point, why),) = found.failures.items()
    assert point == "beta=2.0" and "state is not finite" in why and "in chain" in why and "of burn-in" in why
    assert np.isnan(found.mean("y2")[-1]) and np.all(np.isfinite(found.mean("y2")[:-1]))
    assert "failed at beta=2.0" in str(found) and rows(found)[-1]["failed"] == why
    assert rows(merge(tmp_path)) == rows(found)
    blind = sweep({"beta": [1.0, 2.0]}, parse("y2>1"), model=model, **QUICK)  # which a state that is no number would pass
    assert list(blind.failures) == ["beta=2.0"]


# ---- right numbers


def test_against_the_exact_law():
    # BridgeHeun at 0.1: biases of 1e-4 (1e-3 at beta = 0.5), below a fifth of the standard errors.
    betas = np.linspace(0.5, 2.0, 10)
    found = sweep({"beta": betas}, H, chains=128, horizon=60.0, key=5)
    exact = sweep({"beta": betas}, H, law="exact")
    for name in H:
        z = (found.mean(name) - exact.mean(name)) / found.stderr(name)
        assert np.abs(z).max() < 4.5, name
        low, high = chi2.ppf([5e-5, 1 - 5e-5], len(betas))
        assert low < np.sum(z**2) < high, name


def test_any_parameter_of_model_and_method():
    values = {"b": [1, 2, 1], "chains": [32, 16, 32], "solver": ["bridge-heun", "bridge-heun", "bridge-euler"]}
    found = sweep({"beta": 1.0, **values, "dt": [0.2, 0.1, 0.1]}, H, paired=True, horizon=20.0)
    assert found.parameters == ("beta", "b", "chains", "solver", "dt") and found["b"].tolist() == [1, 2, 1]
    assert [est["y1"].dof for est in found.found] == [31, 15, 31]
    assert [dict(est["y1"].settings)["solver"] for est in found.found] == ["BridgeHeun", "BridgeHeun", "BridgeEuler"]
    alone = sweep({"beta": [1.0], "dt": [0.1, 0.2]}, H, batch=1, **QUICK)  # the step need not be a parameter of the grid
    assert alone.mean("y2")[0] == by_point(whole())[1.0, "y2"]["mean"] and alone.mean("y2")[1] == found.mean("y2")[0]
    closed = sweep({"center": [0.5, 1.0], "rate": 2.0}, parse("y1"), model=rdiff.ReflectedOU, chains=64, horizon=50.0)
    exact = [rdiff.StationaryLaw(rdiff.JSQDiffusion(c * 2**0.5, 0)).expect(parse("y1")).mean / 2**0.5 for c in (0.5, 1.0)]
    assert np.all(np.abs(closed.mean() - exact) < 5 * closed.stderr())
    wide = sweep({"beta": [1.0]}, H, bias=True, dtype=jnp.float64, **QUICK).found[0]["y2"]
    assert dict(wide.settings)["dtype"] == "float64" and abs(wide.bias) < 0.05


def test_exact_laws_of_limit_and_queue():
    limit = sweep({"beta": [0.5, 1.0, 2.0], "b": 2}, parse("y2"), law="exact")
    assert np.allclose(limit.mean(), [2.84361201, 0.814059663, 0.0830503365], rtol=1e-8) and np.all(limit.error() < 1e-7)
    queue = sweep({"n": [25, 100], "beta": 1.0}, parse("y2"), law="exact")
    assert np.allclose(queue.mean(), [0.4318311140, 0.5998094576], rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ({"beta": [-1.0]}, {}, "beta=-1.0: beta must be a positive"), ({"gamma": [1.0]}, {}, "JSQDiffusion takes beta, b"),
        ({"beta": [1.0], "n": 100}, {}, "n is a parameter of the queue"), ({"beta": 1, "dt": 0.0}, {}, "dt must be a positive"),
        ({"beta": [1.0]}, {"law": "both"}, "law must be"), ({"beta": [1.0]}, {"chains": 1}, "chains must be at least 2"),
        ({"beta": [1.0], "solver": "euler"}, {}, "solver must be one of"), ({"beta": [1.0]}, {"batch": 0}, "batch must be"),
        ({"beta": [9.0]}, {"law": "exact"}, "beta must lie in"), ({"beta": [1.0]}, {"burn_in": -1}, "burn_in must be"),
        ({"beta": [1.0]}, {"model": lambda beta: beta}, "must give a reflected diffusion"),
        ({"beta": [1.0]}, {"dt": 5.0, "horizon": 1.0}, "must not exceed the horizon"),
        ({"b": [1, 2]}, {}, r"the grid has no beta: give values, as in {\"beta\": \[0.5, 1.0\]}"),
        ({"beta": [1.0], "dt": 0.1, "chains": 8}, {"law": "exact"}, "an exact law has no use for dt, chains"),
        ({"beta": [1.0], "gamma": 2.0}, {}, "takes beta, b: the grid has gamma"), ({"beta": [1e-300]}, {}, "more than can"),
        ({"beta": [1.0]}, {"checkpoint": np.nan}, "checkpoint must be seconds"), ({"n": 9}, {"law": "exact"}, "beta or lam is"),
    ],
)  # fmt: skip
def test_refusals(arguments, options, words):
    with pytest.raises(rdiff.InputError, match=words):
        sweep(arguments, H, **options)


# ---- results


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_files_are_read_back(ending, tmp_path):
    found = sweep({"beta": [1.0, 2.0], "b": 1, "solver": ["bridge-heun"]}, H, chains=8, horizon=20.0)
    assert any(est.cautions for est in found.found[0].values())
    broken = Sweep([*found.points, {"beta": 3.0, "b": 1, "solver": "x"}], [*found.found, "it broke"], found.observables)
    broken.save(tmp_path / f"sweep.{ending}")
    back = Sweep.load(tmp_path / f"sweep.{ending}")
    assert rows(back) == rows(broken) and str(back) == str(broken)
    assert back.mean("y2").tobytes() == broken.mean("y2").tobytes()


def test_bad_files_are_refused(tmp_path):
    for name, text in [("a.csv", "beta,y\n1,2\n"), ("b.csv", ""), ("c.npz", "not one")]:
        (tmp_path / name).write_text(text)
        with pytest.raises(rdiff.InputError, match="does not hold a sweep"):
            Sweep.load(tmp_path / name)
    with pytest.raises(rdiff.InputError, match=r"\.npz or \.csv"):
        whole().save(tmp_path / "x.txt")


def test_columns_and_print():
    found = whole()
    assert found["beta"].tolist() == BETAS and found.mean("y2").shape == (6,) and len(found.rows) == 18
    assert rows(pickle.loads(pickle.dumps(found))) == rows(found)
    assert str(found).count("y2>1") >= 5
    with pytest.raises(rdiff.InputError, match="name one of them"):
        found.mean()
    with pytest.raises(rdiff.InputError, match="not 'y9'"):
        found.mean("y9")
    with pytest.raises(rdiff.InputError, match="not 'b'"):
        found["b"]
