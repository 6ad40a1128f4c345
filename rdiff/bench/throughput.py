"""`rdiff bench throughput`: path-steps a second of the long-run engine beside other ways to the same number, in one run."""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from rdiff import table as tables
from rdiff.bench import peers
from rdiff.bench.common import settings, start, watch
from rdiff.chains import DiffusionChain
from rdiff.models import JSQDiffusion
from rdiff.noise import Threefry, Xoshiro, root_key
from rdiff.solvers import BridgeHeun

EXACT, PROJECTED = 0.814, 0.516  # E Y2 at beta = 1: of the limit, and of the projected step at dt = 0.1
OURS = "bridge-heun"
# What averages Y2, the mean it must find, and the path-steps of one repetition at size 1, in thousands a lane.
PEERS: dict[str, tuple[Callable[..., peers.Go], float, float]] = {
    OURS: (partial(peers.engine, noise=Xoshiro()), EXACT, 80),
    "bridge-heun threefry": (partial(peers.engine, noise=Threefry()), EXACT, 14),
    "numba bridge-heun": (peers.numba_heun, EXACT, 14),
    "diffeqsolve bridge-heun": (partial(peers.diffeqsolve, noise=Threefry()), EXACT, 20),  # the noise of ReflectedTerm
    "diffeqsolve bridge-heun xoshiro": (partial(peers.diffeqsolve, noise=Xoshiro()), EXACT, 80),
    "diffeqsolve projected": (peers.diffeqsolve_projected, PROJECTED, 14),
    "numpy projected": (peers.numpy_projected, PROJECTED, 28),
    "c ceiling": (peers.c_ceiling, EXACT, 140),
}
TOLERANCE = 0.05  # of E Y2: nobody races with a wrong scheme


def run(
    full: bool = False,
    progress: bool = False,
    *,
    dt: float = 0.1,
    chains: int = 4096,
    size: float = 1.0,
    repetitions: int = 5,
    memory_horizons: tuple[float, float] = (1e3, 1e5),
) -> dict[str, Any]:
    """Path-steps a second, float32, all cores, of rdiff's engine and of others; the median of interleaved repetitions.

    **Arguments:** `full` adds the peak memory of long runs, which must not grow with the horizon; `size` scales the length of
    a repetition (about a second at 1); `chains`: lanes; `memory_horizons`: a short and a long one.

    **Returns:** rows with `value` in path-steps a second (None with a `note` where a peer is missing), `ratio` =
    bridge-heun's value / this one (how many times faster rdiff is), `mean` of Y2 found, the `expected` one, `ok`; in the
    settings, the `operations` of a path-step and the `bytes` of its state, read and written.
    """
    start()
    say = watch(progress)
    racers: dict[str, peers.Go] = {}
    missing: dict[str, str] = {}
    for name, (make, _, thousands) in PEERS.items():
        say(f"compiling {name}")
        try:
            racers[name] = make(dt, chains, 2 * max(1, round(thousands * size * 500)))
        except peers.Missing as lack:
            missing[name] = str(lack)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in racers}
    for k in range(repetitions):
        for name, go in racers.items():
            say(f"{name}, {k + 1} of {repetitions}")
            found[name].append(go())
    ours = statistics.median(rate for rate, _ in found[OURS])
    rows = [_row(name, found.get(name, []), ours, missing.get(name)) for name in PEERS]
    if full:
        say("memory")
        rows += _memory(dt, chains, memory_horizons)
    say("")
    return {"rows": rows, "settings": settings(
        beta=1.0, dt=dt, chains=chains, dtype="float32", repetitions=repetitions, ratio="bridge-heun / row", **work(dt),
    )}  # fmt: skip


