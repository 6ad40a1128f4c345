"""`rdiff show FILE`: a file that rdiff wrote, as the table it was."""

import json
from pathlib import Path

import click

from rdiff.cli import common

_WIDTH = 400  # no column is cut short, whatever the file holds

EXAMPLE = """\b
Examples:
  rdiff show run.json
  rdiff show sweep.npz --out sweep.csv
  rdiff show run.json --out table.tex
"""


@click.command(epilog=EXAMPLE)
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@common.json_option
@common.out_option
@click.pass_context
def show(ctx: click.Context, file: Path, as_json: bool, out: Path | None) -> None:
    """A file that rdiff wrote, as a table, with the settings it was made with.

    FILE is a .json or .csv that --out wrote, what `rdiff sweep` saved, or its folder. Of paths and of samples it shows how
    many numbers a column has, their mean, and the extremes. --out writes it in another format.
    """
    from rdiff.saved import load

    with common.running():
        found = load(file)
        told = json.loads(found.to_json())
        del told["schema"]
        tables, notes = found._shown()
        common.emit(told, tables, notes, "results" if "results" in told else "rows", as_json, out, width=_WIDTH)
