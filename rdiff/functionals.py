"""The functions h whose expectations are asked for: one or a dict of them, checked before anything runs."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from rdiff.errors import InputError

Observable = Callable[[Float[Array, " dim"]], ArrayLike]


def by_name(h: Observable | Mapping[str, Observable]) -> dict[str, Observable]:
    """The functions of `h` by name; a single one goes by its own name, or "h" for a lambda.

    **Raises:** `InputError` for what is not a function.
    """
    observables = dict(h) if isinstance(h, Mapping) else {_name(h): h}
    if not observables:
        raise InputError('at least one observable is needed, got an empty dict: for instance {"y2": lambda y: y[1]}')
    for name, function in observables.items():
        if not callable(function):
            raise InputError(
                f"observable {name!r} must be a function of the state, got {function!r} (a text such as 'y1*y2' is read by "
                "rdiff.observables.parse)"
            )
    return observables


def named(h: Observable | Mapping[str, Observable], dim: int, dtype: Any) -> tuple[tuple[str, ...], tuple[Observable, ...]]:
    """Names and functions of `h`, each mapping a state (dim,) of `dtype` to a scalar.

    **Raises:** `InputError` for what is not a function, does not run under JAX's tracing, asks for a coordinate that is not
    there, or returns no real scalar.
    """
    observables = by_name(h)
    state = jax.ShapeDtypeStruct((dim,), jnp.dtype(dtype))
    for name, function in observables.items():
        check_coordinates(name, function, dim)
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


def check_coordinates(name: str, function: Observable, dim: int) -> None:
    """JAX takes the last coordinate for one that is not there; numpy says so."""
    try:
        with np.errstate(all="ignore"):
            function(np.ones(dim))  # pyright: ignore[reportArgumentType]
    except IndexError:
        raise InputError(
            f"observable {name!r} asks for a coordinate that is not there: the state has {dim}, y[0] to y[{dim - 1}]"
        ) from None
    except Exception:  # what else fails on numpy may well be right for JAX, which is asked next
        return


def _name(h: Any) -> str:
    name = getattr(h, "text", None) or getattr(h, "__name__", None)
    return name if isinstance(name, str) and name != "<lambda>" else "h"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
