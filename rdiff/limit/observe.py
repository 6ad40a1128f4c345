"""Observables on many states at once: JAX functions in float64, numbers checked."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rdiff.errors import InputError
from rdiff.functionals import Observable, named

_CHUNK = 8192  # one shape for every call, so that no operation is compiled twice


def checked(h: Observable | Mapping[str, Observable], b: int) -> dict[str, Observable]:
    """The observables by name. **Raises:** `InputError` for what JAX cannot trace; the message names the numpy route."""
    with jax.enable_x64(True):
        try:
            names, functions = named(h, b + 1, np.float64)
        except InputError as error:
            if "traced" not in str(error):
                raise
            raise InputError(f"{error}; for a numpy function: points, weights = law.quadrature()") from error
    return dict(zip(names, functions))


def values(name: str, h: Observable, points: Float[np.ndarray, "points 2"], b: int) -> Float[np.ndarray, " points"]:
    """h at the states (y1, y2, 0, ..., 0), in float64 whatever the global setting.

    **Raises:** `InputError` when it is not finite somewhere.
    """
    count = len(points)
    states = np.zeros((-(-count // _CHUNK) * _CHUNK, b + 1))
    states[:, : min(b + 1, 2)] = points[0, : b + 1] if count else 0.0
    states[:count, : min(b + 1, 2)] = points[:, : b + 1]
    # The law is a number also inside somebody's jit.
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        batch = jax.vmap(lambda y: jnp.asarray(h(y)).astype(jnp.float64))
        parts = [np.asarray(batch(jnp.asarray(part))) for part in states.reshape(-1, _CHUNK, b + 1)]
    out = np.concatenate(parts)[:count]
    wrong = ~np.isfinite(out)
    if wrong.any():
        at = states[np.argmax(wrong)]
        raise InputError(
            f"observable {name!r} is {out[np.argmax(wrong)]} at y = ({', '.join(f'{x:.4g}' for x in at)}): it must be finite "
            "wherever the law has mass (usual causes: a pole or a logarithm at 0, growth that overflows, 0/0)"
        )
    return out


def key_generator(key: Any) -> np.random.Generator:
    """A numpy generator from an int or a JAX key."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return np.random.default_rng(abs(int(key)) * 2 + (int(key) < 0))
    try:
        data = key if jnp.issubdtype(key.dtype, jnp.integer) else jax.random.key_data(key)  # pyright: ignore
        words = np.asarray(data).ravel().tolist()
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"key must be an int or a JAX key, got {key!r}") from None
    return np.random.default_rng([int(word) for word in words])
