"""E h(Y) as a function of beta that JAX can differentiate."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from rdiff.errors import is_traced
from rdiff.functionals import Observable, evaluate
from rdiff.limit.law import StationaryLaw
from rdiff.limit.solve import Solved
from rdiff.models import JSQDiffusion

# room for the points of any beta; unused ones weigh nothing
_ROOM = 40_000, 2_500


def expectation(beta: ArrayLike, h: Observable, b: int = 1) -> Float[Array, ""]:
    """E h(Y) for smooth h, for `jax.grad`, `jit` and `vmap` in beta: once differentiable, in the precision of beta.

    The law is solved in numpy float64 outside the traced program, h runs inside it. h must not depend on beta itself.

    **Arguments:** `beta`, a scalar in the range of `StationaryLaw`; `h`, a function of the state (b + 1,).
    **Raises:** `InputError` for beta out of range.

    ```python
    >>> import jax, rdiff
    >>> from rdiff.limit.gradient import expectation
    >>> print(f"{jax.grad(expectation)(1.0, lambda y: y[0]):.4f}")
    1.0000

    ```
    """

    def total(which: int, at: Float[Array, ""]) -> Float[Array, ""]:
        shapes = [jax.ShapeDtypeStruct(shape, at.dtype) for shape in ((_ROOM[which], b + 1), (_ROOM[which],))]
        y, w = jax.pure_callback(lambda x: _points(which, x, b, at.dtype), shapes, at, vmap_method="sequential")
        return jnp.sum(w * jax.vmap(lambda state: evaluate(h, state))(y))

    @jax.custom_jvp
    def mean(at: Float[Array, ""]) -> Float[Array, ""]:
        return total(0, at)

    @mean.defjvp
    def _(at: Any, tangent: Any) -> Any:
        return mean(at[0]), total(1, jax.lax.stop_gradient(at[0])) * tangent[0]

    if not is_traced(beta):
        StationaryLaw(JSQDiffusion(np.asarray(beta).item(), b))  # refuses what is out of range before anything is traced
    return mean(jnp.asarray(beta, jnp.result_type(beta, float)))


def _points(which: int, beta: Any, b: int, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of E h (0) or of d/dbeta E h (1), padded."""
    solved: Solved = StationaryLaw(JSQDiffusion(float(beta), b))._solved
    points, weights = solved.slopes if which else solved.quadratures[0]
    y, w = np.zeros((_ROOM[which], b + 1), dtype), np.zeros(_ROOM[which], dtype)
    y[: len(points), :2], w[: len(points)] = points[:, : b + 1], weights
    y[len(points) :, :2] = points[0, : b + 1]
    return y, w
