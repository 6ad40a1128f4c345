"""`StationaryLaw`: the exact stationary law of the JSQ diffusion."""

import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from rdiff.errors import AccuracyWarning, InputError, integer, is_traced
from rdiff.estimate import Estimate, Estimates
from rdiff.functionals import Observable
from rdiff.limit import density, observe, stein
from rdiff.limit.closed import CutNormal
from rdiff.limit.march import March
from rdiff.limit.poisson import PoissonSolution
from rdiff.limit.solve import Bounded, Identity, Solved, solved
from rdiff.limit.spectrum import gap
from rdiff.models import JSQDiffusion
from rdiff.provenance import provenance

_RANGE = (0.01, 6.0)
_RESOLVED = 1e-3  # of its scale: a constant with a larger error is none
_METHODS = (None, "march", "adaptive", "poisson")
_ROUGH = "C(h) needs second derivatives of f: h has jumps or kinks, or lives where the law has too little mass"
_NO_Y2 = "with b = 0 there is no waiting room and no Y2"


class StationaryLaw:
    """The stationary law of `JSQDiffusion`, solved to about ten digits instead of simulated.

    b >= 1: the density by a march downwards in y2 (Chebyshev in y1, Radau IIA in -log y2) and the Poisson equation by
    collocation; the law is that of (Y1, Y2, 0, ..., 0), so h sees (y1, y2, 0, ..., 0). b = 0: normal(beta, 1) cut to
    [0, inf). What is computed is kept for the next question, also between laws of the same beta.

    **Arguments:** `process`, a `JSQDiffusion` with beta in [0.01, 6] (b = 0: up to 30): below, the levels of Y2 spread beyond
    what float64 carries through the march; above, E Y2 < 1e-9. `tol`: estimates with a larger error, relative to E|h|, carry a
    caution.
    **Raises:** `InputError`.

    Sources: Braverman, The join-the-shortest-queue system in the Halfin-Whitt regime: rates of convergence to the diffusion
    limit, Stochastic Systems 13 (2023), for the law and the Poisson equation; Hairer and Wanner, Solving ordinary differential
    equations II, for Radau IIA.

    ```python
    >>> import rdiff
    >>> law = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0, b=2))
    >>> est = law.expect(lambda y: y[1])
    >>> print(f"{est.mean:.8f}", est.error < 1e-8, f"{law.tail(1.0):.8f}")
    0.81405966 True 0.28519285

    ```
    """

    process: JSQDiffusion
    tol: float

    def __init__(self, process: JSQDiffusion, *, tol: float = 1e-7):
        if not isinstance(process, JSQDiffusion):
            raise InputError(
                f"StationaryLaw needs a JSQDiffusion, got {process!r}: other processes have no exact law here, use SimulatedLaw"
            )
        if is_traced(process.beta) or np.ndim(process.beta):
            raise InputError(
                "StationaryLaw needs one beta, a plain number: for several use StationaryLaw.grid(betas), for derivatives "
                "law.sensitivity(h)"
            )
        low, high = _RANGE if process.b else (0.0, 30.0)
        beta = float(process.beta)
        if not low <= beta <= high:
            raise InputError(f"beta must lie in [{low:g}, {high:g}] for the exact law, got {beta:g}: {_OUTSIDE}")
        self.process, self.tol = process, tol

    @property
    def beta(self) -> float:
        """The process's beta."""
        return float(self.process.beta)  # pyright: ignore[reportArgumentType]

    @property
    def b(self) -> int:
        """The process's buffer."""
        return self.process.b

    @staticmethod
    def grid(betas: Iterable[float], b: int = 1, *, tol: float = 1e-7) -> "LawGrid":
        """The laws along a grid of beta: `.expect(h)` and the like give estimates whose numbers are arrays over it."""
        return LawGrid([StationaryLaw(JSQDiffusion(float(beta), b), tol=tol) for beta in np.ravel(np.asarray(list(betas)))])

    def expect(self, h: Observable | Mapping[str, Observable], *, method: str | None = None) -> Estimate | Estimates:
        """E h(Y): an `Estimate` with stderr 0 and `error`, or `Estimates` for a dict.

        `error` is twice the difference to a coarser solution that shares no points, plus the residual of the identities, plus
        an estimate of what lies outside the region solved. `settings` say which method answered: the march's quadrature for
        smooth h; an adaptive one, a second or so, where jumps or kinks make the two solutions disagree.

        **Arguments:** `h`; `method`: "march", "adaptive" or "poisson" (smooth h only) to force one.
        **Raises:** `InputError` where h is not finite, not traceable by JAX, or has an infinite expectation.
        """
        if method not in _METHODS:
            raise InputError(f"method must be None, 'march', 'adaptive' or 'poisson', got {method!r}")
        return self._each(h, lambda solution, at: solution.expect(at, method))

    def sensitivity(self, h: Observable | Mapping[str, Observable]) -> Estimate | Estimates:
        """d/dbeta E h(Y): -E f_1(Y) with f the solution of the Poisson equation, or differences for h with jumps or kinks."""
        return self._each(h, Solved.sensitivity)

    def constant(self, h: Observable | Mapping[str, Observable]) -> Estimate | Estimates:
        """C(h) in E h(X) = E h(Y) + C(h)/sqrt(n) + O(1/n); NaN where h is not smooth enough for its second derivatives.

        C(h) = E[(beta + Y1 + Y2) f_11 - Y2 f_22]/2 - E[Y2 (f_22 - f_11)(0, Y2)]/2
        """
        return self._each(h, Solved.constant, rough=_ROUGH)

    def refined(self, h: Observable | Mapping[str, Observable], n: int) -> Estimate | Estimates:
        """E h(Y) + C(h)/sqrt(n), which is E h(X) of the queue up to O(1/n). `error` is the numerical one, not the O(1/n)."""
        root = math.sqrt(integer("n", n, 1, "the number of servers"))

        def both(solution: Solved, at: Any) -> Bounded:
            first = solution.constant(at)
            if not first.error <= _RESOLVED * max(first.scale, abs(first.value)):
                return first
            limit = solution.expect(at)
            error = limit.error + first.error / root
            return Bounded(limit.value + first.value / root, error, limit.scale, f"{limit.method}; {first.method}")

        return self._each(h, both, rough=_ROUGH)

    def poisson(self, h: Observable) -> PoissonSolution:
        """f with G f = h - E h(Y), D f = 0 at y1 = 0, f(0) = 0: `f(y)`, `f.gradient(y)`, `f.hessian(y)`, `f.mean`.

        **Warns:** `AccuracyWarning` where h is not smooth enough for the collocation.
        """
        ((name, function),) = observe.checked(h, self.b).items()
        f, coarse = self._solved.poisson(self._values(name, function))
        here = self._solved.expect(self._values(name, function))
        gap = max(abs(f.mean - here.value), abs(f.mean - coarse.mean))
        if gap > 1e-6 * here.scale:
            message = f"f for {name!r} is good to about {gap / here.scale:.0e} only: h has jumps, kinks or oscillations"
            warnings.warn(message, AccuracyWarning, stacklevel=2)
        return f

    def stein_factors(self, h: Observable, mass: float = 0.9999, *, over: str = "box") -> dict[str, float]:
        """How large |f_1|, |f_2|, |f_11|, |f_12|, |f_22| are, by the names "f1" to "f22"; with b = 0, |f_1| and |f_11|.

        **Arguments:** `over`: "box", the largest over the smallest box [0, u1] x [0, u2] of marginal quantiles that carries at
        least `mass`; "all", everywhere, infinite where they still grow at the end of f's window, as those of y2 do;
        "weighted", the largest of each divided by 1 + y1 + y2; "mean", E |f_1(Y)| and so on.
        """
        _, outside = stein.asked(over, mass, self.b)
        return stein.stein_factors(self, self.poisson(h), over, mass, self._upper(outside / 2))

    def quadrature(self) -> tuple[Float[np.ndarray, "points dim"], Float[np.ndarray, " points"]]:
        """Points and weights with E h = weights . h(points) for smooth h: the way for functions that are not JAX's."""
        points, weights = self._solved.quadratures[0]
        states = np.zeros((len(points), self.b + 1))
        states[:, :2] = points[:, : self.b + 1]
        return states, weights

    def tail(self, x: ArrayLike) -> Any:
        """P(Y2 > x), of the shape of x; small ones with small relative error."""
        x = _real("x", x)
        with np.errstate(divide="ignore"):
            z = -np.log(np.maximum(x, 0.0))
        out = np.where(x < 0, 1.0, density.above(self._march(), np.clip(z, -700.0, 1e300)))
        return _like(x, out)

    def quantile(self, p: ArrayLike, log: bool = False) -> Any:
        """The y with P(Y2 <= y) = p, or with `log` its natural logarithm, of the shape of p.

        At large beta most of the mass of Y2 lies below the least number that a float holds, about 5e-324, and the quantile is 0
        where its logarithm is not: at beta = 4, the median of Y2 is e^-1400, and its 0.7-quantile e^-721.

        **Raises:** `InputError` for p outside (0, 1).

        ```python
        >>> import rdiff
        >>> law = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=4.0))
        >>> law.quantile(0.5), round(law.quantile(0.5, log=True), 2)
        (0.0, -1400.0)

        ```
        """
        p = _real("p", p)
        if not np.all((p > 0) & (p < 1)):
            raise InputError(f"p must lie strictly between 0 and 1, got {p!r}")
        logs = density.quantile(self._march(), np.atleast_1d(p)).reshape(p.shape)
        return _like(p, logs if log else np.exp(logs))

    def density(self, y1: ArrayLike, y2: ArrayLike | None = None) -> Any:
        """Density of (Y1, Y2) at (y1, y2), which broadcast; of Y1 at y1 for b = 0. Absolute error about 1e-10 of its maximum;
        infinite at y2 = 0."""
        if isinstance(self._solved.fine, CutNormal):
            if y2 is not None:
                raise InputError(f"{_NO_Y2}: density(y1) takes one argument")
            return self.marginal(1, y1)
        if y2 is None:
            raise InputError("density(y1, y2) needs both coordinates; marginal(i, y) is the density of one")
        one, two = np.broadcast_arrays(_real("y1", y1), _real("y2", y2))
        return _like(one, density.joint(self._march(), one, two))

    def marginal(self, i: int, y: ArrayLike) -> Any:
        """Density of Y1 (i = 1) or Y2 (i = 2) at y, of the shape of y; that of Y2 is unbounded at 0."""
        y = _real("y", y)
        if integer("i", i, 1, "coordinates count from 1") > min(self.b + 1, 2):
            raise InputError(f"Y{i} has no density: {'Y3 = Y4 = ... = 0 in the limit' if self.b else _NO_Y2}")
        fine = self._solved.fine
        if isinstance(fine, CutNormal):
            return _like(y, fine.density(y))
        if i == 1:
            return _like(y, density.first(fine, np.ravel(y)).reshape(y.shape))
        return _like(y, density.second(fine, y))

    def sample(self, key: Any, size: int = 1) -> Float[np.ndarray, "size dim"]:
        """Independent draws from the law, float64, (size, b + 1). `key`: an int or a JAX key.

        Y2 smaller than 1e-308, common at large beta, is 0.
        """
        size = integer("size", size, 0, "the number of draws")
        rng = observe.key_generator(key)
        fine = self._solved.fine
        pairs = fine.sample(rng, size) if isinstance(fine, CutNormal) else density.sample(fine, rng, size)
        out = np.zeros((size, self.b + 1))
        out[:, :2] = pairs[:, : self.b + 1]
        return out

    def identities(self) -> tuple[Identity, ...]:
        """Identities that the exact law satisfies: name, both sides, and the difference relative to E Y2 (or to E Y2^k)."""
        return self._solved.identities

    @property
    def relaxation_time(self) -> float:
        """1/(spectral gap): E h(Y(t)) - E h(Y) falls like e^{-t/relaxation_time}. To about three digits.

        4.5/beta^2 at small beta; for b >= 1 never below 4/beta^2, that of reflected Brownian motion with drift -beta.
        """
        return 1 / gap(self.beta, min(self.b, 2))

    def __repr__(self) -> str:
        return f"StationaryLaw(JSQDiffusion(beta={self.beta:g}, b={self.b}))"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.process, self.tol)

    @property
    def _solved(self) -> Solved:
        return solved(self.beta, min(self.b, 1))

    def _march(self) -> March:
        fine = self._solved.fine
        if isinstance(fine, CutNormal):
            raise InputError(f"{_NO_Y2}: only Y1 has a law")
        return fine

    def _values(self, name: str, h: Observable) -> Callable[[np.ndarray], np.ndarray]:
        return lambda points: observe.values(name, h, points, self.b)

    def _each(self, h: Any, answer: Callable[[Solved, Any], Bounded], rough: str = "") -> Any:
        found = {}
        for name, function in observe.checked(h, self.b).items():
            got = answer(self._solved, self._values(name, function))
            size = max(got.scale, abs(got.value))
            cautions: tuple[str, ...] = ()
            value, error = got.value, got.error
            if rough and not error <= _RESOLVED * size:
                value, error, cautions = math.nan, math.inf, (rough,)
            elif not error <= self.tol * size:
                relative = error / size if size else math.nan
                cautions = (f"numerical error up to {relative:.0e} relative to E|h|, above {self.tol:.0e}",)
            settings = (("beta", self.beta), ("b", self.b), ("method", got.method), *provenance())
            found[name] = Estimate(value, 0.0, name, error=error, cautions=cautions, settings=settings)
        return Estimates(found) if isinstance(h, Mapping) else next(iter(found.values()))

    def _upper(self, p: float) -> tuple[float, float]:
        """Upper p-quantiles of Y1 and Y2."""
        points, weights = self._solved.quadratures[0]
        order = np.argsort(points[:, 0])
        above = 1.0 - np.cumsum(weights[order])
        first = float(points[order][np.argmax(above < p), 0])
        return first, float(self.quantile(1 - p)) if self.b else 0.0


