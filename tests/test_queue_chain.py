"""The queue's states, rates and generator, and the policies."""

import itertools
import math
import pickle
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from queue_by_hand import idle_first, jsq, with_replacement

import rdiff
from rdiff.queue import policies
from rdiff.queue.chain import JSQQueue, rates
from rdiff.queue.space import Space

ALL = [*policies.POLICIES.values(), policies.PowerOf(3), policies.PowerOf(1)]


@pytest.mark.parametrize("n, b", [(1, 0), (1, 2), (4, 1), (5, 2), (3, 4)])
def test_states_are_all_there_once(n, b):
    states = JSQQueue(n, b, lam=0.6).states()
    expected = {q for q in itertools.product(range(n + 1), repeat=b + 1) if list(q) == sorted(q, reverse=True)}
    assert len(states) == len(expected) == JSQQueue(n, b, lam=0.6).size
    assert set(map(tuple, states.tolist())) == expected


@pytest.mark.parametrize("levels, first, last", [(2, 3, 4), (3, 2, 3), (4, 4, 2), (2, 0, 6), (3, 6, 6)])
def test_windows_keep_what_they_say(levels, first, last):
    space = Space(6, levels, first, last)
    states = space.all()
    whole = Space(6, levels).all()
    assert space.count == len(states)
    assert np.array_equal(states, whole[(whole[:, 0] >= first) & (whole[:, -1] <= last)])  # in the same order


def test_the_generator_is_the_queue_event_by_event():
    # Every event of a server-by-server description, from every state.
    n, b, lam = 3, 2, 0.7
    queue = JSQQueue(n, b, lam=lam)
    dense, index = queue.generator().toarray(), {tuple(q): i for i, q in enumerate(queue.states().tolist())}
    occupancy = lambda lengths: tuple(sum(x >= i for x in lengths) for i in range(1, b + 2))  # noqa: E731
    expected = np.zeros_like(dense)
    for lengths in itertools.combinations_with_replacement(range(b + 2), n):
        here = index[occupancy(lengths)]
        shortest = lengths.index(min(lengths))
        events = [(n * lam, shortest, 1)] if lengths[shortest] <= b else []
        events += [(1.0, k, -1) for k in range(n) if lengths[k]]
        for rate, k, change in events:
            after = [x + change * (j == k) for j, x in enumerate(lengths)]
            expected[here, index[occupancy(after)]] += rate
            expected[here, here] -= rate
    assert np.abs(dense - expected).max() < 1e-15


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: getattr(policy, "__name__", str(policy)))
def test_policies_give_chances(policy):
    n, q = 7, JSQQueue(7, 2, lam=0.5).states()
    chances = np.stack([np.broadcast_to(np.asarray(p, float), len(q)) for p in policy(tuple(q.T), n)])
    assert np.all(chances >= 0)
    full = q[:, -1] == n
    assert np.allclose(chances.sum(axis=0)[full], 0)
    assert np.all(chances.sum(axis=0) <= 1 + 1e-12)
    below = np.concatenate([np.full((1, len(q)), n), q.T[:-1]])
    assert np.all(chances[below == q.T] == 0)  # nobody joins a server that is not there
    traced = jax.jit(lambda *levels: policy(levels, jnp.int32(n)))(*jnp.asarray(q.T, jnp.int32))
    assert np.allclose(np.stack([np.asarray(p, float) for p in traced]), chances, atol=1e-6)


def test_looking_at_all_servers_is_jsq():
    q = tuple(JSQQueue(7, 2, lam=0.5).states().T)
    assert np.array_equal(np.stack(policies.PowerOf(7)(q, 7)), np.stack(policies.jsq(q, 7)))


