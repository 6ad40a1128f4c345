"""`rdiff path`: sample paths of the limit, as numbers or as a picture."""

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import click

from rdiff.cli import common

MOST_VALUES = 50_000_000
MOST_STEPS = 1e12

EXAMPLE = """\b
Examples:
  rdiff path --beta 1 --horizon 20 --plot path.png
  rdiff path --paths 100 --every 0.5 --out paths.npz
  rdiff path --points 200 > path.csv
"""


@click.command(epilog=EXAMPLE)
@common.limit_options()
@click.option("--horizon", type=float, default=20.0, show_default=True, help="Length of a path, a multiple of dt.")
@click.option("--dt", type=float, default=0.01, show_default=True, help="Time step.")
@click.option("--paths", type=int, default=1, show_default=True, help="Number of independent paths.")
@click.option("--y0", type=common.Numbers(), help="Start, such as 0,1.  [default: 0]")
@click.option("--every", type=float, help="Time between saved points: a multiple of dt that divides the horizon.")
@click.option("--points", type=int, help="About how many points to save, instead of --every.  [default: 1000]")
@click.option("--plot", type=common.OutFile(".png", ".pdf", ".svg"), help="Draw the paths to a .png, .pdf or .svg.")
@click.option("--out", type=common.OutFile(".csv", ".npz", ".json"), help="Write to a file instead of stdout.")
@common.seed_option
@common.x64_option
@common.json_option
@click.pass_context
def path(
    ctx: click.Context, beta: float, b: int, horizon: float, dt: float, paths: int, y0: tuple[float, ...] | None,
    every: float | None, points: int | None, plot: Path | None, out: Path | None, seed: int, x64: bool, as_json: bool,
) -> None:  # fmt: skip
    """Sample paths, as numbers or a picture.

    Gives y1, y2, ... and the local time U at y1 = 0, on a regular grid of times.

    Prints CSV (path, time, y1, y2, ..., U) unless --out, --plot or --json says otherwise. A .csv of --out has a last column
    more, settings, which says in its first row how the numbers were made.
    """
    import rdiff
    from rdiff.errors import InputError

    if plot is not None:
        from rdiff import plots

        plots.matplotlib()  # missing: said before the work, not after it
    with common.running(x64):
        process = rdiff.JSQDiffusion(beta, b)
        ts = _times(horizon, dt, every, points)
        if len(ts) * paths * (b + 3) > MOST_VALUES:
            raise InputError(
                f"{paths} paths of {len(ts)} points are more than {MOST_VALUES:g} numbers: save fewer with --every"
            )
        found = rdiff.sample_paths(process, ts, key=seed, paths=paths, y0=y0, dt=dt)
        if plot is not None:
            title = f"Reflected diffusion, beta = {beta:g}, b = {b}"
            plots.paths(plot, ts, found.values, found.local_time, title=title)
        if out is None and plot is not None and not as_json:
            return
        _write(found, {**dict(found.settings), **common.settings(ctx)}, as_json, out)


def _times(horizon: float, dt: float, every: float | None, points: int | None) -> Any:
    """The grid of saved times: from 0 to the horizon, each a whole number of steps."""
    import numpy as np

    from rdiff.errors import InputError, integer, positive

    positive("horizon", horizon)
    positive("dt", dt)
    if dt > horizon:
        raise InputError(f"dt must be at most the horizon, got dt = {dt:g} and horizon = {horizon:g}")
    if every is not None and points is not None:
        raise InputError("give --every or --points, not both")
    steps = _whole("horizon", horizon, "dt", dt)
    if every is None:
        stride = _stride(steps, integer("points", 1000 if points is None else points, 1))
    else:
        if positive("every", every) > horizon:
            raise InputError(f"every must be at most the horizon, got every = {every:g} and horizon = {horizon:g}")
        stride = _whole("every", every, "dt", dt)
        _whole("horizon", horizon, "every", every)
    return np.arange(0, steps + 1, stride) * dt


def _whole(name: str, time: float, part_name: str, part: float) -> int:
    """How often `part` goes into `time`; refuses what would leave a rest, as the last point would miss the end."""
    from rdiff.errors import InputError

    count = time / part
    if count > MOST_STEPS:
        raise InputError(f"{count:.3g} steps are too many, from {name} = {time:g} and {part_name} = {part:g}")
    whole = round(count)
    if not math.isclose(whole, count, rel_tol=1e-6):
        lower, upper = math.floor(count) * part, math.ceil(count) * part
        near = f"{upper:.10g}" if lower == 0 else f"{lower:.10g} or {upper:.10g}"
        raise InputError(
            f"{part_name} = {part:g} does not divide {name} = {time:g}: take a multiple of {part_name}, such as {near}"
        )
    return whole


def _stride(steps: int, points: int) -> int:
    """The divisor of `steps` that saves about `points` points: both ends are among them."""
    from rdiff.errors import InputError

    wanted = max(1.0, steps / points)
    small = [k for k in range(1, math.isqrt(steps) + 1) if steps % k == 0]
    stride = min({*small, *(steps // k for k in small)}, key=lambda k: (abs(math.log(k / wanted)), k))
    if not 1 / 3 <= stride / wanted <= 3:
        raise InputError(
            f"{steps} steps do not split into about {min(points, steps)} equal parts: give --every, or a dt or a horizon "
            "with a rounder number of steps"
        )
    return stride


def _write(found: Any, settings: dict[str, Any], as_json: bool, out: Path | None) -> None:
    found = dataclasses.replace(found, settings=tuple(settings.items()))
    told = {"command": "path", "settings": settings}
    if out is not None and out.suffix.lower() == ".json":
        out.write_text(common.dumps({**told, **found.to_dict()}, indent=None) + "\n", encoding="utf-8")
    elif out is not None:
        found.save(out)
    if as_json:
        click.echo(common.dumps({**told, **found.to_dict()}, indent=None))
    elif out is None:
        sys.stdout.writelines(found.csv(settings=False))