class LawGrid(tuple[StationaryLaw, ...]):
    """Stationary laws along a grid of beta, a tuple of them.

    ```python
    >>> import rdiff
    >>> rdiff.StationaryLaw.grid([0.5, 1.0]).expect(lambda y: y[0]).mean.round(9).tolist()
    [0.5, 1.0]

    ```
    """

    @property
    def beta(self) -> Float[np.ndarray, " grid"]:
        """The grid."""
        return np.array([law.beta for law in self])

    def expect(self, h: Observable | Mapping[str, Observable]) -> Estimate | Estimates:
        """E h at every beta: `mean` and `error` are arrays over the grid."""
        return self._gather(h, operator.methodcaller("expect", h))

    def sensitivity(self, h: Observable | Mapping[str, Observable]) -> Estimate | Estimates:
        """d/dbeta E h at every beta."""
        return self._gather(h, operator.methodcaller("sensitivity", h))

    def constant(self, h: Observable | Mapping[str, Observable]) -> Estimate | Estimates:
        """C(h) at every beta."""
        return self._gather(h, operator.methodcaller("constant", h))

    def _gather(self, h: Any, ask: Callable[[StationaryLaw], Any]) -> Any:
        if not self:
            raise InputError("the grid of beta is empty")
        rows = [ask(law) for law in self]
        if not isinstance(h, Mapping):
            return _stack(rows)
        return Estimates({name: _stack([row[name] for row in rows]) for name in h})


def _stack(rows: list[Estimate]) -> Estimate:
    cautions = tuple(dict.fromkeys(c for row in rows for c in row.cautions))
    methods = ", ".join(dict.fromkeys(str(dict(row.settings)["method"]) for row in rows))
    mean, error = (np.array([getattr(row, field) for row in rows]) for field in ("mean", "error"))
    return Estimate(mean, 0.0, rows[0].name, error=error, cautions=cautions, settings=(("method", methods), *provenance()))


def _rebuild(process: JSQDiffusion, tol: float) -> StationaryLaw:
    return StationaryLaw(process, tol=tol)


_OUTSIDE = (
    "below, beta Y2 is Gamma(2, 1) up to O(beta); above, E Y2 is beta-exponentially small, about exp(-beta^2/2)/2.5, "
    "and Y1 is normal(beta, 1)"
)


def _real(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if np.isnan(array).any():
        raise InputError(f"{name} must be real numbers, got {value!r}")
    return array


def _like(x: np.ndarray, out: np.ndarray) -> Any:
    return float(out) if x.ndim == 0 else out
