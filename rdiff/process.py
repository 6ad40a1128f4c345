"""The object rdiff is about: a diffusion in a half-space with oblique reflection. No numerics here."""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from rdiff.domain import HalfSpace
from rdiff.errors import InputError, is_traced, positive
from rdiff.types import Scalar


class AbstractReflectedDiffusion(eqx.Module):
    """dY = drift(Y) dt + sigma(Y) dW + r dU in {n.y >= offset}, U growing only on the boundary.

    A pytree: `jit`, `vmap` over parameters and `grad` in them go through it.

    ```python
    >>> import rdiff
    >>> Y = rdiff.JSQDiffusion(beta=1.0)
    >>> isinstance(Y, rdiff.AbstractReflectedDiffusion), Y.dim, Y.noise_dim, Y.relaxation_time
    (True, 2, 1, 5.5)

    ```
    """

    drift: eqx.AbstractVar[Callable[[Float[Array, " dim"]], Float[Array, " dim"]]]
    domain: eqx.AbstractVar[HalfSpace]
    additive: ClassVar[bool]  # whether sigma is constant
    linear: ClassVar[bool]  # whether the drift is affine, which saves solvers its curvature
    nonnegative: eqx.AbstractVar[tuple[int, ...]]  # coordinates beside the height that never fall below 0

    @abc.abstractmethod
    def sigma(self, y: Float[Array, " dim"]) -> Float[ArrayLike, "dim noise"]:
        """The noise matrix at y."""

    @property
    @abc.abstractmethod
    def relaxation_time(self) -> Scalar | None:
        """About how long the process remembers its start, in its own time units; None when not known."""

    @property
    def fastest_time(self) -> Scalar | None:
        """The shortest time in which the drift acts, 1/its largest rate, which a step must resolve; None when not known."""
        return None

    @property
    def dim(self) -> int:
        """Number of coordinates of the state."""
        return self.domain.dim

    @property
    def noise_dim(self) -> int:
        """Number of independent Brownian motions."""
        return jax.eval_shape(lambda y: jnp.asarray(self.sigma(y)), jnp.zeros(self.dim)).shape[1]

    def at_start(self) -> tuple[Array, Array]:
        """Drift and noise matrix at the start.

        **Raises:** `InputError` when their shapes do not fit, as with arrays for parameters.
        """
        try:
            drift, sigma = self.drift(self.start), jnp.asarray(self.sigma(self.start))
            fits = drift.shape == (self.dim,) and sigma.ndim == 2 and sigma.shape[0] == self.dim
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InputError(
                f"drift and noise of {type(self).__name__} do not fit a state of shape ({self.dim},): parameters must be "
                "numbers; for arrays of them use jax.vmap over the model, or a loop"
            )
        return drift, sigma

    @property
    def start(self) -> Float[Array, " dim"]:
        """Where a path begins unless told otherwise: 0, or the nearest point along r when 0 lies outside."""
        origin = jnp.zeros(self.dim)
        return self.domain.push(origin, jnp.maximum(-self.domain.height(origin), 0))


