"""`System`: the numbers that fix a JSQ queue, checked once for every law of it."""

import dataclasses
import math
from typing import Any

from rdiff.errors import InputError, integer, positive


@dataclasses.dataclass(frozen=True)
class System:
    """n servers, b places to wait behind each, arrivals at rate n lam with lam = 1 - beta/sqrt(n), service rate 1.

    **Fields:** `n` (int), `b` (int, or `math.inf`), `lam` and `beta` (floats).

    ```python
    >>> from rdiff.queue.system import System
    >>> System.of(n=25, b=1, lam=0.8).beta
    1.0

    ```
    """

    n: int
    b: int | float
    lam: float
    beta: float

    @classmethod
    def of(cls, n: Any, b: Any, beta: Any = None, lam: Any = None) -> "System":
        """The system with this n and b, and one of beta and lam.

        **Raises:** `InputError` when n is not a positive integer, b not an integer of at least 0 or infinite, neither
        or two contradicting of beta and lam are given, beta <= 0, lam outside (0, 1), or n <= beta^2.
        """
        n = servers(n)
        b = _buffer(b)
        if beta is None and lam is None:
            raise InputError("beta or lam is missing: n and b alone do not say how loaded the queue is")
        root = math.sqrt(n)
        given = None if lam is None else _load(lam)
        if beta is None:
            assert given is not None
            # The decimal that lam stands for: (1 - 0.8) 5 is 1 to rounding, and should print as 1.
            return cls(n, b, given, float(f"{root * (1 - given):.14g}"))
        beta = float(positive("beta", beta, "with beta <= 0 (lam >= 1) there is no stationary limit to compare with"))
        if n <= beta * beta:
            raise InputError(f"n must exceed beta^2 = {beta * beta:g}, got n = {n}: lam = 1 - beta/sqrt(n) must be positive")
        if given is not None and not math.isclose(given, 1 - beta / root, rel_tol=1e-9):
            raise InputError(
                f"beta = {beta:g} and lam = {given:g} contradict each other at n = {n}: 1 - beta/sqrt(n) = "
                f"{1 - beta / root:.10g}, not lam; give one of them"
            )
        return cls(n, b, below_one(1 - beta / root, beta), beta)

    @property
    def levels(self) -> int | None:
        """The number of levels Q_1..Q_{b+1}; None when the buffer is unlimited."""
        return None if math.isinf(self.b) else int(self.b) + 1


def below_one(lam: float, beta: float) -> float:
    """lam, unless it is 1 to a double."""
    if lam >= 1:
        raise InputError(
            f"lam must be below 1: with beta = {beta:g} it is 1 to a double, and there is no stationary limit then"
        )
    return lam


def servers(n: Any) -> int:
    """n, an integer of at least 1 that has a double."""
    n = integer("n", n, 1, "the number of servers")
    if n >= 2**1023:
        raise InputError("n must be a number of servers that has a double, below 1e308")
    return n


def _buffer(b: Any) -> int | float:
    if isinstance(b, str):
        if b.strip().lower() in ("inf", "infinity", "infinite"):
            return math.inf
        raise InputError(f"b must be an integer or 'inf', got {b!r}")
    if isinstance(b, float) and b == math.inf:
        return math.inf
    return integer("b", b, 0, "the places to wait at each server, the one in service left out ('inf' for no limit)")


def _load(lam: Any) -> float:
    lam = float(positive("lam", lam, "the arrival rate a server, in units of the service rate"))
    if lam >= 1:
        raise InputError(
            f"lam must be below 1, got {lam:g}: from 1 on there is no stationary limit to compare with, though a queue of "
            "finite b still has a stationary law; only Lambda/(n mu) matters, so divide the total arrival rate by n and by "
            "the service rate"
        )
    return lam
