"""The long-run engine: many independent lanes of any Markov chain side by side, keeping running sums only.

A chain is three functions, `init`, `step` and `observe`, of one lane; the engine vmaps them, spreads lanes over devices, and
drives a compiled loop over steps from the host. It knows nothing of diffusions.
"""

import abc
import collections
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from rdiff.accumulate import BLOCK, Batches, PairSum
from rdiff.devices import lane_sharding
from rdiff.errors import InputError

LONGEST_CALL = 2**30 // BLOCK * BLOCK  # steps, counted in int32 on the device
AHEAD = 2  # calls under way while an earlier one is read
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
        return state, jax.tree.map(jnp.add, part, observe(state))

    def block(length: Any, carry: Carry) -> Carry:
        state, part = jax.lax.fori_loop(0, length, one, (carry.state, zeros))
        return Carry(state, tuple(total.add(x) for total, x in zip(carry.sums, part, strict=True)))

    carry = jax.lax.fori_loop(0, blocks, lambda _, inner: block(BLOCK, inner), carry)
    return block(rest, carry)


def forget(chain: AbstractChain, carry: Carry, steps: Any) -> Carry:
    """`steps` steps without sums: burn-in."""
    step = jax.vmap(chain.step)
    return carry._replace(state=jax.lax.fori_loop(0, steps, lambda _, state: step(state), carry.state))


# A run makes many short calls. `eqx.filter_jit` takes milliseconds to look a chain over, so its parts are told apart once;
# and each call returns the sums apart from the carry, whose buffers the next call, already under way, takes over.
@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _advance(static: Any, arrays: Any, carry: Carry, blocks: Array, rest: Array) -> tuple[Carry, PairSum]:
    carry = advance(eqx.combine(arrays, static), carry, blocks, rest)
    return carry, _together(carry.sums)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _forget(static: Any, arrays: Any, carry: Carry, steps: Array) -> tuple[Carry, PairSum]:
    carry = forget(eqx.combine(arrays, static), carry, steps)
    return carry, _together(carry.sums)


_start = eqx.filter_jit(start)


def _together(sums: tuple[PairSum, ...]) -> PairSum:
    return PairSum(*(jnp.stack(parts, axis=-1) for parts in zip(*sums, strict=True)))


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
    arrays, static = eqx.partition(chain, eqx.is_array)
    pace = _Pace(chunk, lanes)
    batches = Batches()
    batch_began: np.ndarray | float = 0.0
    waiting: collections.deque[tuple[_Call, PairSum]] = collections.deque()
    for latest in _calls(burn_in, steps, rounds, batches.keep, pace):
        if latest.averaged:
            carry, sums = _advance(static, arrays, carry, *map(np.int32, divmod(latest.steps, BLOCK)))
        else:
            carry, sums = _forget(static, arrays, carry, np.int32(latest.steps))
        waiting.append((latest, sums))
        progress = None
        while len(waiting) > AHEAD or (waiting and latest.ends_round):
            call, sums = waiting.popleft()
            found = sums.value()
            pace.saw(call.steps)
            _check_finite(chain, carry, found, call.averaged, burn_in)
            if call.ends_batch:
                batches.add(found - batch_began)
                batch_began = found
            progress = Progress(call.done, burn_in + rounds * steps, batches, found, call.averaged)
            yield progress
        if latest.ends_round and progress is not None and finished(progress):
            return


class _Call(NamedTuple):
    """One call of the device: its steps, where the run stands after it, and what ends with it."""

    steps: int
    done: int
    averaged: int = 0
    ends_batch: bool = False
    ends_round: bool = False


def _calls(burn_in: int, steps: int, rounds: int, batches: int, pace: "_Pace") -> Iterator[_Call]:
    """The calls of a run, each cut to the pace of the moment. Batches and rounds end where they must, at the end of a call."""
    done = 0
    while done < burn_in:
        size = min(pace.steps, burn_in - done)
        done += size
        yield _Call(size, done)
    # As many batches as are kept, but of whole blocks where a round is long enough for a dozen such.
    stretch = max(-(-steps // batches), min(BLOCK, -(-steps // 12)))
    averaged = 0
    for target in range(steps, rounds * steps + 1, steps):
        while averaged < target:
            size = min(pace.steps, target - averaged, stretch - averaged % stretch)
            averaged += size
            yield _Call(size, burn_in + averaged, averaged, averaged % stretch == 0, averaged == target)


class _Pace:
    """How many steps a call takes: whole blocks, as many as keep it near `CALL_SECONDS` unless told."""

    def __init__(self, chunk: int | None, lanes: int):
        self._fixed = chunk is not None
        guess = max(1, 2_000_000 // lanes) if chunk is None else chunk
        self.steps = min(-(-guess // BLOCK) * BLOCK, LONGEST_CALL)
        self._seen = time.perf_counter()

    def saw(self, steps: int) -> None:
        """A call of so many steps has ended."""
        now = time.perf_counter()
        fitting = steps * CALL_SECONDS / max(now - self._seen, 1e-6)
        self._seen = now
        if not self._fixed and (fitting < self.steps or steps == self.steps):  # a short call says only what is too long
            bounded = min(max(fitting, self.steps / 2), self.steps * 4.0)  # one that compiled says little
            self.steps = min(max(BLOCK, int(bounded) // BLOCK * BLOCK), LONGEST_CALL)


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