class ReflectedDiffusion(AbstractReflectedDiffusion):
    """A reflected diffusion of your own.

    **Arguments:**

    - `drift`: y -> mu(y), shapes (dim,) -> (dim,), written with `jax.numpy`.
    - `diffusion`: the noise matrix sigma, shape (dim, noise_dim) (additive noise), or a callable y -> sigma(y). A vector
        (dim,) is one Brownian motion; a number is allowed in one dimension.
    - `domain`: a `HalfSpace`.
    - `nonnegative`: coordinates (from 0) that the exact process keeps nonnegative by itself; numerical steps then do too.
    - `relaxation_time`: sets the default burn-in of long-run averages.

    **Raises:** `InputError` when shapes do not fit, or when the noise has no component across the boundary.

    ```python
    >>> import jax.numpy as jnp, rdiff
    >>> own = rdiff.ReflectedDiffusion(
    ...     drift=lambda y: -y**3, diffusion=jnp.sqrt(2.0), domain=rdiff.HalfSpace(normal=[1.0])
    ... )   # density exp(-x^4 / 4) on [0, inf)
    >>> own.dim, own.noise_dim, own.additive
    (1, 1, True)

    ```
    """

    drift: Callable[[Float[Array, " dim"]], Float[Array, " dim"]]
    diffusion: Float[ArrayLike, "dim noise"] | Callable[[Float[Array, " dim"]], Float[Array, "dim noise"]]
    domain: HalfSpace
    nonnegative: tuple[int, ...] = eqx.field(static=True)
    relaxation: Scalar | None
    linear = False

    def __init__(
        self,
        drift: Callable[[Float[Array, " dim"]], Float[Array, " dim"]],
        diffusion: ArrayLike | Callable[[Float[Array, " dim"]], ArrayLike],
        domain: HalfSpace,
        nonnegative: tuple[int, ...] = (),
        relaxation_time: Scalar | None = None,
    ):
        if not callable(drift):
            raise InputError(f"drift must be a function of the state, got {drift!r}")
        if not isinstance(domain, HalfSpace):
            raise InputError(f"domain must be an rdiff.HalfSpace, got {domain!r}")
        self.drift, self.domain, self.relaxation = drift, domain, relaxation_time
        if relaxation_time is not None:
            positive("relaxation_time", relaxation_time)
        if not isinstance(nonnegative, (tuple, list)) or not set(nonnegative) <= set(range(domain.dim)):
            raise InputError(f"nonnegative must be coordinates from 0 to {domain.dim - 1}, as a tuple, got {nonnegative!r}")
        self.nonnegative = tuple(nonnegative)
        self.diffusion = diffusion if callable(diffusion) else _matrix(diffusion, domain.dim)  # pyright: ignore[reportAttributeAccessIssue]
        self._check()

    @property
    def additive(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return not callable(self.diffusion)

    @property
    def relaxation_time(self) -> Scalar | None:
        return self.relaxation

    def sigma(self, y: Float[Array, " dim"]) -> Float[ArrayLike, "dim noise"]:
        return _matrix(self.diffusion(y), self.dim) if callable(self.diffusion) else self.diffusion

    def _check(self) -> None:
        y = self.start
        for name, function, shape in (("drift", self.drift, (self.dim,)), ("diffusion", self.sigma, None)):
            try:
                found = jax.eval_shape(function, y)
                found = found.shape if hasattr(found, "shape") else f"{type(found).__name__} of {len(jax.tree.leaves(found))}"
            except InputError:
                raise
            except Exception as error:
                raise InputError(
                    f"{name} fails on a state of shape ({self.dim},): {type(error).__name__}: {str(error).splitlines()[0]}"
                ) from error
            if shape is not None and found != shape:
                raise InputError(
                    f"drift must return shape {shape} for a domain of {self.dim} coordinates, got {found} "
                    "(usual cause: a scalar returned, or jnp.stack forgotten)"
                )
        sigma = self.sigma(y)
        if self.additive and not is_traced((sigma, self.domain)):
            across = np.asarray(self.domain.normal) @ np.asarray(sigma)
            if not across @ across > 0:
                raise InputError(
                    f"the noise must act across the boundary, |sigma^T normal| > 0, got sigma {np.asarray(sigma).tolist()}: "
                    "without it the process meets the wall deterministically, and a Brownian step has nothing to reflect"
                )


def _matrix(sigma: ArrayLike, dim: int) -> Float[ArrayLike, "dim noise"]:
    """sigma with shape (dim, noise_dim); numbers and vectors are one Brownian motion."""
    xp = jnp if is_traced(sigma) or isinstance(sigma, jax.Array) else np
    try:
        matrix = xp.asarray(sigma)
        if matrix.dtype.kind not in "iuf":
            raise TypeError
    except (TypeError, ValueError):
        raise InputError(f"diffusion must be a matrix of real numbers or a function of the state, got {sigma!r}") from None
    if matrix.ndim == 0 and dim == 1:
        matrix = matrix.reshape(1, 1)
    elif matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.shape[0] != dim:
        raise InputError(f"diffusion must have shape ({dim}, noise_dim), got {matrix.shape}")
    if not is_traced(matrix) and not np.all(np.isfinite(np.asarray(matrix, float))):
        raise InputError(f"diffusion must be finite, got {np.asarray(matrix).tolist()}")
    return matrix


def describe(process: AbstractReflectedDiffusion) -> str:
    """Its name and parameters, such as "JSQDiffusion(beta=1, b=1)"."""
    shown = ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in vars(process).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    )
    return f"{type(process).__name__}({shown})"
