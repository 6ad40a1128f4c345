"""A control variate from the exact law: the average's own error, followed along the path.

With G f = h - E h and D f = 0 at the wall, int (h(Y) - E h) dt = f(Y_T) - f(Y_0) - int f_1(Y) sigma dW: the whole error of a
long average. Along a simulated path the right side is known, and in a stationary run its mean is 0 for any function f, so
it can be taken away. What remains are the local errors of the steps.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from numpy.polynomial import chebyshev as series

from rdiff.chains import AbstractDiffusionChain
from rdiff.domain import along
from rdiff.errors import AccuracyWarning, InputError, is_traced
from rdiff.functionals import evaluate
from rdiff.limit.law import StationaryLaw
from rdiff.limit.poisson import BEND
from rdiff.models import JSQDiffusion
from rdiff.noise import draw
from rdiff.process import AbstractReflectedDiffusion
from rdiff.solvers.base import matvec
from rdiff.types import PyTree

_SMALL = 3e-3  # of the largest coefficient; what is cut costs variance, never bias


class Control(eqx.Module):
    """f, f_1 and f_11 of a Poisson solution as short Chebyshev sums, cheap enough to be evaluated at every step."""

    terms: Float[Array, "3 m n"]
    window: tuple[float, float] = eqx.field(static=True)

    @staticmethod
    def of(law: StationaryLaw, h: Callable[..., Any]) -> "Control":
        """From the law's solution for h."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)  # a rough f leaves more variance and no bias
            f = law.poisson(h)
        scale = 2 / f.window[0]
        parts = [_cut(series.chebder(f.coefficients, order, scl=scale, axis=0)) for order in range(3)]
        rows, columns = (max(part.shape[axis] for part in parts) for axis in range(2))
        padded = [np.pad(part, ((0, rows - part.shape[0]), (0, columns - part.shape[1]))) for part in parts]
        return Control(jnp.asarray(np.stack(padded)), f.window)

    def __call__(self, y: Float[Array, " dim"]) -> list[Float[Array, ""]]:
        """f, f_1 and f_11 at y."""
        u = 2 * jnp.clip(y[0] / self.window[0], 0.0, 1.0) - 1
        v = jnp.zeros_like(u)
        if self.window[1]:
            span = math.log1p(self.window[1] / BEND)
            v = 2 * jnp.clip(jnp.log1p(jnp.maximum(y[1], 0.0) / BEND) / span, 0.0, 1.0) - 1
        _, rows, columns = self.terms.shape
        one, two = _polynomials(u, rows), _polynomials(v, columns)
        return [_sum(term, one, two, y.dtype) for term in self.terms]


class ControlledChain(AbstractDiffusionChain):
    """One path whose observables are less what their control says the path's error grows by in each step."""

    controls: tuple[Control, ...]

    def init(self, key: Key[Array, ""], start: Float[Array, " dim"]) -> PyTree:
        known = tuple(tuple(control(start)) for control in self.controls)
        return tuple(start), self.noise.init(key), known, tuple(jnp.zeros((), start.dtype) for _ in known)

    def step(self, state: PyTree) -> PyTree:
        y, noise, known, _ = state
        noise, normals, mark = draw(self.noise, noise, self.process.noise_dim, self.dt.dtype)
        dw = jnp.sqrt(self.dt) * normals
        at = jnp.stack(y)
        sigma = self.process.sigma(at)
        rise = matvec(sigma, dw)[0]
        variance = along(jnp.asarray(sigma, at.dtype)[0], jnp.asarray(sigma, at.dtype)[0]) * self.dt
        y = self.move(y, self.dt, dw, mark)
        after = tuple(tuple(control(jnp.stack(y))) for control in self.controls)
        errors = tuple(
            (new - f - f_1 * rise - f_11 * (rise**2 - variance) / 2) / self.dt
            for (f, f_1, f_11), (new, *_) in zip(known, after, strict=True)
        )
        return y, noise, after, errors

    def observe(self, state: PyTree) -> tuple[Float[Array, ""], ...]:
        y = jnp.stack(state[0])
        return tuple(evaluate(h, y) - error for h, error in zip(self.observables, state[3], strict=True))

    def describe(self, state: PyTree) -> dict[str, Any]:
        return {"state": jnp.stack(state[0]), "dt": float(self.dt), "observables": self.names}


def controls(law: Any, process: AbstractReflectedDiffusion, observables: tuple[Callable[..., Any], ...]) -> tuple[Control, ...]:
    """The control of each observable.

    **Raises:** `InputError` unless `law` is the `StationaryLaw` of this very process.
    """
    if not isinstance(law, StationaryLaw):
        raise InputError(f"control must be the exact law of the process, rdiff.StationaryLaw(process), got {law!r}")
    if is_traced(process) or not isinstance(process, JSQDiffusion):
        raise InputError("a control needs a JSQDiffusion with a plain beta, whose exact law is known")
    if float(process.beta) != law.beta or (process.b == 0) != (law.b == 0):
        raise InputError(f"control is the law of beta = {law.beta:g}, b = {law.b}, not of {process!r}")
    return tuple(Control.of(law, h) for h in observables)


def _cut(c: np.ndarray) -> np.ndarray:
    """Without the high degrees that hold no coefficient of any size."""
    large = np.abs(c) > _SMALL * np.abs(c).max()
    rows, columns = np.flatnonzero(large.any(axis=1)), np.flatnonzero(large.any(axis=0))
    return c[: rows[-1] + 1, : columns[-1] + 1] if rows.size else c[:1, :1]


def _polynomials(u: Array, count: int) -> list[Array]:
    rows = [jnp.ones_like(u), u]
    while len(rows) < count:
        rows.append(2 * u * rows[-1] - rows[-2])
    return rows[:count]


def _sum(c: Array, one: list[Array], two: list[Array], dtype: Any) -> Array:
    """Term by term, so that a vmapped scan stays one fused loop."""
    c = jnp.asarray(c, dtype)
    total = jnp.zeros((), dtype)
    for i in range(c.shape[0]):
        inner = jnp.zeros((), dtype)
        for j in range(c.shape[1]):
            inner = inner + c[i, j] * two[j]
        total = total + inner * one[i]
    return total
