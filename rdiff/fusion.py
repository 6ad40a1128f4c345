"""How a step is compiled: which of its numbers are kept in memory instead of computed again."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from rdiff.errors import is_traced

# Before this version the barrier is gone when XLA fuses; a stack is still there.
_BARRIER_HOLDS = jax.__version_info__ >= (0, 12)


def settle(*parts: Array) -> Sequence[Array]:
    """The same numbers, of equal shape, kept in memory on a CPU; the identity elsewhere.

    XLA's CPU compiler makes one loop for each result of a step, and each loop computes again whatever it needs of what came
    before, unless that is a division, a root or the like. Numbers that several results need are cheaper stored: over a few
    hundred lanes they stay in the first cache. A GPU's single kernel would only lose by it.

    ```python
    >>> import jax.numpy as jnp
    >>> from rdiff.fusion import settle
    >>> [float(x) for x in settle(jnp.array(1.0), jnp.array(2.0))]
    [1.0, 2.0]

    ```
    """
    if not is_traced(parts):
        return parts
    return jax.lax.platform_dependent(*parts, cpu=_store, default=lambda *xs: xs)


def _store(*parts: Array) -> tuple[Array, ...]:
    if _BARRIER_HOLDS:
        return jax.lax.optimization_barrier(parts)
    stacked: Any = jax.lax.optimization_barrier(jnp.stack(parts))
    return tuple(stacked)
