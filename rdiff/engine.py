"""The long-run engine: many independent lanes of any Markov chain side by side, keeping running sums only.

A chain is three functions, `init`, `step` and `observe`, of one lane; the engine vmaps them, spreads lanes over devices, and
drives a compiled loop over steps from the host. It knows nothing of diffusions.
"""

import abc
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from rdiff.accumulate import BLOCK, Batches, PairSum, tree_sum
from rdiff.devices import lane_sharding
from rdiff.errors import InputError

LONGEST_CALL = 2**30 // BLOCK * BLOCK  # steps, counted in int32 on the device
CALL_SECONDS = 0.25  # a call of the device lasts about this long: often enough for a progress bar and for Ctrl-C


class AbstractChain(eqx.Module):
    """A Markov chain with observables, as the engine sees it."""

    @abc.abstractmethod
    def init(self, key: Key[Array, ""], start: PyTree) -> PyTree:
        """The state of one lane at the start."""

    @abc.abstractmethod
    def step(self, state: PyTree) -> PyTree:
        """The state one step later; its noise comes from the state."""

    @abc.abstractmethod
    def observe(self, state: PyTree) -> tuple[Float[Array, ""], ...]:
        """The numbers to be averaged, after a step."""

    @abc.abstractmethod
    def describe(self, state: PyTree) -> dict[str, Any]:
        """What to tell the user of a lane that went wrong, by name; leaves are arrays."""


class Carry(NamedTuple):
    """What travels from call to call: the lanes' states, and the sums of their observables since burn-in."""

    state: PyTree
    sums: tuple[PairSum, ...]


def start(chain: AbstractChain, keys: Key[Array, " lanes"], starts: PyTree) -> Carry:
    """The carry before the first step; `starts` has a leading axis of lanes."""
    state = jax.vmap(chain.init)(keys, starts)
    shapes = jax.eval_shape(jax.vmap(chain.observe), state)
    return Carry(state, tuple(PairSum.zero(jnp.zeros(x.shape, x.dtype)) for x in shapes))


def advance(chain: AbstractChain, carry: Carry, blocks: Any, rest: Any) -> Carry:
    """`blocks` blocks of steps and `rest` more, with their observables added. Pure: runs under any transformation."""
    step, observe = jax.vmap(chain.step), jax.vmap(chain.observe)
    zeros = tuple(jnp.zeros_like(total.high) for total in carry.sums)

    def one(_: Any, inner: tuple) -> tuple:
        state, part = inner
        state = step(state)
        return state, tree_sum(part, observe(state))

    def block(length: Any, carry: Carry) -> Carry:
        state, part = jax.lax.fori_loop(0, length, one, (carry.state, zeros))
        return Carry(state, tuple(total.add(x) for total, x in zip(carry.sums, part, strict=True)))

    carry = jax.lax.fori_loop(0, blocks, lambda _, inner: block(BLOCK, inner), carry)
    return block(rest, carry)


def forget(chain: AbstractChain, carry: Carry, steps: Any) -> Carry:
    """`steps` steps without sums: burn-in."""
    step = jax.vmap(chain.step)
    return carry._replace(state=jax.lax.fori_loop(0, steps, lambda _, state: step(state), carry.state))


_advance = eqx.filter_jit(advance, donate="all-except-first")
_forget = eqx.filter_jit(forget, donate="all-except-first")
_start = eqx.filter_jit(start)


class Progress(NamedTuple):
    """Where a run stands: sums of all steps averaged so far, and the batches that are full."""

    done: int
    total: int
    batches: Batches
    sums: Float[np.ndarray, "lanes observables"]
    steps: int  # averaged so far


