"""The queue simulated: its uniformised chain on the long-run engine, exact in law."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from rdiff import engine
from rdiff.averages import Interrupted
from rdiff.checks import Check, queue_identities
from rdiff.errors import InputError, integer, positive
from rdiff.functionals import named
from rdiff.noise import AbstractNoise, Xoshiro, lane_keys, root_key
from rdiff.precision import as_dtype, precision
from rdiff.progress import progress_bar
from rdiff.provenance import provenance
from rdiff.queue.chain import JSQQueue
from rdiff.queue.law import QueueLaw
from rdiff.queue.policies import Policy, called, jsq, policy_of
from rdiff.queue.samples import Samples
from rdiff.queue.uniformised import WORDS, QueueChain, resolution, snapshots
from rdiff.queue.write import write_occupancy
from rdiff.summary import summarise
from rdiff.times import MEMORIES

MOST_SERVERS = 2**20  # a word then holds 2^11 values for each customer in service


class SimulatedQueueLaw(QueueLaw):
    """The stationary law of X by simulation: long-run averages over independent chains, exact in law at every n.

    **Arguments:** a `JSQQueue`, and

    - `key`: an int or a JAX key; `chains`, independent queues, at least 2 (fewer than 16 make the error unreliable).
    - `horizon`: averaged time of each, in mean service times, after `burn_in` (default ten relaxation times).
    - `start`: occupancy (b + 1,) or (chains, b + 1) to start from; default n lam busy servers and nobody waiting. With
      `burn_in=0`, `record` gives transients.
    - `policy`: "jsq", "join-idle-queue", "power-of-2", "power-of-2-replacement", "idle-one-first", or a function of
      `rdiff.queue.policies`.
    - `dtype`: of the observables, float32 or float64; `noise`: the generator; `chunk`: steps a call of the device;
      `progress`: a bar on stderr; `draws`: keep the block means of each chain, for `Estimates.to_arviz`.

    **Raises:** `InputError`; `expect` raises `Interrupted` with what was reached on Ctrl-C.

    Source: uniformisation, Jensen (1953); batch means and replications as in Asmussen and Glynn (2007), chapter IV.

    ```python
    >>> import rdiff
    >>> law = rdiff.JSQQueue(n=10, b=1, beta=1.0).simulate(key=0, chains=64, horizon=500.0)
    >>> est = law.expect(lambda x: x[1])
    >>> est.reliable, all(check.ok for check in law.checks())
    (True, True)

    ```
    """

    def __init__(
        self, queue: JSQQueue, *, key: Any = 0, chains: int = 64, horizon: float = 1e3, burn_in: Any = None, start: Any = None,
        policy: str | Policy = "jsq", dtype: Any = None, noise: AbstractNoise | None = None, chunk: int | None = None,
        progress: bool = False, draws: bool = False,
    ) -> None:  # fmt: skip
        self.queue, self.key, self.dtype, self.progress, self.draws = queue, key, as_dtype(dtype), progress, draws
        root_key(key)
        self.chains = integer("chains", chains, 2, "the error comes from the spread of independent chains")
        self.horizon = float(positive("horizon", horizon))
        self.burn_in = MEMORIES * queue.relaxation_time if burn_in is None else burn_in
        if not (isinstance(self.burn_in, (int, float, np.number)) and math.isfinite(self.burn_in) and self.burn_in >= 0):
            raise InputError(f"burn_in must be a time, 0 or more, got {burn_in!r}")
        self.policy, self.noise = policy_of(policy), noise or Xoshiro()
        self.chunk = None if chunk is None else integer("chunk", chunk, 1)
        if queue.n > MOST_SERVERS:
            raise InputError(f"n = {queue.n} is more than the {MOST_SERVERS} servers that a random word of 32 bits resolves")
        _check_policy(self.policy, queue)
        self.start = _starts(queue, start, self.chains)
        self._service, self._arrivals = resolution(queue)
        if self.horizon * self.clock < 1:
            raise InputError(f"horizon {self.horizon:g} is shorter than one event of the queue, about {1 / self.clock:.2g}")
        self._sums: np.ndarray | None = None

    @property
    def clock(self) -> float:
        """Steps a unit of time, n (1 + lam) or a little more."""
        return WORDS / self._service

    @property
    def blocking(self) -> float:
        """The share of time with Q_{b+1} = n: for JSQ, of arrivals that are blocked."""
        return float(self._averages()[:, -1].mean())

    def expect(self, h: Any) -> Any:
        """E h(X): an `Estimate`; of a dict of observables, `Estimates`.

        **Arguments:** `h`, JAX-traceable, from a state (b + 1,) to a scalar; all of a dict are averaged in one run, and the
        same `key` gives the same paths each time.
        """
        with precision(self.dtype):
            names, functions = named(h, self.queue.levels, self.dtype)
            result = self._run(names, functions)
        return result if isinstance(h, Mapping) else next(iter(result.values()))

    def checks(self) -> list[Check]:
        """The queue's identities tested on this run, by the spread of the chains; other policies fail those of JSQ."""
        averages, levels = self._averages(), self.queue.levels
        checks = queue_identities(self.n, self.lam, self.b, averages[:, :levels], averages[:, levels:])
        if self.policy is jsq:
            return checks
        cause = f"the policy simulated is {called(self.policy)}, not JSQ"
        return [dataclasses.replace(check, cause=cause) if check.ok is False else check for check in checks]

    def record(self, every: float = 1.0, horizon: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Paths on a grid of times: times (rows,) from 0, the end of the burn-in, and occupancy (chains, rows, b + 1), int32.

        The chain takes a Poisson number of steps from row to row, so the rows have the law of the queue at those times.
        """
        every, horizon = float(positive("every", every)), float(positive("horizon", horizon or self.horizon))
        rows = math.floor(horizon / every * (1 + 1e-12))
        if rows < 1:
            raise InputError(f"every must not exceed the horizon, got {every:g} and {horizon:g}")
        seed = np.asarray(jax.random.key_data(root_key(self.key))).ravel().tolist()
        counts = np.random.default_rng(seed).poisson(self.clock * every, (rows, self.chains)).astype(np.int32)
        with precision(self.dtype):
            carry = engine.start(self._chain((), (), False), *self._lanes())
            first = math.ceil(self.burn_in * self.clock)
            q = np.asarray(snapshots(self._chain((), (), False), carry.state, first, jnp.asarray(counts)))
        return every * np.arange(rows + 1), q.transpose(2, 0, 1)

    def samples(self, every: float = 1.0, horizon: float | None = None) -> Samples:
        """The rows of `record` as `rdiff.Samples`, a chain each."""
        times, q = self.record(every, horizon)
        return Samples(q, n=self.n, b=self.b, lam=self.lam, weights="regular", time=np.tile(times, self.chains))

    def write(self, path: Any, every: float = 1.0, horizon: float | None = None) -> None:
        """The rows of `record` to a file for `read_samples`: columns chain, t, Q1, ..., Q_{b+1} (.csv, .csv.gz or .npz).

        With how they were made, as `rdiff show` and `rdiff.load` say it.
        """
        write_occupancy(path, *self.record(every, horizon), settings={**self.settings, "every": every})

    @property
    def settings(self) -> dict[str, Any]:
        """How the numbers are made: the queue and the run, with seed, versions and device."""
        system = {"n": self.n, "b": self.b, "beta": self.beta, "policy": called(self.policy)}
        run = {"chains": self.chains, "horizon": self.horizon, "burn_in": float(self.burn_in)}
        return {**system, **run, **dict(provenance(self.key))}

    def __repr__(self) -> str:
        return f"SimulatedQueueLaw(n={self.n}, b={self.b}, beta={self.beta:g}, {self.chains} chains to {self.horizon:g})"

    def _chain(self, names: tuple[str, ...], functions: tuple[Callable, ...], identities: bool) -> QueueChain:
        return QueueChain(
            n=jnp.int32(self.n), service=jnp.uint32(self._service), arrivals=jnp.uint32(self._arrivals),
            root=jnp.asarray(math.sqrt(self.n), self.dtype), noise=self.noise, policy=self.policy, observables=functions,
            names=names, identities=identities,
        )  # fmt: skip

    def _lanes(self) -> tuple[Array, Array]:
        return lane_keys(root_key(self.key), self.chains), jnp.asarray(self.start)

    def _averages(self) -> np.ndarray:
        """Averages of Q_i and 1(Q_i = n) of each chain."""
        if self._sums is None:
            with precision(self.dtype):
                self._run((), ())
        assert self._sums is not None
        return self._sums

    def _run(self, names: tuple[str, ...], functions: tuple[Callable, ...]) -> Any:
        chain = self._chain(names, functions, identities=self._sums is None)
        steps, first = (math.ceil(time * self.clock - 1e-6) for time in (self.horizon, float(self.burn_in)))
        memories = self.chains * self.horizon / self.queue.relaxation_time
        finish = partial(summarise, names, settings=tuple(self.settings.items()), memories=memories, draws=self.draws)
        at = None
        with progress_bar(self.progress) as show:
            try:
                for at in engine.run(chain, *self._lanes(), burn_in=first, steps=steps, chunk=self.chunk):
                    show(at)
            except KeyboardInterrupt:
                said = f"interrupted after {at.steps if at else 0} of {steps} steps"
                raise Interrupted(finish(at, cautions=(said,)) if at and at.steps and names else None) from None
        assert at is not None
        if chain.identities:
            self._sums = at.sums[:, len(names) :] / at.steps
        return finish(at)


def _starts(queue: JSQQueue, start: Any, chains: int) -> np.ndarray:
    if start is None:
        start = [min(queue.n, round(queue.arrivals)), *[0] * queue.b]
    given = np.asarray(start)
    if given.shape not in ((queue.levels,), (chains, queue.levels)):
        raise InputError(f"start must be occupancy, shape ({queue.levels},) or ({chains}, {queue.levels}), got {given.shape}")
    q = given.astype(np.int64) if given.dtype.kind in "iuf" and np.all(np.isfinite(given)) else None
    if q is None or np.any(q != given) or np.any(q < 0) or np.any(q > queue.n) or np.any(np.diff(q, axis=-1) > 0):
        raise InputError(f"start must hold integers n >= Q_1 >= ... >= Q_{queue.levels} >= 0, got {given.tolist()}")
    return np.broadcast_to(q, (chains, queue.levels)).astype(np.int32)


def _check_policy(policy: Policy, queue: JSQQueue) -> None:
    """Chances between 0 and 1, on a state with room and on the full one."""
    for q in ([max(0, queue.n - 1), *[0] * queue.b], [queue.n] * queue.levels):
        given = policy(tuple(q), queue.n)
        try:
            chances = np.asarray([float(chance) for chance in given])
        except (TypeError, ValueError):
            raise InputError(f"the policy must give {queue.levels} chances, one a level, got {given!r:.60} at {q}") from None
        if chances.shape != (queue.levels,) or np.any(chances < 0) or chances.sum() > 1 + 1e-9:
            raise InputError(f"the policy must give {queue.levels} chances of sum 1 at most, got {chances.tolist()} at {q}")
