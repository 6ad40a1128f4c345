"""The folder of a sweep: whole files or none, and one clear message for whatever happens to it."""

import errno
import json
import logging
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import rdiff
from rdiff.accumulate import Batches
from rdiff.engine import Checkpoint
from rdiff.estimate import Estimate, Estimates
from rdiff.sweeps.store import Store, digest, manifest

POINTS = [("one", {"beta": 0.5}), ("two", {"beta": 1})]
FOUND = Estimates(
    {
        "y1": Estimate(0.1 + 0.2, 1e-300, "y1", dof=63, ess=1234.5, cautions=("a caution",), settings=(("dt", 0.1),)),
        "y2": Estimate(1 / 3, 0.0, "y2", error=1e-12),
    }
)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "sweep")
    store.open({"horizon": 100.0, "dt": 0.1}, POINTS)
    return store


def same(a, b):
    fields = ("mean", "stderr", "dof", "ess", "rhat", "bias", "error", "name", "cautions", "settings")
    pairs = [(getattr(a[name], field), getattr(b[name], field)) for name in a for field in fields]
    return list(a) == list(b) and all(x == y or (x != x and y != y) for x, y in pairs)


def checkpoint():
    batches = Batches(2)
    for i in range(7):
        batches.add(np.full((3, 2), i + 0.25))
    leaves = (np.arange(3, dtype=np.float32), np.arange(12, dtype=np.uint32).reshape(3, 4))
    return Checkpoint(leaves, batches, np.ones((3, 2)), 100, 64)


def test_points_come_back_to_the_last_bit(store):
    assert store.write("one", {"beta": 0.5}, FOUND) and same(store.read("one"), FOUND)
    store.write("two", {"beta": 1.0}, "it broke")
    assert store.read("two") == "it broke" and store.read("three") is None
    again = pickle.loads(pickle.dumps(store))
    assert same(again.read("one"), FOUND) and again.has("one") and not again.has("three")
    assert math.isinf(store.read("one")["y2"].dof) and math.isnan(store.read("one")["y2"].ess)


def test_checkpoints_come_back_to_the_last_bit(store):
    at = checkpoint()
    store.keep(["one", "two"], at)
    assert store.begun(["one", "two", "three"]) == [["one", "two"]] and store.begun(["one"]) == []
    back = store.resume(["one", "two"])
    assert all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(at.leaves, back.leaves))
    assert (back.done, back.averaged) == (100, 64) and np.array_equal(back.began, at.began)
    for batches in (at.batches, back.batches):  # and go on alike
        for i in range(5):
            batches.add(np.full((3, 2), float(i)))
    assert back.batches.stretch == at.batches.stretch and np.array_equal(back.batches.sums, at.batches.sums)
    store.drop(["one", "two"])
    assert store.resume(["one", "two"]) is None and store.begun(["one", "two"]) == []


def test_settings_that_changed_are_refused(store):
    store.open({"horizon": 100, "dt": 0.1}, [*POINTS, ("three", {"beta": 2.0})])  # a longer grid is welcome
    assert [name for name, _ in manifest(store.folder)["points"]] == ["one", "two", "three"]
    with pytest.raises(rdiff.InputError, match=r"other settings: dt was 0\.1, now 0\.05; give another folder"):
        store.open({"horizon": 100.0, "dt": 0.05}, POINTS)
    with pytest.raises(rdiff.InputError, match="now 'in the grid'"):
        store.open({"horizon": 100.0}, POINTS)
    with pytest.raises(rdiff.InputError, match="the model or an observable is another function"):
        store.open({"horizon": 100.0, "dt": 0.1}, [("other", {"beta": 0.5})])


