"""The Poisson equation on the queue's lattice, G_X f = h - E h(X), and the Stein factors of the prelimit."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rdiff.errors import InputError, integer
from rdiff.functionals import by_name
from rdiff.limit.stein import asked
from rdiff.queue.chain import rates
from rdiff.queue.observe import evaluate_padded
from rdiff.queue.potential import Potential

if TYPE_CHECKING:
    from rdiff.queue.exact import ExactQueueLaw

_UNSOLVED = 1e-7


class LatticePoisson:
    """f with G_X f = h - E h(X) and f = 0 at X = 0, the state of all servers busy and nobody waiting; from `law.poisson(h)`.

    Converges to the limit's f (G f = h - E h(Y), f(0) = 0) as n grows. `f(q)`, `f.gradient(q)` and `f.hessian(q)` take
    states of occupancy q = (Q_1, ..., Q_{b+1}), shape (..., b + 1), and give shapes (...), (..., b + 1) and
    (..., b + 1, b + 1): with delta = 1/sqrt(n), the scaled forward differences Delta_i f(x)/delta, where
    Delta_i f(x) = f(x + delta e_i) - f(x), and Delta_i Delta_j f(x)/delta^2; NaN where a state that they need does not exist.

    **Attributes:** `queue`; `space`, the states kept; `values`, f in the order of `space.all()`; `mean`, E h(X); `name`, of h;
    `residual`, the largest |G_X f - (h - E h)| relative to the largest |h|, computed before anything is answered. With a
    window or cap all this is about the chain that stays inside, whose law is that of X up to the law's `outside`.

    Cost: O(states), and memory for three numbers a state.

    ```python
    >>> import rdiff
    >>> law = rdiff.JSQQueue(n=100, b=1, beta=1.0).exact()
    >>> f = law.poisson(lambda x: x[0])
    >>> print(f"{f([100, 0]):.3f} {f([90, 20]):.3f}", f.gradient([90, 20]).round(3))
    0.000 1.000 [-1.  1.]

    ```
    """

    def __init__(self, law: "ExactQueueLaw", h: Callable):
        self.queue, self.space = law.queue, law.space
        named = by_name(h)
        if len(named) > 1:
            raise InputError(f"the Poisson equation takes one observable at a time, got {', '.join(named)}")
        ((self.name, function),) = named.items()
        self.mean, largest = 0.0, 0.0
        self.values = np.empty(int(self.space.count))
        for states, weights in law.pieces():
            at = evaluate_padded({self.name: function}, self.queue.scaled(states))[:, 0]
            self.mean += float(weights @ at)
            largest = max(largest, float(np.abs(at).max()))
            self.values[self._places(states)] = at
        wanted = self.values - self.mean
        # Where all servers are busy and nobody waits f is 0; what the integrals until the pin leave there is taken off.
        self.values = -Potential(self.space, self.queue.arrivals).solve(wanted)
        self.values -= self.values[self._places(np.array([self.queue.n] + [0] * self.queue.b))]
        worst = 0.0
        for states, _ in law.pieces():
            left = np.abs(self.generator(states) - wanted[self._places(states)]).max()
            worst = float(np.maximum(worst, left))  # which a NaN passes; it does not pass max
        self.residual = worst / largest if largest else 0.0
        if not self.residual < _UNSOLVED:
            raise ArithmeticError(
                f"the Poisson equation of {self!r} is left with a residual of {self.residual:.1e} relative to the largest |h|"
            )

    def __call__(self, q: Any) -> Any:
        """f(q). **Raises:** `InputError` where q is no state of the queue, or outside the window or cap of its law."""
        q = self._states(q)
        places = self._places(q)
        if np.any(places < 0):
            wrong = np.reshape(q, (-1, q.shape[-1]))[np.argmax(np.ravel(places) < 0)]
            raise InputError(
                f"({', '.join(map(str, wrong))}) is no state that was kept: {self.queue.n} >= Q_1 >= ... >= "
                f"Q_{self.queue.levels} >= 0, inside the law's window and cap"
            )
        return self.values[places]

    def gradient(self, q: Any) -> np.ndarray:
        """The scaled first differences Delta_i f(q)/delta, (..., b + 1)."""
        coordinates = range(1, self.queue.levels + 1)
        return np.stack([self.difference(q, i) for i in coordinates], axis=-1)

    def hessian(self, q: Any) -> np.ndarray:
        """The scaled second differences Delta_i Delta_j f(q)/delta^2, (..., b + 1, b + 1)."""
        coordinates = range(1, self.queue.levels + 1)
        return np.stack([np.stack([self.difference(q, i, j) for j in coordinates], axis=-1) for i in coordinates], axis=-2)

    def difference(self, q: Any, *along: int) -> np.ndarray:
        """The scaled difference along coordinates, which count from 1: difference(q, 1, 2) is Delta_1 Delta_2 f(q)/delta^2."""
        q = self._states(q)
        terms = [(1.0, q)]
        for i in along:
            if integer("coordinate", i, 1, "coordinates count from 1") > self.queue.levels:
                raise InputError(f"coordinate must be at most b + 1 = {self.queue.levels}, got {i}")
            step = np.zeros(self.queue.levels, np.int64)
            step[i - 1] = -1 if i == 1 else 1  # X_1 grows as Q_1 falls
            terms = [term for sign, at in terms for term in ((sign, at + step), (-sign, at))]
        total = np.zeros(q.shape[:-1])
        for sign, at in terms:
            places = self._places(at)
            total += sign * np.where(places < 0, np.nan, self.values[places])
        return total * self.queue.n ** (len(along) / 2)

    def generator(self, q: Any) -> np.ndarray:
        """G_X f(q), by the queue's own rates, of the chain that stays in the window and under the cap."""
        q = self._states(q)
        here, total = self(q), np.zeros(q.shape[:-1])
        for sign, moves in zip((1, -1), rates(tuple(np.moveaxis(q, -1, 0)), self.queue.n, self.queue.arrivals)):
            for i, rate in enumerate(moves):
                step = np.zeros(self.queue.levels, np.int64)
                step[i] = sign
                places = self._places(q + step)
                total += np.where(places < 0, 0.0, rate * (self.values[places] - here))
        return total

    def __repr__(self) -> str:
        return f"LatticePoisson({self.name}, n={self.queue.n}, b={self.queue.b}, beta={self.queue.beta:g})"

    def _states(self, q: Any) -> np.ndarray:
        states = np.asarray(q)
        if states.dtype.kind not in "iu" or states.ndim == 0 or states.shape[-1] != self.queue.levels:
            raise InputError(
                f"f of the lattice takes states of occupancy, integers (Q_1, ..., Q_{self.queue.levels}), got "
                f"{states.dtype} of shape {states.shape}: X_1 = (n - Q_1)/sqrt(n), X_i = Q_i/sqrt(n)"
            )
        return states.astype(np.int64)

    def _places(self, q: np.ndarray) -> np.ndarray:
        places = self.space.places(q[..., : self.space.levels])
        beyond = q[..., self.space.levels :]
        return np.where(beyond.any(axis=-1), -1, places) if beyond.shape[-1] else places


