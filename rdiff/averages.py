"""Long-run averages of a reflected diffusion: stationary E h(Y) by simulation, with an honest error."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from rdiff import engine
from rdiff.chains import DiffusionChain, PairedChain
from rdiff.control import ControlledChain, controls
from rdiff.errors import InputError, integer, is_traced, positive
from rdiff.estimate import Estimate, Estimates, t_quantile
from rdiff.functionals import Observable, named
from rdiff.limit.law import StationaryLaw
from rdiff.noise import AbstractNoise, Xoshiro, lane_keys, root_key
from rdiff.precision import as_dtype, cast, precision, start_points
from rdiff.process import AbstractReflectedDiffusion
from rdiff.process import describe as describe
from rdiff.progress import progress_bar
from rdiff.provenance import provenance
from rdiff.solvers import AbstractReflectedSolver, BridgeHeun
from rdiff.solvers.base import fixed_step_only
from rdiff.summary import summarise
from rdiff.times import times, whole_steps
from rdiff.types import Points, Scalar

MAX_ROUNDS = 1000


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run; `partial` holds the estimates reached, None when still in burn-in."""

    def __init__(self, partial: Estimate | Estimates | None):
        super().__init__("interrupted")
        self.partial = partial


def long_run_average(
    process: AbstractReflectedDiffusion,
    h: Observable | Mapping[str, Observable],
    *,
    key: int | Key[Array, ""],
    dt: float = 0.1,
    chains: int = 4096,
    horizon: float = 200.0,
    burn_in: float | None = None,
    solver: AbstractReflectedSolver | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    y0: Points | None = None,
    dtype: Any = None,
    bias: bool = False,
    progress: bool = False,
    control: StationaryLaw | None = None,
    noise: AbstractNoise | None = None,
    chunk: int | None = None,
    draws: bool = False,
) -> Estimate | Estimates:
    """Stationary E h(Y) by averages along many independent paths.

    The standard error comes from the spread of the lanes' means (they are independent), so it is honest whatever the
    autocorrelation; batch means within lanes give ESS and R-hat. Memory does not grow with the horizon.

    **Arguments:**

    - `h`: state (dim,) -> scalar, JAX-traceable; or a dict of them, averaged in one run.
    - `key`: an int or a JAX key. The same key gives the same numbers whatever `chunk` is.
    - `dt`: step. `BridgeHeun`'s bias is of order dt^2, and about 1e-4 at dt = 0.1, beta = 1.
    - `chains`: independent lanes, at least 2; fewer than 16 make the error unreliable.
    - `horizon`: averaged time a lane, after `burn_in` (time units; default ten relaxation times of the model, or a fifth of
        the horizon where that is not known).
    - `rtol`, `atol`: go on in rounds of `horizon` until the half-width of every 95% interval is below
        max(atol, rtol |mean|); gives up with a caution after 1000 rounds.
    - `y0`: where to start, (dim,) or (chains, dim); default `process.start`.
    - `dtype`: `jnp.float32` or `jnp.float64` (works without the global x64 switch). Default: JAX's.
    - `bias`: also run a path with step dt/2 on the same noise in each lane, and extrapolate the bias at dt from the difference
        (about three times the work).
    - `control`: `StationaryLaw(process)`: adds a martingale of mean 0 that follows the average's own error, made from the
        exact solution of the Poisson equation. The mean keeps its bias; its error falls severalfold.
    - `noise`: the generator, default `Xoshiro()`; `chunk`: steps a call of the device.
    - `draws`: keep the block means of each chain in `Estimate.draws`, for `to_arviz()`: at most 127 a chain.

    Inside your own `jit`, `vmap` or `grad` it is one fixed scan: `burn_in` explicit, no tolerance, no progress; `ess` and
    `rhat` are NaN then.

    **Returns:** an `Estimate`, or `Estimates` for a dict.
    **Raises:** `InputError`; `Interrupted` (a `KeyboardInterrupt` with `.partial`) on Ctrl-C.

    Source: batch means and independent replications as in Asmussen and Glynn, Stochastic Simulation (2007), chapter IV.

    ```python
    >>> import rdiff
    >>> Y = rdiff.JSQDiffusion(beta=1.0)
    >>> est = rdiff.long_run_average(Y, lambda y: y[1], key=0, chains=256, horizon=50.0)
    >>> bool(abs(est.mean - 0.81406) < 5 * est.stderr), est.reliable
    (True, True)

    ```
    """
    dtype = as_dtype(dtype)
    with precision(dtype):
        plan = _plan(process, h, key, dt, chains, horizon, burn_in, solver, y0, dtype, bias, noise, control)
        if plan.traced:
            if rtol is not None or atol is not None or progress or draws or chunk is not None:
                raise InputError(
                    "inside jit, vmap or grad a long-run average is one fixed scan: no rtol, atol, progress, draws or chunk"
                )
            result = _traced(plan)
        else:
            result = _eager(plan, rtol, atol, progress, chunk, draws)
    return result if isinstance(h, Mapping) else next(iter(result.values()))


