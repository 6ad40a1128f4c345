"""The benchmarks run, say what they measured, and race nobody with a wrong scheme. Times are not tested."""

import json
import os
import shutil

import jax
import jax.numpy as jnp
import pytest

import rdiff
from rdiff import InputError, table
from rdiff.bench import NAMES, bias, common, noise, peers, throughput, tune
from rdiff.noise import Xoshiro


def shown(module, result):
    json.dumps(result, allow_nan=False)
    return "\n".join(table.text(part, 160) for part in module.table(result))


@pytest.fixture(scope="module")
def speeds():
    return throughput.run(size=0.05, repetitions=1, chains=1024)


def test_throughput_rows(speeds):
    rows = {row["name"]: row for row in speeds["rows"]}
    assert {"bridge-heun", "numba bridge-heun", "diffeqsolve bridge-heun", "numpy projected", "c ceiling"} <= set(rows)
    assert rows["bridge-heun"]["ratio"] == 1.0
    for name, row in rows.items():
        if row["value"] is None:
            assert row["note"] and row["ratio"] is None, name
        else:
            assert row["ratio"] == pytest.approx(rows["bridge-heun"]["value"] / row["value"])
    text = shown(throughput, speeds)
    assert all(name in text for name in rows)


@pytest.mark.parametrize("name", list(throughput.PEERS))
def test_every_peer_finds_the_mean(name):
    make, expected, _ = throughput.PEERS[name]
    try:
        go = make(0.1, 2048, 1000)
    except peers.Missing:
        pytest.skip("not on this machine")
    rate, mean = go()
    # 2048 lanes over 100 time units: a standard error of about 0.007, and a start that is not quite forgotten.
    assert rate > 0
    assert mean == pytest.approx(expected, abs=0.035)


def test_no_compiler_is_a_note(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(peers, "_ceiling_program", peers._ceiling_program.__wrapped__)
    with pytest.raises(peers.Missing, match="compiler"):
        peers.c_ceiling(0.1, 16, 16)
    row = throughput._row("c ceiling", [], 1.0, "no C compiler was found")
    assert row["value"] is None and row["note"] == "no C compiler was found"


def test_a_wrong_mean_is_said():
    row = throughput._row("numba bridge-heun", [(1e6, 0.7)], 1e6, None)
    assert not row["ok"] and "0.700" in row["note"]


def test_bias():
    result = bias.run(steps=(0.2,), tolerances=(0.2,), chains=256, burn_in=20.0, horizon=20.0)
    rows = result["rows"]
    assert {"bias", "order", "sampled", "cost"} == {row["kind"] for row in rows}
    assert all(row["ok"] for row in rows if row["kind"] in ("order", "sampled"))
    for row in rows:
        assert {"name", "value", "unit", "ratio"} <= set(row)
        if row["kind"] == "cost":
            assert abs(row["bias"]) + 2 * row["stderr"] <= 0.2 * bias.EXACT["y2"]
    text = shown(bias, result)
    assert "bridge-heun" in text and "Order" in text


def test_noise():
    result = noise.run(draws=4e6)
    assert all(row["ok"] in (True, None) for row in result["rows"]) and len(result["rows"]) == 2 * (len(noise.NAMES) + 1)
    assert "the lane beside" in shown(noise, result)


class Stuck(Xoshiro):
    """Every third state is used twice: a serial correlation."""

    def bits(self, state, count):
        after, words = super().bits(state, count)
        again = words[0] % 3 == 0
        return jax.tree.map(lambda a, b: jnp.where(again, a, b), state, after), words


def test_a_bad_generator_is_seen():
    rows = noise.run(draws=1e6, noise=Stuck())["rows"]
    assert not next(row for row in rows if "one before" in row["name"])["ok"]


def test_tune(monkeypatch):
    monkeypatch.setattr(tune, "CPU", {"RDIFF_TILE": (128, 512), "RDIFF_UNROLL": (1, 2)})
    before = dict(os.environ)
    result = tune.run(chains=512, size=0.02)
    assert os.environ == before and len(result["rows"]) == 4
    assert next(row["ratio"] for row in result["rows"] if row["name"] == "RDIFF_TILE=512 RDIFF_UNROLL=1") == 1
    assert "best" in shown(tune, result)


def test_the_tuning_changes_no_number_and_nonsense_is_refused(monkeypatch):
    def mean():
        return rdiff.long_run_average(rdiff.JSQDiffusion(1.0), peers.second, key=0, chains=300, horizon=20.0).mean

    plain = mean()
    monkeypatch.setenv("RDIFF_TILE", "128")
    assert mean() == plain
    monkeypatch.setenv("RDIFF_UNROLL", "4")
    assert mean() == pytest.approx(plain, rel=1e-5)
    for name, value in (("RDIFF_UNROLL", "3"), ("RDIFF_TILE", "many")):
        monkeypatch.setenv(name, value)
        with pytest.raises(InputError, match=name):
            mean()
        monkeypatch.delenv(name)


def test_registry_and_settings():
    from rdiff.bench import benchmark

    assert all(hasattr(benchmark(name), "run") and hasattr(benchmark(name), "table") for name in NAMES)
    with pytest.raises(InputError, match="no benchmark"):
        benchmark("speed")
    assert common.settings(beta=1.0)["beta"] == 1.0
