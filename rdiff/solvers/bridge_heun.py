"""The default step: the bridge's minimum splits the step, and the drift acts on both sides of it."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from rdiff.domain import along
from rdiff.errors import InputError
from rdiff.fusion import settle
from rdiff.process import AbstractReflectedDiffusion
from rdiff.solvers.base import AbstractReflectedSolver, matvec
from rdiff.solvers.bridge_euler import bridge, variance_across
from rdiff.solvers.projected_euler import keep


class BridgeHeun(AbstractReflectedSolver):
    """A reflected step of weak order 2 in stationary averages, for additive noise. The default.

    The step is split at the time of the free path's minimum, and the drift is averaged along the conditional mean of the
    path before and after it: what acts before the minimum moves the push, what acts after it moves the end. One normal and
    one exponential a step, no more than `BridgeEuler`.

    Bias at beta = 1 of join-the-shortest-queue, dt = 0.1: -0.0001 in E Y2 = 0.8141 (BridgeEuler +0.025, ProjectedEuler
    -0.30).

    **Raises:** `InputError` for state-dependent noise: the path's conditional mean given its minimum is known only for
    additive noise.

    Source: derived for rdiff. The conditional means are those of a Brownian path given its increment and its minimum (its
    two sides are first-passage paths, whose increments are exchangeable); Mills' ratio by a rational fit good to 8e-5.

    ```python
    >>> import jax.numpy as jnp, rdiff
    >>> Y = rdiff.JSQDiffusion(beta=1.0)
    >>> y, push = rdiff.BridgeHeun().advance(Y, jnp.array([0.1, 0.5]), jnp.array(0.1), jnp.array([0.0]), jnp.array(1.0))
    >>> round(float(push), 4), [round(float(x), 4) for x in y]
    (0.2009, [0.3182, 0.6399])

    ```
    """

    weak_order: ClassVar[float] = 2.0

    def check(self, process: AbstractReflectedDiffusion) -> None:
        if not process.additive:
            raise InputError(
                "BridgeHeun needs additive noise, got a state-dependent diffusion: it averages the drift along the mean of a "
                "Brownian path given its minimum, which is known only when the noise does not vary along the step. "
                "Use solver=rdiff.BridgeEuler(), which takes any noise (weak order 1)"
            )

    def advance(self, process: AbstractReflectedDiffusion, y: Array, dt: Array, dw: Array, mark: Array) -> tuple[Array, Array]:
        n = process.domain.normal
        r = jnp.asarray(process.domain.direction, y.dtype)
        coordinates = range(process.dim)
        sigma = process.sigma(y)
        s2 = variance_across(sigma, n, y.dtype)
        v = matvec(sigma, matvec(jnp.asarray(sigma, y.dtype).T, jnp.asarray(n, y.dtype))) / s2
        # Displacements are counted in units of the path's own spread across the wall; what several of them need is settled.
        unit = jnp.sqrt(s2 * dt)
        per = 1 / unit
        mu, noise = process.drift(y), matvec(sigma, dw)
        d = [(mu[i] * dt + noise[i]) * per for i in coordinates]
        dn = along(n, d)
        height = process.domain.height(y)
        a, c, x = bridge(dn, 1.0, mark)
        m = _mills(x)
        over = jnp.maximum(a - height * per, 0)  # how far the free path goes over the wall
        back = over * (over / jnp.maximum(a, 1e-12)) / 2  # over <= a inside the domain; the floor is for a = 0
        a, c, q, m, xm, over, back, *d = settle(a, c, a / x, m, x * m, over, back, *d)
        p = 1 - q  # the mean fractions of the step before the minimum and after it

        # Mean displacements from y before the minimum and after it: along v, along what is left of d, along r.
        k0, k1, half0, half1 = settle(m / 2 - a / 2, m / 2 - a + c / 2, (1 - p * xm) / 2, (1 + q * xm) / 2)
        rest = [d[i] - v[i] * along(n, d) for i in coordinates]
        before = jnp.stack([v[i] * k0 + rest[i] * half0 + r[i] * back for i in coordinates])
        after = jnp.stack([v[i] * k1 + rest[i] * half1 + r[i] * over for i in coordinates])

        whole = unit * jnp.stack(d)
        if process.linear:
            _, jacobian = jax.linearize(process.drift, y)
            curved = jnp.zeros_like(whole)
        else:
            _, jacobian = jax.linearize(process.drift, y + whole / 2)
            curved = (process.drift(y + whole) - mu - jacobian(whole)) * (per / 2)
        g0, g1 = jacobian(before) + curved, jacobian(after) + curved
        d0 = [q * dt * g0[i] for i in coordinates]
        d1 = [p * dt * g1[i] for i in coordinates]

        free = [y[i] + unit * (d[i] + d0[i] + d1[i]) for i in coordinates]
        low = unit * (a - along(n, d0)) - height
        low, *free = settle(low, *free)
        end = jnp.stack(free)
        push = jnp.maximum(low, jnp.maximum(-process.domain.height(end), 0))
        return keep(process, end, push), push


def _mills(x: Array) -> Array:
    """Mills' ratio (1 - Phi(x))/phi(x) for x >= 0, within 8.1e-5 of itself: cruder fits cost the order."""
    above = 1.2533141373 + x * (0.76553158 + x * 0.18680572)
    return above / (1 + x * (1.41010961 + x * (0.76679742 + x * 0.18680572)))