@dataclass(frozen=True)
class SimulatedLaw:
    """The stationary law of a reflected diffusion, known by simulation: `expect(h)` runs `long_run_average`.

    **Arguments:** the process, `key`, and any other keyword of `long_run_average` in `options`.

    ```python
    >>> import rdiff
    >>> law = rdiff.SimulatedLaw(rdiff.JSQDiffusion(beta=1.0), key=0, chains=256, horizon=50.0)
    >>> law.expect(lambda y: y[1]).reliable
    True

    ```
    """

    process: AbstractReflectedDiffusion
    options: Mapping[str, Any]

    def __init__(self, process: AbstractReflectedDiffusion, *, key: int | Key[Array, ""], **options: Any):
        object.__setattr__(self, "process", process)
        object.__setattr__(self, "options", {"key": key, **options})

    @property
    def beta(self) -> Scalar | None:
        """The process's beta, where it has one."""
        return getattr(self.process, "beta", None)

    @property
    def b(self) -> int | None:
        """The process's buffer, where it has one."""
        return getattr(self.process, "b", None)

    def expect(self, h: Observable | Mapping[str, Observable]) -> Estimate | Estimates:
        """Stationary E h; see `long_run_average`."""
        return long_run_average(self.process, h, **self.options)


class _Plan(eqx.Module):
    """A run with everything decided."""

    chain: engine.AbstractChain
    keys: Key[Array, " lanes"]
    starts: Float[Array, "lanes dim"]
    names: tuple[str, ...] = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    burn_in: int = eqx.field(static=True)
    settings: tuple[tuple[str, Any], ...] = eqx.field(static=True)
    paired_order: float | None = eqx.field(static=True)
    traced: bool = eqx.field(static=True)
    total_memories: float | None = eqx.field(static=True)
    cautions: tuple[str, ...] = eqx.field(static=True)


