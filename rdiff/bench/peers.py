"""Other ways to the same numbers, raced by `rdiff bench throughput`: each averages Y2 at beta = 1 and counts path-steps.

A peer is made once (compiled, warm) and returns a function: go() -> (path-steps per second, average of Y2).
"""

import atexit
import functools
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from rdiff.averages import long_run_average
from rdiff.bench.common import cores
from rdiff.devices import lane_sharding
from rdiff.models import JSQDiffusion
from rdiff.noise import AbstractNoise, lane_keys, root_key
from rdiff.solvers import BridgeHeun, ReflectedTerm

Go = Callable[[], tuple[float, float]]
BURN_IN = 500  # steps


class Missing(Exception):
    """A peer that this machine lacks; the message says what."""


def engine(dt: float, lanes: int, steps: int, noise: AbstractNoise) -> Go:
    """rdiff's own long run, burn-in and host work included in its time."""
    process = JSQDiffusion(1.0)
    seeds = iter(range(10**6))

    def go() -> tuple[float, float]:
        began = time.perf_counter()
        est = long_run_average(
            process, second, key=next(seeds), dt=dt, chains=lanes, horizon=steps * dt, burn_in=BURN_IN * dt, noise=noise,
            dtype=jnp.float32, chunk=4096,
        )  # fmt: skip
        return (steps + BURN_IN) * lanes / (time.perf_counter() - began), float(est.mean)  # pyright: ignore[reportAttributeAccessIssue]

    go()
    return go


def second(y: jax.Array) -> jax.Array:
    """Y2."""
    return y[1]


def diffeqsolve(dt: float, lanes: int, steps: int, noise: AbstractNoise) -> Go:
    """`diffrax.diffeqsolve` with rdiff's solver, vmapped; one loop a device."""
    process = JSQDiffusion(1.0)

    def one(key: jax.Array) -> jax.Array:
        solution = diffrax.diffeqsolve(
            ReflectedTerm(process, key, unit=dt, noise=noise), BridgeHeun(), t0=0, t1=steps, dt0=1,
            y0=(jnp.array([1.0, 0.8], jnp.float32), jnp.zeros((), jnp.float32)),
            adjoint=diffrax.ForwardMode(), max_steps=None,
        )  # fmt: skip
        y, pushed = solution.ys  # pyright: ignore[reportGeneralTypeIssues]
        # Y2 grows by the push and decays by its integral, which is therefore known without a sum.
        return (pushed[-1] - y[-1, 1] + 0.8) / (steps * dt)

    return _each_lane(one, lanes, steps)


class Projected(diffrax.Euler):
    """What a user of diffrax writes for a wall: Euler's step, then back to Y1 >= 0 along (1, 1)."""

    def step(self, terms: Any, t0: Any, t1: Any, y0: Any, args: Any, solver_state: Any, made_jump: Any) -> Any:
        y, error, _, state, result = super().step(terms, t0, t1, y0, args, solver_state, made_jump)
        y = y + jnp.maximum(-y[0], 0) * jnp.array([1, 1, 0], y.dtype)
        return y, error, dict(y0=y0, y1=y), state, result


def diffeqsolve_projected(dt: float, lanes: int, steps: int) -> Go:
    """`diffrax.diffeqsolve` with its own terms, its own fast noise, and the projected step; vmapped, one loop a device."""

    def one(key: jax.Array) -> jax.Array:
        noise = diffrax.UnsafeBrownianPath(shape=(), key=key)
        drift = diffrax.ODETerm(lambda t, y, args: jnp.array([1 - y[0] - y[1], -y[1], y[1]]))  # the last adds Y2 up
        across = diffrax.ControlTerm(lambda t, y, args: jnp.array([math.sqrt(2), 0, 0], y.dtype), noise)
        solution = diffrax.diffeqsolve(
            diffrax.MultiTerm(drift, across), Projected(), t0=0.0, t1=steps * dt, dt0=dt,
            y0=jnp.array([1, 0.5, 0], jnp.float32), adjoint=diffrax.ForwardMode(), max_steps=None,
        )  # fmt: skip
        return solution.ys[-1, 2] / (steps * dt)  # pyright: ignore[reportOptionalSubscript]

    return _each_lane(one, lanes, steps)