def work(dt: float) -> dict[str, int | None]:
    """What a path-step of bridge-heun must do: arithmetic `operations` as XLA counts them before it optimises (None where
    a backend does not count), and the `bytes` of a lane's state and sum, read and written, where no cache keeps them from
    one step to the next.

    ```python
    >>> from rdiff.bench.throughput import work
    >>> work(0.1)["bytes"]  # two coordinates, four words of the generator, one sum
    56

    ```
    """
    chain = DiffusionChain(JSQDiffusion(jnp.float32(1)), BridgeHeun(), Xoshiro(), jnp.float32(dt), (peers.second,), ("y2",))

    def step(state: Any, part: jax.Array) -> Any:
        state = chain.step(state)
        return state, part + chain.observe(state)[0]

    lane = chain.init(root_key(0), jnp.zeros(2, jnp.float32)), jnp.float32(0)
    counted = jax.jit(step).lower(*lane).cost_analysis() or {}
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(lane))
    return {"operations": int(counted["flops"]) if "flops" in counted else None, "bytes": 2 * size}


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as tables: throughput, and memory where it was measured."""
    speed = [row for row in result["rows"] if row["unit"] == "path-steps/s"]
    memory = [row for row in result["rows"] if row["unit"] == "MiB"]
    used = result["settings"]
    found = [
        tables.build(
            ["", "million path-steps/s", "bridge-heun / row", "E y2", "expected"],
            [[row["name"], _cell(row["value"], "{:.1f}", 1e-6), _cell(row["ratio"], "{:.2f}"), _cell(row["mean"], "{:.3f}"),
              f"{row['expected']:.3f}"] for row in speed],
            f"Throughput, float32, {used['cores']} cores, {used['chains']} chains, dt {used['dt']:g}",
            [f"median of {used['repetitions']} interleaved repetitions; jax {used['jax']} on {used['device']}",
             *_floor(speed[0]["value"], used["operations"], used["bytes"]),
             *(f"{row['name']}: {row['note']}" for row in speed if row["note"])],
        )
    ]  # fmt: skip
    if memory:
        cells = [[row["name"], f"{row['value']:.0f}", _cell(row["ratio"], "{:.2f}")] for row in memory]
        found.append(tables.build(["peak memory", "MiB", "to the shorter run"], cells, "Memory of a long run"))
    return found


def _floor(rate: float, operations: int | None, size: int) -> list[str]:
    """What the rate of path-steps asks of a device, to hold against what its maker promises."""
    if operations is None:
        return []
    return [f"a path-step of bridge-heun is {operations} operations on {size} bytes, read and written: "
            f"{rate * operations / 1e9:.0f} G/s and {rate * size / 1e9:.0f} GB/s"]  # fmt: skip


def _row(name: str, found: list[tuple[float, float]], ours: float, note: str | None) -> dict[str, Any]:
    expected = PEERS[name][1]
    row = {"name": name, "value": None, "unit": "path-steps/s", "ratio": None, "mean": None, "expected": expected,
           "ok": None, "note": note}  # fmt: skip
    if found:
        rate, mean = statistics.median(rate for rate, _ in found), statistics.fmean(mean for _, mean in found)
        row |= {"value": rate, "ratio": ours / rate, "mean": mean, "ok": abs(mean - expected) <= TOLERANCE * expected}
        if not row["ok"]:
            row["note"] = f"its E y2 is {mean:.3f}, not {expected:.3f}: the run is too short, or the scheme is wrong"
    return row


def _memory(dt: float, chains: int, horizons: tuple[float, float]) -> list[dict[str, Any]]:
    """Peak resident memory of a process that does one long run and nothing else, for a short and a long horizon."""
    rows = []
    for horizon in horizons:
        code = (
            "import resource, rdiff; rdiff.use_all_cores(); "
            f"rdiff.long_run_average(rdiff.JSQDiffusion(1.0), lambda y: y[1], key=0, dt={dt}, chains={chains}, "
            f"horizon={horizon}, burn_in=1.0); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ).stdout
        mib = int(out) / (2**20 if sys.platform == "darwin" else 2**10)
        rows.append({"name": f"horizon {horizon:g}", "value": mib, "unit": "MiB", "ratio": None, "mean": None, "expected": None,
                     "ok": mib < 1024, "note": None})  # fmt: skip
    rows[-1]["ratio"] = rows[-1]["value"] / rows[0]["value"]
    return rows


def _cell(value: float | None, form: str, scale: float = 1.0) -> str:
    return "-" if value is None else form.format(value * scale)
