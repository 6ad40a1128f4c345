"""`rdiff bench NAME`: measurements on the user's own device."""

from pathlib import Path

import click

from rdiff.cli import common

EXAMPLE = """\b
Examples:
  rdiff bench throughput --json
  rdiff bench bias --full
  rdiff bench exact
"""


@click.command(epilog=EXAMPLE)
@click.argument("name")
@click.option("--full", is_flag=True, help="The long version of the measurement.")
@common.json_option
@common.out_option
@click.pass_context
def bench(ctx: click.Context, name: str, full: bool, as_json: bool, out: Path | None) -> None:
    """Speed and accuracy on this machine.

    Path-steps a second and ratios to other codes, or the bias of each scheme.
    """
    from rdiff.bench import benchmark

    with common.running():
        measure = benchmark(name)
        result = measure.run(full=full, progress=common.on_terminal())
        tables = measure.table(result)
        payload = {"command": "bench", **result}
        payload["settings"] = {**result.get("settings", {}), **common.settings(ctx)}
        tables = list(tables) if isinstance(tables, (list, tuple)) else [tables]
        common.emit(payload, tables, [], "rows", as_json, out)
