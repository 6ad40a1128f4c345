"""`rdiff bench bias`: the time-step bias of each scheme, its order, and what a given accuracy costs in wall time."""

import logging
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from rdiff import table as tables
from rdiff.averages import long_run_average
from rdiff.bench.common import settings, watch
from rdiff.domain import HalfSpace
from rdiff.engine import BLOCK
from rdiff.estimate import t_quantile
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.numerical_chain import stationary_mean
from rdiff.process import ReflectedDiffusion
from rdiff.solvers import BridgeEuler, BridgeHeun, ProjectedEuler

SOLVERS = {"projected-euler": ProjectedEuler(), "bridge-euler": BridgeEuler(), "bridge-heun": BridgeHeun()}
OBSERVABLES = {"y2": lambda y: y[1], "y1**2": lambda y: y[0] ** 2}
EXACT = {"y2": 0.814059663, "y1**2": 1.592970168}  # beta = 1, from the exact law of the limit
# (solver, observable, steps, least and greatest order)
ORDERS = (
    ("bridge-euler", "y2", (0.4, 0.2, 0.1), 0.8, 1.2),
    ("bridge-heun", "y1**2", (0.4, 0.2, 0.1), 1.7, 2.4),
    ("bridge-heun", "y2", (0.4, 0.2, 0.1), 1.5, math.inf),
    ("projected-euler", "y2", (0.05, 0.025, 0.0125), 0.3, 0.5),
)
CURVED_STEPS = (0.2, 0.1, 0.05)
CURVED_MEAN = math.sqrt(2 * math.pi) / math.gamma(0.25)  # of the density exp(-x^4/4) on [0, inf)
HEUN_STEPS = (0.4, 0.2, 0.1, 0.05)  # beyond 0.7 the bias of E Y2 changes sign and says nothing
FINE = (56, 28)  # Chebyshev points for the projected step at small dt: its layer at the wall is as thin as sqrt(dt)

logger = logging.getLogger(__name__)


