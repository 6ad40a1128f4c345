"""`rdiff distance`: d_{M_2} and d_{M_1} between the queue and its limit along n, and the distances of the marginals."""

from pathlib import Path

import click

from rdiff.cli import common
from rdiff.cli.failure import INTERRUPTED

EXAMPLE = """\b
Examples:
  rdiff distance --beta 1
  rdiff distance --n 16,64,256,1024,4096 --beta 1 --plot distance.png
  rdiff distance --n 64,128,256 --b 2 --beta 0.5 --json
"""


@click.command(epilog=EXAMPLE)
@click.option("--n", "ns", type=common.Integers(), default="16,64,256", show_default=True, help="Servers, increasing.")
@common.limit_options()
@click.option("--memory", type=float, default=2.0, show_default=True, help="GiB that each exact law may use.")
@click.option("--plot", type=common.OutFile(".png", ".pdf", ".svg"), help="Draw them to a .png, .pdf or .svg.")
@common.json_option
@common.out_option
@click.pass_context
def distance(
    ctx: click.Context, ns: tuple[int, ...], beta: float, b: int, memory: float, plot: Path | None, as_json: bool,
    out: Path | None,
) -> int:  # fmt: skip
    """How far the queue's law is from the limit's, along n.

    d_M2 is the largest |E h(X) - E h(Y)| over all h with partial derivatives of orders 1 and 2 in [-1, 1], found by linear
    programming between two exact laws: the theorem's own distance, at most C(b, beta)/sqrt(n). d_M1 asks for first
    derivatives only: the Wasserstein distance for |x1| + |x2| + ... . Also W1 and KS of each coordinate.
    """
    from rdiff import plots
    from rdiff.distances.along import distance
    from rdiff.progress import progress_bar

    if plot is not None:
        plots.matplotlib()  # missing: said before the work, not after it
    with common.running(), progress_bar(common.on_terminal(), what="solving") as show:
        found, interrupted = common.reached(lambda: distance(ns, beta=beta, b=b, memory=memory, on_progress=show))
        if plot is not None:
            plots.distances(plot, found)
        settings = common.settings(ctx, n=list(ns))
        del settings["ns"]
    result = {"command": "distance", "settings": settings, **found.to_dict(), "interrupted": interrupted}
    title = f"sqrt(n) times the distances between the queue and its limit, beta = {beta:g}, b = {b}"
    notes = found.notes() + ["interrupted: these are the n reached"] * interrupted
    common.emit(result, [found.table(title)], notes, "rows", as_json, out)
    return INTERRUPTED if interrupted else 0
