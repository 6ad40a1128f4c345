"""`rdiff bench noise`: whether the draws of a generator have the laws they should, over a thousand million of them."""

import math
import time
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from rdiff import engine
from rdiff import table as tables
from rdiff.bench.common import settings, start, watch
from rdiff.noise import AbstractNoise, Threefry, Xoshiro, draw, lane_keys, root_key
from rdiff.precision import as_dtype, precision

LEVELS = 16  # equally likely cells whose frequencies are tested
LARGEST = 4.5  # standard errors: 1 run in 1500 exceeds it over all rows


class NoiseChain(engine.AbstractChain):
    """A lane's draws beside those of the lane next to it, and those of the step before."""

    noise: AbstractNoise
    zero: Float[Array, ""]

    def init(self, key: Key[Array, ""], start: PyTree) -> PyTree:
        state, beside = self.noise.init(key), self.noise.init(start)
        return state, beside, self.zero, self.zero, self.zero, self.zero

    def step(self, state: PyTree) -> PyTree:
        own, beside, z, *_ = state
        own, normals, new = draw(self.noise, own, 1, self.zero.dtype)
        beside, others, _ = draw(self.noise, beside, 1, self.zero.dtype)
        return own, beside, normals[0], z, new, others[0]

    def observe(self, state: PyTree) -> tuple[Float[Array, ""], ...]:
        _, _, z, before, mark, beside = state
        known = [z, z**2, z**3, z**4, mark, mark**2, mark**3, z * before, z * beside, z * (mark - 1), z**2 * (mark - 1)]
        cells = [z <= cut for cut in _normal_cuts()] + [mark <= cut for cut in _exponential_cuts()]
        return (*known, *(cell.astype(z.dtype) for cell in cells))

    def describe(self, state: PyTree) -> dict[str, Any]:
        return {"state": jnp.stack(state[2:]), "observables": NAMES}


def _normal_cuts() -> np.ndarray:
    from scipy.special import ndtri

    return ndtri(np.arange(1, LEVELS) / LEVELS)


def _exponential_cuts() -> np.ndarray:
    return -np.log1p(-np.arange(1, LEVELS) / LEVELS)


# What is averaged, its mean, and its variance in one draw.
MOMENTS = {
    "normal": (0, 1), "normal^2": (1, 2), "normal^3": (0, 15), "normal^4": (3, 96), "exponential": (1, 1),
    "exponential^2": (2, 20), "exponential^3": (6, 684), "normal x the one before": (0, 1), "normal x the lane beside": (0, 1),
    "normal x exponential": (0, 1), "normal^2 x exponential": (0, 3),
}  # fmt: skip
SHARES = {k / LEVELS: (k / LEVELS) * (1 - k / LEVELS) for k in range(1, LEVELS)}
TRUTH = MOMENTS | {f"P({law} <= its {p:g} quantile)": (p, v) for law in ("normal", "exponential") for p, v in SHARES.items()}
NAMES = tuple(TRUTH)


def run(
    full: bool = False,
    progress: bool = False,
    *,
    draws: float = 1e9,
    chains: int = 4096,
    key: int = 0,
    noise: AbstractNoise | None = None,
) -> dict[str, Any]:
    """Means over `draws` draws of xoshiro (`full`: threefry too; `noise`: of that instead), float32 and float64.

    **Returns:** rows with `value` the mean, `expected`, `z` in standard errors, `ok` (|z| at most 4.5); and for each
    generator its draws a second.
    """
    start()
    say = watch(progress)
    rows: list[dict[str, Any]] = []
    for generator in [noise] if noise else [Xoshiro(), *([Threefry()] if full else [])]:
        for name in ("float32", "float64"):
            what, steps = f"{type(generator).__name__.lower()} {name}", math.ceil(draws / chains)
            say(what)
            with precision(as_dtype(jnp.dtype(name))):
                keys = lane_keys(root_key(key), chains + 1)
                chain, began, at = NoiseChain(generator, jnp.zeros((), name)), time.perf_counter(), None
                for at in engine.run(chain, keys[:-1], keys[1:], burn_in=1, steps=steps):
                    say(f"{what} {at.done / at.total:.0%}")
            assert at is not None
            means = at.sums.mean(axis=0) / steps
            for i, (label, (mean, variance)) in enumerate(TRUTH.items()):
                z = (means[i] - mean) / math.sqrt(variance / (steps * chains))
                rows.append({"name": f"{what}: {label}", "value": float(means[i]), "unit": "", "ratio": None, "expected": mean,
                             "z": z, "ok": bool(abs(z) <= LARGEST)})  # fmt: skip
            rate = steps * chains / (time.perf_counter() - began)
            rows.append({"name": f"{what}: draws", "value": rate, "unit": "1/s", "ratio": None, "expected": None, "z": None,
                         "ok": None})  # fmt: skip
    say("")
    return {"rows": rows, "settings": settings(draws=draws, chains=chains, key=key)}


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as a table."""
    cells = [
        [row["name"], f"{row['value']:.6g}", tables.number(row["expected"]), "-" if row["z"] is None else f"{row['z']:.2f}"]
        for row in result["rows"]
    ]
    title = f"Draws of the generators, {result['settings']['draws']:.3g} each"
    return [tables.build(["mean of", "found", "expected", "z"], cells, title)]
