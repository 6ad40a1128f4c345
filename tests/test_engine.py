"""The engine on chains that are not diffusions, and its sums."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff import engine
from rdiff.accumulate import Batches, PairSum
from rdiff.noise import lane_keys, root_key


class Counter(engine.AbstractChain):
    """Counts its steps; the second observable is 1 on even steps."""

    def init(self, key, start):
        return start

    def step(self, state):
        return state + 1.0

    def observe(self, state):
        return state, (state % 2 == 0).astype(state.dtype)

    def describe(self, state):
        return {"state": state, "observables": ("count", "even")}


def last(**options):
    return list(engine.run(Counter(), lane_keys(root_key(0), 4), jnp.arange(4.0), **options))[-1]


@pytest.mark.parametrize("steps", [1, 63, 64, 65, 1000, 1600, 4097])
@pytest.mark.parametrize("burn_in", [0, 7])
@pytest.mark.parametrize("chunk", [1, 64, 100, 10_000])
def test_every_step_is_made_once(steps, burn_in, chunk):
    at = last(steps=steps, burn_in=burn_in, chunk=chunk)
    first = burn_in + 1 + np.arange(4)
    assert at.steps == steps
    assert np.array_equal(at.sums[:, 0], steps * first + steps * (steps - 1) / 2)
    assert at.sums[:, 1].sum() in (2 * steps, 2 * steps + 1, 2 * steps - 1)


def test_rounds_go_on_until_finished():
    at = last(steps=100, burn_in=0, rounds=50, finished=lambda at: at.steps >= 700)
    assert at.steps == 700 and np.array_equal(at.sums[0, 0], 700 * 701 / 2)
    assert last(steps=100, burn_in=0, rounds=3).steps == 300


def test_batches_keep_the_sum_and_a_bounded_number():
    at = last(steps=640, burn_in=0, rounds=20)
    sums = at.batches.sums
    assert 64 <= sums.shape[0] < 128
    length = at.batches.stretch * 54  # a twelfth of a round
    expected = [sum(range(i * length + 1, (i + 1) * length + 1)) for i in range(sums.shape[0])]
    assert sums[:, 0, 0].tolist() == expected


def test_sums_of_1e11_steps_lose_nothing():
    # The accumulator, not the clock: 2e5 block sums of a size that 1e11 steps would have reached by then.
    rng = np.random.default_rng(0)
    blocks = rng.uniform(0.5, 1.5, 200_000).astype(np.float32) * np.float32(64)
    high, low = 1e11, 0.0
    start = PairSum(jnp.float32(high), jnp.float32(low))
    total = jax.jit(lambda s, xs: jax.lax.scan(lambda s, x: (s.add(x), None), s, xs)[0])(start, blocks)
    exact = Fraction(float(np.float32(high))) + sum(Fraction(float(x)) for x in blocks)
    got = Fraction(float(total.high)) + Fraction(float(total.low))
    assert abs(float((got - exact) / exact)) < 1e-12
    naive = np.float32(high)
    for x in blocks[:1000]:
        naive += x
    assert naive == np.float32(high)  # what plain float32 would have done


def test_a_lane_that_goes_wrong_is_named():
    class Exploding(Counter):
        def step(self, state):
            return jnp.where(state > 200, jnp.inf, state + 1.0)

    with pytest.raises(rdiff.InputError, match=r"the state is not finite: inf in lane 3"):
        for _ in engine.run(Exploding(), lane_keys(root_key(0), 4), jnp.array([0.0, 0.0, 0.0, 150.0]), burn_in=0, steps=100):
            pass

    class Bad(Counter):
        def observe(self, state):
            return state, jnp.log(state - 50.0)

    with pytest.raises(rdiff.InputError, match="'even' is not finite"):
        for _ in engine.run(Bad(), lane_keys(root_key(0), 4), jnp.arange(4.0), burn_in=0, steps=100):
            pass


def test_batches_start_empty():
    assert Batches().sums.shape == (0, 0, 0)
