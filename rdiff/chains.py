"""A reflected diffusion as a chain for the engine: one path, or a pair of paths at dt and dt/2 on the same noise."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rdiff.domain import along
from rdiff.engine import AbstractChain
from rdiff.functionals import evaluate
from rdiff.noise import AbstractNoise, draw
from rdiff.process import AbstractReflectedDiffusion
from rdiff.solvers import AbstractReflectedSolver
from rdiff.solvers.base import matvec
from rdiff.solvers.bridge_euler import bridge, variance_across
from rdiff.types import PyTree

# States travel as tuples of scalars: vmapped, each is one array over lanes, and a step is a single fused loop.


class AbstractDiffusionChain(AbstractChain):
    """What every such chain is made of."""

    process: AbstractReflectedDiffusion
    solver: AbstractReflectedSolver
    noise: AbstractNoise
    dt: Float[Array, ""]
    observables: tuple[Callable[..., Any], ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def move(self, y: tuple[Array, ...], dt: Array, dw: Array, mark: Array) -> tuple[Array, ...]:
        """One reflected step of a state."""
        state, _ = self.solver.advance(self.process, jnp.stack(y), dt, dw, mark)
        return tuple(part.astype(dt.dtype) for part in state)


class DiffusionChain(AbstractDiffusionChain):
    """One path with step dt."""

    def init(self, key: Key[Array, ""], start: Float[Array, " dim"]) -> PyTree:
        return tuple(start), self.noise.init(key)

    def step(self, state: PyTree) -> PyTree:
        y, noise = state
        noise, normals, mark = draw(self.noise, noise, self.process.noise_dim, self.dt.dtype)
        return self.move(y, self.dt, jnp.sqrt(self.dt) * normals, mark), noise

    def observe(self, state: PyTree) -> tuple[Float[Array, ""], ...]:
        y = jnp.stack(state[0])
        return tuple(evaluate(h, y) for h in self.observables)

    def describe(self, state: PyTree) -> dict[str, Any]:
        return {"state": jnp.stack(state[0]), "dt": float(self.dt), "observables": self.names}


class PairedChain(AbstractDiffusionChain):
    """Two paths from one start on the same noise, with steps dt and dt/2: their difference shows the bias of dt.

    The coarse mark is made from the fine path's own minimum, so each path alone has exactly the law of its scheme.
    Observables: those of the coarse path, then those of the fine one (the mean of its two points).
    """

    def init(self, key: Key[Array, ""], start: Float[Array, " dim"]) -> PyTree:
        y = tuple(start)
        return y, y, y, self.noise.init(key)

    def step(self, state: PyTree) -> PyTree:
        coarse, _, fine, noise = state
        half = self.dt / 2
        marks, moves = [], []
        for _ in range(2):
            noise, normals, mark = draw(self.noise, noise, self.process.noise_dim, self.dt.dtype)
            marks.append(mark)
            moves.append(jnp.sqrt(half) * normals)
        middle = self.move(fine, half, moves[0], marks[0])
        fine = self.move(middle, half, moves[1], marks[1])

        # The lowest point of the driftless path over both halves, and the mark that would have made it in one step.
        sigma, normal = self.process.sigma(jnp.stack(coarse)), self.process.domain.normal
        variance = variance_across(sigma, normal, self.dt.dtype) * half
        rises = [along(normal, matvec(sigma, move)) for move in moves]
        below, below_later = (bridge(rise, variance, mark)[0] for rise, mark in zip(rises, marks, strict=True))
        below = jnp.maximum(below, below_later - rises[0])
        mark = below * (below + rises[0] + rises[1]) / variance
        coarse = self.move(coarse, self.dt, moves[0] + moves[1], mark)
        return coarse, middle, fine, noise

    def observe(self, state: PyTree) -> tuple[Float[Array, ""], ...]:
        coarse, middle, fine = (jnp.stack(y) for y in state[:3])
        at_dt = [evaluate(h, coarse) for h in self.observables]
        at_half = [(evaluate(h, middle) + evaluate(h, fine)) / 2 for h in self.observables]
        return (*at_dt, *at_half)

    def describe(self, state: PyTree) -> dict[str, Any]:
        names = (*self.names, *(f"{name} at dt/2" for name in self.names))
        return {"state": jnp.stack(state[0]), "dt": float(self.dt), "observables": names}
