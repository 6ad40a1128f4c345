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
from jaxtyping import Array, Float, Key

from rdiff.accumulate import BLOCK, Batches, PairSum
from rdiff.errors import InputError
from rdiff.layout import Layout
from rdiff.types import PyTree

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


def advance(chain: AbstractChain, carry: Carry, blocks: Any, rest: Any, unroll: int = 1) -> Carry:
    """`blocks` blocks of steps and `rest` more, with their observables added. Pure: runs under any transformation.

    `unroll` steps, a divisor of `BLOCK`, are compiled as one.
    """
    step, observe = jax.vmap(chain.step), jax.vmap(chain.observe)
    zeros = tuple(jnp.zeros_like(total.high) for total in carry.sums)

    def one(_: Any, inner: tuple) -> tuple:
        state, part = inner
        state = step(state)
        return state, jax.tree.map(jnp.add, part, observe(state))

    def several(_: Any, inner: tuple) -> tuple:
        for _ in range(unroll):
            inner = one(_, inner)
        return inner

    def block(length: Any, carry: Carry) -> Carry:
        state, part = jax.lax.fori_loop(0, length // unroll, several, (carry.state, zeros))
        if unroll > 1:
            state, part = jax.lax.fori_loop(0, length % unroll, one, (state, part))
        return Carry(state, tuple(total.add(x) for total, x in zip(carry.sums, part, strict=True)))

    if isinstance(rest, int):  # loops of known length have derivatives of both modes
        carry = jax.lax.fori_loop(0, blocks, lambda _, inner: block(BLOCK, inner), carry)
        return block(rest, carry)
    # One loop for both is compiled in half the time.
    last = blocks + jnp.sign(rest)
    return jax.lax.fori_loop(0, last, lambda i, inner: block(jnp.where(i < blocks, BLOCK, rest), inner), carry)


def forget(carry: Carry) -> Carry:
    """The sums from here on, so that what was before is burn-in."""
    return carry._replace(sums=jax.tree.map(jnp.zeros_like, carry.sums))


# A run makes many short calls. `eqx.filter_jit` takes milliseconds to look a chain over, so its parts are told apart once;
# and each call returns the sums apart from the carry, whose buffers the next call, already under way, takes over.
@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=3)
def _advance(
    static: Any, layout: Layout, arrays: Any, carry: Carry, steps: tuple[Array, Array], burning: Array
) -> tuple[Carry, PairSum]:
    def work(carry: Carry, arrays: Any, steps: tuple[Array, Array], burning: Array) -> Carry:
        carry = advance(eqx.combine(arrays, static), carry, *steps, unroll=layout.unroll)
        return jax.tree.map(lambda kept, none: jnp.where(burning, none, kept), carry, forget(carry))

    carry = layout.each(work, carry, arrays, steps, burning)
    return carry, _together(carry)


_start = eqx.filter_jit(start)


def _together(carry: Carry) -> PairSum:
    """The sums as one array; NaN for a lane whose state is not finite, whatever its observables make of that."""
    together = PairSum(*(jnp.stack(parts, axis=-1) for parts in zip(*carry.sums, strict=True)))
    for leaf in jax.tree.leaves(carry.state):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            sound = jnp.all(jnp.isfinite(leaf).reshape(leaf.shape[0], -1), axis=1, keepdims=True)
            together = together._replace(high=jnp.where(sound, together.high, jnp.nan))
    return together


class Progress(NamedTuple):
    """Where a run stands: sums of all steps averaged so far, and the batches that are full."""

    done: int
    total: int
    batches: Batches
    sums: Float[np.ndarray, "lanes observables"]
    steps: int  # averaged so far
    checkpoint: "Checkpoint | None" = None  # when it was asked for
    stretch: int = 1  # steps of a base stretch of the batches

    @property
    def block_means(self) -> Float[np.ndarray, "batches lanes observables"]:
        """Means of equal stretches of the run."""
        return self.batches.sums / (self.batches.stretch * self.stretch)


