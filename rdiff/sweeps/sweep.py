"""`sweep`: E h along a grid of parameters, simulated or exact, on one machine or many, and safe against interruption."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdiff.errors import InputError, integer
from rdiff.functionals import Observable, by_name
from rdiff.models import JSQDiffusion
from rdiff.noise import AbstractNoise, Xoshiro, root_key
from rdiff.precision import as_dtype
from rdiff.progress import Done, progress_bar
from rdiff.provenance import provenance
from rdiff.sweeps.grids import points
from rdiff.sweeps.lanes import Point
from rdiff.sweeps.planning import ExactPoint, Simulation, exact, name_of, solver_of
from rdiff.sweeps.result import Sweep
from rdiff.sweeps.store import Found, Store, manifest
from rdiff.sweeps.tasks import Task, answers, batched

logger = logging.getLogger(__name__)


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C during a sweep; `partial` is the `Sweep` of the points that are done.

    ```python
    >>> import rdiff
    >>> grid, h = {"beta": [0.5, 1.0]}, {"y2": lambda y: y[1]}
    >>> try:
    ...     found = rdiff.sweep(grid, h, law="exact")
    ... except rdiff.SweepInterrupted as stop:
    ...     found = stop.partial
    >>> len(found)
    2

    ```
    """

    def __init__(self, partial: Sweep):
        super().__init__("interrupted")
        self.partial = partial


def sweep(
    grid: Mapping[str, Any],
    h: Observable | Mapping[str, Observable],
    *,
    model: Callable[..., Any] = JSQDiffusion,
    paired: bool = False,
    law: str = "simulated",
    key: Any = 0,
    common: bool = False,
    dt: float = 0.1,
    chains: int = 256,
    horizon: float = 1000.0,
    burn_in: float | None = None,
    solver: Any = None,
    noise: AbstractNoise | None = None,
    bias: bool = False,
    dtype: Any = None,
    batch: int | None = None,
    out: str | os.PathLike[str] | None = None,
    shard: str | None = None,
    executor: Any = None,
    checkpoint: float = 60.0,
    progress: bool = False,
) -> Sweep:
    """E h at every point of a grid.

    Points run many at a time as lanes of one run, with one compilation for all that differ in numbers only (beta, dt), and one
    for each b or solver. The numbers of a point depend on its settings and the key alone: they are the same bits in any order
    of the grid, batch size, number of devices, shard or worker, and after any number of interruptions.

    **Arguments:**

    - `grid`: parameter -> values, of `model` (beta, b) and of the method (dt, chains, horizon, burn_in, solver). Every
        combination, or with `paired` the k-th values together.
    - `h`: a function of the state, or a dict of them.
    - `model`: what makes a process from the parameters by name, such as `rdiff.ReflectedOU`.
    - `law`: "simulated"; or "exact", the stationary law of a `JSQDiffusion`, or of the queue where the grid has an n.
    - `key`: every point has its own noise, from the key and its settings; with `common` all have the same.
    - `dt`, `chains`, `horizon`, `burn_in`, `solver`, `noise`, `bias`, `dtype`: as in `long_run_average`; `solver` may be a
        word: "bridge-heun", "bridge-euler", "projected-euler".
    - `batch`: points that run at once; default what suits the device.
    - `out`: a folder that keeps what is done: the same call goes on from it, whatever stopped it. `checkpoint`: seconds
        between two notes of how far a batch under way has come.
    - `shard`: "i/n", the i-th of n parts of the grid, for job arrays; `merge(out)` then reads all.
    - `executor`: a `concurrent.futures.Executor`, or what else has `submit(function, argument)` with a `result()`: dask's
        `client.get_executor()`, `mpi4py.futures.MPIPoolExecutor()`, submitit's `AutoExecutor`. What it runs must pickle.

    **Raises:** `InputError`; `SweepInterrupted` on Ctrl-C, with what is done. A point whose state or observable ceases to be
    finite is reported as failed, and the others go on.

    ```python
    >>> import rdiff
    >>> from rdiff.observables import parse
    >>> found = rdiff.sweep({"beta": [1.0, 2.0]}, parse("y1"), chains=64, horizon=100.0)
    >>> bool(abs(found.mean() - found["beta"]).max() < 5 * found.stderr().max())   # E Y1 = beta
    True

    ```
    """
    if law not in ("simulated", "exact"):
        raise InputError(f"law must be 'simulated' or 'exact', got {law!r}")
    if batch is not None:
        integer("batch", batch, 1, "points that run at once")
    if not (isinstance(checkpoint, (int, float)) and checkpoint >= 0):
        raise InputError(f"checkpoint must be seconds, 0 or more, got {checkpoint!r}")
    observables, dtype, noise = by_name(h), as_dtype(dtype), noise or Xoshiro()
    rows = points(grid, paired)
    root = root_key(key)
    data = np.asarray(jax.random.key_data(root))
    settings: dict[str, Any] = {"law": law, "model": name_of(model), "observables": list(observables)}
    plan: Sequence[Point | ExactPoint]
    if law == "exact":
        plan = exact(rows, observables, model)
    else:
        method = {"dt": dt, "chains": chains, "horizon": horizon, "burn_in": burn_in, "solver": solver}
        plan = Simulation(observables, model, method, noise, bias, dtype, common, data.tolist()).points(rows)
        settings |= {name: value for name, value in method.items() if name not in rows[0]}
        if "solver" in settings:
            settings["solver"] = name_of(solver_of(solver))
        settings |= {"bias": bias, "noise": name_of(noise), "dtype": jnp.dtype(dtype).name}
        settings |= {"key": data.tolist(), "common": common}
    settings |= {name: value for name, value in provenance() if name != "device"}  # any device may go on with it
    whole, plan = plan, _part(plan, shard)
    values, todo = {point.name: point.values for point in plan}, {point.name: point for point in plan}
    store: Store | None = None
    found: dict[str, Found] = {}
    parts: list[tuple[list[Any], int]] = []
    if out is not None:
        store = Store(out)
        store.open(settings, [(point.name, point.values) for point in whole])
        found = {name: was for name in todo if (was := store.read(name)) is not None}
        begun = store.begun(todo, found)
        parts = [([todo[name] for name in names], len(names)) for names in begun]
        for name in {*found, *(name for names in begun for name in names)}:
            del todo[name]
    parts += batched(list(todo.values()), batch)
    kind = str(jax.random.key_impl(root))
    tasks = [Task(tuple(own), size, (kind, data), dtype, store, checkpoint) for own, size in parts]
    notes: list[str] = []
    try:
        with progress_bar(progress) as show:
            for task, answer in answers(tasks, executor, notes, lambda more: show(Done(len(found) + more, len(plan)))):
                found.update(zip([point.name for point in task.points], answer))
                if store is not None:  # a worker may have no way to the folder
                    _save(store, task.points, found)
    except KeyboardInterrupt:
        notes.append(f"interrupted: {'the same call goes on from here' if store else 'with a folder (out) it could go on'}")
        raise SweepInterrupted(_gathered(values, found, settings, notes)) from None
    if store is not None and (lost := _save(store, plan, found)):
        notes.append(f"{lost} points could not be written to {store.folder} ({store.unsaved}): they are here only")
    return _gathered(values, found, settings, notes)


