"""The queue at the events of a Poisson clock: the chain that is simulated."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from rdiff.engine import AbstractChain
from rdiff.functionals import evaluate
from rdiff.noise import AbstractNoise
from rdiff.queue.chain import JSQQueue, rates
from rdiff.queue.policies import Policy
from rdiff.types import PyTree

WORDS = 2**32  # values of a random word


class QueueChain(AbstractChain):
    """One queue at the events of a Poisson clock that is never slower than the queue: uniformised.

    A step draws one word w of 32 bits. Of its 2^32 values, `service` belong to each customer in service and `arrivals` to
    an arrival; what is left does nothing. So a departure leaves the level numbered by how many i have w < service Q_i, and
    each state lasts one step on average: the plain average over steps is the time average. Rates are exact but for the
    rounding of lam to arrivals/(n service), 1e-10 of it and less.
    """

    n: Int[Array, ""]
    service: UInt32[Array, ""]
    arrivals: UInt32[Array, ""]
    root: Float[Array, ""]  # sqrt(n), in the precision of the observables
    noise: AbstractNoise
    policy: Policy = eqx.field(static=True)
    observables: tuple[Callable, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    identities: bool = eqx.field(static=True)  # whether Q_i and 1(Q_i = n) are averaged too

    def init(self, key: Key[Array, ""], start: Int[Array, " levels"]) -> PyTree:
        return tuple(start), self.noise.init(key)

    def step(self, state: PyTree) -> PyTree:
        q, noise = state
        noise, (word,) = self.noise.bits(noise, 1)
        joins, leaves = rates(q, self.n, None, self.policy)
        served, at_least = [], jnp.int32(0)
        for leaving in leaves[::-1]:  # at level i or above: Q_i of them
            at_least = at_least + leaving
            served.append(word < self.service * at_least.astype(jnp.uint32))
        served = [*served[::-1], jnp.zeros_like(served[0])]
        # Words below the arrivals' wrap to beyond them.
        place = word - self.service * self.n.astype(jnp.uint32)
        arrives = place < self.arrivals
        raised = _raised(joins, arrives, place, self.arrivals)
        moved = tuple(
            here + up.astype(jnp.int32) - (down & ~above).astype(jnp.int32)
            for here, up, down, above in zip(q, raised, served, served[1:])
        )
        return moved, noise

    def observe(self, state: PyTree) -> tuple[Float[Array, ""], ...]:
        q, dtype = state[0], self.root.dtype
        x = jnp.stack([self.n - q[0], *q[1:]]).astype(dtype) / self.root
        values = tuple(evaluate(h, x) for h in self.observables)
        if not self.identities:
            return values
        return (*values, *(here.astype(dtype) for here in q), *((here == self.n).astype(dtype) for here in q))

    def describe(self, state: PyTree) -> dict[str, Any]:
        return {"state": jnp.stack(state[0]).astype(self.root.dtype), "n": int(self.n), "observables": self.names}


def resolution(queue: JSQQueue) -> tuple[int, int]:
    """How many values of a word belong to a customer in service and to an arrival: the pair nearest to 1 : n lam."""
    most = int(WORDS / (queue.n * (1 + queue.lam)))
    service = np.arange(max(1, most - 256), most)
    arrivals = service * queue.arrivals
    k = int(np.argmin(np.abs(np.rint(arrivals) / arrivals - 1)))
    return int(service[k]), round(float(arrivals[k]))


@eqx.filter_jit
def snapshots(
    chain: QueueChain, state: PyTree, burn_in: Any, counts: Int[Array, "rows lanes"]
) -> Int[Array, "rows levels lanes"]:
    """Levels of every lane after `burn_in` steps, and after each of `counts` further ones."""
    step = jax.vmap(chain.step)
    state = jax.lax.fori_loop(0, burn_in, lambda _, inner: step(inner), state)

    def row(state: PyTree, count: Int[Array, " lanes"]) -> tuple[PyTree, Array]:
        def one(k: Any, inner: PyTree) -> PyTree:
            return jax.tree.map(lambda new, old: jnp.where(k < count, new, old), step(inner), inner)

        state = jax.lax.fori_loop(0, jnp.max(count), one, state)
        return state, jnp.stack(state[0])

    first = jnp.stack(state[0])
    return jnp.concatenate([first[None], jax.lax.scan(row, state, counts)[1]])


def _raised(joins: tuple[Any, ...], arrives: Array, place: Array, arrivals: Array) -> list[Array]:
    """Which level an arrival raises, from the chances of a policy and the place of the word among those of arrivals."""
    if all(jnp.result_type(chance) == jnp.bool_ for chance in joins):
        return [arrives & chance for chance in joins]
    # The upper 24 bits, exact in float32; as int32, which vectorises everywhere.
    share = (place >> 8).astype(jnp.int32).astype(jnp.float32) / (arrivals >> 8).astype(jnp.int32).astype(jnp.float32)
    share = jnp.minimum(share, jnp.float32(1 - 2.0**-24))
    raised, below = [], jnp.float32(0)
    for chance in joins:
        upto = below + jnp.asarray(chance).astype(jnp.float32)
        upto = jnp.where(upto > 1 - 1e-6, jnp.float32(1), upto)  # chances that sum to 1 but for rounding
        raised.append(arrives & (below <= share) & (share < upto))
        below = upto
    return raised
