"""For the tests of the adapter: a join-the-shortest-queue simulator, one event at a time, and its exact law."""

import functools
import random
from collections.abc import Callable

import numpy as np
import pytest

from rdiff.errors import InputError
from rdiff.queue.samples import Samples


def jsq(lengths: list[int], rng: random.Random) -> int:
    """A server with the fewest customers."""
    return lengths.index(min(lengths))


def idle_first(lengths: list[int], rng: random.Random) -> int:
    """The fewest *waiting*: the customer in service is not counted."""
    waiting = [max(x - 1, 0) for x in lengths]
    least = min(waiting)
    return rng.choice([k for k, x in enumerate(waiting) if x == least])


def with_replacement(lengths: list[int], rng: random.Random) -> int:
    """The shortest of n servers drawn with replacement."""
    return min((rng.randrange(len(lengths)) for _ in lengths), key=lengths.__getitem__)


def at_random(lengths: list[int], rng: random.Random) -> int:
    return rng.randrange(len(lengths))


def simulate(
    n: int, b: float, lam: float, horizon: float, seed: int, policy: Callable = jsq, mu: float = 1.0, start: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times (rows,) of all changes, lengths (rows, n) from then on, and occupancy seen by arrivals (arrivals, levels).

    Starts with `start` customers at every server.
    """
    rng = random.Random(seed)
    lengths = [start] * n
    clock, times, rows, seen = 0.0, [0.0], [list(lengths)], []
    while True:
        busy = [k for k, x in enumerate(lengths) if x]
        total = n * lam + mu * len(busy)
        clock += rng.expovariate(total)
        if clock >= horizon:
            return np.array(times), np.array(rows), np.array(seen)
        if rng.random() * total < n * lam:
            seen.append([sum(x >= i for x in lengths) for i in range(1, 5)])
            k = policy(lengths, rng)
            if lengths[k] > b:
                continue
            lengths[k] += 1
        else:
            lengths[rng.choice(busy)] -= 1
        times.append(clock)
        rows.append(list(lengths))


def on_a_grid(n: int, b: int, lam: float, every: float, rows: int, burn_in: int, seed: int) -> np.ndarray:
    """Occupancy (rows, b + 1) of join-the-shortest-queue every `every` time units, from empty, `burn_in` rows dropped.

    Candidate events come at rate n lam + n: an arrival, or the end of service at one of n servers, void when it is idle.
    """
    rng = np.random.default_rng(seed)
    total = n * lam + n
    q, seen = [0] * (b + 1), []
    for _ in range(burn_in + rows):
        for v in (rng.random(rng.poisson(total * every)) * total).tolist():
            if v >= n:  # joins a server with the fewest customers; all full: lost
                for i, level in enumerate(q):
                    if level < n:
                        q[i] += 1
                        break
            else:  # servers in order of length: the first Q_{b+1} hold b + 1 customers, the next one fewer, ...
                for i in range(b, -1, -1):
                    if v < q[i]:
                        q[i] -= 1
                        break
        seen.append(list(q))
    return np.array(seen[burn_in:])


def occupancy(lengths: np.ndarray, levels: int) -> np.ndarray:
    """Q_1..Q_levels of rows of lengths."""
    return np.stack([(lengths >= i).sum(axis=1) for i in range(1, levels + 1)], axis=1)


y1, y2 = (lambda y: y[0]), (lambda y: y[1])

# Exact laws at n = 4, beta = 1 (reference: nested elimination); E X1 = beta + sqrt(n) lam P_block.
EX1 = {1: 1 + 2 * 0.5 * 6.797063e-3, 2: 1.0004344109}
EX2 = {1: 0.1353927242, 2: 0.1462558505}
EX1_SQUARED = 1.39505693
SATURATED = 0.1421897871


@functools.cache
def log(policy=jsq, n=4, b=1, lam=0.5, horizon=12000.0, seed=1, mu=1.0):
    return simulate(n, b, lam, horizon, seed, policy, mu)


def full_log(b=1, **kwargs):
    times, lengths, _ = log(b=b)
    return Samples(lengths, n=4, b=b, beta=1.0, format="lengths", time=times, end_time=12000.0, burn_in=20, **kwargs)


def within(estimate, exact, errors=4.5):
    assert 0 < estimate.stderr < 0.05
    assert abs(estimate.mean - exact) < errors * estimate.stderr, (estimate.mean, exact, estimate.stderr)


def refused(*words, **kwargs):
    """The message of the refusal of `array`, which must hold all `words`."""
    array = kwargs.pop("array", np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50))
    options = {"n": 4, "b": 1, "beta": 1.0, "weights": "regular"} | kwargs
    with pytest.raises(InputError) as caught:
        Samples(array, **options)
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))
    return str(caught.value)
