"""The classical direction: the limit's Poisson solution, averaged over the queue."""

import dataclasses
import math
import warnings
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from rdiff.checks import Check
from rdiff.errors import AccuracyWarning
from rdiff.functionals import by_name
from rdiff.generator.result import GeneratorComparison, GeneratorComparisons, exact_pair
from rdiff.limit import observe
from rdiff.limit.law import StationaryLaw
from rdiff.limit.poisson import BEND, basis
from rdiff.limit.solve import solved
from rdiff.queue.exact import ExactQueueLaw

_MOST_STATES = 1e7  # that a check is worth: a second or two
_ROUNDING = 1e-14
_CAUSE = "the two laws do not belong together, or one of them is less accurate than it says"
_VERDICTS = {"closes": (True, ""), "FAILS": (False, _CAUSE), "not resolved": (None, "")}


def classical(X: ExactQueueLaw, Y: StationaryLaw, h: Any) -> Any:
    """E h(X) - E h(Y) = E_X[(G_Y - G_X) f(X)] with f from the limit, G_Y f = h - E h(Y): an exact identity at every n.

    E_X[G_X f(X)] = 0 for any f, the states with X_1 = 0 and the full state included; and G_Y f = h - E h(Y) holds up to the
    wall, where besides f_1 + f_2 = 0. f does not depend on y3, y4, ...: G_Y is taken as on the plane where these are 0, and
    what h and the departures from level 2 see of them is a term of its own, so the identity closes for every b.

    The terms, with delta = 1/sqrt(n), from G_X f by Taylor's formula:

    - "second order": delta/2 E[(beta + X_1 + X_2) f_11 - (X_2 - X_3) f_22];
    - "boundary": lam/2 E[f_11 - f_22; X_1 = 0], without f_22 where an arrival does not raise X_2;
    - "third level, blocking": -lam sqrt(n) E[f_1; X_1 = 0 and it does not] - E[X_3 f_2] + E[h(X) - h(X_1, X_2, 0, ...)];
    - "remainder": what is left, of order 1/n.

    sqrt(n) times the first two tends to C(h), the theorem's constant.

    **Arguments:** two exact laws, `JSQQueue(...).exact()` and `StationaryLaw`; h, or a dict of them.
    **Returns:** a `GeneratorComparison`, or `GeneratorComparisons` for a dict. `error` is what both laws state, plus ten
    times the change with a coarser f (on the few states of a small n the two may be close by chance).
    **Raises:** `InputError` for other laws. **Warns:** `AccuracyWarning` where h is not smooth enough for f.

    The whole lattice costs a few matrix products: f is a tensor of polynomials, so for all h at once
    E_X[(G_Y - G_X) f(X)] is one linear functional of its coefficients.

    Source: Braverman, Stochastic Systems 13 (2023); Barbour, Stein's method for diffusion approximations, Probability Theory
    and Related Fields 84 (1990).

    ```python
    >>> import rdiff, rdiff.generator
    >>> X, Y = rdiff.JSQQueue(n=100, b=1, beta=1.0).exact(), rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0))
    >>> found = rdiff.generator.classical(X, Y, lambda y: y[1])
    >>> round(found.direct, 8), abs(found.residual) < 1e-8, found.closes
    (-0.21425021, True, True)

    ```
    """
    exact_pair(X, Y)
    observables = by_name(h)
    for name, function in observables.items():
        Y.poisson({name: function})  # pyright: ignore[reportArgumentType] # warns
    found = _compare(X, Y, observables, X.expect(observables), Y.expect(observables))
    return found if isinstance(h, Mapping) else next(iter(found.values()))


def checks(X: Any, Y: Any, h: Any, left: Any, right: Any) -> list[Check]:
    """The classical identity as a check of both laws, one for each h smooth enough; `left`, `right`: E h(X) and E h(Y).

    Empty unless X and Y are exact, in the Halfin-Whitt regime, and X has at most ten million states.
    """
    if not isinstance(X, ExactQueueLaw) or not isinstance(Y, StationaryLaw) or X.alpha != 0.5 or X.space.count > _MOST_STATES:
        return []
    smooth = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        for name, function in by_name(h).items():
            try:
                Y.poisson({name: function})  # pyright: ignore[reportArgumentType]
            except AccuracyWarning:
                continue
            smooth[name] = function
    if not smooth:
        return []
    if not isinstance(h, Mapping):
        (name,) = smooth
        left, right = {name: left}, {name: right}
    return [
        Check(f"E_X[(G_Y - G_X) f], h = {c.name}", c.generator, c.direct, 0.0, math.nan, *_VERDICTS[c.verdict])
        for c in _compare(X, Y, smooth, left, right).values()
    ]


def _compare(X: ExactQueueLaw, Y: StationaryLaw, observables: Mapping[str, Any], left: Any, right: Any) -> Any:
    functionals = _functionals(X, solved(Y.beta, min(Y.b, 1)).collocations[0].window)
    above = dict.fromkeys(observables, (0.0, 0.0))
    if X.b > 1:
        in_plane = np.arange(X.b + 1) < 2
        moved = X.expect({name: _in_plane(function, in_plane) for name, function in observables.items()})
        above = {name: (left[name].mean - moved[name].mean, moved[name].error) for name in observables}
    found = GeneratorComparisons()
    for name, function in observables.items():
        fine, coarse = solved(Y.beta, min(Y.b, 1)).poisson(lambda at: observe.values(name, function, at, Y.b))  # noqa: B023
        sides = [functionals.of(f.coefficients) for f in (fine, coarse)]
        total, terms = sides[0]
        more, error = above[name]
        terms["third level, blocking"] += more
        terms["remainder"] = total + more - sum(terms.values())
        error += left[name].error + right[name].error + 10 * abs(total - sides[1][0]) + abs(fine.mean - coarse.mean)
        error += _ROUNDING * sum(map(abs, terms.values()))
        found[name] = GeneratorComparison(name, X.n, left[name].mean - right[name].mean, terms, float(error))
    return found


