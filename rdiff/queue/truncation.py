"""Which states an exact law keeps, and how much is lost with the others."""

import math
from typing import Any

import numpy as np

from rdiff.errors import InputError, positive
from rdiff.queue.space import Space

GIB = 2.0**30
_LONG = 1e9  # states: minutes
_WORK = 160.0  # bytes for each state of the largest level
_LIGHT = -260.0  # powers of ten
_ROUNDING, _VANISHING = 44.0, 600.0  # the chance of k customers beyond one a server falls like k lam^k


def plan(queue: Any, window: Any, cap: Any, memory: float) -> Space:
    """The states to keep, X_1 <= `window` and X_2 + ... + X_{b+1} <= `cap`; None is all, "auto" all that a double can see.

    **Raises:** `InputError` when they do not fit, with a window that would.
    """
    # Of the infinite server queue, whose number of customers has Poisson law.
    busy = (queue.n * math.log(queue.arrivals) - queue.arrivals - math.lgamma(queue.n + 1)) / math.log(10)
    if busy < _LIGHT:
        raise InputError(
            f"n = {queue.n}, lam = {queue.lam:.6g}: all servers are busy with a chance of about 1e{busy:.0f}, which has no "
            "double, and the limit is of no use so far from it: take beta well below sqrt(n)"
        )
    memory = float(positive("memory", memory, "GiB that the exact law may use"))
    for name, value in (("window", window), ("cap", cap)):
        if isinstance(value, str) and value != "auto":
            raise InputError(f'{name} must be a number in units of X, or "auto", got {value!r}')
    if "auto" in (window, cap):
        chosen = _auto(queue)
        window, cap = (auto if value in (None, "auto") else value for value, auto in zip((window, cap), chosen))
    space = _space(queue, window, cap)
    if space.block * _WORK <= memory * GIB and space.count <= _LONG:
        return space
    w, c = _auto(queue)
    fitting = _space(queue, w, c)
    fits = fitting.block * _WORK <= memory * GIB and fitting.count <= _LONG
    raise InputError(
        f"n = {queue.n}, b = {queue.b} has {space.count:.3g} states to keep, whose law takes {8 * space.count / GIB:.3g} GiB "
        f"and work on one level {space.block * _WORK / GIB:.3g} GiB (memory = {memory:g} GiB; at most {_LONG:.0e} states): "
        f'{"a window fits" if fits else "even a window does not fit"}: exact(window={w:.4g}, cap={c:.4g}), or window="auto", '
        f"keeps {fitting.count:.3g} states and loses less than rounding"
    )


def _auto(queue: Any) -> tuple[float, float]:
    # X_1 has a normal tail about beta, the customers beyond one a server fall like k lam^k.
    return queue.drift + 10.0, _ROUNDING / -math.log(queue.lam) / math.sqrt(queue.n)


def _space(queue: Any, window: Any, cap: Any) -> Space:
    root, n, b = math.sqrt(queue.n), queue.n, queue.b
    first = 0
    if window is not None:
        first = min(n, max(0, math.floor(n - float(positive("window", window, "the largest X_1 kept")) * root)))
    most = min(n * b, math.ceil(_VANISHING / -math.log(queue.lam)))  # more have no double
    if cap is not None:
        most = min(most, math.ceil(float(positive("cap", cap, "the largest X_2 + ... + X_{b+1} kept")) * root))
    if b == 0:
        return Space(n, 1, 0, n)
    levels = 2 + (most - 1) // n
    return Space(n, levels, first, most - (levels - 2) * n)


def lost_above(space: Space, lam: float, by_level: np.ndarray) -> np.ndarray:
    """What lies above the cap, from the sums over each outer level, (levels, ...): they go on falling like a power or faster.

    The ratio of neighbouring levels decreases (k lam^k does), so the one measured below the cap bounds all beyond.
    """
    top = len(by_level) - 1
    step = max(1, top // 10)
    last = by_level[-1]
    ratio = np.full(last.shape, lam)
    if top >= 4:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num((by_level[-1 - step] / by_level[-1 - 2 * step]) ** (1 / step), nan=lam, posinf=1.0)
    with np.errstate(divide="ignore"):
        return np.where(last > 0, last * ratio / np.maximum(1 - ratio, 0), 0.0)