def merge(*folders: str | os.PathLike[str]) -> Sweep:
    """The sweep in a folder, or in several that shards of one grid were written to, as far as it is done.

    Its points are those of the grid last asked for; a line in the log says how many more are done of grids before.

    **Raises:** `InputError` when a folder holds none, or they hold sweeps of different settings.

    ```python
    >>> import rdiff, tempfile
    >>> grid, h = {"beta": [0.5, 1.0]}, {"y2": lambda y: y[1]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = [rdiff.sweep(grid, h, law="exact", out=folder, shard=part) for part in ("1/2", "2/2")]
    ...     whole = rdiff.merge(folder)
    >>> [len(part) for part in parts], whole["beta"].tolist()
    ([1, 1], [0.5, 1.0])

    ```
    """
    if not folders:
        raise InputError("merge needs at least one folder")
    records = [manifest(folder) for folder in folders]
    settings = records[0]["settings"]
    for folder, record in zip(folders, records):
        changed = [name for name in settings | record["settings"] if settings.get(name) != record["settings"].get(name)]
        if changed:
            raise InputError(f"{folders[0]} and {folder} hold sweeps of different settings: {', '.join(changed)}")
    points = {name: values for record in records for name, values in record["points"]}
    found: dict[str, Found] = {}
    for store in map(Store, folders):
        found |= {name: was for name in points if name not in found and (was := store.read(name)) is not None}
        if others := store.others(points):
            logger.warning(
                "%s holds %d more points that are done, of grids asked for before: a sweep of such a grid with this folder "
                "reads them", store.folder, others,
            )  # fmt: skip
    return _gathered(points, found, settings)


def _gathered(
    points: Mapping[str, dict[str, Any]], found: Mapping[str, Found], settings: dict[str, Any], notes: Sequence[str] = ()
) -> Sweep:
    done = [name for name in points if name in found]
    missing = [values for name, values in points.items() if name not in found]
    return Sweep([points[k] for k in done], [found[k] for k in done], settings["observables"], settings, notes, missing)


def _save(store: Store, plan: Sequence[Any], found: Mapping[str, Found]) -> int:
    """Write those points that have no file yet; how many could not be."""
    lacking = [point for point in plan if point.name in found and not store.has(point.name)]
    return sum(not store.write(point.name, point.values, found[point.name]) for point in lacking)


def _part(plan: Sequence[Any], shard: str | None) -> Sequence[Any]:
    """The points of that shard, all where there is none."""
    if shard is None:
        return plan
    try:
        i, n = (int(part) for part in shard.split("/"))
    except (AttributeError, ValueError):
        i, n = 0, 0
    if not 1 <= i <= n:
        raise InputError(f"shard must be i/n with 1 <= i <= n, such as 2/4, got {shard!r}")
    if i > len(plan):
        logger.warning("part %s of the grid is empty: the grid has %d points", shard, len(plan))
    return plan[i - 1 :: n]
