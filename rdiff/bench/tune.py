"""`rdiff bench tune`: how the engine's loops are best cut on this device. No number it computes depends on that."""

import itertools
import os
import statistics
from functools import partial
from typing import Any

import jax

from rdiff import table as tables
from rdiff.bench import peers
from rdiff.bench.common import settings, start, watch
from rdiff.layout import TUNING
from rdiff.noise import Xoshiro

CPU = {"RDIFF_TILE": (128, 256, 512, 1024, 2048), "RDIFF_UNROLL": (1, 2)}
ELSEWHERE = {"RDIFF_TILE": (512,), "RDIFF_UNROLL": (1, 2, 4, 8, 16)}


def run(full: bool = False, progress: bool = False, *, chains: int | None = None, size: float = 1.0) -> dict[str, Any]:
    """Path-steps a second of the engine, float32, for each cut of its loops; the median of interleaved repetitions.

    **Arguments:** `full`: more repetitions; `chains`: lanes (4096, or a million where there is no CPU to be spared); `size`
    scales the length of a repetition.

    **Returns:** rows with `value` in path-steps a second, `ratio` = value / that of the cut in use, `set`, the
    environment variables.
    """
    start()
    say = watch(progress)
    cpu = jax.default_backend() == "cpu"
    lanes = chains or (4096 if cpu else 2**20)
    choices = CPU if cpu else ELSEWHERE
    cuts = [dict(zip(choices, map(str, values), strict=True)) for values in itertools.product(*choices.values())]
    names = [" ".join(f"{key}={value}" for key, value in cut.items()) for cut in cuts]
    steps = 2 * max(1, round(8000 * size * 4096 / lanes))
    found: dict[str, list[float]] = {name: [] for name in names}
    before = {name: os.environ.get(name) for name in TUNING}
    try:
        racers = []
        for name, cut in zip(names, cuts, strict=True):
            say(f"compiling {name}")
            os.environ.update(cut)
            racers.append(partial(peers.engine, 0.1, lanes, steps, Xoshiro())())
        for k in range(9 if full else 3):
            for name, cut, go in zip(names, cuts, racers, strict=True):
                say(f"{name}, {k + 1}")
                os.environ.update(cut)
                found[name].append(go()[0])
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
    say("")
    used = " ".join(f"{name}={before[name] or value}" for name, value in TUNING.items())
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    reference = medians.get(used) or max(medians.values())
    rows = [
        {"name": name, "value": value, "unit": "path-steps/s", "ratio": value / reference, "set": cut}
        for (name, value), cut in zip(medians.items(), cuts, strict=True)
    ]
    return {"rows": rows, "settings": settings(chains=lanes, in_use=used, best=max(medians, key=lambda name: medians[name]))}


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as a table."""
    cells = [[row["name"], f"{row['value'] / 1e6:.1f}", f"{row['ratio']:.2f}"] for row in result["rows"]]
    used = result["settings"]
    notes = [f"best: {used['best']}; set these in the environment to use them. The numbers computed are the same."]
    columns = ["loops", "million path-steps/s", "to those in use"]
    return [tables.build(columns, cells, f"Engine, float32, {used['chains']} chains on {used['device']}", notes)]
