"""Which states an exact law keeps, and how much is lost with the others."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rdiff.errors import InputError, positive, probability
from rdiff.queue.elimination import seconds
from rdiff.queue.space import Space

GIB = 2.0**30
_LONG, _LONGEST = 1e9, 600.0  # states, and seconds: minutes
_DEEPEST = 500  # levels, which the elimination nests
_SLOW = 30.0  # seconds that are announced
_WORK = 160.0  # bytes for each state of the largest level
_LIGHT = -260.0  # powers of ten
_ROUNDING, _VANISHING = 44.0, 600.0  # the chance of k customers beyond one a server falls like k lam^k


def plan(queue: Any, window: Any, cap: Any, memory: float, tol: float | None = None) -> Space:
    """The states to keep, X_1 <= `window` and X_2 + ... + X_{b+1} <= `cap`; None is all, "auto" all that a double can see, or
    all but a probability of about `tol`, which alone stands for "auto".

    **Raises:** `InputError` when they do not fit, with a window that would.
    """
    # Of the infinite server queue, whose number of customers has Poisson law.
    idle = 1 - queue.lam
    busy = (queue.n * (math.log1p(-idle) + idle) - math.log(2 * math.pi * queue.n) / 2) / math.log(10)
    if busy < _LIGHT:
        raise InputError(
            f"n = {queue.n}, lam = {queue.lam:.6g}: all servers are busy with a chance of about 1e{busy:.0f}, which has no "
            "double, and the limit is of no use so far from it: take beta well below sqrt(n)"
        )
    memory = float(positive("memory", memory, "GiB that the exact law may use"))
    for name, value in (("window", window), ("cap", cap)):
        if isinstance(value, str) and value != "auto":
            raise InputError(f'{name} must be a number in units of X, or "auto", got {value!r}')
    if tol is not None:
        tol = probability("tol", tol, "the probability of the states that may be left out")
        window, cap = ("auto" if value is None else value for value in (window, cap))
    if "auto" in (window, cap):
        chosen = _auto(queue, tol)
        window, cap = (auto if value in (None, "auto") else value for value, auto in zip((window, cap), chosen))
    space = _space(queue, window, cap)
    rows = _rows(space)
    if rows > max(memory, 0.1):
        raise InputError(
            f"n = {queue.n}, b = {queue.b}: a number for each value of Q_1 at each level takes {rows:.3g} GiB alone "
            f"(memory = {memory:g} GiB): far too many servers for an exact law"
        )
    if _fits(space, memory):
        return space
    head = f"n = {queue.n}, b = {queue.b} has {space.count:.3g} states to keep, "
    if space.block * _WORK <= memory * GIB and space.count <= _LONG:
        head += (
            f"at {space.levels} levels, which is too deep: levels are nested, so many cost more than their states, at most "
            f"{_DEEPEST} and {_LONGEST / 60:g} minutes (for n = {queue.n}, b up to {_longest(queue.n, memory)}"
        )
    else:
        head += (
            f"whose law takes {8 * space.count / GIB:.3g} GiB and work on one level {space.block * _WORK / GIB:.3g} GiB "
            f"(memory = {memory:g} GiB; at most {_LONG:.0e} states"
        )
    w, c = _auto(queue)
    fitting = _space(queue, w, c)
    if not _fits(fitting, memory):
        raise InputError(f"{head}): even a window does not fit, as it keeps {fitting.count:.3g} states; take a smaller n or b")
    raise InputError(
        f'{head}): a window fits, window={w:.4g} and cap={c:.4g}, or window="auto", which keeps {fitting.count:.3g} states and '
        "loses less than rounding"
    )


def slow(queue: Any, space: Space) -> str:
    """What to say before a long elimination; "" for a short one."""
    needed, fitting = seconds(space), _space(queue, *_auto(queue))
    if needed < _SLOW:
        return ""
    said = f"{space.count:.3g} states take about {needed / 60:.2g} minutes for each pass"
    if fitting.count < space.count / 2:
        said += f'; window="auto" keeps {fitting.count:.3g} of them and loses less than rounding'
    return said


def _fits(space: Space, memory: float) -> bool:
    return (
        space.block * _WORK <= memory * GIB and space.count <= _LONG and space.levels <= _DEEPEST and seconds(space) <= _LONGEST
    )


def _longest(n: int, memory: float) -> int:
    """The longest buffer of n servers whose states all fit."""
    least, most = 0, _DEEPEST
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if _fits(Space(n, middle + 1), memory) else (least, middle)
    return least


def affordable(queue: Any, tols: Iterable[float], states: float, memory: float) -> float | None:
    """The first of `tols` that an exact law can leave out when it keeps `states` states at most; None when none will do."""
    for tol in tols:
        space = _space(queue, *_auto(queue, tol))
        if _rows(space) <= max(memory, 0.1) and space.count <= states and _fits(space, memory):
            return tol
    return None


def _rows(space: Space) -> float:
    """GiB that the sizes of blocks take, by level and value of Q_1, before any state is counted."""
    return 16.0 * (space.levels + 1) * space.n / GIB


def _auto(queue: Any, tol: float | None = None) -> tuple[float, float]:
    # X_1 has a normal tail about beta, the customers beyond one a server fall like k lam^k.
    width, powers = 10.0, _ROUNDING
    if tol is not None:
        width = math.sqrt(-2 * math.log(tol))
        for _ in range(30):  # (1 + powers) e^-powers = tol, the tail of Gamma(2), which is that of beta Y_2 as beta -> 0
            powers = math.log((1 + powers) / tol)
    return queue.drift + width, powers / -math.log(queue.lam) / math.sqrt(queue.n)


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
