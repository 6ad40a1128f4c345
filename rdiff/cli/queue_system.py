"""Which queue: the options that `rdiff queue exact` and `rdiff queue simulate` share."""

import re
from typing import Any

import click

from rdiff.cli import common

system_options = common.options(
    click.option("--n", type=int, required=True, help="Number of servers."),
    click.option("--b", type=common.Buffer(), default=1, show_default=True, help="Places to wait a server; 0: loss."),
    click.option("--beta", type=float, help="Load: lambda = 1 - beta/n^alpha."),
    click.option("--lam", type=float, help="Arrival rate over n, instead of --beta."),
    click.option("--alpha", type=float, default=0.5, show_default=True, help="1/2 is the Halfin-Whitt regime."),
)


def queue_of(ctx: click.Context) -> Any:
    """The `JSQQueue` of the options."""
    import rdiff

    n, b, beta, lam, alpha = (ctx.params[name] for name in ("n", "b", "beta", "lam", "alpha"))
    if (beta is None) == (lam is None):
        what = "one of --beta and --lam is needed" if beta is None else "--beta and --lam are one parameter, give one of them"
        raise click.UsageError(f"{what}: lambda = 1 - beta/n^alpha", ctx)
    return rdiff.JSQQueue(n, b, beta, lam, alpha)


def as_options(message: str) -> str:
    """What the library says, with options for its arguments: --window auto for window="auto"."""
    return re.sub(r'\b(window|cap|tol|memory)="?([\w.+-]*\w)"?', r"--\1 \2", message)


def settings(ctx: click.Context, queue: Any, **more: Any) -> dict[str, Any]:
    """As `common.settings`, with both ways to give the load."""
    return common.settings(ctx, command=f"queue {ctx.info_name}", beta=queue.beta, lam=queue.lam, **more)


def title(what: str, queue: Any) -> str:
    """The head of a table."""
    regime = f", alpha = {queue.alpha:g}" if queue.alpha != 0.5 else ""
    return f"{what}, n = {queue.n}, b = {queue.b}, beta = {queue.beta:.6g}{regime}"


def limit_of(law: Any) -> Any:
    """The exact law of the limit of a queue's law; None outside the Halfin-Whitt regime, and where beta is too far out."""
    import rdiff

    if getattr(law, "alpha", 0.5) != 0.5:
        return None
    try:
        return rdiff.StationaryLaw(rdiff.JSQDiffusion(law.beta, int(min(law.b, 1))))
    except rdiff.InputError:
        return None
