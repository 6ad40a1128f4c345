"""What the tests of the command line share."""

import json
import subprocess
import sys

import numpy as np
from click.testing import CliRunner

from rdiff.cli import main

SMALL = ["--chains", "64", "--horizon", "20"]


def run(*args):
    """The result of `rdiff ARGS`, with stdout and stderr apart."""
    return CliRunner().invoke(main, [str(arg) for arg in args])


def shell(*args, **options):
    command = [sys.executable, "-m", "rdiff", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


def save(folder, columns, name="run.csv"):
    """Columns by name as a file in `folder`: .csv, or .npz."""
    path = folder / name
    if name.endswith("npz"):
        np.savez(path, **columns)
        return path
    rows = zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def strict_json(text):
    """One JSON object and nothing else; NaN and Infinity are not JSON."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def refused(result, *words):
    """Exit code 2, one clear line on stderr, nothing on stdout."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("rdiff"), result.stderr
    assert "Traceback" not in lines[0]
    for word in words:
        assert word in lines[0]