def run(
    chain: AbstractChain,
    keys: Key[Array, " lanes"],
    starts: PyTree,
    *,
    burn_in: int,
    steps: int,
    rounds: int = 1,
    chunk: int | None = None,
    finished: Callable[[Progress], bool] = lambda _: False,
) -> Iterator[Progress]:
    """Run `burn_in` steps, then up to `rounds` times `steps` averaged steps; yields where it stands after each call.

    After each round `finished` may end the run. The last value yielded is the result. The numbers do not depend on
    `chunk`, the steps a call (rounded up to whole blocks).

    **Raises:** `InputError` when a state or an observable is not finite, naming lane, step and state.
    """
    lanes = keys.shape[0]
    sharding = lane_sharding(lanes)
    if sharding is not None:
        keys, starts = jax.device_put((keys, starts), sharding)
    carry = _start(chain, keys, starts)
    pace = _Pace(chunk, lanes)

    total, done = burn_in + rounds * steps, 0
    batches = Batches()
    zero = np.zeros((lanes, len(carry.sums)))
    while done < burn_in:
        size = min(pace.steps, burn_in - done)
        with pace.timed(size):
            carry = jax.block_until_ready(_forget(chain, carry, _count(size)))
        done += size
        yield Progress(done, total, batches, zero, 0)

    stretch = -(-steps // batches.keep)
    sums, averaged = zero, 0
    for _ in range(rounds):
        target = averaged + steps
        while averaged < target:
            before, end = sums, min(averaged + stretch, target)
            full = end - averaged == stretch
            while averaged < end:
                size = min(pace.steps, end - averaged)
                with pace.timed(size):
                    carry = jax.block_until_ready(_advance(chain, carry, _count(size // BLOCK), _count(size % BLOCK)))
                averaged += size
                sums = np.stack([total.value() for total in carry.sums], axis=-1)
                _check_finite(chain, carry, sums, averaged, burn_in)
                yield Progress(burn_in + averaged, total, batches, sums, averaged)
            if full:
                batches.add(sums - before)
        progress = Progress(burn_in + averaged, total, batches, sums, averaged)
        yield progress
        if finished(progress):
            return


class _Pace:
    """How many steps a call takes: whole blocks, as many as keep it near `CALL_SECONDS` unless told."""

    def __init__(self, chunk: int | None, lanes: int):
        self._fixed = chunk is not None
        guess = max(1, 2_000_000 // lanes) if chunk is None else chunk
        self.steps = min(-(-guess // BLOCK) * BLOCK, LONGEST_CALL)

    @contextlib.contextmanager
    def timed(self, steps: int) -> Iterator[None]:
        """Around a call of so many steps: sets the length of the next."""
        began = time.perf_counter()
        yield
        if not self._fixed:
            fitting = steps * CALL_SECONDS / max(time.perf_counter() - began, 1e-6)
            # A call that compiled says little, a short one little more: halve or quadruple at most.
            bounded = (
                min(max(fitting, self.steps / 2), self.steps * 4.0)
                if fitting < self.steps or steps == self.steps
                else self.steps
            )
            self.steps = min(max(BLOCK, int(bounded) // BLOCK * BLOCK), LONGEST_CALL)


def _count(steps: int) -> Array:
    """A number of steps as an array: as a Python number each would be compiled anew."""
    return jnp.asarray(steps, jnp.int32)


def _check_finite(chain: AbstractChain, carry: Carry, sums: np.ndarray, steps: int, burn_in: int) -> None:
    if np.all(np.isfinite(sums)):
        return
    lane = int(np.argmax(~np.all(np.isfinite(sums), axis=1)))
    which = [i for i in range(sums.shape[1]) if not np.isfinite(sums[lane, i])]
    told = chain.describe(jax.tree.map(lambda leaf: leaf[lane], carry.state))
    state, names = np.asarray(told.pop("state")), told.pop("observables")
    where = f"lane {lane} within {steps} steps after {burn_in} of burn-in"
    if not np.all(np.isfinite(state)):
        raise InputError(
            f"the state is not finite: {state.tolist()} in {where}, {told}: the step is too long, or the drift explodes"
        )
    raise InputError(
        f"observable {names[which[0]]!r} is not finite in {where}, where the state is now {state.tolist()}: it must be "
        "finite on the whole state space, the wall and 0 included (usual cause: a logarithm or a division at 0)"
    )
