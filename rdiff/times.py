"""Step, horizon and burn-in of a run: checked, with their defaults, and in whole steps."""

import math
from typing import Any, NamedTuple

import numpy as np

from rdiff.errors import InputError, duration, is_traced
from rdiff.process import AbstractReflectedDiffusion

MEMORIES = 10  # burn-in in relaxation times: what is left of the start is e^-10
MOST_STEPS = 1e12
COARSE = 0.5  # of the drift's own time: with dt = 0.5 the limit's E Y2 is off by 0.7%, 6%, 17% at beta = 1, 2, 3


class Times(NamedTuple):
    """What `times` gives: times in the process's units; `memory` is its relaxation time, None when not known."""

    dt: float
    horizon: float
    burn_in: float
    memory: float | None
    cautions: tuple[str, ...]


def times(
    process: AbstractReflectedDiffusion, dt: Any, horizon: Any, burn_in: Any, *, bias: bool, traced: bool = False
) -> Times:
    """dt, horizon and burn-in of a run, numbers known now; `traced`: whether the process is not.

    A step too coarse for the drift is cautioned against, unless `bias` is estimated, which widens the interval.

    **Raises:** `InputError`.

    ```python
    >>> import rdiff
    >>> from rdiff.times import times
    >>> times(rdiff.JSQDiffusion(beta=3.0), 0.1, 100.0, None, bias=False)
    Times(dt=0.1, horizon=100.0, burn_in=15.0, memory=1.5, cautions=())

    ```
    """
    dt = duration("dt", dt, "it sets the number of steps: loop over dt, and vmap over parameters")
    horizon = duration("horizon", horizon, "it sets the number of steps")
    if is_traced(burn_in):
        raise InputError("burn_in must be a plain number, not a traced one: it sets the number of steps")
    if dt > horizon:
        raise InputError(f"dt must not exceed the horizon, got dt {dt:g} and horizon {horizon:g}")
    memory, fastest = (None, None) if traced else (process.relaxation_time, process.fastest_time)
    memory = None if memory is None else float(memory)
    if burn_in is None:
        if traced:
            raise InputError("inside jit, vmap or grad give burn_in explicitly: its default depends on the parameters' values")
        burn_in = horizon / 5 if memory is None else MEMORIES * memory
        whole_steps(burn_in, dt)  # refuses what never ends, as at beta = 1e-300
    if not (isinstance(burn_in, (int, float, np.number)) and math.isfinite(burn_in) and burn_in >= 0):
        raise InputError(f"burn_in must be a time, 0 or more, got {burn_in!r}")
    cautions = ()
    if fastest is not None and not bias and dt > COARSE * float(fastest):
        cautions = (f"dt {dt:g} is coarse for a drift that acts within {float(fastest):g}, and its bias is not in the error",)
    return Times(dt, horizon, float(burn_in), memory, cautions)


def whole_steps(time: float, dt: float) -> int:
    """Whole steps that cover `time`, with 1e-6 of a step forgiven to rounding."""
    if time / dt > MOST_STEPS:
        raise InputError(
            f"{time / dt:.3g} steps a chain are more than can ever be run ({MOST_STEPS:.0e}), from a time of {time:g} and "
            f"dt {dt:g} (usual cause: a digit or an exponent too many)"
        )
    return math.ceil(time / dt - 1e-6)