def _each_lane(one: Callable[[jax.Array], jax.Array], lanes: int, steps: int) -> Go:
    """A solve of one lane on all lanes, whose average Y2 it returns."""
    solve = jax.vmap(one)
    sharding = lane_sharding(lanes)
    if sharding is not None:
        lanes_spec = PartitionSpec("lanes")
        solve = jax.shard_map(solve, mesh=sharding.mesh, in_specs=lanes_spec, out_specs=lanes_spec, check_vma=False)
    solve = jax.jit(solve)
    seeds = iter(range(10**6))

    def go() -> tuple[float, float]:
        keys = lane_keys(root_key(next(seeds)), lanes)
        keys = jax.block_until_ready(keys if sharding is None else jax.device_put(keys, sharding))
        began = time.perf_counter()
        found = jax.block_until_ready(solve(keys))
        return steps * lanes / (time.perf_counter() - began), float(found.mean())

    go()
    return go


def numpy_projected(dt: float, lanes: int, steps: int) -> Go:
    """The projected step as vectorised numpy in float32, a thread a core with its own lanes and generator."""
    threads = cores()
    generators = np.random.default_rng(0).spawn(threads)

    def one(rng: np.random.Generator) -> float:
        y1, y2 = np.ones(lanes, np.float32), np.full(lanes, 0.5, np.float32)
        h, root, z = np.float32(dt), np.float32(math.sqrt(2 * dt)), np.empty(lanes, np.float32)
        mean = 0.0
        for k in range(steps):
            rng.standard_normal(out=z, dtype=np.float32)
            z *= root
            y1 += (1 - y1 - y2) * h
            y1 += z
            np.minimum(y1, 0, out=z)
            y1 -= z
            y2 *= 1 - h
            y2 -= z
            if k % 16 == 0:
                mean += float(y2.mean())
        return mean / len(range(0, steps, 16))

    def go() -> tuple[float, float]:
        with ThreadPoolExecutor(threads) as pool:
            began = time.perf_counter()
            means = list(pool.map(one, generators))
            return threads * lanes * steps / (time.perf_counter() - began), float(np.mean(means))

    return go


def numba_heun(dt: float, lanes: int, steps: int) -> Go:
    """BridgeHeun written out for join-the-shortest-queue in numba: a parallel loop over lanes, float32, fastmath."""
    try:
        from rdiff.bench.numba_heun import average
    except ImportError:
        raise Missing("numba is not installed: it comes with the extra `bench`") from None
    rng = np.random.default_rng(0)

    def words() -> np.ndarray:
        return rng.integers(1, 2**32, (lanes, 4), np.uint32)

    def go() -> tuple[float, float]:
        states = words()
        began = time.perf_counter()
        mean = average(states, BURN_IN, steps, np.float32(dt))
        return (steps + BURN_IN) * lanes / (time.perf_counter() - began), float(mean)

    average(words(), 2, 2, np.float32(dt))
    return go


@functools.cache
def _ceiling_program() -> Path:
    compiler = next((found for found in map(shutil.which, ("cc", "gcc", "clang")) if found), None)
    if compiler is None:
        raise Missing("no C compiler was found (cc, gcc, clang)")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = Path(folder) / "ceiling"
    with resources.as_file(resources.files("rdiff.bench") / "ceiling.c") as source:
        fast = ["-O3", "-march=native", "-ffast-math"]
        for flags in ([*fast, "-mprefer-vector-width=512"], fast, ["-O3"]):  # what this compiler and machine know
            command = [compiler, *flags, str(source), "-o", str(program), "-lm"]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return program
    raise Missing(f"{compiler} does not compile ceiling.c")


def c_ceiling(dt: float, lanes: int, steps: int) -> Go:
    """A C loop over the cheap half of a step, `ceiling.c`: what the processor can do. Its dt is 0.1, its lanes 512 a core."""
    del dt
    program = _ceiling_program()
    count = cores()
    command = [str(program), str(count), str(max(1, steps * lanes // (512 * count)))]

    def go() -> tuple[float, float]:
        rate, mean = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return float(rate), float(mean)

    return go
