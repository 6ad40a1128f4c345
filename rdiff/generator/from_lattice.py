"""The prelimit direction: the lattice's Poisson solution, extended to the continuum and averaged over the limit."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from rdiff.errors import AccuracyWarning, InputError
from rdiff.estimate import Estimates
from rdiff.functionals import by_name
from rdiff.generator.result import GeneratorComparison, GeneratorComparisons, exact_pair
from rdiff.limit import observe
from rdiff.limit.closed import CutNormal
from rdiff.limit.law import StationaryLaw
from rdiff.limit.solve import solved
from rdiff.queue.exact import ExactQueueLaw
from rdiff.queue.poisson import LatticePoisson

_DEGREE = 5
_LEAST = 5  # steps a side
_BENT = (0.5, 0.7)  # the shares of the sides, along y1 and y2 - y1, that are left as they are
_INNER = 0.9
_NODES = (96, 72, 54)
_ROUGH = 1e-5


def prelimit(X: ExactQueueLaw, Y: StationaryLaw, h: Any) -> Any:
    """E h(Y) - E h(X) = E_Y[(A G_X - G_Y A) f] and its boundary term, with f from the lattice, G_X f = h - E h(X).

    A extends functions from the lattice to smooth ones on the state space of Y. It is linear and keeps constants, so
    A G_X f = A h - E h(X). For any smooth F, stationarity of Y says E[G_Y F(Y)] + E int D F dU = 0 per unit of time, with
    D = d/dy1 + d/dy2 and the local time U that grows while Y_1 = 0; and E int g(Y_2) dU = E[Y_2 g(Y_2)] (for b = 0, the push
    rate times g). With F = A f, which unlike the limit's f does not have D F = 0, adding the two gives exactly

        E h(Y) - E h(X) = E[h(Y) - A h(Y)] + E[A G_X f(Y) - G_Y A f(Y)] - E[Y_2 D A f(0, Y_2)].

    On the lattice f extends to X_1 = -delta, delta = 1/sqrt(n), by f(-delta, x_2) = f(0, x_2 + delta), which makes the
    equation at X_1 = 0 the same as inside; so D f(0, x_2) = delta/2 (f_11 - f_22) + O(delta^2). With it the terms are

    - "second order": delta/2 E[Y_2 F_22 - (beta + Y_1 + Y_2) F_11], the first of the difference of generators;
    - "boundary": -E[Y_2 D F(0, Y_2)], of the local time;
    - "between points": E[h(Y) - A h(Y)], which also holds what lies outside the lattice;
    - "remainder": what is left of the difference of generators.

    A: the quintic spline through the points x_3 = ... = 0 of a rectangle, 0 <= x_1 <= about beta + 8, 0 <= x_2 <= 34/beta,
    as far as the lattice, x_1 + x_2 <= sqrt(n), has room for one. Where Y leaves it, and a little before, the argument is bent
    back into it: y_1, and y_2 - y_1, which D does not see, so that D F stays small. The identity holds for every such A; the
    more of Y's law the rectangle holds, the smaller are "between points" and "remainder".

    **Arguments:** two exact laws, `JSQQueue(...).exact()` and `StationaryLaw`; h, or a dict of them.
    **Returns:** a `GeneratorComparison`, or `GeneratorComparisons` for a dict: `direct` is E h(Y) - E h(X). `error` is what
    both laws state, plus four times the change with two coarser quadratures of Y's law.
    **Raises:** `InputError` for other laws, or fewer servers than a spline takes. **Warns:** `AccuracyWarning` where h has
    jumps or kinks, so that quadrature over Y does not converge.

    Source: Braverman, The prelimit generator comparison approach of Stein's method, Stochastic Systems 12 (2022), whose A is
    another local interpolation.

    ```python
    >>> import rdiff, rdiff.generator
    >>> X, Y = rdiff.JSQQueue(n=400, b=1, beta=1.0).exact(), rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0))
    >>> found = rdiff.generator.prelimit(X, Y, lambda y: y[1])
    >>> round(found.direct, 6), abs(found.residual) < 1e-5
    (0.114755, True)

    ```
    """
    exact_pair(X, Y)
    observables = by_name(h)
    left, right = X.expect(observables), cast(Estimates, Y.expect(observables))
    law = solved(Y.beta, min(Y.b, 1))
    quadratures = [which.nodes(count) for which, count in zip((law.fine, law.fine, law.coarse), _NODES)]
    found = GeneratorComparisons()
    for name, function in observables.items():
        extended = _Extension(X.poisson({name: function}))
        sides = [_terms(extended, Y, name, function, *quadrature) for quadrature in quadratures]
        gap = max(abs(sum(sides[0].values()) - sum(side.values())) for side in sides[1:])
        if gap > _ROUGH * max(1.0, abs(right[name].mean)):
            message = (
                f"the prelimit comparison for {name!r} is good to about {gap:.0e} only: h has jumps or kinks, or the lattice "
                f"of n = {X.n} is too coarse for a smooth extension"
            )
            warnings.warn(message, AccuracyWarning, stacklevel=2)
        error = left[name].error + right[name].error + 4 * gap
        found[name] = GeneratorComparison(name, X.n, right[name].mean - left[name].mean, sides[0], float(error))
    return found if isinstance(h, Mapping) else next(iter(found.values()))


class _Extension:
    """A f and A G_X f as functions of (y1, y2); for b = 0 constant in a second coordinate."""

    def __init__(self, f: LatticePoisson):
        from scipy.interpolate import RectBivariateSpline

        queue, space = f.queue, f.space
        self.n, self.mean, root = queue.n, f.mean, math.sqrt(queue.n)
        across = space.n - (space.first if space.levels > 1 else 0)
        first = min(across, math.ceil((queue.beta + 8) * root))
        second = _LEAST
        if space.levels > 1:
            up = min(space.top if space.levels == 2 else queue.n, math.ceil(34 / queue.beta * root))
            # room for both: x_1 + x_2 <= sqrt(n)
            first = min(first, max(queue.n - up, round(0.4 * queue.n)))
            second = min(up, queue.n - first)
        if min(first, second) < _LEAST:
            raise InputError(
                f"n = {queue.n}, b = {queue.b} leaves a rectangle of {first + 1} x {second + 1} states, too few for a spline "
                f"of degree {_DEGREE}, which takes {_LEAST + 1} a side: take n of at least 16"
            )
        states = np.zeros((first + 1, second + 1, queue.levels), np.int64)
        states[..., 0] = queue.n - np.arange(first + 1)[:, None]
        if space.levels > 1:
            states[..., 1] = np.arange(second + 1)
        axes = np.arange(first + 1) / root, np.arange(second + 1) / root
        self.ends = float(axes[0][-1]), float(axes[1][-1])
        self._f, self._g = (
            RectBivariateSpline(*axes, values, kx=_DEGREE, ky=_DEGREE, s=0) for values in (f(states), f.generator(states))
        )

    def h(self, y: np.ndarray) -> np.ndarray:
        """A h = A G_X f + E h(X)."""
        (p, _, _), (q, *_) = self._inside(y)
        return self._g.ev(p, q) + self.mean

    def derivatives(self, y: np.ndarray) -> list[np.ndarray]:
        """F_1, F_2, F_11, F_22 at y, by the chain rule."""
        (p, p1, p11), (q, q1, q2, q11, q22) = self._inside(y)
        s = {d: self._f.ev(p, q, *d) for d in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))}
        f11 = s[2, 0] * p1**2 + 2 * s[1, 1] * p1 * q1 + s[0, 2] * q1**2 + s[1, 0] * p11 + s[0, 1] * q11
        return [s[1, 0] * p1 + s[0, 1] * q1, s[0, 1] * q2, f11, s[0, 2] * q2**2 + s[0, 1] * q22]

    def _inside(self, y: np.ndarray) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """p(y1), q(y1, y2) in the rectangle, and their derivatives."""
        one, two = y.T
        b, b1, b11 = _bent(two - one, _INNER * self.ends[1], _BENT[1])
        q, d1, d11 = _bent(one + b, self.ends[1], _INNER)
        second = d11 * b1**2 + d1 * b11
        return _bent(one, self.ends[0], _BENT[0]), (q, d1 * (1 - b1), d1 * b1, d11 * (1 - b1) ** 2 + d1 * b11, second)


def _terms(a: _Extension, Y: StationaryLaw, name: str, h: Any, y: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """The right-hand side by one quadrature of Y's law."""
    beta, half = Y.beta, 0.5 / math.sqrt(a.n)
    one, two = y.T
    f1, f2, f11, f22 = a.derivatives(y)
    between = weights @ (observe.values(name, h, y, Y.b) - a.h(y))
    generators = weights @ (a.h(y) - a.mean - ((beta - one - two) * f1 + f11 - two * f2))
    second = half * (weights @ (two * f22 - (beta + one + two) * f11))
    law = solved(Y.beta, min(Y.b, 1)).fine
    wall = np.stack([np.zeros_like(two), two], axis=-1)
    f1, f2, *_ = a.derivatives(wall)
    rate = law.push_rate if isinstance(law, CutNormal) else two
    boundary = -(weights @ (rate * (f1 + f2)))
    terms = {"second order": second, "boundary": boundary, "between points": between, "remainder": generators - second}
    return {term: float(value) for term, value in terms.items()}


def _bent(y: np.ndarray, end: float, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y up to `share` of `end`, from there on a function that never reaches `end`; and its first two derivatives."""
    start = share * end
    t = np.maximum(y - start, 0.0) / (end - start)
    power = 1 + t**4  # t/(1 + t^4)^(1/4) = t - t^5/4 + ...
    value = np.where(y > start, start + (end - start) * t / power**0.25, y)
    return value, power**-1.25, -5 * t**3 * power**-2.25 / (end - start)