@pytest.mark.parametrize(
    "harm", [lambda text: text[:-20], lambda text: text.replace(b"0.33", b"0.34"), lambda text: b"", lambda text: b"[]"]
)
def test_a_damaged_point_is_not_there(store, harm, caplog):
    store.write("one", {"beta": 0.5}, FOUND)
    path = store.folder / "points" / "one.json"
    path.write_bytes(harm(path.read_bytes()))
    assert store.read("one") is None
    assert len(caplog.records) == 1 and "damaged: that point is not done" in caplog.text


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9, 0.99])
def test_a_damaged_checkpoint_is_told_and_left(store, keep, caplog):
    store.keep(["one"], checkpoint())
    path = next((store.folder / "running").iterdir())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    assert store.resume(["one"]) is None and "that batch of points starts over" in caplog.text
    middle = bytearray(whole)
    middle[len(whole) // 2] ^= 1
    path.write_bytes(bytes(middle))
    caplog.clear()
    back = store.resume(["one"])
    assert back is None or all(np.array_equal(x, y) for x, y in zip(back.leaves, checkpoint().leaves))


def test_a_damaged_manifest_is_written_anew(store, caplog):
    (store.folder / "sweep.json").write_text("{")
    with pytest.raises(rdiff.InputError, match="is damaged"):
        manifest(store.folder)
    store.open({"horizon": 100.0, "dt": 0.1}, POINTS)
    assert "written anew" in caplog.text and manifest(store.folder)["settings"]["dt"] == 0.1
    with pytest.raises(rdiff.InputError, match="is not there"):
        manifest(store.folder / "points")


def test_a_full_disk_is_told_once(store, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store.write("one", {"beta": 0.5}, "as it was")
    monkeypatch.setattr(os, "fsync", full)
    with caplog.at_level(logging.WARNING):
        assert not store.write("one", {"beta": 0.5}, FOUND) and not store.write("two", {"beta": 1.0}, FOUND)
        store.keep(["one"], checkpoint())
    assert len(caplog.records) == 1 and "No space left on device" in caplog.text and store.unsaved
    monkeypatch.undo()
    assert store.read("one") == "as it was"  # a write that fails leaves what was there, and nothing else
    assert sorted(p.name for p in store.folder.iterdir()) == ["points", "running", "sweep.json"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(rdiff.InputError, match=r"cannot write in .*file"):
        Store(tmp_path / "file").open({}, POINTS)

    def read_only(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "replace", read_only)
    with pytest.raises(rdiff.InputError, match=r"cannot write in .*Read-only file system"):
        Store(tmp_path / "new").open({}, POINTS)


def test_what_a_killed_writer_left_is_cleared(store):
    for name in ("old", "new"):
        (store.folder / f".one.json.{name}").write_text("half")
    os.utime(store.folder / ".one.json.old", (0, 0))
    store.open({"horizon": 100.0, "dt": 0.1}, POINTS)
    assert sorted(p.name for p in store.folder.iterdir()) == [".one.json.new", "points", "running", "sweep.json"]


def test_many_enter_at_once(tmp_path):
    def enter(_):
        store = Store(tmp_path / "sweep")
        store.open({"horizon": 100.0}, POINTS)
        return store.write("one", {"beta": 0.5}, FOUND)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(enter, range(64)))
    assert sorted(p.name for p in (tmp_path / "sweep").iterdir()) == ["points", "running", "sweep.json"]


def test_files_are_plain_json(store):
    store.write("one", {"beta": 0.5}, FOUND)
    record = json.loads((store.folder / "points" / "one.json").read_text())["record"]
    assert record["values"] == {"beta": 0.5} and record["estimates"][0]["mean"] == 0.1 + 0.2


def test_a_hash_is_of_the_values():
    assert digest({"a": [1, 2.5], "b": "x"}) == digest({"b": "x", "a": (1.0, 2.5)})
    assert len({digest(x) for x in ({"a": 1}, {"a": "1"}, {"a": True}, {"a": None}, {"a": [1]}, {"b": 1})}) == 6


def test_the_file_of_another_point_is_not_taken_for_it(store, caplog):
    store.write("one", {"beta": 0.5}, FOUND)
    path = store.folder / "points" / "one.json"
    path.with_name("two.json").write_bytes(path.read_bytes())
    assert store.read("two") is None and "damaged" in caplog.text and store.read("one") is not None


def test_a_folder_in_the_place_of_a_file_is_told_once(store, caplog):
    (store.folder / "points" / "one.json").mkdir()
    assert store.read("one") is None and not store.has("one") and not store.write("one", {"beta": 0.5}, FOUND)
    assert len(caplog.records) == 1 and "one.json is a folder, where the file of a point should be" in caplog.text
    assert "folder" in store.unsaved and store.write("two", {"beta": 1.0}, FOUND) and store.read("two") is not None
    (store.folder / "running" / "x.npz").mkdir()
    assert store.begun(["one"]) == [] and "x.npz is damaged" in caplog.text  # and cannot be taken away
    (store.folder / "sweep.json").unlink()
    (store.folder / "sweep.json").mkdir()
    with pytest.raises(rdiff.InputError, match="cannot write in"):
        store.open({"horizon": 100.0, "dt": 0.1}, POINTS)


def test_points_of_other_grids_are_counted(store):
    for name in ("one", "two", "three"):
        store.write(name, {}, FOUND)
    (store.folder / "points" / "four.json").mkdir()
    assert store.others(["one", "two"]) == 1 and store.others(["one", "two", "three"]) == 0
