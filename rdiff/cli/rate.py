"""`rdiff rate`: the theorem as a number, E h(X) - E h(Y) along n."""

from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.failure import INTERRUPTED

EXAMPLE = """\b
Examples:
  rdiff rate
  rdiff rate --n 64,128,256,512,1024 --b 2 --observable y2 --observable "y1*y2" --plot rate.png
  rdiff rate --n 25,100,400 --b 1 --method simulated --chains 256 --horizon 5000
"""
OBSERVABLES = ("y2", "y1*y2", "y1**2", "exp(-y1-y2)")  # smooth, with gaps of order 1/sqrt(n)
WITHOUT_BUFFER = ("y1", "y1**2", "exp(-y1)")
SIMULATION: dict[str, Any] = {"chains": 64, "horizon": 1e3}


@click.command(epilog=EXAMPLE)
@click.option(
    "--n", "ns", type=common.Integers(), default="25,100,400,1600,6400", show_default=True, help="Servers, increasing."
)
@common.limit_options()
@click.option(
    "--observable", "observables", metavar="EXPR", multiple=True,
    help=f'What to average, such as "y1*y2"; repeatable.  [default: {", ".join(OBSERVABLES)}]',
)  # fmt: skip
@click.option(
    "--method", type=click.Choice(["exact", "simulated"]),
    help="How E h(X) is found.  [default: exact where the states fit; simulated with --chains or --horizon]",
)  # fmt: skip
@click.option("--states", type=float, default=1.5e7, show_default=True, help="States that an exact law may keep.")
@click.option("--memory", type=float, default=2.0, show_default=True, help="GiB that each exact law may use.")
@click.option("--chains", type=int, help="Chains of each simulation.  [default: 64]")
@click.option("--horizon", type=float, help="Averaged time of each chain.  [default: 1000]")
@common.seed_option
@click.option("--plot", type=common.OutFile(".png", ".pdf", ".svg"), help="Draw the gaps to a .png, .pdf or .svg.")
@common.json_option
@common.out_option
@click.pass_context
def rate(
    ctx: click.Context, ns: tuple[int, ...], beta: float, b: int, observables: tuple[str, ...], method: str | None,
    states: float, memory: float, chains: int | None, horizon: float | None, seed: int, plot: Path | None, as_json: bool,
    out: Path | None,
) -> int:  # fmt: skip
    """The theorem as a number: E h(X) - E h(Y) along n.

    It falls like 1/sqrt(n). Prints the gaps, their slope in n on logarithmic scales, raw and corrected, the constant C(h)
    from its closed form beside the one fitted to the gaps, and the refined E h(Y) + C(h)/sqrt(n), whose error falls like 1/n.
    """
    from rdiff import plots
    from rdiff.models import JSQDiffusion
    from rdiff.progress import progress_bar
    from rdiff.rate import rate

    typed = {name: value for name, value in (("chains", chains), ("horizon", horizon)) if value is not None}
    if method == "exact" and typed:
        raise click.UsageError(f"--{next(iter(typed))} is for --method simulated: an exact law has none", ctx)
    if plot is not None:
        plots.matplotlib()  # missing: said before the work, not after it
    method = "simulated" if typed else method
    simulation: dict[str, Any] = {**SIMULATION, **typed}
    with common.running() as said, progress_bar(common.on_terminal(), what="solving") as show:
        JSQDiffusion(beta, b)  # beta and b are refused before observables that this b lacks
        h = common.parse_observables(observables or (OBSERVABLES if b else WITHOUT_BUFFER), b + 1)
        queues: dict[str, Any] = {"beta": beta, "b": b, "method": method, "states": states, "memory": memory, "key": seed}
        found, interrupted = common.reached(lambda: rate(ns, h=h, on_progress=show, **queues, **simulation))
        if plot is not None:
            plots.rate(plot, found)
        used = {"method": method, **(simulation if method != "exact" else dict.fromkeys([*SIMULATION, "seed"]))}
        settings = common.settings(ctx, n=list(ns), observables=list(h), **used)
        del settings["ns"]
        result = {
            "command": "rate",
            "settings": settings,
            **found.to_dict(),
            "interrupted": interrupted,
        }
        for note in found.notes():  # these are under the tables
            said.pop(note, None)
    title = f"The queue against its limit along n, beta = {beta:g}, b = {b}"
    notes = found.notes() + ["interrupted: these are the n reached"] * interrupted
    common.emit(result, found.tables(title), notes, "rows", as_json, out)
    return INTERRUPTED if interrupted else 0
