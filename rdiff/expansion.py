"""Fits of numbers that are a series in n^{-1/2}: the power they fall with, and what they tend to.

All are linear least squares. What an observation may be off by is its sampling error (correlated, where the same limit is
subtracted from each) and the size of the first term that the fit leaves out; so exact numbers are fitted mostly where n is
large, and sampled ones mostly where their errors are small.
"""

import math
from typing import Any, NamedTuple

import numpy as np

_DEGREE = 4  # of an extrapolation, at most
_ROUGH = 0.05  # of log |value|: what a plain power law leaves out
_NEXT = 3.0  # the coefficient supposed of the first term left out, relative to the values
_MANY = 5  # n, from which on exact values carry a second correction of the slope


_EARLY = 0.6  # of beta^3/(3 sqrt(n))
_BEYOND = 0.01  # of P(Y2 > sqrt(n))


def too_small(n: int, beta: float, tail: Any = None) -> str:
    """Why n is not large enough for a series in n^{-1/2} at this beta; "" where it is. `tail`: x -> P(Y2 > x).

    P(Q_1 = n) is about its limit times exp(-beta^3/(3 sqrt(n))), which is no few terms of a series while the exponent is not
    small; and X_2 <= sqrt(n), which Y_2 is not.
    """
    exponent = beta**3 / (3 * math.sqrt(n))
    if exponent > _EARLY:
        least = 10 ** math.ceil(math.log10((beta**3 / 3 / _EARLY) ** 2))
        factor = f"exp(-beta^3/(3 sqrt(n))) is {math.exp(-exponent):.2g}"
        return f"n = {n} is not large against beta: {factor}, not near 1 before n = {least:g}"
    if tail is not None and tail(math.sqrt(n)) > _BEYOND:
        return f"n = {n} is not large against 1/beta^2: P(Y2 > sqrt(n)), where X2 cannot be, is {tail(math.sqrt(n)):.2g}"
    return ""


class Series(NamedTuple):
    """Values along n, the covariance of their sampling errors, and a bound on the numerical error of each."""

    ns: np.ndarray
    values: np.ndarray
    covariance: np.ndarray
    error: np.ndarray

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return not self.covariance.any()

    def scaled(self) -> "Series":
        """sqrt(n) times each."""
        root = np.sqrt(self.ns)
        return Series(self.ns, root * self.values, np.outer(root, root) * self.covariance, root * self.error)


class Fitted(NamedTuple):
    """A number from a fit: its standard error, a bound or estimate of what else it may be off by, and the order used."""

    value: float
    stderr: float
    error: float
    order: int


NOTHING = Fitted(math.nan, math.nan, math.nan, 0)


def unresolved(series: Series) -> str:
    """Why the values have no logarithm worth fitting: too close to 0, or of both signs; "" when they have one."""
    noise = 3 * np.sqrt(np.diag(series.covariance)) + series.error
    if not np.isfinite(noise).all() or not np.isfinite(series.values).all():
        return "a value or its error is not known"
    small = np.abs(series.values) <= noise
    if small.any():
        which = ", ".join(str(n) for n in series.ns[small])
        return f"at n = {which} it is not told apart from 0 (three standard errors, or the numerical error)"
    signs = np.flatnonzero(np.diff(np.sign(series.values)))
    if len(signs):
        return f"it changes sign between n = {series.ns[signs[0]]} and {series.ns[signs[0] + 1]}"
    return ""


def power(series: Series, corrections: int | None = None) -> Fitted:
    """s of log |value| = a + s log n + k n^{-1/2} + ..., with `corrections` terms after s log n; NaN for too few n.

    None: one correction, or two for five or more exact values.
    """
    count = len(series.ns)
    terms = (2 if series.exact and count >= _MANY else 1) if corrections is None else corrections
    if count < 2 + terms or unresolved(series):
        return NOTHING
    x = series.ns**-0.5
    columns = np.stack([np.ones(count), np.log(series.ns), *(x**k for k in range(1, terms + 1))], axis=1)
    left_out = np.full(count, _ROUGH) if terms == 0 else x ** (terms + 1)
    covariance = series.covariance / np.outer(series.values, series.values)
    row = _weights(columns, covariance + np.diag(left_out**2))[1]
    return Fitted(
        float(row @ np.log(np.abs(series.values))),
        _spread(row, covariance),
        float(np.abs(row) @ (series.error / np.abs(series.values))),
        terms,
    )


def limit(series: Series) -> Fitted:
    """What values that are a series in n^{-1/2} tend to: Richardson extrapolation of the order that is most stable.

    The order d minimises the standard error of the extrapolation with d terms beside its `error`: the numerical ones, and the
    change to d - 1 and d + 1 terms as far as it is not noise, or the size supposed of the term left out when that is more.
    Covers: 2 standard errors and `error` together hold the limit in 92 to 97% of trials with noise of 0.3 to 10% added to exact
    queues. NaN for fewer than two n.
    """
    count = len(series.ns)
    if count < 2 or not np.isfinite(series.values).all() or not np.isfinite(series.covariance).all():
        return NOTHING
    x, size = series.ns**-0.5, np.abs(series.values).max()
    if size == 0:
        return Fitted(0.0, 0.0, float(series.error.max()), 0)
    rows, left_out = [], []
    for degree in range(min(count - 1, _DEGREE) + 1):
        left_out.append(np.diag((_NEXT * size * x ** (degree + 1)) ** 2))
        rows.append(_weights(x[:, None] ** np.arange(degree + 1), series.covariance + left_out[-1])[0])
    found = []
    for degree, row in enumerate(rows):
        steps = [row - rows[d] for d in (degree - 1, degree + 1) if 0 <= d < len(rows)]
        changes = [abs(float(step @ series.values)) - _spread(step, series.covariance) for step in steps]
        model = max(*changes, _spread(row, left_out[degree]))
        error = model + float(np.abs(row) @ series.error)
        found.append(Fitted(float(row @ series.values), _spread(row, series.covariance), error, degree))
    return min(reversed(found), key=lambda fit: math.hypot(fit.stderr, fit.error))


def _weights(columns: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The map from observations to coefficients of generalised least squares: (coefficients, observations)."""
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    return np.linalg.pinv(whiten @ columns, rcond=1e-13) @ whiten


def _spread(row: np.ndarray, covariance: np.ndarray) -> float:
    return math.sqrt(max(0.0, float(row @ covariance @ row)))
