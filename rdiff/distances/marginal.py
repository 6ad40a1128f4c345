"""Distances between one coordinate of the queue, on its lattice, and the same coordinate of the limit."""

import dataclasses

import numpy as np
from jaxtyping import Float

from rdiff.distances.continuum import Continuum
from rdiff.distances.function import Piece
from rdiff.distances.lattice import Lattice

_HALVINGS = 60
_NOTHING = 1e-15  # of area: rounding, far out


@dataclasses.dataclass(frozen=True, eq=False)
class Marginal:
    """`w1`, Wasserstein: the integral of |F_X - F_Y|; `ks`, Kolmogorov-Smirnov: its sup, from both sides of every atom;
    `h`, the function of this coordinate with slopes 1 and -1, 0 far out, whose gap is `w1`."""

    w1: float
    ks: float
    h: Piece


def marginal(i: int, X: Lattice, Y: Continuum) -> Marginal:
    """Of the coordinate i = 1 or 2. On each cell of the lattice F_X is constant, so the two cross at most once there."""
    delta = X.points(i)[1] if len(X.points(i)) > 1 else 1 / np.sqrt(X.n)
    cells = max(len(X.points(i)), int(np.ceil(Y.end(i) / delta)))
    edges = delta * np.arange(cells + 1)
    at = np.minimum(np.cumsum(X.chances(i)), 1.0)
    steps = np.append(at, np.ones(cells - len(at)))
    limit = Y.cdf(i, edges)
    ks = max(np.max(np.abs(steps - limit[:-1])), np.max(np.abs(steps - limit[1:])))

    crossed = (limit[:-1] < steps) & (steps < limit[1:])
    cross = _crossings(i, Y, steps[crossed], edges[:-1][crossed], edges[1:][crossed])
    cuts, owner = np.concatenate([edges, cross]), np.concatenate([np.arange(cells + 1), np.flatnonzero(crossed)])
    order = np.argsort(cuts, kind="stable")
    cuts, level = cuts[order], steps[owner[order[:-1]]]
    areas = Y.area(i, cuts[:-1], cuts[1:]) - level * np.diff(cuts)
    slopes = np.where(np.abs(areas) < _NOTHING, 0.0, np.sign(areas))
    return Marginal(float(np.sum(np.abs(areas))), float(ks), _zigzag(i, cuts, slopes))


def _crossings(
    i: int, Y: Continuum, level: Float[np.ndarray, " m"], low: Float[np.ndarray, " m"], high: Float[np.ndarray, " m"]
) -> Float[np.ndarray, " m"]:
    """Where F_Y reaches each level, by bisection."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        under = Y.cdf(i, middle) < level
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return low  # inside the cell, even when F_Y reaches the level at its end


def _zigzag(i: int, cuts: np.ndarray, slopes: np.ndarray) -> Piece:
    """From 0, with these slopes; neighbours of one slope are one cell."""
    starts = np.append(0, np.flatnonzero(np.diff(slopes)) + 1)
    breaks, slopes = np.append(cuts[starts], cuts[-1]), slopes[starts]
    values = np.append(0.0, np.cumsum(slopes * np.diff(breaks))[:-1])
    return Piece((i - 1,), (breaks,), np.stack([values, slopes], axis=-1))
