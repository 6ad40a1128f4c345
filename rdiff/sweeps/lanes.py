"""Points of a grid as lanes of one run: each lane carries the numbers of its own point, so one compilation serves all."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from rdiff import engine
from rdiff.accumulate import Batches
from rdiff.engine import Checkpoint
from rdiff.estimate import Estimates
from rdiff.summary import summarise
from rdiff.types import PyTree

KEEP = 16  # batches of a run, at least: they are for ESS and R-hat, and thousands of points have many


def is_number(leaf: Any) -> bool:
    """Whether a leaf of a point's chain is one of its numbers: they are numpy's, so that they pickle as they are."""
    return isinstance(leaf, np.ndarray)


class Point(NamedTuple):
    """One point, ready to run."""

    name: str
    values: dict[str, Any]
    chain: Any  # a DiffusionChain or PairedChain
    chains: int
    steps: int
    burn_in: int
    words: tuple[int, ...]  # folded into the root key, one after the other
    settings: tuple[tuple[str, Any], ...]
    memories: float | None
    order: float | None  # the weak order of the solver when dt/2 runs along
    cautions: tuple[str, ...]

    @property
    def together(self) -> Any:
        """Points where this is equal can run together."""
        shapes = tuple(leaf.shape for leaf in jax.tree.leaves(eqx.filter(self.chain, is_number)))
        return eqx.partition(self.chain, is_number)[1], shapes, self.chains, self.steps


class LaneChain(engine.AbstractChain):
    """A diffusion's chain without its numbers, which travel in the state of each lane: (numbers, steps to wait, state).

    Lanes with a short burn-in wait for the others, so that all end it together, and a lane's numbers do not depend on
    what else is in the batch.
    """

    frame: Any

    def init(self, key: Key[Array, ""], start: PyTree) -> PyTree:
        numbers, wait = start
        chain = eqx.combine(numbers, self.frame)
        return numbers, wait, chain.init(key, chain.process.start.astype(chain.dt.dtype))

    def step(self, state: PyTree) -> PyTree:
        numbers, wait, inner = state
        after = eqx.combine(numbers, self.frame).step(inner)
        after = jax.tree.map(lambda old, new: jnp.where(wait > 0, old, new), inner, after)
        return numbers, jnp.maximum(wait - 1, 0), after

    def observe(self, state: PyTree) -> tuple[Float[Array, ""], ...]:
        numbers, _, inner = state
        return eqx.combine(numbers, self.frame).observe(inner)

    def describe(self, state: PyTree) -> dict[str, Any]:
        numbers, _, inner = state
        return eqx.combine(numbers, self.frame).describe(inner)


def simulate(
    points: Sequence[Point],
    root: Key[Array, ""],
    *,
    size: int | None = None,
    resume: Checkpoint | None = None,
    every: float = math.inf,
    keep: Callable[[Checkpoint], None] = lambda _: None,
    tick: Callable[[float], None] = lambda _: None,
) -> list[Estimates | str]:
    """The long-run averages of points that can run together; a text instead says what went wrong at a point.

    A point's numbers depend on itself and the root key alone: not on its neighbours, on `size`, on how many devices there are,
    or on where a checkpoint fell.

    **Arguments:** `size`: points to fill the batch up to, so that the last one is not compiled anew; `keep` is given a
    checkpoint every so many seconds; `tick` what fraction is done, now and then.
    """
    chains, count = points[0].chains, len(points)
    burn_in = max(point.burn_in for point in points)
    lanes = max(size or 0, count) * chains if resume is None else len(resume.leaves[0])
    owner = np.minimum(np.arange(lanes) // chains, count - 1)  # those too many repeat the last point
    wait = np.array([burn_in - point.burn_in for point in points], np.int32)
    parts = [eqx.partition(point.chain, is_number) for point in points]
    numbers = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)[owner]), *(part[0] for part in parts))
    words = np.array([point.words for point in points], np.uint32).reshape(count, -1)[owner]
    keys = _keys(root, words, (np.arange(lanes) % chains).astype(np.uint32))

    failures: dict[int, str] = {}

    def failed(bad: np.ndarray, tell: Callable[[int, str, int], str]) -> None:
        for lane in bad.tolist():
            i, chain = divmod(lane, chains)
            if i < count and i not in failures:
                failures[i] = tell(lane, f"chain {chain}", points[i].burn_in)

    last = time.monotonic()
    due = lambda: time.monotonic() - last >= every  # noqa: E731
    run = engine.run(
        LaneChain(parts[0][1]), keys, (numbers, jnp.asarray(wait[owner])), burn_in=burn_in, steps=points[0].steps,
        keep=KEEP, failed=failed, due=due, resume=resume,
    )  # fmt: skip
    at = None
    for at in run:
        if at.checkpoint is not None:
            keep(at.checkpoint)
            last = time.monotonic()
        tick(at.done / at.total)
        if len(failures) == count:
            return [failures[i] for i in range(count)]
    assert at is not None
    names = points[0].chain.names
    batches, counts = at.batches.sums, np.array([KEEP, at.batches.stretch, 0])
    found: list[Estimates | str] = []
    for i, point in enumerate(points):
        own = slice(i * chains, (i + 1) * chains)
        part = at._replace(sums=at.sums[own], batches=Batches.of({"counts": counts, "full": batches[:, own]}))
        found.append(failures.get(i) or summarise(names, part, point.settings, point.order, point.memories, point.cautions))
    return found


def usual_size(chains: int) -> int:
    """Points in a batch: as many as keep a device busy, and a CPU's cache not overfull."""
    lanes = 8192 if jax.default_backend() == "cpu" else 2**20
    return max(1, lanes * len(jax.devices()) // chains)


@jax.jit
def _keys(root: Key[Array, ""], words: Array, lanes: Array) -> Key[Array, " lanes"]:
    def one(words: Array, lane: Array) -> Key[Array, ""]:
        key = root
        for i in range(words.shape[0]):
            key = jax.random.fold_in(key, words[i])
        return jax.random.fold_in(key, lane)

    return jax.vmap(one)(words, lanes)
