"""Stein factors: how large the first and second derivatives of a Poisson solution are, over a box, everywhere, or in mean."""

import math
from typing import TYPE_CHECKING

import numpy as np

from rdiff.errors import InputError, probability
from rdiff.limit.poisson import PoissonSolution

if TYPE_CHECKING:
    from rdiff.limit.law import StationaryLaw

WAYS = ("box", "all", "weighted", "mean")
NAMES: dict[str, tuple[int, ...]] = {"f1": (1,), "f2": (2,), "f11": (1, 1), "f12": (1, 2), "f22": (2, 2)}
_COUNT = 200  # points a side
_GROWS, _FLAT = 0.01, 1e-6


def asked(over: str, mass: float, b: int) -> tuple[dict[str, tuple[int, ...]], float]:
    """The factors there are with this b, and 1 - mass. **Raises:** `InputError` for another `over` or `mass`."""
    if over not in WAYS:
        raise InputError(f"over must be one of {', '.join(WAYS)}, got {over!r}")
    outside = 1 - probability("mass", mass)
    return {name: along for name, along in NAMES.items() if max(along) <= b + 1}, outside


def stein_factors(
    law: "StationaryLaw", f: PoissonSolution, over: str, mass: float, ends: tuple[float, float]
) -> dict[str, float]:
    """The factors of the limit's f; `ends`, the box's far corner."""
    names, _ = asked(over, mass, law.b)
    if over == "mean":
        points, weights = law.quadrature()
        return {name: float(weights @ values) for name, values in _derivatives(f, points, names).items()}
    grid = _grid(ends if over == "box" else f.window, law.b)
    values = _derivatives(f, grid, names)
    if over == "weighted":
        values = {name: each / (1 + grid.sum(axis=-1)) for name, each in values.items()}
    found = {name: float(each.max()) for name, each in values.items()}
    if over == "all":  # a function that still grows between half the window and its end is taken to grow for ever
        half = _derivatives(f, _grid((f.window[0] / 2, f.window[1] / 2), law.b), names)
        found = {name: x if x <= (1 + _GROWS) * half[name].max() + _FLAT else math.inf for name, x in found.items()}
    return found


def _grid(ends: tuple[float, float], b: int) -> np.ndarray:
    """States of [0, ends], closer together near 0: (_COUNT, _COUNT, b + 1), or (_COUNT, 1, 1) for b = 0."""
    axis = np.linspace(0, 1, _COUNT) ** 2
    grid = np.stack(np.meshgrid(ends[0] * axis, ends[1] * axis if b else np.zeros(1), indexing="ij"), axis=-1)
    return np.concatenate([grid[..., : b + 1], np.zeros((*grid.shape[:-1], max(b - 1, 0)))], axis=-1)


def _derivatives(f: PoissonSolution, y: np.ndarray, names: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    first, second = np.abs(f.gradient(y)), np.abs(f.hessian(y))
    return {
        name: first[..., along[0] - 1] if len(along) == 1 else second[..., along[0] - 1, along[1] - 1]
        for name, along in names.items()
    }
