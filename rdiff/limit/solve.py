"""The limit solved twice, finely and coarsely: every number comes with the difference of the two as its error."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rdiff.limit import density
from rdiff.limit.closed import CutNormal
from rdiff.limit.growth import beyond
from rdiff.limit.march import March, march
from rdiff.limit.poisson import Collocation, PoissonSolution, collocate

Values = Callable[[Float[np.ndarray, "points 2"]], Float[np.ndarray, " points"]]
ROUGH = 3e-10  # two quadratures further apart than this, relative to E|h|, mean that h is not smooth


class Bounded(NamedTuple):
    """A number, a bound on its error, E|h|, and the method."""

    value: float
    error: float
    scale: float
    method: str


class Identity(NamedTuple):
    """An identity of the stationary law: both sides, their difference relative to E Y2 (or the moment in it), and the size
    of the terms it compares."""

    name: str
    left: float
    right: float
    residual: float
    size: float


@dataclasses.dataclass(frozen=True, eq=False)
class Solved:
    """The law at one beta, b > 0 or b = 0; everything is computed when first needed, and kept."""

    beta: float
    b: int

    @functools.cached_property
    def fine(self) -> March | CutNormal:
        """The law that answers."""
        return march(self.beta) if self.b else CutNormal(self.beta)

    @functools.cached_property
    def coarse(self) -> March | CutNormal:
        """The law that tells the error: fewer stages, panels and points, none of them shared."""
        return march(self.beta, stages=6, refine=0.85) if self.b else CutNormal(self.beta)

    @functools.cached_property
    def quadratures(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """Points and weights of both."""
        return self.fine.nodes(), self.coarse.nodes(32)

    @functools.cached_property
    def collocations(self) -> tuple[Collocation, Collocation]:
        """The Poisson equation, fine and coarse."""
        more = int(3 * max(self.beta - 1.0, 0.0))
        sizes = ((28 + more, 36), (24 + more, 29)) if self.b else ((44 + 2 * more, 0), (36 + 2 * more, 0))
        first, second = (collocate(self.beta, *size) for size in sizes)
        return first, second

    @functools.cached_property
    def identities(self) -> tuple[Identity, ...]:
        """What the stationary law must satisfy, from the fine quadrature."""
        points, weights = self.quadratures[0]
        x, y = points.T
        beta = self.beta
        if isinstance(self.fine, CutNormal):
            rate = self.fine.push_rate
            sides = [("E Y1 = beta + phi(beta)/Phi(beta)", weights @ x, beta + rate, 1.0),
                     ("E Y1^2 = 1 + beta E Y1", weights @ x**2, 1 + beta * (weights @ x), 1.0)]  # fmt: skip
        else:
            m1, m2, m3 = (weights @ y**k for k in (1, 2, 3))
            wall = density.first(self.fine, np.zeros(1))[0]
            sides = [
                ("E Y1 = beta", weights @ x, beta, m1),
                ("density of Y1 at 0 = E Y2", wall, m1, m1),
                ("E Y1 Y2 = beta/2 E Y2", weights @ (x * y), beta / 2 * m1, m1),
                ("E Y1^2 = 1 + beta^2 - beta/2 E Y2", weights @ x**2, 1 + beta**2 - beta / 2 * m1, m1),
                ("E Y1 Y2^2 = beta/3 E Y2^2", weights @ (x * y**2), beta / 3 * m2, m2),
                ("E Y1 Y2^3 = beta/4 E Y2^3", weights @ (x * y**3), beta / 4 * m3, m3),
            ]
        # E Y1^2 is a small difference of two terms at small beta
        return tuple(
            Identity(name, float(a), float(b), float(abs(a - b) / unit), float(max(a, 1.0 if "Y1^2" in name else 0.0)))
            for name, a, b, unit in sides
        )

    @property
    def residual(self) -> float:
        """The largest residual, each relative to the terms it compares."""
        return max(abs(i.left - i.right) / i.size for i in self.identities)

    @property
    def rounding(self) -> float:
        """What rounding leaves in the moments, relatively, as measured between marches of many sizes: more at small beta, where
        the march is longer and stiffer."""
        return max(1e-12, 4e-12 / self.beta**2) if self.b else 1e-14

    @functools.cached_property
    def noise(self) -> float:
        """How far the two solutions are apart on moments, relatively: nothing can be told from smaller differences."""
        (p, w), (q, v) = self.quadratures
        powers = ((2, 0), (0, 1), (0, 2)) if self.b else ((1, 0), (2, 0))
        pairs = [(w @ np.prod(p**power, axis=1), v @ np.prod(q**power, axis=1)) for power in powers]
        return float(max(abs(a / b - 1) for a, b in pairs))

    def expect(self, h: Values, method: str | None = None) -> Bounded:
        """E h: by the march's own quadrature where h is smooth, else adaptively; by the Poisson equation when asked."""
        values = [h(points) for points, _ in self.quadratures]
        (_, w), (_, v) = self.quadratures
        mean, other, scale = float(w @ values[0]), float(v @ values[1]), float(w @ np.abs(values[0]))
        rest = scale * max(self.residual, self.rounding)
        if isinstance(self.fine, March):
            rest += beyond(self.fine, *self.quadratures[0], values[0])
        if method == "poisson":
            mean, other = (float(c.weights @ h(c.points)) for c in self.collocations)
            return Bounded(mean, 2 * abs(mean - other) + rest, scale, "Poisson equation")
        how = "density march" if self.b else "closed form"
        if method == "adaptive" or (method is None and abs(mean - other) > max(ROUGH, 10 * self.noise) * scale):
            (mean, first), (other, second) = (self._rough(law, h, scale) for law in (self.fine, self.coarse))
            return Bounded(mean, 2 * abs(mean - other) + first + second + rest, scale, f"{how}, adaptive")
        return Bounded(mean, 2 * abs(mean - other) + rest, scale, how)

    def _rough(self, law: March | CutNormal, h: Values, scale: float) -> tuple[float, float]:
        return law.rough(h, scale) if isinstance(law, CutNormal) else density.rough(law, h, scale)

    def sensitivity(self, h: Values) -> Bounded:
        """d/dbeta E h = -E f_1 where h is smooth, else a sixth-order central difference of E h."""
        here = self.expect(h)
        values = self._of_f(h, [push for push, _ in self._functionals])
        error = abs(values[0] - values[1]) + here.error
        if error <= 1e-7 * max(here.scale, abs(values[0])):
            return Bounded(values[0], error, here.scale, "Poisson equation")
        step = 0.03 * self.beta / (1 + self.beta**2 / 4)
        at = {k: Solved(self.beta + k * step, self.b).expect(h) for k in (-3, -2, -1, 1, 2, 3)}
        d1, d2, d3 = (at[k].value - at[-k].value for k in (1, 2, 3))
        fourth, sixth = (8 * d1 - d2) / (12 * step), (45 * d1 - 9 * d2 + d3) / (60 * step)
        noise = max(e.error for e in at.values()) * 1.9 / step
        return Bounded(sixth, abs(sixth - fourth) + noise, here.scale, f"central difference of {here.method}")

    def constant(self, h: Values) -> Bounded:
        """C(h) in E h(X) = E h(Y) + C(h)/sqrt(n) + O(1/n), from the second derivatives of f."""
        values = self._of_f(h, [first for _, first in self._functionals])
        here = self.expect(h)
        return Bounded(values[0], abs(values[0] - values[1]) + here.error, here.scale, "Poisson equation")

    def poisson(self, h: Values) -> tuple[PoissonSolution, PoissonSolution]:
        """f from both collocations."""
        first, second = (
            PoissonSolution(mean, self.beta, self.b, c.window, coefficients)
            for c in self.collocations
            for coefficients, mean in (c.solve(h(c.points)),)
        )
        return first, second

    @property
    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and weights of d/dbeta E h for smooth h."""
        first = self.collocations[0]
        return first.points, first.transposed(self._functionals[0][0])

    def _of_f(self, h: Values, functionals: list[np.ndarray]) -> list[float]:
        return [float(np.sum(m * c.solve(h(c.points))[0])) for m, c in zip(functionals, self.collocations)]

    @functools.cached_property
    def _functionals(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """-E f_1 and C as linear in the coefficients of f, fine and coarse."""
        found = []
        for c, (points, weights) in zip(self.collocations, self.quadratures):
            x, y = points.T
            wall = np.stack([np.zeros_like(y), y], axis=-1)
            first = c.moment(points, weights * (self.beta + x + y), 2, 0)
            if isinstance(self.fine, CutNormal):
                # an arrival that finds every server busy is lost: at rate phi/Phi, and f_1 = 0 there
                first += self.fine.push_rate * c.moment(wall, weights, 2, 0)
            else:
                first -= c.moment(points, weights * y, 0, 2)
                first -= c.moment(wall, weights * y, 0, 2) - c.moment(wall, weights * y, 2, 0)
            found.append((-c.moment(points, weights, 1, 0), first / 2))
        return found


@functools.lru_cache(maxsize=128)
def solved(beta: float, b: int) -> Solved:
    """The law at beta, kept for the next time; every b >= 1 has the same."""
    return Solved(beta, b)