def _plan(process, h, key, dt, chains, horizon, burn_in, solver, y0, dtype, bias, noise, control) -> _Plan:
    if not isinstance(process, AbstractReflectedDiffusion):
        raise InputError(f"expected a reflected diffusion such as rdiff.JSQDiffusion(beta=1.0), got {process!r}")
    solver = fixed_step_only(BridgeHeun() if solver is None else solver)
    solver.check(process)
    chains = integer("chains", chains, 2, "the error comes from the spread of independent chains")
    if noise is not None and not isinstance(noise, AbstractNoise):
        raise InputError(f"noise must be a generator such as rdiff.Xoshiro(), got {noise!r} (usual cause: no parentheses)")
    names, functions = named(h, process.dim, dtype)
    traced = is_traced((process, key, y0, process.at_start(), [f(process.start) for f in functions], jnp.zeros(())))
    dt, horizon, burn_in, memory, cautions = times(process, dt, horizon, burn_in, bias=bias, traced=traced)
    settings = (
        ("model", describe(process)), ("solver", type(solver).__name__), ("dt", dt), ("chains", chains),
        ("horizon", horizon), ("burn_in", burn_in), ("dtype", jnp.dtype(dtype).name), *provenance(key),
    )  # fmt: skip
    parts = (cast(process, dtype), solver, noise or Xoshiro(), jnp.asarray(dt, dtype), functions, names)
    if control is not None:
        if bias:
            raise InputError("bias=True and control cannot go together: estimate the bias in a run of its own")
        chain = ControlledChain(*parts, controls(control, process, functions))
    else:
        chain = (PairedChain if bias else DiffusionChain)(*parts)
    return _Plan(
        chain=chain,
        keys=lane_keys(root_key(key), chains),
        starts=start_points(process, y0, chains, dtype),
        names=names,
        steps=whole_steps(horizon, dt),
        burn_in=whole_steps(burn_in, dt),
        settings=settings,
        paired_order=solver.weak_order if bias else None,
        traced=traced,
        total_memories=None if memory is None else chains * horizon / memory,
        cautions=cautions,
    )


def _eager(plan: _Plan, rtol: Any, atol: Any, progress: bool, chunk: int | None, draws: bool) -> Estimates:
    tolerant = rtol is not None or atol is not None
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None:
            positive(name, value)
    if chunk is not None:
        integer("chunk", chunk, 1)

    def estimates(at: engine.Progress, cautions: tuple[str, ...] = ()) -> Estimates:
        cautions = (*cautions, *plan.cautions)
        return summarise(plan.names, at, plan.settings, plan.paired_order, plan.total_memories, cautions, draws)

    def reached(at: engine.Progress) -> bool:
        return tolerant and all(
            float(est.stderr) * t_quantile(0.95, est.dof) <= max(atol or 0.0, (rtol or 0.0) * abs(float(est.mean)))
            for est in estimates(at).values()
        )

    states = engine.run(
        plan.chain, plan.keys, plan.starts, burn_in=plan.burn_in, steps=plan.steps,
        rounds=MAX_ROUNDS if tolerant else 1, chunk=chunk, finished=reached,
    )  # fmt: skip
    at = None
    with progress_bar(progress, tolerant) as show:
        try:
            for at in states:
                show(at)
        except KeyboardInterrupt:
            partial = None
            if at is not None and at.steps:
                partial = estimates(at, (f"interrupted after {at.steps} of {plan.steps} steps",))
            raise Interrupted(partial) from None
    assert at is not None
    missed = tolerant and not reached(at)
    return estimates(at, (f"the tolerance was not reached in {MAX_ROUNDS} rounds of the horizon",) if missed else ())


def _traced(plan: _Plan) -> Estimates:
    carry = engine.start(plan.chain, plan.keys, plan.starts)
    carry = engine.forget(engine.advance(plan.chain, carry, *divmod(plan.burn_in, engine.BLOCK)))
    carry = engine.advance(plan.chain, carry, *divmod(plan.steps, engine.BLOCK))
    lanes = jnp.stack([total.high + total.low for total in carry.sums], axis=-1) / plan.steps
    count = len(plan.names)
    mean, error = jnp.mean(lanes, axis=0), jnp.std(lanes, axis=0, ddof=1) / lanes.shape[0] ** 0.5
    few = ("fewer than 16 chains",) if lanes.shape[0] < 16 else ()
    factor = None if plan.paired_order is None else 1 / (1 - 2.0**-plan.paired_order)
    return Estimates(
        {
            name: Estimate(
                mean[i], error[i], name, dof=lanes.shape[0] - 1, cautions=few, settings=plan.settings,
                bias=None if factor is None else factor * (mean[i] - mean[count + i]),
            )
            for i, name in enumerate(plan.names)
        }
    )  # fmt: skip