def _in_plane(function: Any, mask: np.ndarray) -> Any:
    return lambda x: function(jnp.where(mask, x, jnp.zeros_like(x)))


@dataclasses.dataclass(frozen=True)
class _Functionals:
    """E_X of (G_Y - G_X) f and of its terms as linear in the coefficients of f, (degrees in y1, degrees in y2)."""

    total: np.ndarray
    terms: dict[str, np.ndarray]

    def of(self, c: np.ndarray) -> tuple[float, dict[str, float]]:
        """Their values; the coefficients may be of lower degree."""
        rows, columns = c.shape
        values = {name: float(np.sum(w[:rows, :columns] * c)) for name, w in self.terms.items()}
        return float(np.sum(self.total[:rows, :columns] * c)), values


def _functionals(X: ExactQueueLaw, window: tuple[float, float]) -> _Functionals:
    more = solved(X.beta, min(X.b, 1)).collocations[0].shape
    n, rate, root = X.n, X.queue.arrivals, math.sqrt(X.n)
    p, third = _plane(X)
    i, j = np.arange(p.shape[0] + 1), np.arange(p.shape[1] + 1)
    (a, a1, a2), (c, c1, c2) = _along(i / root, window[0], more[0]), _bent(j / root, window[1], more[1])
    i, j = i[:-1], j[:-1, None]
    up, down = np.zeros_like(a[:-1]), np.diff(a, axis=0)  # an arrival, a departure
    up[1:] = a[:-2] - a[1:-1]
    if X.space.levels > 1 and X.space.first:
        down[-1] = 0.0  # blocked at the edge of the window
    on, off = np.diff(c, axis=0), np.zeros_like(c[:-1])
    off[1:] = c[:-2] - c[1:-1]
    a, a1, a2, c, c1, c2 = (each[:-1] for each in (a, a1, a2, c, c1, c2))
    x, y = (i / root)[:, None], j / root
    plain, waiting, served, drifts, bends = np.split(p @ np.concatenate([c, y * c, j * off, y * c1, y * c2], axis=1), 5, axis=1)
    free = np.full(p.shape[1], X.space.levels > 1)  # where an arrival at X_1 = 0 raises Q_2
    free[-1] = False
    open_, shut = p[0] * free, p[0] * ~free
    limit = ((X.beta - x) * a1 + a2).T @ plain - a1.T @ waiting - a.T @ drifts
    queue = rate * up.T @ plain + ((n - i)[:, None] * down).T @ plain - root * down.T @ waiting + a.T @ served
    queue += rate * np.outer(a[0], open_ @ on)
    second = ((X.beta + x) * a2).T @ plain + a2.T @ waiting - a.T @ bends
    boundary = np.outer(a2[0], (open_ + shut) @ c) - np.outer(a[0], open_ @ c2)
    levels = -X.lam * root * np.outer(a1[0], shut @ c)
    if third is not None:
        queue -= a.T @ (third @ off)
        second += a.T @ (third @ c2) / root
        levels -= a.T @ (third @ c1) / root
    terms = {"second order": second / (2 * root), "boundary": X.lam / 2 * boundary, "third level, blocking": levels}
    return _Functionals(limit - queue, terms)


def _plane(X: ExactQueueLaw) -> tuple[np.ndarray, np.ndarray | None]:
    """P(n - Q_1 = i, Q_2 = j), and E[Q_3; n - Q_1 = i, Q_2 = j] where there is a third level."""
    space = X.space
    low = space.first if space.levels > 1 else 0
    width = {1: 1, 2: space.top + 1}.get(space.levels, X.n + 1)
    p = np.zeros((X.n + 1 - low, width))
    third = np.zeros_like(p) if space.levels > 2 else None
    for states, weights in X.pieces():
        at = (X.n - states[:, 0]) * width + (states[:, 1] if width > 1 else 0)
        np.add.at(p.ravel(), at, weights)
        if third is not None:
            np.add.at(third.ravel(), at, weights * states[:, 2])
    return p, third


def _along(x: np.ndarray, length: float, count: int) -> list[np.ndarray]:
    """The polynomials in y1 and their first two derivatives at x, beyond the window at its end."""
    t = np.minimum(x / length, 1.0)
    return [basis(t, count - 1, k) / length**k for k in range(3)]


def _bent(y: np.ndarray, length: float, count: int) -> list[np.ndarray]:
    """Those in y2, by the chain rule in t = log(1 + y2/2)/span."""
    y = np.minimum(y, length)
    span = math.log1p(length / BEND) or 1.0
    slope = (1 / (span * (y + BEND)))[:, None]
    values = [basis(np.log1p(y / BEND) / span, count - 1, k) for k in range(3)]
    return [values[0], slope * values[1], slope**2 * (values[2] - span * values[1])]
