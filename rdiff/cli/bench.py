"""`rdiff bench NAME`: measurements on the user's own device."""

import importlib
from pathlib import Path

import click

from rdiff.cli import common

NAMES = ("throughput", "bias", "exact", "coverage", "queue")

EXAMPLE = """\b
Examples:
  rdiff bench throughput --json
  rdiff bench bias --full
  rdiff bench exact
"""


def available() -> list[str]:
    """The benchmarks that this version has: one module each in `rdiff/bench`."""
    folder = Path(__file__).parent.parent / "bench"
    return [name for name in NAMES if (folder / f"{name}.py").exists()]


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
    if name not in available():
        raise click.UsageError(f"there is no benchmark {name!r}: known are {', '.join(available())}", ctx)
    with common.running():
        measure = importlib.import_module(f"rdiff.bench.{name}")
        result = measure.run(full=full, progress=common.on_terminal())
        tables = measure.table(result)
        payload = {"command": "bench", **result}
        payload["settings"] = {**result.get("settings", {}), **common.settings(ctx)}
        tables = list(tables) if isinstance(tables, (list, tuple)) else [tables]
        common.emit(payload, tables, [], "rows", as_json, out)
