"""From the values at a point of a grid to what is to be computed there, and to a name that says all it depends on."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rdiff.chains import DiffusionChain, PairedChain
from rdiff.errors import InputError, integer
from rdiff.estimate import Estimates
from rdiff.functionals import Observable, evaluate, named
from rdiff.limit.law import StationaryLaw
from rdiff.noise import AbstractNoise
from rdiff.precision import cast, precision
from rdiff.process import AbstractReflectedDiffusion, describe
from rdiff.queue.chain import JSQQueue
from rdiff.solver_names import DEFAULT, solver_named
from rdiff.solvers.base import fixed_step_only
from rdiff.sweeps.grids import label
from rdiff.sweeps.lanes import Point, is_number
from rdiff.sweeps.store import digest
from rdiff.times import times, whole_steps

_P = TypeVar("_P", bound=tuple)
METHOD = ("dt", "chains", "horizon", "burn_in", "solver")  # what a grid may say besides the model's parameters


class ExactPoint(NamedTuple):
    """A point whose law is computed."""

    name: str
    values: dict[str, Any]
    subject: Any  # a JSQDiffusion or a JSQQueue
    observables: dict[str, Observable]

    def expect(self) -> Estimates | str:
        """E h, or what stands against it."""
        try:
            law = self.subject.exact() if isinstance(self.subject, JSQQueue) else StationaryLaw(self.subject)
            return law.expect(self.observables)  # pyright: ignore[reportReturnType]
        except InputError as error:
            return str(error)


@dataclasses.dataclass(frozen=True)
class Simulation:
    """How the points of a grid are simulated.

    `method`: dt, chains, horizon, burn_in and solver where the grid does not say; `key`, the root key's words.
    """

    observables: Mapping[str, Observable]
    model: Callable[..., Any]
    method: Mapping[str, Any]
    noise: AbstractNoise
    bias: bool
    dtype: Any
    common: bool
    key: Sequence[int]
    _known: dict[Any, Any] = dataclasses.field(default_factory=dict)  # what was traced once

    def points(self, grid: Sequence[dict[str, Any]]) -> list[Point]:
        """The points of the grid, ready to run. **Raises:** `InputError`, naming the point."""
        with precision(self.dtype):
            return [_named(values, self._point) for values in grid]

    def _point(self, values: dict[str, Any]) -> Point:
        method = {name: values.get(name, default) for name, default in self.method.items()}
        process, parameters = build(self.model, {name: value for name, value in values.items() if name not in method})
        if not isinstance(process, AbstractReflectedDiffusion):
            raise InputError(f"the model must give a reflected diffusion, got {process!r}")
        solver = solver_of(method["solver"])
        solver.check(process)
        chains = integer("chains", method["chains"], 2, "the error comes from the spread of independent chains")
        dt, horizon, burn_in, memory, cautions = times(
            process, method["dt"], method["horizon"], method["burn_in"], bias=self.bias
        )
        if burn_in / dt >= 2**31:
            raise InputError(f"a burn-in of {burn_in / dt:.3g} steps is too long for a sweep, which counts them in 31 bits")
        chain, program = self._chain(process, solver, dt)
        settings = {
            "model": type(process).__name__, **parameters, "dt": dt, "chains": chains, "horizon": horizon, "burn_in": burn_in,
            "solver": type(solver).__name__, "noise": type(self.noise).__name__, "dtype": jnp.dtype(self.dtype).name,
            "bias": self.bias,
        }  # fmt: skip
        identity = digest(settings)
        numbers = [leaf.tolist() for leaf in jax.tree.leaves(eqx.filter(chain, is_number))]
        said = ("solver", "dt", "chains", "horizon", "burn_in", "dtype")
        return Point(
            digest([identity, self.key, self.common, chain.names, numbers, program])[:24], values, chain, chains,
            steps=whole_steps(horizon, dt), burn_in=whole_steps(burn_in, dt),
            words=() if self.common else (int(identity[:8], 16), int(identity[8:16], 16)),
            settings=(("model", describe(process)), *((name, settings[name]) for name in said)),
            memories=None if memory is None else chains * horizon / memory,
            order=solver.weak_order if self.bias else None, cautions=cautions,
        )  # fmt: skip

    def _chain(self, process: AbstractReflectedDiffusion, solver: Any, dt: float) -> tuple[Any, str]:
        """The chain of a point, and what it does as text, which tells two models of one name apart."""
        if process.dim not in self._known:
            self._known[process.dim] = named(self.observables, process.dim, self.dtype)
        names, functions = self._known[process.dim]
        kind = PairedChain if self.bias else DiffusionChain
        chain = kind(cast(process, self.dtype), solver, self.noise, jnp.asarray(dt, self.dtype), functions, names)
        chain = jax.tree.map(lambda x: np.asarray(x) if eqx.is_array(x) else x, chain)
        numbers, frame = eqx.partition(chain, is_number)
        if frame not in self._known:
            process.at_start()
            self._known[frame] = _program(numbers, frame, process.dim, self.dtype)
        return chain, self._known[frame]


def exact(grid: Sequence[dict[str, Any]], observables: Mapping[str, Observable], model: Callable[..., Any]) -> list[ExactPoint]:
    """The points of a grid to be computed: laws of the limit, or of the queue where there is an n.

    **Raises:** `InputError`, naming the point.
    """
    programs: dict[int, str] = {}

    def point(values: dict[str, Any]) -> ExactPoint:
        queue = "n" in values
        subject, parameters = build(JSQQueue, {"b": 1, **values}) if queue else build(model, values)
        if not queue:
            StationaryLaw(subject)  # refuses what has no exact law
        dim = subject.b + 1
        if dim not in programs:
            with precision(jnp.float64):
                functions = named(observables, dim, jnp.float64)[1]
                programs[dim] = _text(lambda y: [evaluate(h, y) for h in functions], jnp.zeros(dim))
        depends = ["exact", type(subject).__name__, parameters, list(observables), programs[dim]]
        return ExactPoint(digest(depends)[:24], values, subject, dict(observables))

    return [_named(values, point) for values in grid]


def build(model: Callable[..., Any], values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model at a point, and its parameters, the defaults too.

    **Raises:** `InputError` when it has no such parameters, or lacks one.
    """
    takes = inspect.signature(model)
    try:
        bound = takes.bind(**values)
    except TypeError as error:
        why = _misfit(takes.parameters, values) or error
        raise InputError(f"{name_of(model)} takes {', '.join(takes.parameters)}: {why}") from None
    bound.apply_defaults()
    plain = (int, float, str, type(None))
    return model(**values), {name: value for name, value in bound.arguments.items() if isinstance(value, plain)}


