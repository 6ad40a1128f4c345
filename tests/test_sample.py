"""The sample inside rdiff: made by its own simulator, and checked by a plain loop that shares nothing with it."""

import gzip
import importlib.resources
import io
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import queue_by_hand as by_hand

import rdiff
from rdiff.cli.compare import SAMPLE, SAMPLE_OPTIONS

H = {"y1": lambda x: x[0], "y2": lambda x: x[1], "y1*y2": lambda x: x[0] * x[1], "y2>1": lambda x: x[1] > 1}
MAKER = Path(__file__).parent.parent / "examples" / "make_sample.py"


@pytest.fixture(scope="module")
def embedded():
    with importlib.resources.as_file(importlib.resources.files("rdiff.data") / SAMPLE) as path:
        return rdiff.read_samples(path, **SAMPLE_OPTIONS)


def test_it_agrees_with_the_exact_law(embedded):
    exact = rdiff.JSQQueue(100, 2, beta=1.0).exact().expect(H)
    est = embedded.expect(H)
    for name in H:
        assert est[name].reliable and abs(est[name].mean - exact[name].mean) < 4.5 * est[name].stderr < 0.06, name
    assert len(embedded.checks()) == 3 and all(check.ok for check in embedded.checks())
    assert embedded.chains == 20 and len(embedded.x) == 25_000


def test_its_rows():
    text = gzip.decompress(importlib.resources.files("rdiff.data").joinpath(SAMPLE).read_bytes()).decode()
    assert text.startswith("chain,t,Q1,Q2,Q3\n0,0,")
    rows = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1).reshape(20, 1250, 5)
    assert np.all(rows[..., 1] == 4 * np.arange(1250))
    means = rows[..., 3].mean(axis=1) / 10  # E X2 by chains
    assert abs(means.mean() - 0.5999611116) < 4.5 * means.std(ddof=1) / math.sqrt(20) < 0.04


def test_it_agrees_with_a_plain_loop(embedded):
    rows = by_hand.on_a_grid(100, 2, 0.9, every=4.0, rows=2500, burn_in=25, seed=3)
    plain = rdiff.Samples(rows, n=100, b=2, beta=1.0, weights="regular", time=4.0 * np.arange(2500))
    ours, theirs = embedded.expect(H), plain.expect(H)
    for name in H:
        error = math.hypot(ours[name].stderr, theirs[name].stderr)
        assert abs(ours[name].mean - theirs[name].mean) < 4.5 * error < 0.2, name
    assert all(check.ok for check in plain.checks())


def test_its_maker_makes_the_same_file_again(tmp_path):
    done = subprocess.run(
        [sys.executable, str(MAKER), str(tmp_path / "again.csv.gz")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shipped = importlib.resources.files("rdiff.data").joinpath(SAMPLE).read_bytes()
    assert gzip.decompress((tmp_path / "again.csv.gz").read_bytes()) == gzip.decompress(shipped)
    assert len(shipped) < 120_000


def test_a_note_that_holds_for_all_chains_is_said_once(embedded):
    assert embedded.notes == ("grid of times: median spacing 4, from 4 to 4",)
    times = np.tile(np.arange(200.0), 6).reshape(6, 200)
    times[1:] *= 2
    q = np.tile([[4, 1], [3, 0]], (6, 100, 1))
    S = rdiff.Samples(q, n=4, b=1, beta=1.0, weights="regular", time=times.ravel())
    assert S.notes == (
        "chain 0: grid of times: median spacing 1, from 1 to 1",
        "chains 1, 2, 3 and 2 more: grid of times: median spacing 2, from 2 to 2",
    )
