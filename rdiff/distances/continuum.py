"""The limit's side of a distance: the marginals of Y and the means of spline bases under its exact law."""

import functools
from typing import Any

import numpy as np
from jaxtyping import Float

from rdiff.distances.splines import Axis
from rdiff.limit import chebyshev, density
from rdiff.limit.law import StationaryLaw
from rdiff.limit.march import DECAY

_FINEST, _EXACT = 1024, 1e-13  # the series of the density of Y1: its largest degree, and where it may end


class Continuum:
    """What the distances ask of a `StationaryLaw`, kept for all n."""

    def __init__(self, law: StationaryLaw) -> None:
        self.law: StationaryLaw = law
        self.beta: float = law.beta

    def cdf(self, i: int, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """P(Y_i <= y), i = 1 or 2, for y >= 0."""
        if i == 2:
            return 1.0 - self.law.tail(y)
        series, end = self._sums[0], self.end(1)
        return np.where(y < end, series(np.minimum(y, end)), 1.0)

    def area(self, i: int, a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The integral of the distribution function over [a, b], at most about delta long beyond its start at 0."""
        if i == 1:
            series, end = self._sums[1], self.end(1)
            inside = series(np.minimum(b, end)) - series(np.minimum(a, end))
            return inside + np.maximum(b, end) - np.maximum(a, end)
        nodes, weights = chebyshev.legendre(10)
        length = b - a
        out = length * (self.cdf(2, a[:, None] + length[:, None] * nodes) @ weights)
        # near 0 it is a power of y: substitute y = b e^{-s}
        near = a < length
        laguerre, weights = np.polynomial.laguerre.laggauss(20)
        for end, sign in ((b, 1.0), (a, -1.0)):
            at = end[near]
            part = at * (self.cdf(2, at[:, None] * np.exp(-laguerre)) @ weights)
            out[near] = part if sign > 0 else out[near] - part
        return out

    def end(self, i: int) -> float:
        """Where Y_i has less mass left than rounding."""
        return self.beta + np.sqrt(2 * DECAY) if i == 1 else 45.0 / self.beta

    def one(self, i: int, axis: Axis) -> Float[np.ndarray, " size"]:
        """E B(Y_i) of the basis."""
        if i == 1:
            x, weights = self._first_nodes(axis)
            return axis.at(x).T @ (weights * self._density(x))
        z, weights = self._second_nodes(axis)
        return axis.at(np.exp(-z)).T @ (weights * density.level(self.march, z))

    def two(self, first: Axis, second: Axis) -> Float[np.ndarray, "size1 size2"]:
        """E B_i(Y_1) B_j(Y_2) of both bases."""
        x, along = self._first_nodes(first)
        z, weights = self._second_nodes(second)
        flow = density.flows(self.march, z)
        mass = np.stack([flow(at) for at in x]) * along[:, None] * weights
        return first.at(x).T @ (second.at(np.exp(-z)).T @ mass.T).T

    @property
    def march(self) -> Any:
        return self.law._march()

    def _first_nodes(self, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
        """Gauss nodes and weights in cells, closer together at 0, where Y1 is about 1/Y2 when Y2 is large."""
        step = float(axis.breaks[1])
        near = step * 0.5 ** np.arange(1, 1 + max(0, int(np.ceil(np.log2(8 * step / self.beta)))))
        return _gauss(np.union1d(axis.breaks, near), 6)

    def _second_nodes(self, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights in z = -log y, with the power law below the march at its end."""
        march = self.march
        with np.errstate(divide="ignore"):
            cuts = -np.log(axis.breaks)
        edges = np.union1d(march.starts, cuts[(cuts > march.starts[0]) & (cuts < march.end)])
        z, weights = _gauss(np.append(edges, march.end), 8)
        return np.append(z, march.end), np.append(weights, 1 / march.power)

    def _density(self, x: np.ndarray) -> np.ndarray:
        end = self.end(1)
        return np.where(x < end, self._series(np.minimum(x, end)), 0.0)

    @functools.cached_property
    def _series(self) -> np.polynomial.Chebyshev:
        """The density of Y1; at small beta it falls off within beta of 0, which takes many terms."""
        degree = 64
        while True:
            found = np.polynomial.Chebyshev.interpolate(lambda x: self.law.marginal(1, x), degree, [0.0, self.end(1)])
            tail = np.max(np.abs(found.coef[-8:]))
            if tail <= _EXACT * np.max(np.abs(found.coef)) or degree >= _FINEST:
                return found
            degree *= 2

    @functools.cached_property
    def _sums(self) -> tuple[np.polynomial.Chebyshev, np.polynomial.Chebyshev]:
        """The distribution function of Y1 and its integral."""
        once = self._series.integ(lbnd=0.0)
        once = once / once(self.end(1))
        return once, once.integ(lbnd=0.0)


def _gauss(edges: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights in every cell."""
    nodes, weights = chebyshev.legendre(count)
    steps = np.diff(edges)
    return (edges[:-1, None] + steps[:, None] * nodes).ravel(), (steps[:, None] * weights).ravel()
