"""The functions h whose expectations are asked for: one or a dict of them, checked before anything runs."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from rdiff.errors import InputError

Observable = Callable[[Float[Array, " dim"]], ArrayLike]


def named(h: Observable | Mapping[str, Observable], dim: int, dtype: Any) -> tuple[tuple[str, ...], tuple[Observable, ...]]:
    """Names and functions of `h`, each mapping a state (dim,) of `dtype` to a scalar.

    A single h is called by its own name, or "h" for a lambda.

    **Raises:** `InputError` for what is not a function, does not run under JAX's tracing, or returns no real scalar.
    """
    observables = dict(h) if isinstance(h, Mapping) else {_name(h): h}
    if not observables:
        raise InputError('at least one observable is needed, got an empty dict: for instance {"y2": lambda y: y[1]}')
    state = jax.ShapeDtypeStruct((dim,), jnp.dtype(dtype))
    for name, function in observables.items():
        if not callable(function):
            raise InputError(f"observable {name!r} must be a function of the state, got {function!r}")
        try:
            out = jax.eval_shape(lambda y: jnp.asarray(function(y)), state)  # noqa: B023
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"observable {name!r} cannot be traced by JAX on a state of shape ({dim},): {_first_line(error)} "
                "(usual causes: numpy functions instead of jax.numpy, `if` on a state, a coordinate that is not there)"
            ) from error
        if out.shape != ():
            raise InputError(f"observable {name!r} must return a scalar, got shape {out.shape}: give one function for each")
        if out.dtype.kind not in "fiub":
            raise InputError(f"observable {name!r} must be real, got {out.dtype}")
    return tuple(observables), tuple(observables.values())


def evaluate(function: Observable, y: Float[Array, " dim"]) -> Float[Array, ""]:
    """h(y) in the state's own precision."""
    return jnp.asarray(function(y)).astype(y.dtype)


def _name(h: Any) -> str:
    name = getattr(h, "name", None) or getattr(h, "__name__", None)
    return name if isinstance(name, str) and name != "<lambda>" else "h"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
