"""Running sums of a long run: nothing is stored but sums, and the sums lose nothing.

A step's observables are added in the states' own precision over a block of at most `BLOCK` steps; blocks are added to a
pair (high, low) whose sum carries twice that precision (Knuth's two-sum), so 1e11 steps cost no digits. Blocks start at
fixed steps: the result does not depend on how a run is cut into calls of the device.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

BLOCK = 64


class PairSum(NamedTuple):
    """A sum kept as high + low, |low| at most half a unit in the last place of high."""

    high: Float[Array, "*shape"]
    low: Float[Array, "*shape"]

    @staticmethod
    def zero(like: Float[Array, "*shape"]) -> "PairSum":
        """The empty sum, of the shape and precision of `like`."""
        return PairSum(jnp.zeros_like(like), jnp.zeros_like(like))

    def add(self, x: Float[Array, "*shape"]) -> "PairSum":
        """The sum with x added; its error is that of twice the precision.

        ```python
        >>> import jax.numpy as jnp
        >>> from rdiff.accumulate import PairSum
        >>> total = PairSum(jnp.float32(2**24), jnp.float32(0)).add(jnp.float32(1)).add(jnp.float32(1))
        >>> int(total.high) + int(total.low) - 2**24
        2

        ```
        """
        high, error = _two_sum(self.high, x)
        # A pair stays normalised, or `low` would itself outgrow its digits.
        return PairSum(*_fast_two_sum(high, self.low + error))

    def value(self) -> np.ndarray:
        """The sum in float64."""
        return np.asarray(self.high, np.float64) + np.asarray(self.low, np.float64)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _fast_two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    s = a + b
    return s, b - (s - a)


class Batches:
    """Sums of equal stretches of a run, at most `2 * keep` of them: when full, neighbours merge and stretches double.

    `add` takes the sums of one base stretch, shape (lanes, observables), in order. Memory does not grow with the run.

    ```python
    >>> import numpy as np
    >>> from rdiff.accumulate import Batches
    >>> batches = Batches(keep=2)
    >>> for value in range(1, 6):
    ...     batches.add(np.full((1, 1), float(value)))
    >>> batches.sums[:, 0, 0].tolist(), batches.stretch
    ([3.0, 7.0], 2)

    ```
    """

    def __init__(self, keep: int = 64):
        self.keep: int = keep
        self.stretch: int = 1
        self._full: list[np.ndarray] = []
        self._part: np.ndarray | None = None
        self._count = 0

    def add(self, sums: np.ndarray) -> None:
        """Add the sums of the next base stretch."""
        self._part = sums if self._part is None else self._part + sums
        self._count += 1
        if self._count < self.stretch:
            return
        if len(self._full) == 2 * self.keep - 1:
            whole = [*self._full, self._part]
            self._full = [a + b for a, b in zip(whole[::2], whole[1::2], strict=True)]
            self.stretch *= 2
        else:
            self._full.append(self._part)
        self._part, self._count = None, 0

    def arrays(self) -> dict[str, np.ndarray]:
        """All there is to know, as arrays for a file."""
        part = np.zeros(0) if self._part is None else self._part
        return {"counts": np.array([self.keep, self.stretch, self._count]), "full": self.sums, "part": part}

    @staticmethod
    def of(arrays: Mapping[str, np.ndarray]) -> "Batches":
        """The batches that `arrays` came from."""
        keep, stretch, count = (int(x) for x in arrays["counts"])
        batches = Batches(keep)
        batches.stretch, batches._count, batches._full = stretch, count, list(arrays["full"])
        batches._part = arrays["part"] if count else None
        return batches

    @property
    def sums(self) -> np.ndarray:
        """Shape (batches, lanes, observables): the full stretches."""
        return np.stack(self._full) if self._full else np.zeros((0, 0, 0))
