"""What the command line says when something goes wrong: one line and an exit code."""

import errno
import functools
import os
from collections.abc import Callable
from typing import Any

import click

DONE, BAD_INPUT, FAULT, INTERRUPTED = 0, 2, 1, 130


def one_line(error: BaseException) -> tuple[str, int]:
    """The line for stderr (empty for none) and the exit code that `error` stands for."""
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return "rdiff: interrupted", INTERRUPTED
    if isinstance(error, click.ClickException):
        ctx = getattr(error, "ctx", None)
        where = ctx.command_path if ctx is not None else "rdiff"
        return f"{where}: {_flat(error.format_message())}", BAD_INPUT
    if isinstance(error, OSError):
        if error.errno == errno.EPIPE:
            return "", DONE
        name = f"{os.fspath(error.filename)}: " if isinstance(error.filename, (str, os.PathLike)) else ""
        return f"rdiff: {name}{error.strerror or _flat(str(error))}", BAD_INPUT
    if _is_input_error(error):
        return f"rdiff: {_flat(str(error))}", BAD_INPUT
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "rdiff: out of memory: ask for fewer chains, paths or points", BAD_INPUT
    said = _flat(str(error))
    said = said if len(said) <= 300 else said[:297] + "..."
    return f"rdiff: a fault in rdiff, {type(error).__name__}: {said} (RDIFF_DEBUG=1 shows where)", FAULT


def interruptible(run: Callable[..., Any]) -> Callable[..., Any]:
    """The command, which with --json says what it was asked for when it is interrupted before anything is reached."""

    @functools.wraps(run)
    def told(*args: Any, **kwargs: Any) -> Any:
        try:
            return run(*args, **kwargs)
        except KeyboardInterrupt as stop:
            ctx = click.get_current_context()
            if not ctx.params.get("as_json"):
                raise
            from rdiff.cli import common

            asked = {"command": ctx.info_name, "settings": common.options_of(ctx), "interrupted": True}
            click.echo(common.dumps(asked))
            click.echo(one_line(stop)[0], err=True)
            return INTERRUPTED

    return told


def _is_input_error(error: BaseException) -> bool:
    from rdiff.errors import InputError  # late, because it imports JAX

    return isinstance(error, InputError)


def _flat(message: str) -> str:
    return " ".join(message.split())