class Checkpoint(NamedTuple):
    """A run between two calls of the device, as plain arrays: `run(resume=...)` goes on from it bit for bit."""

    leaves: tuple[np.ndarray, ...]  # of the carry; JAX keys as their data
    batches: Batches
    began: np.ndarray  # sums at the start of the batch under way
    done: int
    averaged: int


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
    keep: int = 64,
    failed: Callable[[np.ndarray, Callable[[int, str, int], str]], None] | None = None,
    due: Callable[[], bool] = lambda: False,
    resume: Checkpoint | None = None,
) -> Iterator[Progress]:
    """Run `burn_in` steps, then up to `rounds` times `steps` averaged steps; yields where it stands after each call.

    After each round `finished` may end the run. The last value yielded is the result. The numbers do not depend on
    `chunk`, the steps a call (rounded up to whole blocks).

    **Arguments:** `keep`: at least so many batches, and fewer than twice as many; `failed(lanes, tell)` is called with the
    lanes whose sums have just ceased to be finite, `tell(lane, its name, its burn-in)` being what to say of one; when
    `due()`, the next value yielded has a checkpoint, to be written before the run goes on; `resume`: go on from that one.

    **Raises:** `InputError` when a state or an observable is not finite, naming lane, step and state, unless `failed` is given.
    """
    lanes = keys.shape[0]
    layout = Layout.of(lanes)
    keys, starts = layout.fill((keys, starts))
    arrays, static = eqx.partition(chain, eqx.is_array)
    pace = _Pace(chunk, lanes)
    if resume is None:
        carry = layout.fill(_start(chain, keys, starts))  # zeros come on every device: the next call would be compiled anew
        done, averaged, batches, began = 0, 0, Batches(keep), np.zeros(())
    else:
        like = eqx.filter_eval_shape(start, chain, keys, starts)
        carry = layout.fill(_restored(resume.leaves, like, jax.random.key_impl(keys)))
        _, batches, began, done, averaged = resume
    # As many batches as are kept, but of whole blocks where a round is long enough for a dozen such.
    stretch = max(-(-steps // batches.keep), min(BLOCK, -(-steps // 12)))
    bad = np.zeros(lanes, bool)
    waiting: collections.deque[tuple[_Call, PairSum]] = collections.deque()
    for latest in _calls(burn_in, steps, rounds, stretch, pace, done, averaged):
        blocks, rest = map(np.int32, divmod(latest.steps, BLOCK))
        carry, sums = _advance(static, layout, arrays, carry, (blocks, rest), np.bool_(not latest.averaged))
        waiting.append((latest, sums))
        progress, wanted = None, due() and not latest.ends_round  # after the last call there is nothing to go on with
        while len(waiting) > AHEAD or (waiting and (latest.ends_round or wanted)):
            call, sums = waiting.popleft()
            found = sums.value()[:lanes]
            pace.saw(call.steps)
            news = ~np.all(np.isfinite(found), axis=1) & ~bad
            if news.any():
                bad |= news
                tell = functools.partial(_complaint, chain, carry, found, call.averaged)
                if failed is None:
                    lane = int(np.argmax(news))
                    raise InputError(tell(lane, f"lane {lane}", burn_in))
                failed(np.flatnonzero(news), tell)
            if call.ends_batch:
                batches.add(found - began)
                began = found
            progress = Progress(call.done, burn_in + rounds * steps, batches, found, call.averaged, stretch=stretch)
            if wanted and not waiting:
                checkpoint = Checkpoint(_leaves(carry, lanes), batches, began, call.done, call.averaged)
                progress = progress._replace(checkpoint=checkpoint)
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


def _calls(
    burn_in: int, steps: int, rounds: int, stretch: int, pace: "_Pace", done: int = 0, averaged: int = 0
) -> Iterator[_Call]:
    """The calls of a run from where it stands, each cut to the pace of the moment. Batches and rounds end where they must,
    at the end of a call."""
    while done < burn_in:
        size = min(pace.steps, burn_in - done)
        done += size
        yield _Call(size, done)
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


def _leaves(carry: Carry, lanes: int) -> tuple[np.ndarray, ...]:
    """Copies: the device takes the carry's own buffers over in its next call."""
    return tuple(np.array(jax.random.key_data(x) if _is_key(x) else x)[:lanes] for x in jax.tree.leaves(carry))


def _restored(leaves: tuple[np.ndarray, ...], like: Carry, impl: Any) -> Carry:
    shapes, structure = jax.tree.flatten(like)
    arrays = [jax.random.wrap_key_data(x, impl=impl) if _is_key(y) else x for x, y in zip(map(jnp.array, leaves), shapes)]
    return jax.tree.unflatten(structure, arrays)


def _is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _complaint(chain: AbstractChain, carry: Carry, sums: np.ndarray, steps: int, lane: int, name: str, burn_in: int) -> str:
    which = [i for i in range(sums.shape[1]) if not np.isfinite(sums[lane, i])]
    told = chain.describe(jax.tree.map(lambda leaf: leaf[lane], carry.state))
    state, names = np.asarray(told.pop("state")), told.pop("observables")
    where = f"{name} within {steps} steps after {burn_in} of burn-in" if steps else f"{name} within {burn_in} steps of burn-in"
    if not np.all(np.isfinite(state)):
        return f"the state is not finite: {state.tolist()} in {where}, {told}: the step is too long, or the drift explodes"
    return (
        f"observable {names[which[0]]!r} is not finite in {where}, where the state is now {state.tolist()}: it must be "
        "finite on the whole state space, the wall and 0 included (usual cause: a logarithm or a division at 0)"
    )
