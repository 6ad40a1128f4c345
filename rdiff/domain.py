"""The half-space a diffusion is kept in, and the direction in which it is pushed back."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from rdiff.errors import InputError, is_traced, real
from rdiff.types import Points, Scalar


class HalfSpace(eqx.Module):
    """The half-space {y : n.y >= offset} with an oblique reflection direction r at its boundary.

    A path that reaches the boundary is pushed along r; the pushing process U (the local time) grows only there.
    Since U scales with r, the direction given is rescaled so that n.r = 1: U is then counted in units of n.y.

    **Arguments:**

    - `normal`: n, shape (dim,); points into the domain; need not have length 1.
    - `direction`: r, shape (dim,); any positive multiple of the direction meant. Default: n, normal reflection.
    - `offset`: where the boundary lies.

    **Raises:** `InputError` when n.r <= 0: such a push does not lead back into the domain.

    Source: Lions and Sznitman, Stochastic differential equations with reflecting boundary conditions, CPAM 37 (1984).

    ```python
    >>> from rdiff import HalfSpace
    >>> wall = HalfSpace(normal=[1.0, 0.0], direction=[2.0, 2.0])   # the wall of join-the-shortest-queue
    >>> wall.direction.tolist(), float(wall.height([3.0, 1.0]))
    ([1.0, 1.0], 3.0)

    ```
    """

    normal: Float[np.ndarray, " dim"] | Float[Array, " dim"]
    direction: Float[np.ndarray, " dim"] | Float[Array, " dim"]
    offset: Scalar

    def __init__(self, normal: Points, direction: Points | None = None, offset: Scalar = 0.0):
        direction = normal if direction is None else direction
        for name, vector in (("normal", normal), ("direction", direction)):
            real(name, vector if is_traced(vector) else np.asarray(vector))
        self.offset = real("offset", offset)
        if np.ndim(offset):
            raise InputError(f"offset must be one number, got shape {np.shape(offset)}")
        xp = jnp if is_traced((normal, direction)) else np
        self.normal = xp.asarray(normal, dtype=None if xp is jnp else float)
        n, r = self.normal, xp.asarray(direction, dtype=None if xp is jnp else float)
        if n.ndim != 1 or n.shape != r.shape or not n.size:
            raise InputError(f"normal and direction must be vectors of one length, got shapes {n.shape} and {r.shape}")
        inward = n @ r
        if not is_traced(inward) and inward <= 1e-12 * np.linalg.norm(n) * np.linalg.norm(r):
            raise InputError(
                f"the reflection direction must point into the domain, normal.direction > 0, got {inward:g} from normal "
                f"{n.tolist()} and direction {r.tolist()}: a push along it would never leave the boundary "
                "(usual cause: a sign, or normal and direction interchanged)"
            )
        self.direction = r / inward

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.normal.shape[0]

    def height(self, y: Points) -> Array:
        """n.y - offset: nonnegative inside, 0 on the boundary."""
        y = jnp.asarray(y)
        return along(self.normal, y) - jnp.asarray(self.offset, y.dtype)

    def contains(self, y: Points, tolerance: float = 0.0) -> Array:
        """Whether y lies in the domain, up to `tolerance` in height."""
        return self.height(y) >= -tolerance

    def push(self, y: Points, amount: Scalar) -> Array:
        """y moved by `amount` along r, so that its height grows by `amount`."""
        y = jnp.asarray(y)
        return y + jnp.asarray(self.direction, y.dtype) * amount


def along(n: ArrayLike, y: Float[Array, " dim"] | Sequence[Array]) -> Array:
    """n.y for a short vector, summed coordinate by coordinate: inside a vmapped scan a dot product would
    leave XLA's fused loop, and on a GPU fall to tf32. Zeros of n known in advance cost nothing.
    """
    n = n if is_traced(n) else np.asarray(n)
    terms = [
        y[i] * (n[i] if is_traced(n) else n[i].astype(y[i].dtype))  # pyright: ignore[reportIndexIssue]
        for i in range(len(y))
        if is_traced(n) or n[i] != 0  # pyright: ignore[reportIndexIssue]
    ]
    return sum(terms[1:], start=terms[0]) if terms else jnp.zeros_like(y[0])
