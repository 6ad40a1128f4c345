"""The density march: the stationary density of (Y1, Y2), level of Y2 after level, from the largest down."""

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float

from rdiff.limit import chebyshev

START = 45.0  # the march starts at y2 = START/beta, beyond which the mass is of order START e^{-START}
FLOOR = 1e-18  # and ends at this y2, below which the density is a power of y2
DECAY = 36.0  # the window in y1 ends where the weight has fallen by e^{-DECAY}


@dataclasses.dataclass(frozen=True, eq=False)
class March:
    """The density of (Y1, Y2) on panels in z = -log y2, normalised.

        p(x, y2) = sqrt(w(x, y2)) s(x, z) / y2,      w = exp((beta - y2) x - x^2/2)

    On panel k, of length `lengths[k]` from `starts[k]`, s is the polynomial of degree `stages` in z and `degree` in x/window
    with values `values[k]` (stages + 1, degree + 1) at the panel's start and at its Radau nodes. Below `FLOOR` the density is
    the last profile times (y2/FLOOR)^power / y2.
    """

    beta: float
    stages: int
    degree: int
    starts: Float[np.ndarray, " panels"]
    lengths: Float[np.ndarray, " panels"]
    values: Float[np.ndarray, "panels stages1 degree1"]
    power: float

    @property
    def end(self) -> float:
        """The z at which the march ends."""
        return float(self.starts[-1] + self.lengths[-1])

    @functools.cached_property
    def levels(self) -> Float[np.ndarray, "panels stages"]:
        """z at the Radau nodes of every panel."""
        return self.starts[:, None] + self.lengths[:, None] * chebyshev.radau(self.stages)[0]

    @functools.cached_property
    def masses(self) -> Float[np.ndarray, "panels stages1"]:
        """The density of z = -log Y2 at the start and the Radau nodes of every panel."""
        z = np.concatenate([self.starts[:, None], self.levels], axis=1)
        return np.sum(_moments(self.beta, z, self.degree) * self.values, axis=-1)

    @functools.cached_property
    def above(self) -> Float[np.ndarray, " panels1"]:
        """P(-log Y2 <= z) at the ends of the panels, from the first start (0) on: the upper tail of Y2."""
        pieces = self.lengths * (self.masses[:, 1:] @ chebyshev.radau(self.stages)[1])
        return np.concatenate([[0.0], np.cumsum(pieces)])

    @property
    def rest(self) -> float:
        """P(Y2 < FLOOR)."""
        return float(self.masses[-1, -1] / self.power)

    def profiles(self, z: Float[np.ndarray, " levels"]) -> Float[np.ndarray, "levels degree1"]:
        """s at the Chebyshev points of the window, at any levels from the first start on."""
        panel = np.clip(np.searchsorted(self.starts, z, side="right") - 1, 0, len(self.starts) - 1)
        t = np.minimum((z - self.starts[panel]) / self.lengths[panel], 1.0)
        stage = np.append(0.0, chebyshev.radau(self.stages)[0])
        at = chebyshev.interpolation(stage, chebyshev.barycentric(stage), t)
        s = np.einsum("ls,lsx->lx", at, self.values[panel])
        # below the floor the density is a power, and s differs from the last one by nothing else
        return s * np.exp(-self.power * np.maximum(z - self.end, 0.0))[:, None]

    def nodes(self, count: int = 48) -> tuple[Float[np.ndarray, "points 2"], Float[np.ndarray, " points"]]:
        """Quadrature for E h of smooth h: points and weights, `count` Gauss nodes in y1 at every level.

        Exact for smooth h to the order of the march. Below the floor: Gauss-Laguerre in log y2.
        """
        laguerre, tail = np.polynomial.laguerre.laggauss(8)
        z = np.append(self.levels.ravel(), self.end + laguerre / self.power)
        along = np.append((self.lengths[:, None] * chebyshev.radau(self.stages)[1]).ravel(), tail / self.power)
        last = np.broadcast_to(self.values[-1, -1], (8, self.degree + 1))
        profiles = np.concatenate([self.values[:, 1:].reshape(-1, self.degree + 1), last])
        gauss, weights = chebyshev.legendre(count)
        y = np.exp(-z)[:, None]
        length = window(self.beta, y)[0]
        x = length * gauss
        s = profiles @ chebyshev.interpolation(*chebyshev.lobatto(self.degree), gauss).T
        mass = along[:, None] * length * weights * root_weight(self.beta, x, y) * s
        return np.stack([x, np.broadcast_to(y, x.shape)], axis=-1).reshape(-1, 2), mass.ravel()


