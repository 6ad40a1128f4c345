"""Which server an arrival joins, on occupancy: one small function a policy, for numpy and for JAX.

A policy takes the levels `q` = (Q_1, ..., Q_{b+1}), numbers or arrays of one shape, and n, and gives for each level i the
chance that the arrival raises Q_i, joining a server with i - 1 customers; what is missing to 1 is blocked. A policy that
draws no lots gives booleans.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from rdiff.errors import InputError, integer

Policy = Callable[[Sequence[Any], Any], tuple[Any, ...]]


def jsq(q: Sequence[Any], n: Any) -> tuple[Any, ...]:
    """Join the shortest queue: the first level below n rises.

    ```python
    >>> from rdiff.queue.policies import jsq
    >>> jsq((4, 1), n=4), jsq((3, 1), n=4)
    ((False, True), (True, False))

    ```
    """
    return tuple((below == n) & (here < n) for below, here in _pairs(q, n))


def join_idle_queue(q: Sequence[Any], n: Any) -> tuple[Any, ...]:
    """An idle server where there is one, else one drawn at random (blocked when that is full).

    Source: Lu et al., Join-Idle-Queue: a novel load balancing algorithm, Performance Evaluation 68 (2011).
    """
    none_idle = q[0] // n  # 1 when Q_1 = n, else 0
    return (q[0] < n, *(none_idle * (below - here) / n for below, here in _pairs(q, n)[1:]))


def idle_one_first(q: Sequence[Any], n: Any) -> tuple[Any, ...]:
    """An idle server, else one with a single customer, else one drawn at random.

    Source: Gupta and Walton, Load balancing in the nondegenerate slowdown regime, Operations Research 67 (2019).
    """
    ahead = jsq(q[:2], n)
    none_ahead = q[min(1, len(q) - 1)] // n  # 1 when Q_2 = n, else 0
    return (*ahead, *(none_ahead * (below - here) / n for below, here in _pairs(q, n)[2:]))


@dataclasses.dataclass(frozen=True)
class PowerOf:
    """The shortest of d servers drawn at random, with replacement or without.

    **Raises:** `InputError` for d that is no positive integer, and when called, for more draws without replacement than
    there are servers.

    Source: Mitzenmacher, The power of two choices in randomized load balancing, IEEE TPDS 12 (2001).

    ```python
    >>> from rdiff.queue.policies import PowerOf
    >>> PowerOf(2)((4, 2), n=4), PowerOf(2, replacement=True)((4, 2), n=4)
    ((0.0, 0.8333333333333334), (0.0, 0.75))

    ```
    """

    d: int
    replacement: bool = False

    def __post_init__(self) -> None:
        integer("d", self.d, 1, "the number of servers an arrival looks at")

    def __call__(self, q: Sequence[Any], n: Any) -> tuple[Any, ...]:
        if isinstance(n, int) and self.d > n and not self.replacement:
            raise InputError(f"{self.d} different servers cannot be drawn from n = {n}: d is at most n without replacement")
        longer = [self._all_have(level, n) for level in (n, *q)]  # P(all servers drawn hold i or more)
        return tuple(below - here for below, here in itertools.pairwise(longer))

    def _all_have(self, level: Any, n: Any) -> Any:
        if self.replacement:
            return (level / n) ** self.d
        return math.prod((level - j) / (n - j) for j in range(self.d))  # 0 where level < d: one factor is 0


POLICIES: dict[str, Policy] = {
    "jsq": jsq,
    "join-idle-queue": join_idle_queue,
    "power-of-2": PowerOf(2),
    "power-of-2-replacement": PowerOf(2, replacement=True),
    "idle-one-first": idle_one_first,
}


def policy_of(policy: str | Policy) -> Policy:
    """The policy of a name, or the one given.

    **Raises:** `InputError` for a name that is not in `POLICIES`.
    """
    if callable(policy):
        return policy
    if not isinstance(policy, str) or policy not in POLICIES:
        raise InputError(f"policy must be one of {', '.join(POLICIES)}, or a function (q, n) -> chances, got {policy!r}")
    return POLICIES[policy]


def called(policy: Policy) -> str:
    """The name of a policy.

    ```python
    >>> from rdiff.queue.policies import PowerOf, called, join_idle_queue
    >>> called(join_idle_queue), called(PowerOf(3, replacement=True))
    ('join-idle-queue', 'power-of-3 with replacement')

    ```
    """
    if isinstance(policy, PowerOf):
        return f"power-of-{policy.d}" + " with replacement" * policy.replacement
    known = [name for name, each in POLICIES.items() if each is policy]
    return known[0] if known else getattr(policy, "__name__", repr(policy))


def _pairs(q: Sequence[Any], n: Any) -> list[tuple[Any, Any]]:
    """(Q_{i-1}, Q_i), with Q_0 = n."""
    return list(zip((n, *q[:-1]), q))
