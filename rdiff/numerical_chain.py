"""Stationary means under a scheme's own Markov chain, computed and not sampled: its time-step bias.

One step of a scheme is a Markov kernel P. With phi an observable and m its stationary mean, (P g - g)/dt + m = phi has a
smooth solution g, found by collocation on Chebyshev points; P g is a quadrature over the step's two random numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdiff.errors import InputError, integer, positive
from rdiff.functionals import Observable, named
from rdiff.models import JSQDiffusion, ReflectedBrownianMotion, ReflectedOU
from rdiff.process import AbstractReflectedDiffusion
from rdiff.solvers import AbstractReflectedSolver, ProjectedEuler
from rdiff.solvers.base import fixed_step_only

POINTS: dict[int, tuple[int, ...]] = {1: (64,), 2: (20, 28)}
GAUSS = {1: 40, 2: 20}  # points of the quadrature in each smooth piece
REACH = 8.0  # standard deviations of the noise that the quadrature covers
GRADES = (0.01, 1.5)  # how much the points crowd towards 0: at Y2 = 0 a step's clip leaves fine structure


def stationary_mean(
    process: AbstractReflectedDiffusion,
    solver: AbstractReflectedSolver,
    dt: float,
    h: Observable | Mapping[str, Observable],
    *,
    box: Sequence[float] | None = None,
    points: Sequence[int] | None = None,
) -> Any:
    """E h under the stationary law of the numerical chain that `solver` makes of `process` with step `dt`.

    Less the exact E h(Y) it is the bias of the scheme. Error about 1e-7 in one coordinate, 2e-5 in two (1e-4 at dt = 0.4, where
    the clip of Y2 at 0 makes kinks), for smooth h of polynomial growth; y2 > 1 is not smooth. Check with more `points`.

    **Arguments:**

    - `process`: of one or two coordinates, one Brownian motion, additive noise, in {y1 >= 0}.
    - `h`: state (dim,) -> scalar, or a dict of them, which share the work.
    - `box`: (L1,) or (L1, L2): the state is followed on [0, L1] x [0, L2] and held inside, so choose it where the
        stationary law leaves about e^-30; known for `JSQDiffusion`, `ReflectedOU` and `ReflectedBrownianMotion`.
    - `points`: Chebyshev points a coordinate.

    **Returns:** a float, or a dict of them. **Raises:** `InputError`.

    ```python
    >>> import rdiff
    >>> from rdiff.numerical_chain import stationary_mean
    >>> X = rdiff.ReflectedBrownianMotion(mu=1.0)       # exact mean 0.5
    >>> round(stationary_mean(X, rdiff.ProjectedEuler(), 0.1, lambda x: x[0]), 6)
    0.339457

    ```
    """
    positive("dt", dt)
    fixed_step_only(solver).check(process)
    _check(process)
    box = [positive("box", length) for length in _each("box", _box(process) if box is None else box, process.dim)]
    points = [integer("points", n, 2) for n in _each("points", points or POINTS[process.dim], process.dim)]
    with jax.enable_x64(True):
        names, functions = named(h, process.dim, jnp.float64)
        nodes = np.stack(np.meshgrid(*map(_nodes, box, points, GRADES), indexing="ij"), axis=-1).reshape(-1, process.dim)
        moved = _transitions(process, solver, jnp.asarray(float(dt)), jnp.asarray(box, float), jnp.asarray(nodes))
        ends, weights = map(np.asarray, moved)
        phi = np.stack([np.asarray(jax.vmap(f)(jnp.asarray(nodes)), float) for f in functions], axis=-1)
    after = np.stack([_expected(y, w, box, points) for y, w in zip(ends, weights, strict=True)])
    now = np.stack([_expected(y[None], np.ones(1), box, points) for y in nodes])
    system = (after - now) / dt
    system[:, 0] = 1.0  # the constant function, which P leaves alone, makes room for m
    rows = 1 / (1 + nodes.sum(axis=1)) ** 2
    system *= rows[:, None]
    columns = np.abs(system).max(axis=0)
    means = np.linalg.solve(system / columns, phi * rows[:, None])[0] / columns[0]
    found = dict(zip(names, map(float, means), strict=True))
    return found if isinstance(h, Mapping) else found[names[0]]


@eqx.filter_jit
def _transitions(
    process: AbstractReflectedDiffusion, solver: AbstractReflectedSolver, dt: Array, box: Array, nodes: Array
) -> tuple[Array, Array]:
    """Where one step leads from each node, held in the box, and with what weight: (nodes, q, dim) and (nodes, q)."""
    across = jnp.asarray(process.sigma(nodes[0]), nodes.dtype)[0, 0]
    size = jnp.abs(across) * jnp.sqrt(dt)  # standard deviation of the free rise
    mark, gauss = jnp.ones(()), GAUSS[process.dim]
    floor = jnp.asarray([0.0 if i == 0 or i in process.nonnegative else -jnp.inf for i in range(process.dim)])

    def move(y: Array, below: Array, above: Array, rise: Array) -> tuple[Array, Array]:
        dw = (above - below - rise) / across
        return solver.advance(process, y, dt, dw[None], 2 * below * above / size**2)

    def one_node(y: Array) -> tuple[Array, Array]:
        rise = process.drift(y)[0] * dt
        if isinstance(solver, ProjectedEuler):
            # Only the rise counts; the wall makes a kink where the step ends on it.
            low, high = rise - REACH * size, rise + REACH * size
            rises, weights = _pieces(low, high, (-y[0],), gauss)
            weights = weights * jnp.exp(-(((rises - rise) / size) ** 2) / 2) / (size * (2 * jnp.pi) ** 0.5)
            ends, _ = jax.vmap(lambda x: solver.advance(process, y, dt, ((x - rise) / across)[None], mark))(rises)
            return ends, weights

        # Coordinates of the two random numbers in which a step is smooth: how far the free path goes below its start, and
        # how far above its minimum it ends. Their density is (a+c) exp(-((a+c)^2 - 2 rise (c-a) + rise^2)/(2 v)) ...
        below_low, below_high = _range(-rise, size)
        c, c_weights = _pieces(*_range(rise, size), (), gauss)

        def line(above: Array) -> tuple[Array, Array]:
            # ... with kinks where the driftless path touches the wall, and where the push begins.
            touch = _bisect(lambda below: move(y, below, above, rise)[1] > 0, below_low, below_high)
            a, weights = _pieces(below_low, below_high, (y[0], touch), gauss)
            ends, _ = jax.vmap(lambda below: move(y, below, above, rise))(a)
            sum_ = (a + above) / size
            exponent = -(sum_**2) / 2 + (rise * (above - a) - rise**2 / 2) / size**2
            return ends, weights * sum_ * jnp.exp(exponent) * (2 / jnp.pi) ** 0.5 / size**2

        ends, weights = jax.vmap(line)(c)
        return ends.reshape(-1, process.dim), (weights * c_weights[:, None]).reshape(-1)

    def bounded(y: Array) -> tuple[Array, Array]:
        ends, weights = one_node(y)
        return jnp.clip(ends, floor[None], box[None]), weights / weights.sum()

    return jax.lax.map(bounded, nodes, batch_size=64)


def _range(center: Array, size: Array) -> tuple[Array, Array]:
    """Where a side of the minimum has its mass: around `center` when positive, else decaying from 0 at rate -2 center/v."""
    low = jnp.maximum(center - REACH * size, 0)
    decay = 20 * size**2 / jnp.maximum(-center, 1e-300)
    return low, jnp.where(center > 0, center, 0) + jnp.where(center < 0, jnp.minimum(decay, REACH * size), REACH * size)


def _pieces(low: Array, high: Array, kinks: tuple[Array, ...], count: int) -> tuple[Array, Array]:
    """Gauss-Legendre points and weights on [low, high] cut at the kinks."""
    x, w = np.polynomial.legendre.leggauss(count)
    edges = jnp.sort(jnp.stack([low, *(jnp.clip(kink, low, high) for kink in kinks), high]))
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    return (middle[:, None] + half[:, None] * x[None]).reshape(-1), (half[:, None] * w[None]).reshape(-1)


def _bisect(above: Any, low: Array, high: Array) -> Array:
    """Where a monotone condition begins to hold on [low, high]."""

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        yes = above(middle)
        return jnp.where(yes, ends[0], middle), jnp.where(yes, middle, ends[1])

    return jax.lax.fori_loop(0, 40, halve, (low, high))[1]


def _nodes(length: float, count: int, grade: float) -> Float[np.ndarray, " points"]:
    """Chebyshev-Lobatto points of [0, length], graded by the inverse of `_unit`; the wall is one of them."""
    unit = np.sin(np.pi * np.arange(count) / (2 * (count - 1))) ** 2
    return length * np.sinh(grade * unit) / np.sinh(grade)


def _unit(y: np.ndarray, length: float, grade: float) -> np.ndarray:
    """[0, length] as [0, 1], drawn out near 0."""
    return np.arcsinh(y / length * np.sinh(grade)) / grade


def _expected(y: np.ndarray, weights: np.ndarray, box: Sequence[float], points: Sequence[int]) -> np.ndarray:
    """Weighted sums of products of Chebyshev polynomials over y, shape (q, dim) -> (unknowns,); the first is the constant."""
    vander = np.polynomial.chebyshev.chebvander
    first, *rest = (vander(2 * _unit(y[:, i], box[i], GRADES[i]) - 1, points[i] - 1) for i in range(len(box)))
    return ((weights[:, None] * first).T @ rest[0]).reshape(-1) if rest else weights @ first


def _box(process: AbstractReflectedDiffusion) -> tuple[float, ...]:
    if isinstance(process, JSQDiffusion):
        return (float(process.beta) + 9.0, 34.0 / float(process.beta))[: process.dim]
    if isinstance(process, ReflectedOU):
        return (max(float(process.center), 0.0) + 9.0 * float(process.scale) / (2 * float(process.rate)) ** 0.5,)
    if isinstance(process, ReflectedBrownianMotion):
        return (13.0 * float(process.s) ** 2 / float(process.mu),)
    raise InputError(
        f"box must be given for {type(process).__name__}: the lengths of [0, L1] x [0, L2] that hold the stationary law"
    )


def _each(name: str, values: Sequence[Any], dim: int) -> Sequence[Any]:
    if len(values) != dim:
        raise InputError(f"{name} must have one entry a coordinate, {dim}, got {tuple(values)}")
    return values


def _check(process: AbstractReflectedDiffusion) -> None:
    wall = process.domain
    ok = process.dim in POINTS and process.noise_dim == 1 and process.additive
    ok = ok and np.array_equal(np.asarray(wall.normal), np.eye(process.dim)[0]) and float(wall.offset) == 0
    if not ok:
        raise InputError(
            "the numerical chain is computed for one or two coordinates, one Brownian motion, additive noise and the domain "
            f"{{y1 >= 0}}; got {process.dim} coordinates in {wall} (usual cause: b >= 2, whose stationary law is that of b = 1)"
        )
