"""`rdiff queue exact`: E h(X) at finite n, computed."""

from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.queue_system import as_options, limit_of, queue_of, settings, system_options, title

EXAMPLE = """\b
Examples:
  rdiff queue exact --n 100 --b 2 --beta 1
  rdiff queue exact --n 64000 --beta 1 --window auto --observable y2
  rdiff queue exact --n 100 --beta 1 --plot queue.png
"""


class Cut(click.ParamType):
    """A number in units of X, or `auto`."""

    name = "x|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value == "auto" or isinstance(value, float):
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} must be a number, in units of X, or auto", param, ctx)


@click.command(epilog=EXAMPLE)
@system_options
@common.observable_option
@click.option("--window", type=Cut(), help="Keep states with X1 up to this.  [default: all]")
@click.option("--cap", type=Cut(), help="Keep states with X2 + ... + X_{b+1} up to this.  [default: all]")
@click.option("--tol", type=float, help="With auto (which it stands for): leave out states of about this probability.")
@click.option("--memory", type=float, default=2.0, show_default=True, help="GiB that may be used.")
@click.option("--plot", type=common.OutFile(".png", ".pdf", ".svg"), help="Draw X's law over Y's density.")
@common.json_option
@common.out_option
@click.pass_context
def exact(
    ctx: click.Context, observables: tuple[str, ...], window: float | str | None, cap: float | str | None, tol: float | None,
    memory: float, plot: Path | None, as_json: bool, out: Path | None, **system: Any,
) -> None:  # fmt: skip
    """Stationary means E h(X), computed.

    By elimination over all states, or those in a window, with a bound on rounding and truncation. Before it answers, the law
    is checked for its sum, signs, and balance at every state; the queue's identities are printed.
    """
    from rdiff.checks import checks_table, failures
    from rdiff.errors import InputError
    from rdiff.queue.truncation import plan, slow

    if plot is not None:
        from rdiff import plots

        plots.matplotlib()  # missing: said before the work, not after it
    with common.running() as said:
        queue = queue_of(ctx)
        h = common.parse_observables(observables, queue.levels)
        try:
            long = slow(queue, plan(queue, window, cap, memory, tol))
        except InputError as refused:
            raise InputError(as_options(str(refused))) from None
        if long and not common.quiet():
            click.echo(f"note: {as_options(long)}", err=True)  # before the work, not after it
        law = queue.exact(window=window, cap=cap, tol=tol, memory=memory, progress=common.on_terminal())
        said.pop(long, None)
        found, checks = law.expect(h), law.checks()
        unused = ("level", "ess", "rhat", "bias")
        rows = [{k: v for k, v in row.items() if k not in unused} for row in found.to_dict()]
        result = {
            "command": "queue exact",
            "settings": settings(ctx, queue, observables=list(h)),
            "results": rows,
            "checks": [check.to_dict() for check in checks],
            "states": int(law.space.count),
            "residual": law.residual,
            "outside": law.outside,
            "blocking": law.blocking,
            "notes": list(law.notes),
        }
        if plot is not None:
            from rdiff import plots

            plots.queue_law(plot, law, limit_of(queue))
        tables = [_table(found, title("Exact queue", queue)), checks_table(checks)]
        about = f"lambda = {queue.lam:.10g}; P(an arrival is blocked) = {law.blocking:.6g}; {law.space.count:,.0f} states, "
        about += f"balanced to a relative error of {law.residual:.0e}"
        common.emit(result, tables, [*failures(checks), about, *law.notes], "results", as_json, out)


def _table(found: Any, head: str) -> Any:
    from rdiff import table

    cells = [[name, table.digits(est.mean, est.error), f"{est.error:.1e}"] for name, est in found.items()]
    return table.build(["observable", "mean", "error"], cells, head)
