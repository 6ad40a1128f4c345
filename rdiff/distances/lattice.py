"""The queue's side of a distance: the joint law of X_1 and X_2 on their lattice."""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from rdiff.distances.splines import Axis
from rdiff.errors import InputError

_MOST = 2**28  # states of (X_1, X_2): 2 GiB


@dataclasses.dataclass(frozen=True, eq=False)
class Lattice:
    """P(X_1 = i delta, X_2 = j delta) in `joint` (one column for b = 0), delta = 1/sqrt(n).

    `remainder`: the sum of E X_i over i >= 3, which is all of what these coordinates add to a distance.
    """

    n: int
    joint: Float[np.ndarray, "rows columns"]
    remainder: float

    @classmethod
    def of(cls, law: Any) -> "Lattice":
        """From an `ExactQueueLaw`, in one pass.

        **Raises:** `InputError` when it has too many states.
        """
        space, n = law.space, law.n
        shape = (n - space.first + 1, (space.top if space.levels == 2 else n) + 1) if law.b else (n + 1, 1)
        if math.prod(shape) > _MOST:
            raise InputError(
                f"n = {n} has {math.prod(shape):.3g} states of (X_1, X_2), a distance takes at most {_MOST:.3g}: a smaller n, "
                'or exact(window="auto", cap="auto")'
            )
        joint = np.zeros(shape)
        further = 0.0
        for states, weights in law.pieces():
            np.add.at(joint, (n - states[:, 0], states[:, 1] if law.b else 0), weights)
            further += float(weights @ states[:, 2:].sum(axis=1))
        used = np.flatnonzero(joint.any(axis=0))[-1] + 1
        return cls(n, joint[:, :used].copy(), further / math.sqrt(n))

    def points(self, i: int) -> Float[np.ndarray, " points"]:
        """The values of X_i, i = 1 or 2."""
        return np.arange(self.joint.shape[i - 1]) / math.sqrt(self.n)

    def chances(self, i: int) -> Float[np.ndarray, " points"]:
        """Their probabilities."""
        return self.joint.sum(axis=2 - i)

    def one(self, i: int, axis: Axis) -> Float[np.ndarray, " size"]:
        """E B(X_i) of the basis."""
        return axis.at(self.points(i)).T @ self.chances(i)

    def two(self, first: Axis, second: Axis) -> Float[np.ndarray, "size1 size2"]:
        """E B_i(X_1) B_j(X_2) of both bases."""
        return first.at(self.points(1)).T @ (second.at(self.points(2)).T @ self.joint.T).T
