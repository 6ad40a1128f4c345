"""`rdiff inspect FILE`: a first look at a file of samples."""

from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.compare import Load

EXAMPLE = """\b
Examples:
  rdiff inspect run.csv
  rdiff inspect run.csv --n 100 --b 2 --beta 1
  rdiff inspect customers.csv --n 25 --json
"""


@click.command(epilog=EXAMPLE)
@click.argument("file")
@click.option("--n", type=int, help="Number of servers.")
@click.option("--b", type=common.Buffer(endless=True), help="Buffer places a server, not counting the one in service.")
@click.option("--beta", type=float, help="Drift parameter: lambda = 1 - beta/sqrt(n).")
@click.option("--lam", type=Load(), help="Arrival rate over n, instead of --beta; `estimated`: from FILE.")
@common.json_option
@click.pass_context
def inspect(
    ctx: click.Context, file: str, n: int | None, b: float | None, beta: float | None, lam: float | str | None, as_json: bool
) -> None:  # fmt: skip
    """A first look at FILE: its columns, what they look like, and the command to run next.

    What is not given is guessed, and each guess is named: check them. The identities that every queue fulfils are
    printed for the columns as they were taken; where they fail, something was taken wrongly.
    """
    from rdiff.queue.inspect import inspect_file

    given: dict[str, Any] = {"n": n, "b": b, "beta": beta, "lam": lam}
    with common.running() as said:
        found = inspect_file(file, **given)
        said.clear()  # the inspection has all of it
        tables = [table for table in (found.table(), found.checks_table()) if table is not None]
        result = {"command": "inspect", "settings": common.settings(ctx), **found.to_dict()}
        common.emit(result, tables, found.lines(), "columns", as_json, None)
