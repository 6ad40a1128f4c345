"""`rdiff bench exact`: what ten digits of the limit's law cost, beside the time that simulation would need for them."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from rdiff import table as tables
from rdiff.averages import long_run_average
from rdiff.bench.common import settings, watch
from rdiff.limit.law import StationaryLaw
from rdiff.limit.solve import solved
from rdiff.models import JSQDiffusion

# Seconds, and the error relative to E Y2, that the exact law keeps to on two cores.
TARGETS = {"beta": 0.5, "h": 0.02, "grid": 20.0}
ACCURACY = 1e-8


def run(
    full: bool = False,
    progress: bool = False,
    *,
    betas: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0),
    grid: int = 100,
    repetitions: int = 5,
    chains: int = 4096,
    horizon: float = 1000.0,
    seed: int = 0,
) -> dict[str, Any]:
    """Seconds of the exact law: per beta, per further h, per grid; the error of E Y2; and what BridgeHeun would need for it.

    Warm: what JAX compiles is compiled, but no law is remembered. Nobody waits for a simulation of eight digits: one run is
    measured, and its time extrapolated as time * (stderr/error)^2. The bias of its step, dt^2, is left out, so the real
    time is longer still.

    **Arguments:** `betas` measured one at a time, `repetitions` each; `grid`: how many betas in [0.25, 4] in one call; `chains`
    and `horizon` of the simulation; `full` measures that at every beta and not at 1 alone; `seed`.

    **Returns:** rows of kinds "beta" (with `error`, the bound, and `other`, the difference to the Poisson equation's E Y2, both
    relative to E Y2), "h", "grid" (value: seconds; `target`, `ok`), and "simulated" (value: seconds extrapolated; ratio: to
    the exact law's).
    """
    say = watch(progress)
    say("compiling")
    _ask(1.5)
    rows = []
    for beta in betas:
        say(f"beta {beta:g}")
        rows.append(_one(beta, repetitions))
    say("further h")
    rows.append(_further(repetitions))
    say(f"{grid} betas")
    rows.append(_grid(grid))
    exact = {row["beta"]: row for row in rows if row["kind"] == "beta"}
    for beta in betas if full else [b for b in betas if b == 1.0] or betas[:1]:
        say(f"simulating, beta {beta:g}")
        rows.append(_simulated(beta, exact[beta], chains, horizon, seed))
    say("")
    sizes = {"repetitions": repetitions, "grid": grid, "chains": chains, "horizon": horizon, "seed": seed}
    return {"rows": rows, "settings": settings(**sizes, accuracy=ACCURACY, targets=TARGETS)}


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as tables: the exact law, and the simulation."""
    rows = result["rows"]
    exact, simulated = ([row for row in rows if (row["kind"] == "simulated") is flag] for flag in (False, True))
    return [
        tables.build(
            ["exact law, warm", "seconds", "at most", "error", "other method", "ok"],
            [[row["name"], f"{row['value']:.3g}", f"{row['target']:g}", _small(row["error"]), _small(row["other"]),
              "yes" if row["ok"] else "NO"] for row in exact],
            "Exact stationary law of the limit: E y2 from scratch",
            ["error: bound, relative to E y2 (the largest of a grid); other method: difference to the Poisson equation's E y2"],
        ),
        tables.build(
            ["BridgeHeun", "seconds run", "stderr", "error wanted", "seconds needed", "to exact"],
            [[row["name"], f"{row['seconds']:.2f}", f"{row['stderr']:.1e}", f"{row['error']:.0e}", f"{row['value']:.1e}",
              f"{row['ratio']:.0e} x"] for row in simulated],
            "The same digits by simulation, extrapolated from a measured run",
            ["seconds needed: seconds run * (stderr/error wanted)^2; the bias of the step, of order dt^2, is not counted"],
        ),
    ]  # fmt: skip


def _one(beta: float, repetitions: int) -> dict[str, Any]:
    seconds, law, found = _timed(lambda: _ask(beta), repetitions)
    other: Any = law.expect(_y2, method="poisson")
    apart = float(abs(other.mean / found.mean - 1))
    return _row(f"beta = {beta:g}", seconds, "beta", beta=beta, error=found.error / found.mean, other=apart)


def _further(repetitions: int) -> dict[str, Any]:
    """The median over observables that the law has not met; what they are made of is compiled at another beta first."""
    for h in _observables():
        _ask(1.5)[0].expect(h)
    law = _ask(1.0)[0]
    found: Any = None
    times = []
    for _ in range(max(1, repetitions)):
        for h in _observables():
            begin = time.perf_counter()
            found = law.expect(h)
            times.append(time.perf_counter() - begin)
    error = float(found.error / found.mean)
    return _row("each further h, beta = 1", statistics.median(times), "h", beta=1.0, error=error, other=None)


def _grid(count: int) -> dict[str, Any]:
    solved.cache_clear()
    begin = time.perf_counter()
    found: Any = StationaryLaw.grid(np.linspace(0.25, 4.0, count)).expect(_y2)
    seconds = time.perf_counter() - begin
    error = float(np.max(found.error / found.mean))
    return _row(f"{count} betas in [0.25, 4], one call", seconds, "grid", beta=None, error=error, other=None)


def _simulated(beta: float, exact: dict[str, Any], chains: int, horizon: float, seed: int) -> dict[str, Any]:
    """One run of BridgeHeun without compilation, and what it says of a long one: the error falls as 1/sqrt(time)."""
    process = JSQDiffusion(beta)
    # from about the stationary mean, so that a burn-in of a relaxation time is enough for a standard error
    burn_in = float(process.relaxation_time or 1.0)
    y0 = jnp.array([beta, 2 / beta if beta < 1 else 0.5])
    options: dict[str, Any] = dict(dt=0.1, chains=chains, burn_in=burn_in, y0=y0, dtype=jnp.float32)
    long_run_average(process, _y2, key=seed, horizon=horizon, **options)  # compiles
    begin = time.perf_counter()
    est: Any = long_run_average(process, _y2, key=seed + 1, horizon=horizon, **options)
    seconds, stderr = time.perf_counter() - begin, float(est.stderr)
    error = ACCURACY * float(est.mean)
    needed = seconds * (stderr / error) ** 2
    return {"name": f"beta = {beta:g}", "value": needed, "unit": "s", "ratio": needed / exact["value"], "kind": "simulated",
            "beta": beta, "seconds": seconds, "stderr": stderr, "error": error, "mean": float(est.mean),
            "extrapolated": "seconds * (stderr/error)^2"}  # fmt: skip


def _ask(beta: float) -> tuple[StationaryLaw, Any]:
    """A law from scratch and its E Y2."""
    solved.cache_clear()
    law = StationaryLaw(JSQDiffusion(beta))
    return law, law.expect(_y2)


def _timed(ask: Callable[[], tuple[StationaryLaw, Any]], repetitions: int) -> tuple[float, StationaryLaw, Any]:
    """The median time of several, and the last answer."""
    times, law, found = [], *ask()
    for _ in range(repetitions):
        begin = time.perf_counter()
        law, found = ask()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), law, found


def _observables() -> Iterator[Callable[[Any], Any]]:
    """New functions every time."""
    yield lambda y: y[0] * y[1]
    yield lambda y: y[1] ** 2
    yield lambda y: jnp.exp(-y[0] - y[1])
    yield lambda y: jnp.sqrt(1 + y[0] ** 2 + y[1] ** 2)
    yield lambda y: jnp.sin(y[0]) * jnp.cos(y[1])


def _y2(y: Any) -> Any:
    return y[1]


def _row(name: str, seconds: float, kind: str, error: float, **more: Any) -> dict[str, Any]:
    ok = bool(seconds <= TARGETS[kind] and math.isfinite(error) and error <= ACCURACY)
    return {"name": name, "value": seconds, "unit": "s", "ratio": None, "kind": kind, "target": TARGETS[kind],
            "error": float(error), "ok": ok, **more}  # fmt: skip


def _small(value: float | None) -> str:
    return "-" if value is None else f"{value:.0e}"
