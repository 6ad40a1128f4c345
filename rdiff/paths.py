"""Sample paths with their local time, through `diffrax.diffeqsolve`."""

import dataclasses
import json
import os
from collections.abc import Iterator
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from rdiff import table
from rdiff.errors import InputError, duration, integer, is_traced
from rdiff.export import Exports, arviz_data, attributes, made, need, written
from rdiff.noise import AbstractNoise, Threefry, lane_keys, root_key
from rdiff.precision import as_dtype, cast, precision, start_points
from rdiff.process import AbstractReflectedDiffusion, describe
from rdiff.provenance import provenance
from rdiff.records import SETTINGS, clean, csv_of_numbers
from rdiff.solvers import AbstractReflectedSolver, BridgeHeun, ReflectedTerm
from rdiff.solvers.base import fixed_step_only
from rdiff.types import Points, PyTree

_CLOCK = 2**24  # steps a float32 clock counts exactly
_ROWS = 100_000  # of a CSV written at a time


class Paths(Exports, eqx.Module):
    """Sample paths at the times `ts`: `values` (paths, times, dim) and `local_time` U (paths, times); `settings`: how made.

    Prints as a summary, and hands itself on as every result does; `save` writes all of it, and `rdiff.load` reads it again.
    """

    ts: Float[Array, " times"]
    values: Float[Array, "paths times dim"]
    local_time: Float[Array, "paths times"]
    settings: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())

    _indent = None  # of JSON: all on one line
    _complete = True

    def to_dict(self) -> dict[str, Any]:
        """Plain lists: `time`, and `paths`, each with its number `path`, `y` (times, dim) and `U` (times)."""
        pairs = zip(np.asarray(self.values).tolist(), np.asarray(self.local_time).tolist())
        rows = [{"path": i, "y": y, "U": u} for i, (y, u) in enumerate(pairs)]
        return {"time": self._times().tolist(), "paths": rows}

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """A row for each path and time: `path`, `time`, `y1`, `y2`, ..., `U`, with as many digits as tell the numbers apart.

        The settings are in the first row of a last column, as JSON. **Arguments:** `path`, of a file to write too.
        **Returns:** the text.
        """
        return written(path, "".join(self.csv()))

    def csv(self, settings: bool = True) -> Iterator[str]:
        """The lines of `to_csv` one by one, or without the column of settings: plain numbers for another program."""
        dim = self.values.shape[2]
        return csv_of_numbers([*_names(dim)], self._lines(), made(self) if settings else None)

    def _times(self) -> np.ndarray:
        """The times with the fewest digits that tell them apart: 0.4, whatever the precision."""
        return np.asarray(self.ts).astype(str).astype(float)

    def _lines(self) -> Iterator[str]:
        times = self._times().astype(str)
        for i, (y, u) in enumerate(zip(np.asarray(self.values), np.asarray(self.local_time))):
            for k in range(0, len(times), _ROWS):
                part = slice(k, k + _ROWS)
                for line in np.column_stack([times[part], y[part].astype(str), u[part].astype(str)]).tolist():
                    yield f"{i},{','.join(line)}"

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` in long form: `path`, `time`, `y1`, `y2`, ..., `U`. **Raises:** `InputError` without pandas."""
        paths, times, dim = self.values.shape
        columns: dict[str, Any] = {"path": np.repeat(np.arange(paths), times), "time": np.tile(np.asarray(self.ts), paths)}
        columns |= {f"y{i + 1}": np.asarray(self.values[..., i]).ravel() for i in range(dim)}
        frame = need("pandas").DataFrame({**columns, "U": np.asarray(self.local_time).ravel()})
        frame.attrs = made(self)
        return frame

    def to_xarray(self) -> Any:
        """An `xarray.Dataset`: `y` (path, time, coordinate), `U` (path, time). **Raises:** `InputError` without xarray."""
        coordinates = {"time": np.asarray(self.ts), "coordinate": np.arange(1, self.values.shape[2] + 1)}
        variables = {
            "y": (("path", "time", "coordinate"), np.asarray(self.values)),
            "U": (("path", "time"), np.asarray(self.local_time)),
        }
        return need("xarray").Dataset(variables, coordinates, attributes(made(self)))

    def to_arviz(self) -> Any:
        """The paths for ArviZ, as a posterior: paths as chains, times as draws; `y` and `U`. They need not be stationary.

        **Returns:** a `DataTree`, or `InferenceData` of ArviZ before 1.0. **Raises:** `InputError` without arviz.
        """
        draws = {"y": np.asarray(self.values), "U": np.asarray(self.local_time)}
        return arviz_data(draws, made(self), {"y": ["coordinate"]})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to a file that `rdiff.load` reads: .npz (`time`, `values`, `local_time`), .csv or .json.

        **Raises:** `InputError` for another ending.

        ```python
        >>> import rdiff, tempfile
        >>> p = rdiff.sample_paths(rdiff.JSQDiffusion(beta=1.0), [0.0, 1.0], key=0, paths=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.save(f"{folder}/p.npz")
        ...     found = rdiff.load(f"{folder}/p.npz")
        >>> found, bool((found.values == p.values).all())
        (Paths(2 paths of dimension 2 at 2 times), True)

        ```
        """
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending == ".npz":
            arrays = {"time": self._times(), "values": np.asarray(self.values), "local_time": np.asarray(self.local_time)}
            arrays[SETTINGS] = np.array(json.dumps(clean(made(self))))
            np.savez(os.fspath(path), **arrays)  # pyright: ignore[reportArgumentType]
        elif ending == ".csv":
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(self.csv())
        elif ending == ".json":
            self.to_json(path)
        else:
            raise InputError(f"paths are saved as .npz, .csv or .json, got {os.fspath(path)!r}")

    def _shown(self) -> tuple[list[Any], list[str]]:
        if is_traced(self.values) or np.ndim(self.values) != 3:
            return [], [repr(self)]
        names, columns = _names(self.values.shape[2])[2:], np.concatenate([self.values, self.local_time[..., None]], axis=2)
        rows = [[k, *(float(f(x)) for f in (np.min, np.mean, np.max))] for k, x in zip(names, np.moveaxis(columns, 2, 0))]
        return [table.build(["", "min", "mean", "max"], rows, f"{repr(self)[6:-1]}, to {float(self.ts[-1]):g}")], []

    def __repr__(self) -> str:
        if np.ndim(self.values) != 3:
            return f"Paths(arrays {np.shape(self.values)})"
        paths, times, dim = self.values.shape
        return f"Paths({paths} path{'s' * (paths > 1)} of dimension {dim} at {times} times)"


def sample_paths(
    process: AbstractReflectedDiffusion,
    ts: Points,
    *,
    key: int | Key[Array, ""],
    paths: int = 1,
    y0: Points | None = None,
    dt: float = 0.01,
    solver: AbstractReflectedSolver | None = None,
    dtype: Any = None,
    noise: AbstractNoise | None = None,
) -> Paths:
    """Independent sample paths and their local time at given times.

    At every saved time the path is in the domain (to rounding), and U has grown only where the path met the wall. Between
    two saved times several reflections may lie.

    **Arguments:**

    - `ts`: times, not decreasing, from 0 on, each a multiple of `dt` to 1e-6 of a step.
    - `paths`: how many; path i does not depend on their number.
    - `y0`: start, (dim,) or (paths, dim); default `process.start`, which is 0 where 0 lies in the domain.
    - `dt`: step; `solver`: default `BridgeHeun()`; `noise`: the generator, default `Threefry()`.
    - `dtype`: `jnp.float32` or `jnp.float64` (works without the global x64 switch).

    Derivatives in parameters are forward-mode (`jax.jvp`, `jax.jacfwd`); long-run averages have both modes.
    diffrax's clock counts steps here, not time, so it is exact however long the path.

    **Returns:** `Paths` with `.ts`, `.values` (paths, times, dim) and `.local_time` (paths, times).
    **Raises:** `InputError`.

    ```python
    >>> import jax.numpy as jnp, rdiff
    >>> p = rdiff.sample_paths(rdiff.JSQDiffusion(beta=1.0), jnp.arange(0, 5.1, 0.5), key=0, paths=8)
    >>> p.values.shape, p.local_time.shape, bool(jnp.all(p.values[..., 0] >= 0))
    ((8, 11, 2), (8, 11), True)

    ```
    """
    if not isinstance(process, AbstractReflectedDiffusion):
        raise InputError(f"expected a reflected diffusion such as rdiff.JSQDiffusion(beta=1.0), got {process!r}")
    solver = fixed_step_only(BridgeHeun() if solver is None else solver)
    solver.check(process)
    paths = integer("paths", paths, 1)
    process.at_start()
    marks = _on_grid(ts, dt)
    dtype = as_dtype(dtype)
    with precision(dtype):
        starts = start_points(process, y0, paths, dtype)
        keys = lane_keys(root_key(key), paths)
        term = ReflectedTerm(cast(process, dtype), keys, jnp.asarray(dt, dtype), Threefry() if noise is None else noise)
        values, local_time = _solve(term, solver, starts, jnp.asarray(marks, dtype), int(marks[-1]))
        if not is_traced(values) and not bool(jnp.all(jnp.isfinite(values))):
            raise InputError(
                f"a path of {process!r} does not stay finite: the step dt = {dt:g} is too long, or the drift explodes"
            )
        settings = (
            ("model", describe(process)), ("solver", type(solver).__name__), ("dt", dt), ("dtype", str(values.dtype)),
            *provenance(key),
        )  # fmt: skip
        return Paths(jnp.asarray(ts, dtype), values, local_time, settings)


@eqx.filter_jit
def _solve(terms: ReflectedTerm, solver: AbstractReflectedSolver, starts: Array, marks: Array, steps: int) -> PyTree:
    clock = jnp.arange(max(steps, 1) + 1, dtype=starts.dtype)

    def one(key: Array, y: Array) -> PyTree:
        solution = diffrax.diffeqsolve(
            dataclasses.replace(terms, key=key), solver, t0=clock[0], t1=clock[-1], dt0=None,
            y0=(y, jnp.zeros((), y.dtype)), saveat=diffrax.SaveAt(ts=marks), stepsize_controller=diffrax.StepTo(ts=clock),
            adjoint=diffrax.ForwardMode(), max_steps=None,
        )  # fmt: skip
        return solution.ys

    return jax.vmap(one)(terms.key, starts)


def _on_grid(ts: Points, dt: float) -> np.ndarray:
    """The step number of each time."""
    if is_traced((ts, dt)):
        raise InputError("ts and dt set the number of steps and must be plain numbers, not traced ones")
    dt = duration("dt", dt)
    try:
        given = np.asarray(ts)
        times = given.astype(float)
    except (TypeError, ValueError):
        raise InputError(f"ts must be a vector of finite times, got {ts!r}") from None
    if times.ndim != 1 or not times.size or not np.all(np.isfinite(times)):
        raise InputError(f"ts must be a vector of finite times, got shape {times.shape}")
    if times[0] < 0 or np.any(np.diff(times) < 0):
        raise InputError("ts must start at 0 or later and not decrease")
    numbers = np.round(times / dt)
    rounding = np.finfo(given.dtype).eps if given.dtype.kind == "f" else 0.0  # float32 times are off by 1e-7 of their size
    off = np.abs(times / dt - numbers) > 1e-6 + 4 * rounding * numbers
    if np.any(off):
        at = int(np.argmax(off))
        raise InputError(
            f"ts must lie on the step grid, got ts[{at}] = {times[at]:g}, which is {times[at] / dt:g} steps of dt = {dt:g}: "
            "choose dt so that it divides the times"
        )
    if numbers[-1] > _CLOCK:
        raise InputError(
            f"{numbers[-1]:.3g} steps are more than a path's clock counts ({_CLOCK}): take fewer or longer steps; "
            "for averages over long times use rdiff.long_run_average"
        )
    return numbers


def _names(dim: int) -> list[str]:
    return ["path", "time", *(f"y{i + 1}" for i in range(dim)), "U"]
