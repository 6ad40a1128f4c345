"""float32 or float64, chosen for each run, without touching JAX's global switch."""

import contextlib
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdiff.errors import InputError, is_traced
from rdiff.process import AbstractReflectedDiffusion

_T = TypeVar("_T")


def as_dtype(dtype: Any) -> Any:
    """float32 or float64; None is JAX's default.

    **Raises:** `InputError` for others.
    """
    try:
        dtype = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
    except TypeError:
        dtype = str(dtype)
    if dtype not in (jnp.float32, jnp.float64):
        raise InputError(f"dtype must be float32 or float64, got {dtype}")
    return dtype


def precision(dtype: Any) -> contextlib.AbstractContextManager[Any]:
    """A context in which arrays of `dtype` can be made."""
    wide = dtype == jnp.float64 and not jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
    return jax.enable_x64(True) if wide else contextlib.nullcontext()


def cast(module: _T, dtype: Any) -> _T:
    """The module with its numbers as arrays of `dtype`: parameters then do not cause a new compilation each."""

    def leaf(x: Any) -> Any:
        number = isinstance(x, (float, np.generic, np.ndarray, jax.Array))
        if not (number and jnp.issubdtype(jnp.result_type(x), jnp.floating)):
            return x
        if not is_traced(x) and np.any(np.abs(np.asarray(x, float)) > jnp.finfo(dtype).max):
            raise InputError(f"a parameter is too large for {jnp.dtype(dtype).name}: {x} in {module!r}")
        return jnp.asarray(x, dtype)

    return jax.tree.map(leaf, module)


def start_points(process: AbstractReflectedDiffusion, y0: Any, lanes: int, dtype: Any) -> Float[Array, "lanes dim"]:
    """A start for each lane, inside the domain.

    **Raises:** `InputError` for another shape, or a point outside.
    """
    try:
        y = jnp.asarray(process.start if y0 is None else y0, dtype)
    except (TypeError, ValueError):
        raise InputError(f"y0 must be numbers of shape ({process.dim},), got {y0!r}") from None
    if y.shape not in ((process.dim,), (lanes, process.dim)):
        raise InputError(f"y0 must have shape ({process.dim},) or ({lanes}, {process.dim}), got {y.shape}")
    if not is_traced((y, process)):
        points = np.atleast_2d(np.asarray(y))
        heights = points @ np.asarray(process.domain.normal) - np.asarray(process.domain.offset)
        inside = heights >= -1e-6 * (1 + np.abs(points).max(axis=1))
        inside &= np.all(points[:, list(process.nonnegative)] >= 0, axis=1)
        if not np.all(np.isfinite(points)) or not np.all(inside):
            worst = points[int(np.argmin(np.where(np.isfinite(heights), inside, False)))]
            raise InputError(
                f"y0 must be finite and lie in the domain, got {worst.tolist()} (usual cause: a negative coordinate)"
            )
    return jnp.broadcast_to(y, (lanes, process.dim))
