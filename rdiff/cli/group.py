"""The `rdiff` command: what there is, and how every command ends."""

import os
import sys
from typing import Any

import click

from rdiff.cli.average import average
from rdiff.cli.bench import bench
from rdiff.cli.common import dumps
from rdiff.cli.compare import compare
from rdiff.cli.config import equip
from rdiff.cli.distance import distance
from rdiff.cli.exact import exact
from rdiff.cli.failure import INTERRUPTED, one_line
from rdiff.cli.inspect import inspect
from rdiff.cli.path import path
from rdiff.cli.queue import queue
from rdiff.cli.rate import rate
from rdiff.cli.show import show
from rdiff.cli.sweep import merge, sweep
from rdiff.provenance import __version__

EXAMPLES = """\b
Examples:
  rdiff compare                               an embedded queue sample against the limit
  rdiff compare run.csv --n 100 --b 2 --beta 1 --time-column t --weights time
                                              your own sample against the limit
  rdiff average --beta 1 --observable y2 --observable "y2>1"
                                              means of the limit, with error bars
  rdiff exact --beta 1 --observable y2 --tail 1
                                              the same, computed to ten digits
  rdiff queue exact --n 100 --b 2 --beta 1    the queue itself at finite n, computed
  rdiff queue simulate --n 100 --b 2 --beta 1 --policy power-of-d --d 2
                                              and simulated, with other policies too
  rdiff rate --n 25,100,400,1600              the theorem: the gap falls like 1/sqrt(n), and its constant
  rdiff distance --n 16,64,256                the distance of the two laws along n
  rdiff sweep --beta 0.5:2:0.1 --out grid     a grid of parameters; run again, it goes on where it was
  rdiff path --beta 1 --horizon 20 --plot path.png
                                              a picture of one path
  rdiff show run.json                         a file that --out wrote, as a table
  rdiff bench throughput                      how fast it runs on this machine

rdiff COMMAND --help lists the options of a command. Every command takes --config run.toml, a file of its options, which
--write-config run.toml writes, and --quiet. Exit codes: 0 done, 1 points missing or failed (or a fault of rdiff), 2 bad input,
130 interrupted.

\b
Completion of commands and options in your shell:
  eval "$(_RDIFF_COMPLETE=bash_source rdiff)"     in ~/.bashrc; zsh_source in ~/.zshrc
  _RDIFF_COMPLETE=fish_source rdiff | source      in ~/.config/fish/config.fish
"""


class Commands(click.Group):
    """A group that never ends in a traceback: a mistake of the user is one line on stderr and exit code 2.

    Its commands have `--quiet`, `--config` and `--write-config` besides their own options.
    """

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        super().add_command(equip(cmd), name)

    def main(self, args: Any = None, prog_name: str | None = None, **extra: Any) -> Any:
        try:
            code = super().main(args, prog_name or "rdiff", **{**extra, "standalone_mode": False})
            sys.stdout.flush()
        except Exception as error:  # KeyboardInterrupt arrives as click.Abort
            if os.environ.get("RDIFF_DEBUG"):
                raise
            message, code = one_line(error)
            if code == INTERRUPTED and "--json" in (sys.argv[1:] if args is None else args):
                click.echo(dumps({"interrupted": True}))  # nothing was reached
            if message:
                click.echo(message, err=True)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # the reader, such as `head`, has all it wants
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


@click.group(
    "rdiff",
    cls=Commands,
    invoke_without_command=True,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="rdiff")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Reflected diffusions in queueing: the limit of join-the-shortest-queue, and how your queue compares with it.

    The limit Y lives on y1 >= 0; y1 counts idle servers and y2 servers with somebody waiting, both over sqrt(n).
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


for command in (average, exact, queue, compare, inspect, rate, distance, sweep, merge, path, show, bench):
    main.add_command(command)