def run(
    full: bool = False,
    progress: bool = False,
    *,
    steps: Sequence[float] = (0.4, 0.2, 0.1, 0.05),
    tolerances: Sequence[float] | None = None,
    chains: int = 4096,
    burn_in: float = 50.0,
    horizon: float = 25.0,
    seed: int = 0,
) -> dict[str, Any]:
    """Bias at beta = 1 of join-the-shortest-queue's limit, computed; orders; sampled runs beside it; wall time to 5%.

    **Arguments:** `full` adds the wall time to 2% (minutes, nearly all of them by the projected step); `steps` of the table of
    biases; `tolerances`: fractions of E Y2; `chains`, `burn_in`, `horizon` of the sampled runs; `seed`.

    **Returns:** rows of four kinds: "bias" (ratio: to the exact mean), "order" (with the band `low` to `high`, and `ok`),
    "sampled" (value: z-score of a sampled run against the computed mean), "cost" (value: seconds; ratio: to
    the projected step's). BridgeHeun comes a second time without its clip of Y2 at 0, which shows in the bias at large dt.
    """
    tolerances = ((0.05, 0.02) if full else (0.05,)) if tolerances is None else tolerances
    process = JSQDiffusion(1.0)
    law = StationaryLaw(process)
    say = watch(progress)
    means: dict[tuple[str, float], dict[str, float]] = {}

    def mean(solver: str, dt: float) -> dict[str, float]:
        if (solver, dt) not in means:
            say(f"computing {solver}, dt {dt:g}")
            points = FINE if solver == "projected-euler" and dt < 0.02 else None
            means[solver, dt] = stationary_mean(process, SOLVERS[solver], dt, OBSERVABLES, points=points)
        return means[solver, dt]

    rows = [_bias_row(solver, dt, name, mean(solver, dt)[name]) for solver in SOLVERS for dt in steps for name in OBSERVABLES]
    rows += _without_clip(steps, say)
    rows += [_order_row(solver, name, dts, [mean(solver, dt)[name] - EXACT[name] for dt in dts], low, high)
             for solver, name, dts, low, high in ORDERS]  # fmt: skip
    rows.append(_curved(say))
    sampling: dict[str, Any] = dict(key=seed, chains=chains, burn_in=burn_in, horizon=horizon, dtype=jnp.float32)
    for i, solver in enumerate(SOLVERS):
        say(f"sampling {solver}")
        # The control variate brings the error down to where a bias of 1e-3 shows; the longer run at 0.1, one of a few 1e-4.
        options = dict(sampling, dt=0.2, solver=SOLVERS[solver], key=seed + i, control=law)
        est = long_run_average(process, OBSERVABLES["y2"], **options)
        rows.append(_sampled_row(solver, 0.2, est, mean(solver, 0.2)["y2"]))
    say("sampling bridge-heun, dt 0.1")
    options = dict(sampling, dt=0.1, horizon=16 * horizon, control=law)
    rows.append(
        _sampled_row(
            "bridge-heun", 0.1, long_run_average(process, OBSERVABLES["y2"], **options), mean("bridge-heun", 0.1)["y2"]
        )
    )
    for tolerance in tolerances:
        rows += _cost(process, tolerance, mean, sampling, say)
    say("")
    return {"rows": rows, "settings": settings(beta=1.0, chains=chains, burn_in=burn_in, seed=seed, exact=dict(EXACT))}


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as tables: biases, orders, sampled runs, cost."""
    rows = result["rows"]
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in ("bias", "order", "sampled", "cost")}
    grid: dict[tuple[str, float], dict[str, float]] = {}
    for row in kinds["bias"]:
        grid.setdefault((row["scheme"], row["dt"]), {})[row["observable"]] = row["value"]
    names = list(dict.fromkeys(row["observable"] for row in kinds["bias"]))
    exact = ", ".join(f"E {name} = {value:.7f}" for name, value in EXACT.items())
    return [
        tables.build(
            ["scheme", "dt", *(f"bias of {name}" for name in names)],
            [[scheme, f"{dt:g}", *(f"{cell[name]:+.5f}" for name in names)] for (scheme, dt), cell in grid.items()],
            f"Stationary bias at beta = 1, computed ({exact})",
        ),
        tables.build(
            ["scheme", "dt", "order", "expected", "ok"],
            [[row["name"], _list(row["dts"]), f"{row['value']:.2f}", f"{row['low']:g} to {row['high'] or 'any'}",
              _yes(row["ok"])] for row in kinds["order"]],
            "Order in dt (that of each two successive steps must lie in the band)",
        ),
        tables.build(
            ["scheme", "dt", "sampled bias", "stderr", "computed", "z"],
            [[row["scheme"], f"{row['dt']:g}", f"{row['mean'] - EXACT['y2']:+.5f}", f"{row['stderr']:.5f}",
              f"{row['computed'] - EXACT['y2']:+.5f}",
              f"{row['value']:+.1f}"] for row in kinds["sampled"]],
            "Bias of E y2, sampled (with the exact law as control but in the timed runs) and computed",
        ),
        tables.build(
            ["run", "dt", "bias", "stderr", "seconds", "ratio"],
            [[row["name"], f"{row['dt']:.2g}", f"{row['bias']:+.4f}", f"{row['stderr']:.4f}", f"{row['value']:.3g}",
              f"{row['ratio']:.2g}"] for row in kinds["cost"]],
            "Wall time until |bias| + 2 standard errors is within a fraction of E y2",
            ["ratio: to the projected step's time, in the same engine with the same chains"],
        ),
    ]  # fmt: skip


def _bias_row(scheme: str, dt: float, name: str, mean: float) -> dict[str, Any]:
    bias = mean - EXACT[name]
    return {"name": f"{scheme} {name} dt={dt:g}", "value": bias, "unit": "bias", "ratio": bias / EXACT[name],
            "kind": "bias", "scheme": scheme, "dt": dt, "observable": name, "mean": mean}  # fmt: skip


def _without_clip(steps: Iterable[float], say: Any) -> list[dict[str, Any]]:
    """BridgeHeun as derived: without holding Y2 at 0 or more at the end of a step, which moves the bias at large dt."""
    free = ReflectedDiffusion(
        drift=lambda y: jnp.stack([1.0 - y[0] - y[1], -y[1]]),
        diffusion=np.array([2.0**0.5, 0.0]),
        domain=HalfSpace(normal=[1.0, 0.0], direction=[1.0, 1.0]),
    )
    rows = []
    for dt in steps:
        say(f"computing bridge-heun without clip, dt {dt:g}")
        means = stationary_mean(free, SOLVERS["bridge-heun"], dt, OBSERVABLES, box=(10.0, 34.0))
        rows += [_bias_row("bridge-heun, y2 not held >= 0", dt, name, value) for name, value in means.items()]
    return rows


def _order_row(
    scheme: str, name: str, dts: Sequence[float], biases: Sequence[float], low: float, high: float
) -> dict[str, Any]:
    orders = [math.log(abs(b / c)) / math.log(s / t) for b, c, s, t in zip(biases, biases[1:], dts, dts[1:])]
    whole = math.log(abs(biases[0] / biases[-1])) / math.log(dts[0] / dts[-1])
    return {"name": f"{scheme} {name}", "value": whole, "unit": "order", "ratio": None, "kind": "order", "scheme": scheme,
            "observable": name, "dts": list(dts), "biases": list(biases), "orders": orders, "low": low,
            "high": high if math.isfinite(high) else None, "ok": all(low <= order <= high for order in orders)}  # fmt: skip


def _curved(say: Any) -> dict[str, Any]:
    say("computing bridge-heun, curved drift")
    process = ReflectedDiffusion(drift=lambda x: -(x**3), diffusion=2.0**0.5, domain=HalfSpace(normal=[1.0]))
    biases = [
        stationary_mean(process, SOLVERS["bridge-heun"], dt, lambda x: x[0], box=(3.2,)) - CURVED_MEAN for dt in CURVED_STEPS
    ]
    return _order_row("bridge-heun", "x, dX = -X^3 dt + sqrt(2) dW", CURVED_STEPS, biases, 1.8, math.inf)


def _sampled_row(scheme: str, dt: float, est: Any, computed: float) -> dict[str, Any]:
    z = (float(est.mean) - computed) / float(est.stderr)
    return {"name": f"{scheme} y2 dt={dt:.2g} sampled", "value": z, "unit": "standard errors", "ratio": None, "kind": "sampled",
            "scheme": scheme, "dt": dt, "mean": float(est.mean), "stderr": float(est.stderr), "computed": computed,
            "ok": abs(z) < 4}  # fmt: skip


def _cost(process: JSQDiffusion, tolerance: float, mean: Any, sampling: dict[str, Any], say: Any) -> list[dict[str, Any]]:
    """Wall time of both schemes to |bias| + 2 standard errors <= tolerance E Y2, the bias taking about half of it."""
    budget = tolerance * EXACT["y2"]

    def bias(solver: str, dt: float) -> float:
        return mean(solver, dt)["y2"] - EXACT["y2"]

    heun = next((dt for dt in HEUN_STEPS if abs(bias("bridge-heun", dt)) <= budget / 2), HEUN_STEPS[-1])
    projected = 1e-3
    for _ in range(4):  # its bias goes like sqrt(dt)
        projected = float(f"{projected * (budget / 2 / bias('projected-euler', projected)) ** 2:.2g}")
    found = []
    for solver, dt in (("projected-euler", projected), ("bridge-heun", heun)):
        left = budget - abs(bias(solver, dt))
        say(f"running {solver} to {tolerance:.0%}, dt {dt:g}")
        est, seconds = _timed(process, solver, dt, left / 2, sampling)
        row = {"name": f"{solver} to {tolerance:.0%}", "value": seconds, "unit": "s", "ratio": None, "kind": "cost",
               "scheme": solver, "dt": dt, "bias": bias(solver, dt), "mean": float(est.mean), "stderr": float(est.stderr),
               "tolerance": tolerance}  # fmt: skip
        found += [row, _sampled_row(solver, dt, est, mean(solver, dt)["y2"])]
    costs = [row for row in found if row["kind"] == "cost"]
    for row in costs:
        row["ratio"] = row["value"] / costs[0]["value"]
    return found


def _timed(process: JSQDiffusion, solver: str, dt: float, stderr: float, sampling: dict[str, Any]) -> tuple[Any, float]:
    """A run until the standard error is at most `stderr`: the estimate, and seconds without compilation."""
    # Few lengths of calls of the device, each met in the first run, which compiles and is not counted.
    burn_in, horizon = (math.ceil(sampling[name] / dt) for name in ("burn_in", "horizon"))
    chunk = BLOCK * math.ceil(burn_in / 4 / BLOCK)
    if burn_in > chunk:
        burn_in = chunk * math.ceil(burn_in / chunk)
    horizon = min(horizon // 5, 64) * math.ceil(horizon / 5 / 64) or 1  # a round; the run goes on until it is good
    options: dict[str, Any] = dict(sampling, dt=dt, solver=SOLVERS[solver], chunk=chunk, horizon=horizon * dt)
    long_run_average(process, OBSERVABLES["y2"], **dict(options, burn_in=min(burn_in, chunk) * dt))
    options |= dict(burn_in=burn_in * dt, atol=stderr * t_quantile(0.95, sampling["chains"] - 1))
    began = time.perf_counter()
    est = long_run_average(process, OBSERVABLES["y2"], **options)
    return est, time.perf_counter() - began


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _yes(ok: bool) -> str:
    return "yes" if ok else "NO"