def stein_factors(law: "ExactQueueLaw", f: LatticePoisson, over: str, mass: float) -> dict[str, float]:
    """|Delta_i f|/delta and |Delta_i Delta_j f|/delta^2 of the first two coordinates over the states, as `over` says."""
    names, outside = asked(over, mass, law.b)
    levels = law.queue.levels
    ends = np.array([_quantile(law, i, outside / levels) for i in range(levels)]) if over == "box" else None
    found = dict.fromkeys(names, 0.0)
    for states, weights in law.pieces():
        if ends is not None:
            from_wall = np.concatenate([law.n - states[:, :1], states[:, 1:]], axis=1)
            states = states[np.all(from_wall <= ends, axis=1)]
        size = 1 + law.queue.scaled(states)[:, :2].sum(axis=1)
        for name, along in names.items():
            values = np.abs(f.difference(states, *along))
            values[np.isnan(values)] = 0.0  # there is no such difference at this state
            if over == "mean":
                found[name] += float(weights @ values)
                continue
            values = values / size if over == "weighted" else values
            found[name] = max(found[name], float(values.max(initial=0.0)))
    return found


def _quantile(law: "ExactQueueLaw", i: int, p: float) -> int:
    """The smallest number of steps from 0 that coordinate i of X exceeds with a chance of at most p."""
    chances = law.marginal(i + 1)
    chances = chances[::-1] if i == 0 else chances
    above = np.append(np.cumsum(chances[::-1])[::-1][1:], 0.0)
    return int(np.argmax(above <= p))
