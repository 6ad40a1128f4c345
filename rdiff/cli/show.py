"""`rdiff show FILE`: a file that rdiff wrote, as the table it was."""

import json
from pathlib import Path

import click

from rdiff.cli import common

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
def show(ctx: click.Context, file: Path, as_json: bool, out: Path | None) -> int:
    """A file that rdiff wrote, as a table, with the settings it was made with.

    FILE is a .json or .csv that --out wrote, what `rdiff sweep` saved, or its folder. Of paths and of samples it shows their
    means and extremes. --out writes it in another format.

    Exit code 1, as from `rdiff merge`: some points of the sweep in a folder are not done, or have no numbers.
    """
    from rdiff.cli.sweep import code
    from rdiff.export import made
    from rdiff.saved import load, made_with

    with common.running():
        found = load(file)
        told = json.loads(found.to_json())
        del told["schema"]
        tables, notes = found._shown()
        notes = list(dict.fromkeys([*notes, *made_with(made(found))]))
        if out is not None:
            {".json": found.to_json, ".csv": found.to_csv, ".tex": found.to_latex}[out.suffix.lower()](out)
        common.emit(told, tables, notes, "rows", as_json, None)
    return code(found) if file.is_dir() else 0
