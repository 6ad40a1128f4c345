"""`rdiff average`: long-run averages of the simulated limit."""

from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.failure import INTERRUPTED
from rdiff.solver_names import DEFAULT, SOLVERS, solver_named

EXAMPLE = """\b
Examples:
  rdiff average --beta 1 --observable y2 --observable "y1*y2" --dt 0.05 --horizon 400
  rdiff average --beta 0.5 --observable y2 --plot run.png
"""


@click.command(epilog=EXAMPLE)
@common.limit_options()
@common.observable_option
@click.option("--solver", type=click.Choice(list(SOLVERS)), default=DEFAULT, show_default=True)
@click.option("--dt", type=float, default=0.1, show_default=True, help="Time step.")
@click.option("--chains", type=int, default=4096, show_default=True, help="Independent chains, at least 2.")
@click.option("--horizon", type=float, default=200.0, show_default=True, help="Averaged time of each chain.")
@click.option("--burn-in", type=float, help="Time dropped first.  [default: from the relaxation time of the model]")
@click.option("--rtol", type=float, help="Stop when the half-width is below this fraction of the mean.")
@click.option("--atol", type=float, help="Stop when the half-width is below this.")
@click.option("--y0", type=common.Numbers(), help="Start of every chain, such as 0,1.  [default: 0]")
@click.option("--bias", is_flag=True, help="Estimate the time-step bias too, from a paired run at dt/2.")
@common.seed_option
@common.level_option
@common.x64_option
@click.option("--plot", type=common.OutFile(".png", ".pdf", ".svg"), help="Draw how the means settle to a .png, .pdf or .svg.")
@common.json_option
@common.out_option
@click.pass_context
def average(
    ctx: click.Context, beta: float, b: int, observables: tuple[str, ...], solver: str, dt: float, chains: int,
    horizon: float, burn_in: float | None, rtol: float | None, atol: float | None, y0: tuple[float, ...] | None,
    bias: bool, seed: int, level: float, x64: bool, plot: Path | None, as_json: bool, out: Path | None,
) -> Any:  # fmt: skip
    """Stationary means E h(Y) by simulation.

    Each comes with its standard error. Many independent chains run side by side; nothing but running sums is kept.
    Ctrl-C prints what was reached.
    """
    import jax.numpy as jnp

    import rdiff
    from rdiff import plots
    from rdiff.averages import Interrupted

    if plot is not None:
        plots.matplotlib()  # missing: said before the work, not after it
    with common.running(x64):
        process = rdiff.JSQDiffusion(beta, b)
        h = common.parse_observables(observables, b + 1)
        interrupted = False
        try:
            found: Any = rdiff.long_run_average(
                process, h, key=seed, dt=dt, chains=chains, horizon=horizon, burn_in=burn_in,
                solver=solver_named(solver), rtol=rtol, atol=atol, bias=bias,
                y0=y0, dtype=jnp.float64 if x64 else None,
                progress=common.on_terminal(), draws=plot is not None,
            )  # fmt: skip
        except Interrupted as stop:
            if stop.partial is None:
                raise
            found, interrupted = stop.partial, True
        drawable = all(estimate.draws is not None for estimate in found.values())  # not when stopped at once
        if plot is not None and (drawable or not interrupted):
            plots.diagnostics(plot, found, level, title=f"$\\beta = {beta:g}$, $b = {b}$")

        used = {name: value for estimate in found.values() for name, value in estimate.settings}
        result = {
            "command": "average",
            "settings": {**common.settings(ctx, observables=list(h)), **used, "solver": solver},
            "results": found.to_dict(level),
            "interrupted": interrupted,
        }
        table = found.table(level, title=f"Stationary means of the limit, beta = {beta:g}, b = {b}")
        notes = found.notes() + ["interrupted: the table shows what was reached"] * interrupted
        common.emit(result, [table], notes, "results", as_json, out)
    return INTERRUPTED if interrupted else 0
