"""Sweeps on several devices and processes, and killed ones: the same bits."""

import importlib.util
import json
import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import kill_sweep
import pytest
import sweep_by_hand

import rdiff
from rdiff.observables import parse_all
from rdiff.sweeps.sweep import sweep

H = parse_all(["y1", "y2", "y2>1"])
BETAS = [0.5, 0.8, 1.0, 1.3, 2.0]
QUICK = {"chains": 32, "horizon": 20.0}


@pytest.fixture(scope="module")
def whole():
    return rows(sweep({"beta": BETAS}, H, **QUICK))


@pytest.fixture(scope="module")
def unkilled():
    return kill_sweep.undisturbed(4)


def rows(found):
    return found.to_dict()["rows"]


DEVICES = """
import json, sys
import rdiff
rdiff.use_all_cores(int(sys.argv[1]))
from rdiff.observables import parse_all
from rdiff.sweeps.sweep import sweep
found = sweep({"beta": [0.5, 0.8, 1.0, 1.3, 2.0]}, parse_all(["y1", "y2", "y2>1"]), chains=32, horizon=20.0)
print(json.dumps(found.to_dict()["rows"]))
"""


def test_one_device_or_more(whole):
    for count in (1, 3):
        out = subprocess.run([sys.executable, "-c", DEVICES, str(count)], capture_output=True, text=True, check=True).stdout
        assert json.loads(out) == json.loads(json.dumps(whole))


def test_processes_of_a_pool(whole, tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = sweep({"beta": BETAS}, H, batch=3, executor=pool, out=tmp_path, **QUICK)
        assert rows(found) == whole and not found.notes
        with pytest.raises(rdiff.InputError, match="must pickle"):
            sweep({"beta": BETAS}, lambda y: y[1], executor=pool, **QUICK)
    with ThreadPoolExecutor(2) as pool:
        assert rows(sweep({"beta": BETAS}, H, batch=3, executor=pool, **QUICK)) == whole


@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs dask.distributed")
@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster(whole):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        found = sweep({"beta": BETAS}, H, batch=3, executor=client.get_executor(), **QUICK)
    assert rows(found) == whole and not found.notes


def test_a_worker_that_dies_takes_nothing_with_it(tmp_path, caplog):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=sweep_by_hand.mark_worker) as pool:
        found = sweep({"beta": [0.5, 1.0, 2.0]}, sweep_by_hand.deadly, batch=1, executor=pool, out=tmp_path, **QUICK)
    assert len(found.notes) == 1 and "a worker died" in found.notes[0] and not found.missing
    assert found.mean().tolist() == sweep({"beta": [0.5, 1.0, 2.0]}, sweep_by_hand.y2, **QUICK).mean().tolist()


@pytest.mark.parametrize(("kills", "amid"), [(1, False), (3, True)])
def test_killed_and_gone_on_with(kills, amid, unkilled):
    lines = []
    assert kill_sweep.trial(kills, 4, *unkilled, seed=1, amid=amid, say=lines.append) >= 1
    assert sum(line.startswith("kill") for line in lines) == kills