@pytest.mark.parametrize("policy, by_hand", [
    (policies.jsq, jsq), (policies.PowerOf(5, replacement=True), with_replacement),
    (policies.join_idle_queue, lambda lengths, rng: lengths.index(0) if 0 in lengths else rng.randrange(5)),
    (policies.PowerOf(2), lambda lengths, rng: min(rng.sample(range(5), 2), key=lengths.__getitem__)),
    (policies.idle_one_first, lambda lengths, rng: next(
        (lengths.index(k) for k in (0, 1) if k in lengths), rng.randrange(5))),
], ids=["jsq", "pod-replacement", "jiq", "pod", "idle-one-first"])  # fmt: skip
def test_policies_are_what_servers_see(policy, by_hand):
    rng, draws, b = random.Random(4), 4000, 3
    for lengths in ([2, 1, 1, 0, 0], [1, 1, 2, 3, 1], [2, 2, 3, 3, 2], [4, 4, 2, 3, 4]):
        q = tuple(sum(x >= i for x in lengths) for i in range(1, b + 2))
        counts = np.zeros(b + 1)
        for _ in range(draws):
            joined = lengths[by_hand(lengths, rng)]
            if joined <= b:
                counts[joined] += 1
        chances = np.asarray(policy(q, 5), float)
        assert np.all(np.abs(counts / draws - chances) <= 4.5 * np.sqrt(chances * (1 - chances) / draws) + 1e-12)


def test_waiting_only_is_not_jsq():
    # The simulator by hand that ignores the customer in service, against which `jsq` must differ.
    rng = random.Random(0)
    joined = {[1, 1, 0, 0][idle_first([1, 1, 0, 0], rng)] for _ in range(50)}
    assert joined == {0, 1} and rates((2, 0), 4, 1.0)[0] == (1.0, 0.0)


def test_parameters():
    queue = JSQQueue(n=100, b=2, beta=1.0)
    assert (queue.lam, queue.arrivals, queue.alpha, queue.levels) == (0.9, 90.0, 0.5, 3)
    assert JSQQueue(n=25, b=1, lam=0.8).beta == 1.0
    other = JSQQueue(n=100, b=1, beta=2.0, alpha=1.0)
    assert other.lam == pytest.approx(0.98) and other.beta == 2.0 and other.drift == pytest.approx(0.2)
    assert JSQQueue(n=100, b=1, lam=0.98, alpha=1.0).beta == 2.0
    assert JSQQueue(n=9, b=1, beta=0.3, alpha=0.0).lam == pytest.approx(0.7)
    assert pickle.loads(pickle.dumps(queue)) == queue
    assert np.array_equal(queue.scaled(np.array([[90, 3, 0]])), [[1.0, 0.3, 0.0]])


@pytest.mark.parametrize("options, message", [
    (dict(n=4, b=1, beta=2.0), r"n must exceed beta\^2"), (dict(n=4.0, b=1, beta=1.0), "n must be an integer"),
    (dict(n=0, b=1, beta=1.0), "n must be at least 1"), (dict(n=4, b=-1, beta=1.0), "b .*must be at least 0"),
    (dict(n=4, b=math.inf, beta=1.0), "infinitely many"), (dict(n=4, b=1, lam=1.0), "lam must be below 1"),
    (dict(n=4, b=1, beta=-1.0), "beta must be"), (dict(n=4, b=1), "beta or lam"),
    (dict(n=4, b=1, beta=1.0, alpha=-0.1), "alpha must not be negative"),
    (dict(n=4, b=1, beta=1.0, alpha=math.nan), "alpha must be"),
    (dict(n=4, b=1, beta=1.0, alpha=0.0), "must exceed beta"),
    (dict(n=4, b=1, beta=1.0, lam=0.9, alpha=1.0), "contradict"),
    (dict(n=25, b=1, beta=0.5, alpha=1e3), "must have a double"), (dict(n=25, b=1, lam=0.5, alpha=400), "must have a double"),
    (dict(n=25, b=1, beta=1e-300), "is 1 to a double"), (dict(n=25, b=1, beta=0.5, alpha=50), "is 1 to a double"),
    (dict(n=10**400, b=1, beta=1.0), "below 1e308"), (dict(n=10**400, b=1, beta=1.0, alpha=1), "below 1e308"),
])  # fmt: skip
def test_bad_parameters(options, message):
    with pytest.raises(rdiff.InputError, match=message):
        JSQQueue(**options)


def test_bad_policies():
    with pytest.raises(rdiff.InputError, match="policy must be one of"):
        policies.policy_of("shortest")
    with pytest.raises(rdiff.InputError, match="cannot be drawn"):
        policies.PowerOf(5)((2, 1), 4)
    with pytest.raises(rdiff.InputError, match="d must be"):
        policies.PowerOf(0)
    with pytest.raises(rdiff.InputError, match="too many to list"):
        JSQQueue(5000, 1, beta=1.0).states()
