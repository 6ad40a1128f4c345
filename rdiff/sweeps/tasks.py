"""Points that are done together, as tasks for this process or for the workers of an executor."""

import logging
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rdiff.errors import InputError
from rdiff.precision import precision
from rdiff.sweeps.grids import label
from rdiff.sweeps.lanes import Point, simulate, usual_size
from rdiff.sweeps.planning import ExactPoint
from rdiff.sweeps.store import Found, Store

logger = logging.getLogger(__name__)


class Task(NamedTuple):
    """Points to be done together, by this process or another."""

    points: tuple[Any, ...]
    size: int
    root: tuple[str, np.ndarray]  # a JAX key as what pickles
    dtype: Any
    store: Store | None
    checkpoint: float

    def run(self, tick: Callable[[float], None] = lambda _: None) -> list[Found]:
        """What is found at each point; written to the store, from whose checkpoint it goes on."""
        names = [point.name for point in self.points]
        if isinstance(self.points[0], ExactPoint):
            found = [point.expect() for point in self.points]
        else:
            store, impl = self.store, self.root[0]
            with precision(self.dtype):
                found = simulate(
                    self.points, jax.random.wrap_key_data(jnp.asarray(self.root[1]), impl=impl), size=self.size,
                    resume=None if store is None else store.resume(names),
                    every=math.inf if store is None else self.checkpoint,
                    keep=lambda at: None if store is None else store.keep(names, at),
                    tick=tick,
                )  # fmt: skip
        if self.store is not None:
            kept = [self.store.write(point.name, point.values, what) for point, what in zip(self.points, found)]
            if all(kept):
                self.store.drop(names)
        return found


def answers(
    tasks: Sequence[Task], executor: Any, notes: list[str], tick: Callable[[float], None]
) -> Iterator[tuple[Task, list[Found]]]:
    """What each task gives, in order; those that a worker took with it are done here, and what failed is noted."""
    if executor is not None and tasks:
        if isinstance(executor, ProcessPoolExecutor):
            _check_pickles(tasks[0])
        died: list[Task] = []
        futures = [_submitted(executor, task) for task in tasks]
        try:
            for task, future in zip(tasks, futures):
                try:
                    found = future.result()
                except BrokenExecutor:
                    died.append(task)
                except Exception as error:
                    which = "; ".join(label(point.values) for point in task.points[:3])
                    notes.append(f"a worker failed at {len(task.points)} points ({which}): {type(error).__name__}: {error}")
                else:
                    yield task, found
        finally:
            for future in futures:
                future.cancel()
        if died:
            count = sum(len(task.points) for task in died)
            notes.append(f"a worker died, and its pool with it: {count} points were computed in this process instead")
            logger.warning("%s", notes[-1])
        tasks = died
    for task in tasks:
        count = len(task.points)
        yield task, task.run(lambda fraction: tick(fraction * count))  # noqa: B023


def batched(plan: Sequence[Any], batch: int | None) -> list[tuple[list[Any], int]]:
    """Points that can run together, in batches of about equal size and burn-in; each with the size it is filled up to."""
    groups: dict[Any, list[Any]] = {}
    for point in plan:
        groups.setdefault(point.name if isinstance(point, ExactPoint) else point.together, []).append(point)
    parts = []
    for group in groups.values():
        if isinstance(group[0], Point):
            group.sort(key=lambda point: point.burn_in)
            most = usual_size(group[0].chains) if batch is None else batch
            size = math.ceil(len(group) / math.ceil(len(group) / most))
        else:
            size = 1
        parts += [(group[i : i + size], size) for i in range(0, len(group), size)]
    return parts


def _submitted(executor: Any, task: Task) -> Any:
    try:
        return executor.submit(Task.run, task)
    except BrokenExecutor as error:  # died already
        future = Future()
        future.set_exception(error)
        return future


def _check_pickles(task: Task) -> None:
    try:
        pickle.dumps(task)
    except Exception as error:
        raise InputError(
            f"what other processes are to do must pickle: {error} (usual cause: a lambda; take a function of a module, or "
            "rdiff.observables.parse)"
        ) from None