def _misfit(takes: Mapping[str, inspect.Parameter], values: Mapping[str, Any]) -> str:
    """Why a model that takes these parameters cannot have those values."""
    strange = [name for name in values if name not in takes]
    if "n" in strange:
        return "n is a parameter of the queue, whose law is exact (law='exact')"
    if method := [name for name in strange if name in METHOD]:
        return f"an exact law has no use for {', '.join(method)}, of simulations"
    if strange:
        return f"the grid has {', '.join(strange)}"
    lacking = [name for name, each in takes.items() if each.default is each.empty and name not in values]
    return f'the grid has no {", ".join(lacking)}: give values, as in {{"{lacking[0]}": [0.5, 1.0]}}' if lacking else ""


def name_of(thing: Any) -> str:
    """What to call a class, a function or an object."""
    return getattr(thing, "__name__", type(thing).__name__)


def _named(values: dict[str, Any], make: Callable[[dict[str, Any]], _P]) -> _P:
    try:
        return make(values)
    except InputError as error:
        raise InputError(f"{label(values)}: {error}") from None


def solver_of(solver: Any) -> Any:
    """The solver given, or that of the name given; None is the default. **Raises:** `InputError`."""
    return fixed_step_only(solver_named(solver or DEFAULT) if solver is None or isinstance(solver, str) else solver)


def _program(numbers: Any, frame: Any, dim: int, dtype: Any) -> str:
    def parts(numbers: Any, y: Any) -> Any:
        chain = eqx.combine(numbers, frame)
        process, domain = chain.process, chain.process.domain
        values = [evaluate(h, y) for h in chain.observables]
        return process.drift(y), jnp.asarray(process.sigma(y)), domain.height(y), jnp.asarray(domain.direction), values

    return _text(parts, numbers, jnp.zeros(dim, dtype))


def _text(function: Callable[..., Any], *arguments: Any) -> str:
    traced = jax.make_jaxpr(function)(*arguments)
    constants = [np.asarray(x).tobytes().hex() for x in traced.consts]
    return digest([re.sub("0x[0-9a-f]+", "", str(traced)), constants])
