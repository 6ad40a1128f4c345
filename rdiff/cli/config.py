"""What every command takes besides its own options: `--quiet`, and `--config` and `--write-config`, options in a TOML file."""

import difflib
import functools
import json
import tomllib
from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.failure import interruptible
from rdiff.provenance import __version__

_TARGET = "rdiff.write_config"
_HELP = {"help", "version"}


def equip(command: click.Command) -> click.Command:
    """The command, or every command of a group, with the options of this file."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            equip(each)
    elif not any(param.name == "write_config" for param in command.params):
        command.params += [_quiet(), _config(), _write_config()]
        command.callback = interruptible(_writing(command.callback))
    return command


def _quiet() -> click.Option:
    def callback(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[common.QUIET] = value

    said = "Nothing on stderr but errors: no progress, notes or warnings. Stdout stays the same."
    return click.Option(["--quiet", "-q"], is_flag=True, expose_value=False, callback=callback, help=said)


def _config() -> click.Option:
    def callback(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
        if value is not None:
            ctx.default_map = {**(ctx.default_map or {}), **read(value, ctx)}

    kind = click.Path(exists=True, dir_okay=False, path_type=Path)
    said = "Take options from a .toml file; those typed count more."
    return click.Option(["--config"], type=kind, is_eager=True, expose_value=False, callback=callback, help=said)


def _write_config() -> click.Option:
    def callback(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
        ctx.meta[_TARGET] = value

    said = "Write the options of this run to a .toml file for --config."
    return click.Option(["--write-config"], type=common.OutFile(".toml"), expose_value=False, callback=callback, help=said)


def _writing(run: Any) -> Any:
    @functools.wraps(run)
    def with_config(*args: Any, **kwargs: Any) -> Any:
        ctx = click.get_current_context()
        if ctx.meta.get(_TARGET) is not None:
            ctx.meta[_TARGET].write_text(text(ctx), encoding="utf-8")
        return run(*args, **kwargs)

    return with_config


def read(path: Path, ctx: click.Context) -> dict[str, Any]:
    """The values of a file by parameter, as they would be typed.

    Keys are the options' names without dashes, and those of arguments; `command`, if there, must be this one.

    **Raises:** `click.UsageError` for no TOML, another command's file, an unknown key, and a value of another kind.
    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--config {path} is no TOML file: {error}", ctx) from None
    mine = _command(ctx)
    if told.pop("command", mine) != mine:
        raise click.UsageError(f"--config {path} is for another command than rdiff {mine}", ctx)
    known = {name: param for param in ctx.command.params for name in (param.name, _key(param)) if name and _own(param)}
    found = {}
    for key, value in told.items():
        param = known.get(key) or known.get(key.replace("_", "-"))
        if param is None:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"perhaps {near[0]}" if near else f"known are {', '.join(sorted({_key(param) for param in known.values()}))}"
            raise click.UsageError(f"--config {path}: rdiff {mine} has no option {key!r}: {hint}", ctx)
        found[str(param.name)] = _typed(param, value, f"--config {path}: {key}", ctx)
    return found


def text(ctx: click.Context) -> str:
    """The options of a run as TOML: those given, and below them, as comments, the defaults that it had."""
    lines = [f"# rdiff {__version__}", f"command = {json.dumps(_command(ctx))}"]
    defaults = []
    for param in filter(_own, ctx.command.params):
        value = ctx.params.get(str(param.name))
        if value is None or value == ():
            continue
        given = ctx.get_parameter_source(str(param.name)) is not click.core.ParameterSource.DEFAULT
        (lines if given else defaults).append(f"{_key(param)} = {_toml(value)}")
    return "\n".join([*lines, *(["", "# defaults"] if defaults else []), *(f"# {line}" for line in defaults)]) + "\n"


def _command(ctx: click.Context) -> str:
    """The command without the program's name, such as "queue exact"."""
    names = []
    while ctx.parent is not None:
        names.append(str(ctx.info_name))
        ctx = ctx.parent
    return " ".join(reversed(names)) or str(ctx.info_name)


def _own(param: click.Parameter) -> bool:
    return param.expose_value and param.name not in _HELP


def _key(param: click.Parameter) -> str:
    """The name in a file: of an option as typed, without its dashes."""
    long = [name for name in param.opts if name.startswith("--")]
    return long[0].removeprefix("--") if long else str(param.name)


def _typed(param: click.Parameter, value: Any, where: str, ctx: click.Context) -> Any:
    """A value as the command line would have it, so that it is read and refused in the same way."""
    flag = isinstance(param, click.Option) and param.is_flag
    if flag != isinstance(value, bool):
        raise click.UsageError(f"{where} must {'be true or false' if flag else 'not be true or false'}, got {value!r}", ctx)
    items = value if isinstance(value, list) else [value]
    if not flag and not all(isinstance(item, (str, int, float)) and not isinstance(item, bool) for item in items):
        raise click.UsageError(f"{where} must be a number, a text, or a list of these, got {value!r}", ctx)
    if flag:
        return value
    several = (isinstance(param, click.Option) and param.multiple) or param.nargs == -1
    return tuple(map(str, items)) if several else ",".join(map(str, items))


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        items = [",".join(map(str, item)) if isinstance(item, (list, tuple)) else item for item in value]  # as it was typed
        return f"[{', '.join(map(_toml, items))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float)) else json.dumps(str(value), ensure_ascii=False)
