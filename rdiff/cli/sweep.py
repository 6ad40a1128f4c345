"""`rdiff sweep` and `rdiff merge`: means along a grid of parameters, kept in a folder as they come."""

from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.failure import INTERRUPTED
from rdiff.solver_names import DEFAULT, SOLVERS

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
INCOMPLETE = 1
SIMULATED = ("same", "batch", "seed")  # options, besides those of the grid, that a computed law has no use for
SAVED = common.OutFile(".csv", ".npz", ".json")

EXAMPLE = """\b
Examples:
  rdiff sweep --beta 0.5:2:0.1 --observable y2 --out points      the same command goes on after a stop
  rdiff sweep --beta 0.5:2:0.1 --exact --save exact.csv
  rdiff sweep --beta 1 --n 100,400,1600 --exact                  queues
  rdiff sweep grid.toml --shard 2/4 --out points                 then: rdiff merge points --json

A grid file holds a table [grid], such as beta = "0.5:2:0.1" and dt = [0.1, 0.05], and may say observables, paired, common,
seed and exact; options given beside it count more. Exit code 1: some points have no numbers, or could not be written; the
others are shown.
"""


class Axis(click.ParamType):
    """Values of a parameter: numbers with commas between them, and ranges start:end:step."""

    name = "values"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[Any]:
        from rdiff.errors import InputError
        from rdiff.sweeps.grids import parse_axis

        if not isinstance(value, str):
            return value
        try:
            return parse_axis(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


def _axis(name: str, what: str) -> Any:
    return click.option(f"--{name}", type=Axis(), multiple=True, callback=_once, help=what)


def _once(ctx: click.Context, param: click.Parameter, given: tuple[list[Any], ...]) -> list[Any] | None:
    if len(given) > 1 and ctx.get_parameter_source(str(param.name)) is click.core.ParameterSource.COMMANDLINE:
        raise click.BadParameter(f"given {len(given)} times: once, with commas between the values", ctx, param)
    return [value for values in given for value in values] or None  # of a --config file, a list


@click.command(epilog=EXAMPLE)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False), metavar="[GRID.toml]")
@_axis("beta", "Drift parameter, such as 0.5:2:0.1 (the end included) or 0.5,1,2.  [default: 1]")
@_axis("b", "Buffer places a server.  [default: 1]")
@_axis("n", "Servers: laws of the queue, with --exact.")
@_axis("solver", f"{', '.join(SOLVERS)}.  [default: {DEFAULT}]")
@_axis("dt", "Time step.  [default: 0.1]")
@_axis("chains", "Independent chains at each point.  [default: 256]")
@_axis("horizon", "Averaged time of each chain.  [default: 1000]")
@_axis("burn-in", "Time dropped first.  [default: from the relaxation time]")
@common.observable_option
@click.option("--paired", is_flag=True, help="The k-th values together, instead of every combination.")
@click.option("--exact", is_flag=True, help="Compute the laws instead of simulating them.")
@click.option("--common", "same", is_flag=True, help="The same noise at every point: smooth differences along the grid.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder that keeps what is done.")
@click.option("--shard", metavar="i/n", help="Only the i-th of n parts of the grid, for job arrays.")
@click.option("--batch", type=click.IntRange(1), help="Points that run at once.  [default: what suits the device]")
@click.option("--checkpoint", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds between two in --out.")
@click.option("--save", type=SAVED, help="Also write the result to a .csv, .npz or .json file.")
@click.option("--plot", type=common.OutFile(".png", ".pdf", ".svg"), help="Draw the means to a .png, .pdf or .svg.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="The same seed, the same numbers.  [default: 0]")
@common.level_option
@common.x64_option
@common.json_option
@click.pass_context
def sweep(
    ctx: click.Context, file: str | None, observables: tuple[str, ...], paired: bool, exact: bool, same: bool,
    out: Path | None, shard: str | None, batch: int | None, checkpoint: float, save: Path | None, plot: Path | None,
    seed: int | None, level: float, x64: bool, as_json: bool, **axes: list[Any] | None,
) -> int:  # fmt: skip
    """Stationary means along a grid of parameters.

    Points run many at a time, and their numbers depend on nothing but their settings and the seed. With --out a sweep can
    be stopped and gone on with, and split into parts.
    """
    import jax.numpy as jnp

    from rdiff import plots
    from rdiff.sweeps.grids import read_toml
    from rdiff.sweeps.planning import METHOD
    from rdiff.sweeps.sweep import SweepInterrupted
    from rdiff.sweeps.sweep import sweep as run

    with common.running(x64):
        said = read_toml(file) if file is not None else {"grid": {}}
        typed = {name: values for name, values in axes.items() if values is not None}
        grid = {**({} if "lam" in said["grid"] else {"beta": [1.0]}), **said["grid"], **typed}
        exact = exact or bool(said.get("exact"))
        used = [name for name in ctx.params if name in grid or _given(ctx, name)]
        if exact and (idle := [name for name in used if name in (*METHOD, *SIMULATED)]):
            raise click.UsageError(f"{_words(ctx, idle)}: of no use to --exact, which simulates nothing", ctx)
        if "n" in grid and not exact:
            words = _words(ctx, ["n"])
            raise click.UsageError(f"{words}: queues are computed: add --exact (rdiff queue simulate simulates one)", ctx)
        places = [b for b in grid.get("b", [1]) if isinstance(b, int)]
        for b in places:
            common.Buffer().convert(b, None, ctx)  # refuses what takes hours
        h = common.parse_observables(observables or tuple(said.get("observables", ())), max(min(places, default=1), 0) + 1)
        options = {name: grid.pop(name)[0] for name in METHOD if len(grid.get(name, ())) == 1}
        if plot is not None:
            plots.matplotlib()  # missing: said before the work, not after it
            varying = [name for name, values in grid.items() if len(values) > 1]
            if len(varying) != 1:
                raise click.UsageError(
                    f"--plot draws along the one parameter that varies, got {', '.join(varying) or 'none'}", ctx
                )
        interrupted = False
        try:
            found = run(
                grid, h, law="exact" if exact else "simulated", paired=paired or bool(said.get("paired")),
                common=same or bool(said.get("common")), key=said.get("seed", 0) if seed is None else seed,
                dtype=jnp.float64 if x64 else None, out=out, shard=shard, batch=batch, checkpoint=checkpoint,
                progress=common.on_terminal(), **options,
            )  # fmt: skip
        except SweepInterrupted as stop:
            found, interrupted = stop.partial, True
        if plot is not None and len(found) > 1:
            plots.sweep(plot, found, level=level)
        _show(ctx, found, level, as_json, save, interrupted)
    return INTERRUPTED if interrupted else code(found)


@click.command(epilog="\b\nExample:\n  rdiff merge points --save all.csv")
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="DIR...")
@click.option("--save", type=SAVED, help="Also write the result to a .csv, .npz or .json file.")
@common.level_option
@common.json_option
@click.pass_context
def merge(ctx: click.Context, folders: tuple[Path, ...], save: Path | None, level: float, as_json: bool) -> int:
    """What is done of a sweep, from the folders that its parts were written to.

    The points are those of the grid last asked for. Exit code 1: some are not done, or have no numbers; the others are
    shown.
    """
    from rdiff.sweeps.sweep import merge as read

    with common.running():
        found = read(*folders)
        _show(ctx, found, level, as_json, save, False)
    return code(found)


def code(found: Any) -> int:
    """The exit code that a sweep ends with."""
    return 0 if found.complete else INCOMPLETE


def _given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


def _words(ctx: click.Context, names: list[str]) -> str:
    """Parameters as they were given: options, or keys of the grid file."""
    option = {param.name: param.opts[0] for param in ctx.command.params}
    return ", ".join(option[name] if _given(ctx, name) else f"{name} in {ctx.params['file']}" for name in names)


def _show(ctx: click.Context, found: Any, level: float, as_json: bool, save: Path | None, interrupted: bool) -> None:
    result = {"command": ctx.info_name, **found.to_dict(level), "interrupted": interrupted}
    if save is not None and save.suffix.lower() == ".json":
        save.write_text(common.dumps(result) + "\n", encoding="utf-8")
    elif save is not None:
        found.save(save)
    common.emit(result, [found.table(level)] if len(found) else [], found.remarks(), "rows", as_json, None)
