"""Euler's step reflected at the minimum of its Brownian bridge."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from rdiff.domain import along
from rdiff.process import AbstractReflectedDiffusion
from rdiff.solvers.base import AbstractReflectedSolver, matvec
from rdiff.solvers.projected_euler import keep


class BridgeEuler(AbstractReflectedSolver):
    """Euler's step, pushed by what the path between its ends would have needed. Weak order 1; takes any noise.

    Given both ends, the lowest height between them is that of a Brownian bridge, drawn exactly from one exponential mark.
    Exact in law for constant coefficients.

    Sources: Lepingle, Euler scheme for reflected stochastic differential equations, Mathematics and Computers in Simulation
    38 (1995); Gobet, Euler schemes and half-space approximation for the simulation of diffusion in a domain, ESAIM P&S 5
    (2001).

    ```python
    >>> import jax.numpy as jnp, rdiff
    >>> Y = rdiff.ReflectedBrownianMotion(mu=1.0, s=1.0)
    >>> y, push = rdiff.BridgeEuler().advance(Y, jnp.array([0.25]), jnp.array(0.5), jnp.array([-1.0]), jnp.array(1.0))
    >>> float(push) > 1.25      # the path went lower than its end
    True

    ```
    """

    weak_order: ClassVar[float] = 1.0

    def advance(self, process: AbstractReflectedDiffusion, y: Array, dt: Array, dw: Array, mark: Array) -> tuple[Array, Array]:
        sigma = process.sigma(y)
        d = process.drift(y) * dt + matvec(sigma, dw)
        normal = process.domain.normal
        below, _, _ = bridge(along(normal, d), variance_across(sigma, normal, d.dtype) * dt, mark)
        push = jnp.maximum(below - process.domain.height(y), 0)
        return keep(process, y + d, push), push


def bridge(dn: Array, variance: ArrayLike, mark: Array) -> tuple[Array, Array, Array]:
    """How far a Brownian path that rises by dn in a step goes below its start (a) and ends above its minimum (c).

    `variance` is that of the free rise, s^2 dt; a + c = sqrt(dn^2 + 2 variance mark) is the third value. The smaller of a
    and c is made without cancellation; values and gradients stay finite at mark = 0 and dn = 0.
    """
    spread = 2 * variance * mark
    # The floor is a millionth of the step's own scale: it keeps the derivative of the root finite.
    root = jnp.sqrt(jnp.maximum(dn**2 + spread, 1e-12 * variance))
    larger = (root + jnp.abs(dn)) / 2
    smaller = spread / (4 * larger)
    up = dn > 0
    return jnp.where(up, smaller, larger), jnp.where(up, larger, smaller), root


def variance_across(sigma: ArrayLike, normal: ArrayLike, dtype: jnp.dtype) -> Array:
    """s^2 = |sigma^T n|^2, the variance rate of the height."""
    across = matvec(jnp.asarray(sigma, dtype).T, jnp.asarray(normal, dtype))
    return along(across, across)
