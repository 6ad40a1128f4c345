"""Observables of the queue's states: h evaluated in float64 on many of them."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdiff.errors import InputError
from rdiff.functionals import check_coordinates


def evaluate(observables: Mapping[str, Callable], states: np.ndarray) -> np.ndarray:
    """Each observable at each state: float64 (states, observables).

    **Raises:** `InputError` when one cannot be traced by JAX, is no scalar, is not finite somewhere (naming the
    state), or asks for a coordinate that the states lack.
    """
    with jax.enable_x64(True):
        points = jnp.asarray(states, jnp.float64)
        return np.stack([_values(name, h, states, points) for name, h in observables.items()], axis=1)


def evaluate_padded(observables: Mapping[str, Callable], states: np.ndarray) -> np.ndarray:
    """The same through few shapes: JAX compiles each operation once a shape."""
    rows = len(states)
    padding = np.repeat(states[-1:], max(256, 1 << (rows - 1).bit_length()) - rows, axis=0)
    return evaluate(observables, np.concatenate([states, padding]))[:rows]


def require_linear(observables: Mapping[str, Callable], levels: int, n: int) -> None:
    """Refuses what is not affine: E h(mean of a run) is not E h(X) then (Jensen)."""
    rng = np.random.default_rng(0)
    span = math.sqrt(n)  # of every coordinate
    ends = rng.random((2, 64, levels)) * span * np.geomspace(0.02, 1, 64)[:, None]
    ends[1, ::2] = span  # so that a step anywhere is crossed
    mix = rng.random((64, 1))
    between = mix * ends[0] + (1 - mix) * ends[1]
    values = evaluate(observables, np.concatenate([ends[0], ends[1], between])).reshape(3, 64, -1)
    gap = np.abs(mix * values[0] + (1 - mix) * values[1] - values[2]).max(axis=0)
    for name, curved in zip(observables, gap > 1e-9 * (1 + np.abs(values).max(axis=(0, 1))), strict=True):
        if curved:
            raise InputError(
                f"observable {name} is not linear, and the rows are averages of runs: by Jensen's inequality the mean "
                "of h(average) is not E h(X); only linear h can be had from run averages"
            )


def _values(name: str, h: Callable, states: np.ndarray, points: Any) -> np.ndarray:
    check_coordinates(name, h, states.shape[1])
    try:
        values = jax.vmap(h)(points)
    except InputError:
        raise
    except (TypeError, ValueError, IndexError) as error:  # JAX's own tracing errors are of these kinds
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"observable {name} cannot be evaluated by JAX on a state: {reason[0]}") from error
    leaves = jax.tree.leaves(values)
    array = np.asarray(leaves[0]) if len(leaves) == 1 and not isinstance(values, (list, tuple, dict)) else None
    if array is None or array.ndim != 1 or array.dtype.kind not in "biuf":
        got = "several values" if array is None else f"shape {array.shape[1:]}, {array.dtype}"
        raise InputError(f"observable {name} must give one real number for a state (levels,), got {got}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        k = int(np.flatnonzero(~np.isfinite(array))[0])
        state = ", ".join(f"{x:.6g}" for x in states[k])
        raise InputError(f"observable {name} is {array[k]} at the state ({state}): it must be finite at every state")
    return array
