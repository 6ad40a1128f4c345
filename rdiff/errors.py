"""What rdiff raises and warns, and the checks of plain numbers that every entry point shares."""

import math
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.core
import numpy as np


class InputError(ValueError):
    """Bad input: the message says what was given, what was expected and the usual cause.

    ```python
    >>> import rdiff
    >>> rdiff.JSQDiffusion(beta=-1.0)
    Traceback (most recent call last):
        ...
    rdiff.errors.InputError: beta must be a positive, finite number, got -1.0: ...

    ```
    """


class AccuracyWarning(UserWarning):
    """A number was computed but should not be trusted to the precision it prints.

    ```python
    >>> import warnings, rdiff
    >>> with warnings.catch_warnings():  # in a program that takes no doubtful number
    ...     warnings.simplefilter("error", rdiff.AccuracyWarning)

    ```
    """


def is_traced(*values: Any) -> bool:
    """Whether any leaf of `values` is a JAX tracer, so that its value cannot be looked at."""
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(values))


def real(name: str, value: Any, why: str = "") -> Any:
    """A finite real number, or an array of them for `vmap`; traced values pass unseen."""
    return _number(name, value, "a finite number", lambda x: True, why)


def positive(name: str, value: Any, why: str = "") -> Any:
    """A positive, finite real, or an array of them for `vmap`; traced values pass unseen."""
    return _number(name, value, "a positive, finite number", lambda x: x > 0, why)


def duration(name: str, value: Any, why: str = "") -> float:
    """One positive, finite number, known now: neither an array nor traced."""
    if is_traced(value):
        raise InputError(_said(f"{name} must be a plain number, not a traced one", why))
    if np.ndim(positive(name, value)):
        raise InputError(_said(f"{name} must be one number, got shape {np.shape(value)}", why))
    return float(value)


def _number(name: str, value: Any, what: str, holds: Callable[[Any], Any], why: str) -> Any:
    if is_traced(value):
        return value
    array = np.asarray(value) if isinstance(value, (int, float, np.generic, np.ndarray, jax.Array)) else np.array(None)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array) & holds(array)):
        raise InputError(_said(f"{name} must be {what}, got {value!r}", why))
    return float(value) if isinstance(value, int) else value


def integer(name: str, value: Any, least: int, why: str = "") -> int:
    """An integer of at least `least`; a float that is one exactly (`10.0`) is refused, as `range` would."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(_said(f"{name} must be an integer, got {value!r}", why)) from None
    if number < least:
        raise InputError(_said(f"{name} must be at least {least}, got {number}", why))
    return number


def probability(name: str, value: Any, why: str = "") -> float:
    """A number strictly between 0 and 1."""
    if not (isinstance(value, (float, int, np.floating)) and math.isfinite(value) and 0 < value < 1):
        raise InputError(_said(f"{name} must lie strictly between 0 and 1, got {value!r}", why))
    return float(value)


def _said(message: str, why: str) -> str:
    return f"{message}: {why}" if why else message
