"""`rdiff queue simulate`: the chain itself, under join-the-shortest-queue or another policy."""

import math
import shlex
from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.failure import INTERRUPTED
from rdiff.cli.queue_system import queue_of, settings, system_options, title

POLICIES = ("jsq", "join-idle-queue", "power-of-d", "idle-one-first")
MOST_VALUES = 50_000_000

EXAMPLE = """\b
Examples:
  rdiff queue simulate --n 100 --b 2 --beta 1 --horizon 2000
  rdiff queue simulate --n 100 --b 2 --beta 1 --chains 8 --every 4 --out run.csv.gz
  rdiff queue simulate --n 100 --b 2 --beta 1 --policy power-of-d --d 2
"""


@click.command(epilog=EXAMPLE)
@system_options
@common.observable_option
@click.option(
    "--policy", type=click.Choice(POLICIES), default="jsq", show_default=True, help="Which server an arrival joins.",
)  # fmt: skip
@click.option("--d", type=int, help="Servers that power-of-d looks at.  [default: 2]")
@click.option("--replacement", is_flag=True, help="Power-of-d draws its servers with replacement.")
@click.option("--chains", type=int, default=64, show_default=True, help="Independent queues, at least 2.")
@click.option("--horizon", type=float, default=1000.0, show_default=True, help="Averaged time of each, in mean service times.")
@click.option("--burn-in", type=float, help="Time dropped first.  [default: ten relaxation times]")
@click.option("--start", type=common.Integers("q", "90,0"), help="Q1,Q2,... first.  [default: n lambda busy, nobody waiting]")
@click.option("--every", type=float, help="Time between the samples of --out.  [default: 1]")
@common.seed_option
@common.level_option
@common.x64_option
@common.json_option
@click.option(
    "--out", type=common.OutFile(".csv", ".csv.gz", ".npz"),
    help="Write samples that `rdiff compare` reads: .csv, .csv.gz or .npz.",
)  # fmt: skip
@click.pass_context
def simulate(
    ctx: click.Context, observables: tuple[str, ...], policy: str, d: int | None, replacement: bool, chains: int,
    horizon: float, burn_in: float | None, start: tuple[int, ...] | None, every: float | None, seed: int, level: float,
    x64: bool, as_json: bool, out: Path | None, **system: Any,
) -> Any:  # fmt: skip
    """Stationary means E h(X) by simulation.

    The chain is simulated exactly in law; many independent queues run side by side, and each mean comes with its standard
    error. The identities of join-the-shortest-queue are tested on the run: other policies fail them. Ctrl-C prints what was
    reached.
    """
    import jax.numpy as jnp

    from rdiff.averages import Interrupted
    from rdiff.checks import checks_table, failures
    from rdiff.queue.policies import called
    from rdiff.queue.write import write_occupancy

    rule = _policy(ctx, policy, d, replacement)
    if every is not None and out is None:
        raise click.UsageError("--every is for the samples of --out FILE", ctx)
    every = 1.0 if every is None else every
    with common.running(x64):
        queue = queue_of(ctx)
        h = common.parse_observables(observables, queue.levels)
        law = queue.simulate(
            key=seed, chains=chains, horizon=horizon, burn_in=burn_in, start=start, policy=rule,
            dtype=jnp.float64 if x64 else None, progress=common.on_terminal(),
        )  # fmt: skip
        if out is not None:
            _fits(law, every)
        samples, notes, interrupted = None, [], False
        used = {**law.settings, **settings(ctx, queue, observables=list(h), burn_in=law.burn_in, d=getattr(rule, "d", None))}
        try:
            found: Any = law.expect(h)
            checks = law.checks()
        except Interrupted as stop:
            if stop.partial is None:
                raise
            found, checks, interrupted = stop.partial, [], True
        if out is not None and not interrupted:
            try:
                rows = law.record(every)
            except KeyboardInterrupt:
                interrupted = True
            else:
                write_occupancy(out, *rows, settings={**used, "every": every})
                command = _next(out, queue) if queue.alpha == 0.5 else None
                samples = {"file": str(out), "every": every, "command": command}
                notes = [f"samples written to {out}" + ("; compare them with the limit:" if command else "")]
                notes += [f"  {command}"] if command else [f"alpha = {queue.alpha:g} is not the regime of the limit, 1/2"]
        result = {
            "command": "queue simulate",
            "settings": used,
            "results": found.to_dict(level),
            "checks": [check.to_dict() for check in checks],
            "samples": samples,
            "interrupted": interrupted,
        }
        tables = [found.table(level, title=title(f"Simulated queue ({called(rule)})", queue))]
        tables += [checks_table(checks)] if checks else []
        if checks and policy != "jsq":
            notes.insert(0, f"the identities are those of join-the-shortest-queue, which {called(rule)} need not fulfil")
        notes = [*failures(checks), *found.notes(), *notes]
        if interrupted:
            notes.append("interrupted: the table shows what was reached" + ", and no samples were written" * (out is not None))
        common.emit(result, tables, notes, "results", as_json, None)
    return INTERRUPTED if interrupted else 0


def _policy(ctx: click.Context, name: str, d: int | None, replacement: bool) -> Any:
    """The policy of the options."""
    from rdiff.queue import policies

    if name == "power-of-d":
        return policies.PowerOf(2 if d is None else d, replacement)
    if d is not None or replacement:
        raise click.UsageError(f"--{'replacement' if d is None else 'd'} is for --policy power-of-d", ctx)
    return {"jsq": policies.jsq, "join-idle-queue": policies.join_idle_queue, "idle-one-first": policies.idle_one_first}[name]


def _fits(law: Any, every: float) -> None:
    """Refuses, before the work, samples that are too many or none."""
    from rdiff.errors import InputError, positive

    rows = law.horizon / positive("every", every)
    if rows < 1:
        raise InputError(f"every must not exceed the horizon, got every = {every:g} and horizon = {law.horizon:g}")
    if rows * law.chains * law.queue.levels > MOST_VALUES:
        raise InputError(
            f"{law.chains} chains of {rows:.3g} rows are more than {MOST_VALUES:g} numbers: write fewer with --every"
        )


def _next(out: Path, queue: Any) -> str:
    """The command that reads the samples back."""
    load = f"--beta {queue.beta:.12g}"
    if not math.isclose(1 - float(f"{queue.beta:.12g}") / math.sqrt(queue.n), queue.lam, rel_tol=1e-12):
        load = f"--lam {queue.lam!r}"
    columns = "Q1" if queue.b == 0 else f"Q1:Q{queue.levels}"
    return (
        f"rdiff compare {shlex.quote(str(out))} --n {queue.n} --b {queue.b} {load} --columns {columns} --time-column t "
        "--chain-column chain --weights regular"
    )
