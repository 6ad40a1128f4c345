"""What a march answers beside E h of smooth h: densities, tails, quantiles, samples, and E h of rough h."""

import functools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.polynomial import chebyshev as series

from rdiff.limit import adaptive, chebyshev
from rdiff.limit.march import March, root_weight, window

_SAMPLES = 20_000  # at a time


def joint(march: March, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """p(x, y), any shape; 0 outside the quadrant and beyond the march, infinite at y = 0."""
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    out = np.zeros(x.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = -np.log(y)
    inside = (x >= 0) & (y > 0) & (z >= march.starts[0])
    if inside.any():
        out[inside] = flows(march, z[inside])(x[inside]) / y[inside]
    out[(x > 0) & (y == 0)] = np.inf
    return out


def first(march: March, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The density of Y1 at x >= 0."""
    z = np.append(march.levels.ravel(), march.end)
    along = np.append((march.lengths[:, None] * chebyshev.radau(march.stages)[1]).ravel(), 1 / march.power)
    flow = flows(march, z)
    return np.array([along @ flow(at) if at >= 0 else 0.0 for at in x])


def second(march: March, y: np.ndarray) -> np.ndarray:
    """The density of Y2 at y, any shape: infinite at 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = -np.log(np.maximum(y, 0.0))
        at = np.where(y > 0, level(march, np.minimum(z, 1e300)) / y, np.where(y == 0, np.inf, 0.0))
    return at


def level(march: March, z: np.ndarray) -> np.ndarray:
    """The density of -log Y2 at z."""
    panel, t = _locate(march, z)
    inside = _series(_coefficients(march)[panel], t)
    return np.where(z < march.starts[0], 0.0, np.where(z > march.end, march.masses[-1, -1] * _power(march, z), inside))


def above(march: March, z: np.ndarray) -> np.ndarray:
    """P(Y2 > e^{-z}), small ones with small relative error.

    Beyond the march C y e^{-beta y}.
    """
    panel, t = _locate(march, z)
    inside = march.above[panel] + march.lengths[panel] * _series(_integrals(march)[panel], t)
    start = march.starts[0] + 1 / 3
    if np.any(z < start):
        edge, y = np.exp(-start), np.exp(-np.minimum(z, start))
        with np.errstate(under="ignore"):
            beyond = above(march, np.array([start]))[0] * (y / edge) * np.exp(-march.beta * (y - edge))
        inside = np.where(z < start, beyond, inside)
    return np.where(z > march.end, 1.0 - march.rest * _power(march, z), inside)


def below(march: March, z: np.ndarray) -> np.ndarray:
    """P(Y2 < e^{-z}), small ones with small relative error."""
    panel, t = _locate(march, z)
    rest = march.above[-1] - march.above[panel] - march.lengths[panel] * _series(_integrals(march)[panel], t)
    return np.where(z > march.end, march.rest * _power(march, z), march.rest + rest)


def quantile(march: March, p: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """log of the p-quantile of Y2: -z with P(Y2 < e^{-z}) = p."""
    with np.errstate(divide="ignore"):
        z = march.end - np.log(np.minimum(p, march.rest) / march.rest) / march.power
    upper = 1.0 - p
    panel = np.clip(np.searchsorted(march.above, upper, side="right") - 1, 0, len(march.starts) - 1)
    # what the panel itself must hold, counted from the side where nothing cancels
    share = np.where(p < 0.5, march.above[-1] - march.above[panel] + march.rest - p, upper - march.above[panel])
    whole = np.zeros(len(p)), np.ones(len(p))
    t = _invert(_integrals(march)[panel], _coefficients(march)[panel], share / march.lengths[panel], *whole)
    far = upper < march.above[2]
    z = np.where(p < march.rest, z, march.starts[panel] + march.lengths[panel] * t)
    if far.any():
        z[far] = _bisect(march, upper[far])
    return -z


def sample(march: March, rng: np.random.Generator, size: int) -> Float[np.ndarray, "size 2"]:
    """Independent draws: Y2 by its quantiles, then Y1 by those of its law given Y2."""
    out = np.empty((size, 2))
    for begin in range(0, size, _SAMPLES):
        count = min(_SAMPLES, size - begin)
        logs = quantile(march, rng.random(count))
        out[begin : begin + count, 0] = _given(march, -logs, rng.random(count))
        out[begin : begin + count, 1] = np.exp(logs)
    return out


def rough(
    march: March, h: Callable[[Float[np.ndarray, "points 2"]], np.ndarray], scale: float, tolerance: float = 1e-11
) -> tuple[float, float]:
    """E h and an error bound for h with jumps and kinks: an adaptive integral over levels of adaptive integrals over y1.

    **Arguments:** `h` of many states; `scale`, about E|h|; `tolerance` relative to it.
    """
    spans = 4

    def over_first(z: np.ndarray, _: np.ndarray) -> np.ndarray:
        y = np.exp(-z)
        length = window(march.beta, y)[0]
        coefficients = _to_series(march.profiles(z), march.degree)

        def integrand(x: np.ndarray, owner: np.ndarray) -> np.ndarray:
            flow = root_weight(march.beta, x, y[owner]) * _series(coefficients[owner], x / length[owner])
            return flow * h(np.stack([x, y[owner]], axis=-1))

        ends = length[:, None] * np.linspace(0.0, 1.0, spans + 1)
        owner = np.repeat(np.arange(len(z)), spans)
        each = np.full(len(z), 0.3 * tolerance * scale)
        return adaptive.integrate(integrand, ends[:, :-1].ravel(), ends[:, 1:].ravel(), owner, each, 12)[0]

    z, lengths = march.starts, march.lengths
    panels = np.zeros(len(z), dtype=int)
    total, error = adaptive.integrate(over_first, z, z + lengths, panels, np.array([tolerance * scale]))
    laguerre, weights = np.polynomial.laguerre.laggauss(8)
    deep = over_first(march.end + laguerre / march.power, panels[:8])
    # what the power law carries below the floor: divide its own decay out, as the weights hold it
    rest = float(np.sum(weights / march.power * deep * np.exp(laguerre)))
    # an inner integral may stop at its own tolerance, on every level
    return float(total[0]) + rest, float(error[0]) + tolerance * scale * float(np.sum(lengths))


def flows(march: March, z: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """x -> y2 p(x, y2) at the levels z, one x (or one for all) a level; 0 beyond the window."""
    y = np.exp(-z)
    length = window(march.beta, y)[0]
    coefficients = np.ascontiguousarray(_to_series(march.profiles(z), march.degree).T)

    def flow(x: np.ndarray) -> np.ndarray:
        at = np.minimum(x, length)
        s = series.chebval(2 * at / length - 1, coefficients, tensor=False)
        with np.errstate(under="ignore"):
            return np.where(x <= length, np.maximum(root_weight(march.beta, at, y) * s, 0.0), 0.0)

    return flow


def _given(march: March, z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The u-quantile of Y1 given Y2 = e^{-z}, by Newton's method kept inside a bracket."""
    fine = 2 * march.degree + 24
    nodes, _ = chebyshev.lobatto(fine)
    length = window(march.beta, np.exp(-z))[0]
    s = march.profiles(np.minimum(z, march.end)) @ chebyshev.interpolation(*chebyshev.lobatto(march.degree), nodes).T
    density = np.maximum(root_weight(march.beta, length[:, None] * nodes, np.exp(-z)[:, None]) * s, 0.0)
    rates = _to_series(density, fine)
    sums = series.chebint(rates.T, lbnd=-1).T / 2
    whole = sums.sum(axis=1)
    steps = (sums @ series.chebvander(2 * nodes - 1, fine + 1).T) / whole[:, None]
    cell = np.clip(np.sum(steps < u[:, None], axis=1), 1, fine)
    return length * _invert(sums, rates, u * whole, nodes[cell - 1], nodes[cell])


def _invert(sums: np.ndarray, rates: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """t with sums(t) = value, one increasing series and one bracket a row: Newton's method, halving where it would leave."""
    sums, rates = np.ascontiguousarray(sums.T), np.ascontiguousarray(rates.T)
    t = (low + high) / 2
    for _ in range(50):
        gap = series.chebval(2 * t - 1, sums, tensor=False) - value
        low, high = np.where(gap < 0, t, low), np.where(gap < 0, high, t)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = t - gap / series.chebval(2 * t - 1, rates, tensor=False)
        new = np.where((step > low) & (step < high), step, (low + high) / 2)
        moved, t = np.max(np.abs(new - t), initial=0.0), new
        if moved < 1e-13:
            break
    return t


def _bisect(march: March, upper: np.ndarray) -> np.ndarray:
    """The level above which the mass `upper` lies, far out, where the march ends in an exponential."""
    low, high = np.full(upper.shape, march.starts[0] - 3.0), np.full(upper.shape, march.starts[2])
    for _ in range(60):
        z = (low + high) / 2
        more = above(march, z) > upper
        low, high = np.where(more, low, z), np.where(more, z, high)
    return (low + high) / 2


def _locate(march: March, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    panel = np.clip(np.searchsorted(march.starts, z, side="right") - 1, 0, len(march.starts) - 1)
    return panel, np.clip((z - march.starts[panel]) / march.lengths[panel], 0.0, 1.0)


def _power(march: March, z: np.ndarray) -> np.ndarray:
    return np.exp(-march.power * np.maximum(z - march.end, 0.0))


def _coefficients(march: March) -> np.ndarray:
    """Chebyshev series of the density of -log Y2 on every panel."""
    stage = np.append(0.0, chebyshev.radau(march.stages)[0])
    return np.linalg.solve(series.chebvander(2 * stage - 1, march.stages), march.masses.T).T


def _integrals(march: March) -> np.ndarray:
    return series.chebint(_coefficients(march).T, lbnd=-1).T / 2


def _to_series(values: np.ndarray, degree: int) -> np.ndarray:
    """Chebyshev series from values at the Lobatto points, along the last axis."""
    return values @ _transform(degree).T


@functools.cache
def _transform(degree: int) -> np.ndarray:
    nodes, _ = chebyshev.lobatto(degree)
    return np.linalg.inv(series.chebvander(2 * nodes - 1, degree))


def _series(coefficients: np.ndarray, t: np.ndarray) -> np.ndarray:
    """One series a row at one t in [0, 1] a row."""
    return series.chebval(2 * t - 1, np.ascontiguousarray(np.moveaxis(coefficients, -1, 0)), tensor=False)
