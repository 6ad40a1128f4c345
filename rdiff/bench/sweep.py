"""`rdiff bench sweep`: what a grid of parameters costs beside its batches, what more devices bring, what compilation takes."""

import json
import statistics
import subprocess
import sys
import time
from typing import Any

import jax
import numpy as np

from rdiff import table as tables
from rdiff.bench.common import cores, settings, start, watch
from rdiff.bench.peers import second
from rdiff.sweeps.lanes import usual_size
from rdiff.sweeps.sweep import sweep

# A process of its own, since the number of devices is fixed at JAX's first use: seconds of compilation, of the best run.
PROGRAM = """
import json, sys, time
import arviz_stats.base  # which the first run would import
import rdiff
from rdiff.bench.peers import second
devices, chains, horizon = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
rdiff.use_all_cores(devices)
def seconds(key, horizon):
    began = time.perf_counter()
    rdiff.long_run_average(rdiff.JSQDiffusion(1.0), second, key=key, chains=chains * devices, horizon=horizon, burn_in=1.0)
    return time.perf_counter() - began
compiled = seconds(0, 20.0) - seconds(1, 20.0)
print(json.dumps([compiled, min(seconds(key, horizon) for key in range(3))]))
"""


def run(
    full: bool = False,
    progress: bool = False,
    *,
    points: int = 1000,
    chains: int = 256,
    horizon: float = 1000.0,
    lanes: int = 4096,
    long: float = 20_000.0,
) -> dict[str, Any]:
    """Seconds of a grid of `points` betas, of weak scaling over host devices, and of the engine's compilation.

    **Arguments:** `full` doubles the grid; `chains` a point and `horizon` of the grid; `lanes` a device and
    horizon `long` in the scaling: seconds of work, since starting and ending a run is not shared.

    **Returns:** rows with `value` in seconds and `ratio`: for the grid, its time to points/(points a batch) single batches; for
    the scaling, the speed of d devices with d times the lanes to d times that of one.
    """
    start()
    say = watch(progress)
    points = 2 * points if full else points
    size = min(points, usual_size(chains))
    options: dict[str, Any] = {"chains": chains, "horizon": horizon, "batch": size}
    betas = np.linspace(0.5, 2.0, points)
    some = np.linspace(0.5, 2.0, size)  # as much burn-in as the grid has

    def seconds(grid: np.ndarray, key: int) -> float:
        began = time.perf_counter()
        sweep({"beta": grid}, second, key=key, **options)
        return time.perf_counter() - began

    say("one batch")
    seconds(some, 0)
    singles = [seconds(some, key) for key in (1, 2, 3)]
    say(f"a grid of {points} betas")
    whole = seconds(betas, 4)
    single = statistics.median([*singles, *(seconds(some, key) for key in (5, 6))])
    rows = [
        {"name": f"one batch of {size} betas", "value": single, "unit": "s", "ratio": None},
        {"name": f"grid of {points} betas", "value": whole, "unit": "s", "ratio": whole / (points / size * single)},
    ]
    if jax.default_backend() == "cpu":
        compiled, base = _scaling(1, lanes, long, say)
        rows.append({"name": "compilation of the engine", "value": compiled, "unit": "s", "ratio": None})
        rows.append({"name": "1 device", "value": base, "unit": "s", "ratio": 1.0})
        if cores() > 1:
            more = _scaling(2, lanes, long, say)[1]
            rows.append({"name": "2 devices, twice the lanes", "value": more, "unit": "s", "ratio": base / more})
    say("")
    return {
        "rows": rows,
        "settings": settings(chains=chains, horizon=horizon, points=points, batch=size, lanes=lanes, long=long),
    }


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as a table."""
    cells = [
        [row["name"], f"{row['value']:.2f}", "-" if row["ratio"] is None else f"{row['ratio']:.2f}"] for row in result["rows"]
    ]
    notes = ["ratio: of the grid, to as many single batches; of 2 devices, how fast each is beside one alone"]
    return [tables.build(["", "s", "ratio"], cells, f"Grids and devices, {result['settings']['device']}", notes)]


def _scaling(devices: int, lanes: int, horizon: float, say: Any) -> list[float]:
    say(f"{devices} devices")
    command = [sys.executable, "-c", PROGRAM, str(devices), str(lanes), str(horizon)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
