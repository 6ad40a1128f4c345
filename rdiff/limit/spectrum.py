"""The spectral gap of the limit: how fast it forgets its start."""

import functools
import math
from typing import Any

import numpy as np

from rdiff.limit import chebyshev
from rdiff.limit.poisson import BEND, basis


@functools.lru_cache(maxsize=256)
def gap(beta: float, b: int) -> float:
    """The smallest decay rate of E h(Y(t)) - E h(Y), to about three digits.

    The generator with D f = 0 at y1 = 0, collocated on the polynomials of the Poisson equation: its first eigenvalue after 0.
    Rates from beta^2/4 on, that of reflected Brownian motion with drift -beta, form a continuum; so that caps it. With b >= 2
    the levels above the second decay at rate 1.
    """
    from scipy.linalg import eigvals

    degree1, degree2 = int(18 + 2 * beta), 24 if b else 0
    length1, length2 = beta + 7.0, 24.0 / beta if b else 0.0
    span = math.log1p(length2 / BEND) or 1.0
    u, v = chebyshev.lobatto(degree1)[0], chebyshev.lobatto(degree2)[0] if b else np.zeros(1)
    y1, y2 = length1 * u, BEND * np.expm1(span * v)
    a0, a1, a2 = (basis(u, degree1, k) / length1**k for k in range(3))
    c0, c1 = basis(v, degree2, 0), basis(v, degree2, 1) / (span * (y2 + BEND))[:, None]
    x, y = (each.ravel()[:, None] for each in np.meshgrid(y1, y2, indexing="ij"))
    generator = (beta - x - y) * np.kron(a1, c0) + np.kron(a2, c0) - y * np.kron(a0, c1)
    values = np.kron(a0, c0)
    generator[: len(y2)] = np.kron(a1[:1], c0) + np.kron(a0[:1], c1)
    values[: len(y2)] = 0.0
    rates: Any = -np.asarray(eigvals(generator, values))
    rates = rates[np.isfinite(rates)].real
    found = float(np.min(rates[rates > 1e-3 * min(1.0, beta**2)]))
    return min(found, beta**2 / 4 if b else math.inf, 1.0 if b > 1 else math.inf)
