"""What the commands share: options, the device, and how a result is shown or written."""

import contextlib
import functools
import logging
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rdiff.records import clean, csv_text
from rdiff.records import dumps as dumps

QUIET = "rdiff.quiet"  # the key of `ctx.meta` that says so
MOST_PLACES = 1000  # of a buffer: every one is a coordinate of the state
OBSERVABLES = ("y1", "y2", "y1*y2", "y2>1")


def options(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    """Several click options as one decorator, in the order that the help shows them."""
    return lambda command: functools.reduce(lambda f, decorate: decorate(f), reversed(decorators), command)


class OutFile(click.ParamType):
    """A file to be written, with one of the endings given; looked at before the work starts, not after it."""

    name = "file"

    def __init__(self, *endings: str) -> None:
        self.endings = endings

    def convert(self, value: Any, param: Any, ctx: Any) -> Path:
        path = Path(value)
        if not (path.suffix and path.name.lower().endswith(self.endings)):
            self.fail(f"{value!r} must end in {' or '.join(self.endings)}", param, ctx)
        if path.is_dir() or not path.parent.is_dir():
            self.fail(f"cannot write {value!r}: its folder must exist, and it must not be a folder", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"cannot write {value!r}: permission denied", param, ctx)
        return path


class Numbers(click.ParamType):
    """Real numbers with commas between them."""

    name = "x,x,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(float(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} must be numbers with commas between them, such as 0,1", param, ctx)


class Integers(click.ParamType):
    """Whole numbers with commas between them."""

    def __init__(self, letter: str = "n", example: str = "16,64,256") -> None:
        self.name = f"{letter},{letter},..."
        self.example = example

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} must be whole numbers with commas between them, such as {self.example}", param, ctx)


class Buffer(click.ParamType):
    """Buffer places a server: an integer, or `inf` where a queue may have that."""

    name = "integer"

    def __init__(self, endless: bool = False) -> None:
        self.endless = endless
        self.name = "integer|inf" if endless else "integer"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if self.endless and str(value).lower() in ("inf", "infinity"):
            return math.inf
        try:
            places = int(value)
        except ValueError:
            self.fail(f"{value!r} must be an integer{' or inf' if self.endless else ''}", param, ctx)
        if places > MOST_PLACES:
            why = "the stationary limit is the same for every b >= 1"
            why += ", and a queue may have b = inf" if self.endless else ""
            self.fail(f"b must be at most {MOST_PLACES}, got {places}: {why}", param, ctx)
        return places


def limit_options(beta: float | None = 1.0, b: int | None = 1) -> Callable[..., Any]:
    """`--beta` and `--b`, which name the limit."""
    return options(
        click.option("--beta", type=float, default=beta, show_default=beta is not None, help="Drift parameter, > 0."),
        click.option("--b", type=Buffer(), default=b, show_default=b is not None, help="Buffer places a server; 0: loss."),
    )


