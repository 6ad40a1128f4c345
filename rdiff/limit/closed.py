"""b = 0, the limit of the Erlang loss system: a reflected Ornstein-Uhlenbeck process, with a cut normal law."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from rdiff.limit import adaptive, chebyshev

_REACH = 9.0  # beyond beta + 9 the mass is e^{-40}


@dataclasses.dataclass(frozen=True)
class CutNormal:
    """Normal(beta, 1) cut to [0, inf), with the questions a law asks."""

    beta: float

    @property
    def push_rate(self) -> float:
        """The long-run rate of the local time: phi(beta)/Phi(beta), the density at 0."""
        from scipy.special import log_ndtr

        return math.exp(-(self.beta**2) / 2 - float(log_ndtr(self.beta))) / math.sqrt(2 * math.pi)

    def density(self, x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The density at x."""
        return np.where(x >= 0, self.push_rate * np.exp((self.beta - x / 2) * x), 0.0)

    def nodes(self, count: int = 40) -> tuple[Float[np.ndarray, "points 2"], Float[np.ndarray, " points"]]:
        """Gauss-Legendre quadrature on four cells."""
        gauss, weights = chebyshev.legendre(count)
        step = (self.beta + _REACH) / 4
        x = (step * (np.arange(4)[:, None] + gauss)).ravel()
        return np.stack([x, np.zeros_like(x)], axis=-1), step * np.tile(weights, 4) * self.density(x)

    def rough(self, h: Callable[[np.ndarray], np.ndarray], scale: float, tolerance: float = 1e-12) -> tuple[float, float]:
        """E h and an error bound for h with jumps and kinks."""
        ends = np.linspace(0.0, self.beta + _REACH, 9)

        def integrand(x: np.ndarray, _: np.ndarray) -> np.ndarray:
            return self.density(x) * h(np.stack([x, np.zeros_like(x)], axis=-1))

        total, error = adaptive.integrate(integrand, ends[:-1], ends[1:], np.zeros(8, int), np.array([tolerance * scale]), 16)
        return float(total[0]), float(error[0])

    def sample(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, "size 2"]:
        """Independent draws by the inverse distribution function."""
        from scipy.special import ndtr, ndtri

        # from the upper tail down, where ndtri is exact
        x = self.beta - ndtri(rng.random(size) * ndtr(self.beta))
        return np.stack([np.maximum(x, 0.0), np.zeros(size)], axis=-1)