def march(beta: float, stages: int = 8, refine: float = 1.0) -> March:
    """Solves, for z = -log y2 and q(x, z) = y2 p(x, y2),

        q_z = q_xx - ((beta - x - y2) q)_x,    q(0, z) = y2 * integral of q dx

    (mass flows down across the level y2 at rate y2 p_2(y2), and up at the rate p(0, y2) of the local time there). With
    q = sqrt(w) s,

        s_z = s_xx + (1/2 - (x + y2 - beta)^2/4 - x y2/2) s,

    self-adjoint, so rounding errors do not grow; s is smooth, and 0 at the end of a window [0, L(y2)] that narrows as w does.
    Chebyshev in x/L; in z Radau IIA with `stages` stages, order 2 stages - 1 at the ends of the panels. The profile at the
    start is forgotten at once.

    **Arguments:** `beta` > 0; `stages` per panel; `refine`, the factor on the number of panels and on the degree in x.
    """
    degree = int(refine * (26 + 3 * beta))
    starts, lengths = panels(beta, refine)
    nodes, bary = chebyshev.lobatto(degree)
    first = chebyshev.differentiation(nodes, bary)
    second = first @ first
    stage = np.append(0.0, chebyshev.radau(stages)[0])
    in_z = chebyshev.differentiation(stage, chebyshev.barycentric(stage))[1:]

    z = starts[:, None] + lengths[:, None] * stage
    y = np.exp(-z)
    from scipy.linalg import lapack

    width, slope = window(beta, y)
    wall = -y[..., None] * _moments(beta, z, degree)
    wall[..., 0] += 1.0
    x = width[..., None] * nodes
    # s_z at fixed x is s_z at fixed x/L less (x/L) (L_z/L) s_xi, and L_z = -y L_y
    speed = -nodes * (y * slope / width)[..., None]
    source = 0.5 - (y[..., None] - beta + x) ** 2 / 4 - y[..., None] * x / 2
    size = degree + 1
    inside = np.arange(1, degree)
    values = np.empty((len(starts), stages + 1, size))
    scales = np.zeros(len(starts))
    current = root_weight(beta, x[0, 0], y[0, 0])
    # one buffer for all panels: at this size fresh memory costs more than the solve
    buffer = np.empty((stages * size, stages * size), order="F")
    system = buffer.reshape((size, stages, size, stages), order="F").transpose(1, 0, 3, 2)
    right = np.zeros((stages, size))
    for k, length in enumerate(lengths):
        buffer[:] = 0.0
        for i in range(stages):
            operator = second / width[k, i + 1] ** 2 + speed[k, i + 1][:, None] * first
            operator[np.arange(size), np.arange(size)] += source[k, i + 1]
            system[i, :, i] = -length * operator
            system[i, inside, :, inside] += in_z[i, 1:]
            system[i, 0, i] = wall[k, i + 1]
            system[i, -1, i] = np.eye(size)[-1]
            right[i, inside] = -in_z[i, 0] * current[inside]
        solved = lapack.dgesv(buffer, right.ravel(), overwrite_a=True)[2].reshape(stages, size)  # pyright: ignore
        values[k, 0], values[k, 1:] = current, solved
        # rescaled, as the mass grows by e^START on the way
        scale = np.max(np.abs(solved[-1]))
        scales[k + 1 :] += math.log(scale)
        current = solved[-1] / scale
    power = _limit_power(beta, degree, values[-1, -1])
    values *= np.exp(scales - scales[-1])[:, None, None]
    raw = March(beta, stages, degree, starts, lengths, values, power)
    return dataclasses.replace(raw, values=values / (raw.above[-1] + raw.rest))


def _limit_power(beta: float, degree: int, s: np.ndarray) -> float:
    """The power k of y2 near 0 from the profile there, (w r_x)_x = -k w r with s = sqrt(w) r, as a Rayleigh quotient:
    the integral of w r_x^2 over that of w r^2, whose relative error stays small however small k is (large beta)."""
    gauss, weights = chebyshev.legendre(degree + 20)
    length = float(window(beta, np.array(0.0))[0])
    nodes, bary = chebyshev.lobatto(degree)
    up = chebyshev.interpolation(nodes, bary, gauss)
    at = up @ s
    slope = up @ (chebyshev.differentiation(nodes, bary) @ s) / length + (length * gauss - beta) / 2 * at
    return float(weights @ slope**2 / (weights @ at**2))


def root_weight(beta: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """sqrt(w), with w(x, y) = exp((beta - y) x - x^2/2)."""
    return np.exp((beta - y - x / 2) * x / 2)


def window(beta: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L(y), where w has fallen by e^{-DECAY} from its largest value on the whole line or from w(0), and its derivative in y."""
    d = y - beta
    root = np.sqrt(d * d + 2 * DECAY)
    # root - d without cancellation at large d
    length = np.where(d > 0, 2 * DECAY / (root + np.maximum(d, 0)), root - d)
    return length, -length / root


def panels(beta: float, refine: float) -> tuple[np.ndarray, np.ndarray]:
    """Starts and lengths in z: short while y2 is not small, up to 1.25 at the end."""
    z, stop = -math.log(START / beta), -math.log(FLOOR)
    edges = [z]
    while z < stop:
        z += min(0.22 + max(0.0, 0.1 * (z - 1.0)), 1.25) / refine
        edges.append(z)
    edges = np.array(edges)
    return edges[:-1], np.diff(edges)


def _moments(beta: float, z: np.ndarray, degree: int) -> np.ndarray:
    """The functional r -> integral of w r dx at each level z, (..., degree + 1), exact to rounding."""
    gauss, weights = chebyshev.legendre(degree // 2 + 36)
    interpolate = chebyshev.interpolation(*chebyshev.lobatto(degree), gauss)
    y = np.exp(-z)[..., None]
    length = window(beta, y)[0]
    return (length * weights * root_weight(beta, length * gauss, y)) @ interpolate