observable_option = click.option(
    "--observable", "observables", metavar="EXPR", multiple=True,
    help='What to average, such as "y1*y2" or "y2>1"; repeatable.  [default: y1, y2, y1*y2, y2>1]',
)  # fmt: skip
level_option = click.option(
    "--level", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True,
    help="Confidence level of the intervals.",
)  # fmt: skip
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="The same seed, the same numbers."
)
x64_option = click.option("--x64", is_flag=True, help="Compute in double precision.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
out_option = click.option(
    "--out", type=OutFile(".json", ".csv", ".tex"), help="Also write the result to a .json, .csv or .tex file."
)


def parse_observables(texts: Sequence[str], dim: int) -> dict[str, Callable[..., Any]]:
    """The observables asked for, or those of the defaults that a state of dimension `dim` has."""
    from rdiff.observables import parse, parse_all

    return parse_all(texts or [text for text in OBSERVABLES if parse(text).coordinates <= dim], dim)


def quiet() -> bool:
    """Whether nothing is to be said on stderr."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(QUIET))


def reached(work: Callable[[], Any]) -> tuple[Any, bool]:
    """What `work` gives and False; after Ctrl-C what it had reached and True, which is raised again where that is nothing."""
    from rdiff.averages import Interrupted

    try:
        return work(), False
    except Interrupted as stop:
        if stop.partial is None:
            raise
        return stop.partial, True


def on_terminal() -> bool:
    """Whether progress has somebody to look at it."""
    return sys.stderr.isatty() and not quiet()


def coloured() -> bool:
    """Whether stdout is a terminal that may have colours (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextlib.contextmanager
def running(x64: bool = False) -> Iterator[dict[str, str]]:
    """The surroundings of a computation: all cores, the precision, and what the library has to say.

    Gives the announcements and warnings so far, each with its kind. When the work is done they are lines on stderr; a
    failure says only what failed.
    """
    import jax

    from rdiff.devices import use_all_cores
    from rdiff.errors import InputError

    with contextlib.suppress(InputError):  # JAX is in use already in this process: with the devices it has
        use_all_cores()
    said = _Said()
    log = logging.getLogger("rdiff")
    log.addHandler(said)
    try:
        with warnings.catch_warnings(), jax.enable_x64(True) if x64 else contextlib.nullcontext():
            warnings.showwarning = said.warning
            yield said.messages
    finally:
        log.removeHandler(said)
    for message, kind in {} if quiet() else said.messages.items():
        click.echo(f"{kind}: {message}", err=True)


def settings(ctx: click.Context, **more: Any) -> dict[str, Any]:
    """How a result was made: the options of the command, versions and device; the same for equal runs."""
    from rdiff.provenance import provenance

    return {**options_of(ctx), **more, **dict(provenance())}


def options_of(ctx: click.Context) -> dict[str, Any]:
    """The command and its options, in the order that they are declared in."""
    skipped = ("as_json", "out", "plot")
    declared = [str(param.name) for param in ctx.command.params if param.name not in skipped]
    return {"command": ctx.info_name, **{name: ctx.params[name] for name in declared if name in ctx.params}}


def emit(
    result: Mapping[str, Any],
    tables: Sequence[Any],
    notes: Sequence[str],
    rows: str,
    as_json: bool,
    out: Path | None,
) -> None:
    """Show a result: one JSON object, or tables with notes under them, on stdout; and a file when asked.

    **Arguments:** `result`, the JSON object without its schema; `tables`, rich tables; `notes`, lines of text; `rows`,
    the key of `result` that holds its list of rows, which is what a .csv file gets. Tables fit the terminal; elsewhere they are
    as wide as they are.
    """
    payload = dumps(result)
    if out is not None:
        out.write_text(_written(out.suffix.lower(), payload, result, tables, notes, rows), encoding="utf-8")
    if as_json:
        click.echo(payload)
        return
    from rdiff import table

    colour = coloured()
    shown = [table.text(item, _width(), colour) for item in tables]
    if colour:
        shown = [text.replace("FAILS", click.style("FAILS", fg="red")) for text in shown]
        notes = [click.style(note, fg="yellow") if "not reliable" in note else note for note in notes]
    click.echo("\n\n".join([*shown, "\n".join(notes)] if notes else shown))


def _written(
    ending: str, payload: str, result: Mapping[str, Any], tables: Sequence[Any], notes: Sequence[str], rows: str
) -> str:  # fmt: skip
    """The text of a file of that ending."""
    made = result.get("settings") or {}
    if ending == ".csv":
        return csv_text(clean(result[rows]), made)
    if ending == ".tex":
        from rdiff import table

        return table.latex_file(tables, notes, clean(made))
    return payload + "\n"


class _Said(logging.Handler):
    """What the library logs and warns of, a line each."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: dict[str, str] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.messages[" ".join(record.getMessage().split())] = "note"

    def warning(self, message: Any, *_: Any, **__: Any) -> None:
        self.messages[" ".join(str(message).split())] = "warning"


def _width() -> int | None:
    """Columns of the terminal; None where stdout is none."""
    import shutil

    return shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else None
