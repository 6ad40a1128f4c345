"""What a reflected step is: `advance`, and its dress as a diffrax solver that also carries the local time."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key

from rdiff.domain import along
from rdiff.errors import InputError
from rdiff.noise import AbstractNoise, Threefry, draw
from rdiff.process import AbstractReflectedDiffusion
from rdiff.types import PyTree

_NO_SUBDIVISION = (
    "reflected steps cannot be rejected or halved: a step knows the minimum of its path, and the minimum over a step is not "
    "determined by the noise of two half steps, so an adaptive controller would give the wrong law without complaint. "
    "Use a fixed step (diffrax.ConstantStepSize or StepTo) and check the bias with long_run_average(..., bias=True)"
)


class ReflectedTerm(diffrax.AbstractTerm):
    """The term of a reflected diffusion for `diffrax.diffeqsolve`; the diffrax state is the pair (y, U).

    **Arguments:**

    - `process`: the reflected diffusion.
    - `key`: a JAX key; the noise of step k comes from it and k alone.
    - `unit`: time per unit of diffrax's clock. `sample_paths` lets the clock count steps (`unit=dt`), which is exact;
        the default 1 lets it count time, which in float32 jitters by 1e-7 of the time reached.
    - `noise`: the generator.

    ```python
    >>> import diffrax, jax, jax.numpy as jnp, rdiff
    >>> Y = rdiff.JSQDiffusion(beta=1.0)
    >>> sol = diffrax.diffeqsolve(
    ...     rdiff.ReflectedTerm(Y, jax.random.key(0)), rdiff.BridgeHeun(), t0=0.0, t1=1.0, dt0=0.1,
    ...     y0=(Y.start, jnp.zeros(())), adjoint=diffrax.ForwardMode(), max_steps=None)
    >>> y, U = sol.ys
    >>> y.shape, bool(U[-1] >= 0)
    ((1, 2), True)

    ```
    """

    process: AbstractReflectedDiffusion
    key: Key[Array, ""]
    unit: ArrayLike = 1.0
    noise: AbstractNoise = Threefry()

    def vf(self, t: Any, y: PyTree, args: Any) -> tuple[Array, Array]:
        """Drift and noise matrix at the state."""
        del t, args
        return self.process.drift(y[0]), jnp.asarray(self.process.sigma(y[0]), y[0].dtype)

    def contr(self, t0: Any, t1: Any, state: PyTree = None, dtype: Any = None, **kwargs: Any) -> tuple[Any, ...]:
        """(dt, dW, mark, next generator state) of the step that `state` stands at."""
        del kwargs
        dtype = jnp.result_type(float) if dtype is None else dtype
        dt = jnp.asarray(self.unit, dtype) * jnp.abs(jnp.asarray(t1 - t0, dtype))
        state = self.noise.init(self.key) if state is None else state
        state, normals, mark = draw(self.noise, state, self.process.noise_dim, dtype)
        return dt, jnp.sqrt(dt) * normals, mark, state

    def prod(self, vf: tuple[Array, Array], control: tuple[Any, ...]) -> PyTree:
        """The displacement without the wall, and no local time."""
        drift, sigma = vf
        dt, dw, *_ = control
        return drift * dt + matvec(sigma, dw), jnp.zeros((), drift.dtype)


class StepInterpolation(diffrax.AbstractLocalInterpolation):
    """Linear between two steps, and the very numbers of the step at its end: y1 + 0 would not stay above the wall."""

    t0: Any
    t1: Any
    y0: PyTree
    y1: PyTree

    def evaluate(self, t0: Any, t1: Any = None, left: bool = True) -> PyTree:
        if t1 is not None:
            return jax.tree.map(jnp.subtract, self.evaluate(t1, left=left), self.evaluate(t0, left=left))
        part = (t0 - self.t0) / (self.t1 - self.t0)
        return jax.tree.map(lambda a, b: jnp.where(t0 >= self.t1, b, a + (b - a) * part), self.y0, self.y1)


class AbstractReflectedSolver(diffrax.AbstractItoSolver):
    """A reflected step. `advance` is the whole of it; the rest makes it a diffrax solver on the state (y, U)."""

    term_structure: ClassVar[Any] = ReflectedTerm
    interpolation_cls: ClassVar[Callable[..., StepInterpolation]] = StepInterpolation
    weak_order: ClassVar[float]  # of stationary averages

    @abc.abstractmethod
    def advance(
        self,
        process: AbstractReflectedDiffusion,
        y: Float[Array, " dim"],
        dt: Float[Array, ""],
        dw: Float[Array, " noise"],
        mark: Float[Array, ""],
    ) -> tuple[Float[Array, " dim"], Float[Array, ""]]:
        """One step from y: the new state, and how far it was pushed along r (the growth of U).

        **Arguments:** `dt` > 0; `dw` ~ N(0, dt I), shape (noise_dim,); `mark` ~ Exp(1), independent.
        """

    def check(self, process: AbstractReflectedDiffusion) -> None:
        """Refuse a process this step cannot do; called before any run.

        **Raises:** `InputError` with the reason.
        """

    def init(self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Any) -> PyTree:
        del t0, t1, args
        if not (isinstance(y0, tuple) and len(y0) == 2):
            raise InputError(f"the diffrax state of a reflected diffusion is the pair (y, U), got {y0!r}: start from (y, 0.)")
        term = _unwrapped(terms)
        self.check(term.process)
        return term.noise.init(term.key)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: PyTree, args: Any, solver_state: PyTree, made_jump: Any
    ) -> tuple[PyTree, None, dict[str, PyTree], PyTree, diffrax.RESULTS]:
        del args, made_jump
        term = _unwrapped(terms)
        y, u = y0
        dt, dw, mark, solver_state = term.contr(t0, t1, solver_state, y.dtype)
        y, push = self.advance(term.process, y, dt, dw, mark)
        y1 = (y, u + push)
        return y1, None, dict(y0=y0, y1=y1), solver_state, diffrax.RESULTS.successful

    def func(self, terms: Any, t0: Any, y0: PyTree, args: Any) -> PyTree:
        return terms.vf(t0, y0, args)

    def order(self, terms: Any) -> NoReturn:
        # diffrax asks for the order only to scale an error estimate, which it can get only by halving steps.
        del terms
        raise InputError(f"{_NO_SUBDIVISION}. (The order of stationary averages is `solver.weak_order`.)")

    def error_order(self, terms: Any) -> None:
        return None


def fixed_step_only(solver: Any) -> AbstractReflectedSolver:
    """The solver itself, when it is a reflected one.

    **Raises:** `InputError` for other solvers, and for wrappers that would halve or reject its steps.
    """
    if isinstance(solver, diffrax.AbstractWrappedSolver | diffrax.AbstractAdaptiveSolver):
        raise InputError(f"{type(solver).__name__}: {_NO_SUBDIVISION}")
    if isinstance(solver, type) or not isinstance(solver, AbstractReflectedSolver):
        raise InputError(
            f"solver must be a reflected one, such as rdiff.BridgeHeun(), got {solver!r} "
            "(usual cause: the class without its parentheses, or a diffrax solver, which knows no wall)"
        )
    return solver


def matvec(sigma: ArrayLike, dw: Float[Array, " noise"]) -> Float[Array, " dim"]:
    """sigma dW, row by row (see `along`)."""
    return jnp.stack([along(row, dw) for row in sigma])  # pyright: ignore[reportGeneralTypeIssues]


def _unwrapped(terms: Any) -> ReflectedTerm:
    """diffrax wraps terms so that time may run backwards; a generator's state must not pass through that."""
    while not isinstance(terms, ReflectedTerm):
        if not hasattr(terms, "term"):
            raise InputError(
                f"a reflected solver needs an rdiff.ReflectedTerm, got {terms!r}: it carries the wall and the noise"
            )
        terms = terms.term
    return terms
