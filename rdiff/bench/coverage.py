"""`rdiff bench coverage`: how often the 95% interval contains the exact value, with and without the control variate."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdiff import table as tables
from rdiff.averages import long_run_average
from rdiff.bench.common import settings, start, watch
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.observables import parse

OBSERVABLES = ("y2", "y1*y2", "exp(-y1-y2)", "y2>1")
LEVEL, LOW, HIGH = 0.95, 0.93, 0.97


def run(
    full: bool = False,
    progress: bool = False,
    *,
    runs: int = 1600,
    chains: int = 64,
    horizon: float = 100.0,
    dt: float = 0.05,
    beta: float = 1.0,
    seed: int = 0,
) -> dict[str, Any]:
    """Many independent runs started from the exact law, each with its own interval; the share of intervals that are right.

    The bias of dt is far below a tenth of a run's standard error, so that only the error bar is tested. `full` takes four
    times the runs.

    **Returns:** rows with `value` the share covered, `ratio` = the standard error without the control over this one,
    `stderr` (mean over runs), `spread` (true standard error: that of the runs' means) and `ok`.
    """
    start()
    say = watch(progress)
    runs = 4 * runs if full else runs
    process = JSQDiffusion(beta)
    law = StationaryLaw(process)
    h = {name: parse(name) for name in OBSERVABLES}
    exact = {name: float(est) for name, est in law.expect(h).items()}  # pyright: ignore[reportAttributeAccessIssue]
    batch = min(runs, 100)
    starts = np.asarray(law.sample(seed, runs * chains), np.float32).reshape(runs, chains, process.dim)
    keys = jax.random.split(jax.random.key(seed), runs)
    rows: list[dict[str, Any]] = []
    for name, control in (("plain", None), ("control", law)):

        @jax.jit
        @jax.vmap
        def one(key: jax.Array, start: jax.Array, control: StationaryLaw | None = control) -> Any:
            return long_run_average(
                process, h, key=key, dt=dt, chains=chains, horizon=horizon, burn_in=0.0, y0=start, control=control,
                dtype=jnp.float32,
            )  # fmt: skip

        found = []
        for first in range(0, runs, batch):
            say(f"{name}, runs {first} to {first + batch}")
            found.append(one(keys[first : first + batch], starts[first : first + batch]))
        rows += [_row(name, what, [part[what] for part in found], exact[what], rows) for what in OBSERVABLES]
    say("")
    used = dict(beta=beta, runs=runs, chains=chains, horizon=horizon, dt=dt, level=LEVEL, seed=seed)
    return {"rows": rows, "settings": settings(**used)}


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as one table."""
    used = result["settings"]
    return [
        tables.build(
            ["run", "covered", "mean - exact", "stderr", "spread", "plain / this", "ok"],
            [[row["name"], f"{100 * row['value']:.1f}%", f"{row['mean'] - row['exact']:+.5f}", f"{row['stderr']:.5f}",
              f"{row['spread']:.5f}", f"{row['ratio']:.1f}", "yes" if row["ok"] else "NO"] for row in result["rows"]],
            f"Coverage of the 95% interval: {used['runs']} runs of {used['chains']} chains, beta = {used['beta']:g}",
            ["spread: standard deviation of the runs' means, which the standard error of one run should equal",
             "mean - exact: of all runs together, the bias of dt in it"],
        )
    ]  # fmt: skip


def _row(run: str, name: str, parts: list[Any], exact: float, before: list[dict[str, Any]]) -> dict[str, Any]:
    low, high = (np.concatenate([np.asarray(part.ci(LEVEL)[end], float) for part in parts]) for end in range(2))
    means, errors = (np.concatenate([np.asarray(getattr(part, of), float) for part in parts]) for of in ("mean", "stderr"))
    covered = float(np.mean((low <= exact) & (exact <= high)))
    error = math.sqrt(float(np.mean(errors**2)))
    plain = next((row["stderr"] for row in before if row["observable"] == name), error)
    return {"name": f"{run} {name}", "value": covered, "unit": "share", "ratio": plain / error, "observable": name,
            "stderr": error, "spread": float(np.std(means, ddof=1)), "mean": float(means.mean()), "exact": exact,
            "ok": LOW <= covered <= HIGH}  # fmt: skip
