"""`rdiff queue`: the queue itself, at finite n."""

import click

from rdiff.cli.queue_exact import exact
from rdiff.cli.queue_simulate import simulate

EXAMPLE = """\b
Examples:
  rdiff queue exact --n 100 --b 2 --beta 1
  rdiff queue simulate --n 100 --b 2 --beta 1 --policy power-of-d --d 3
"""


@click.group(invoke_without_command=True, epilog=EXAMPLE)
@click.pass_context
def queue(ctx: click.Context) -> None:
    """The queue at finite n, exact or simulated.

    n servers, each with one customer in service and b places to wait; Poisson arrivals at rate n lambda, unit service rate.
    X1 = (n - Q1)/sqrt(n) and Xi = Qi/sqrt(n), Qi the number of servers with i or more customers; observables call them y1,
    y2, ... as those of the limit.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for command in (exact, simulate):
    queue.add_command(command)
