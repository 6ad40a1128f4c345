"""`rdiff compare [FILE]`: queue samples against the limit."""

import importlib.resources
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.cli.failure import INTERRUPTED
from rdiff.cli.queue_system import limit_of

SAMPLE = "jsq_n100_b2_beta1.csv.gz"
SAMPLE_OPTIONS: dict[str, Any] = {
    "n": 100, "b": 2, "beta": 1.0, "columns": "Q1:Q3", "time_column": "t", "chain_column": "chain", "weights": "regular",
}  # fmt: skip

SIMULATION: dict[str, Any] = {"dt": 0.1, "chains": 4096, "horizon": 400.0}

EXAMPLE = """\b
Examples:
  rdiff compare
  rdiff compare run.csv --n 100 --b 2 --beta 1 --columns Q1:Q3 --time-column t --weights time
  rdiff compare lengths.npy --n 25 --b inf --lam 0.8 --format lengths --weights regular --burn-in-rows 100
  rdiff compare run1.csv run2.csv --n 100 --b 2 --lam estimated --columns Q1:Q3 --time-column t
  rdiff compare customers.csv --n 100 --b inf --lam estimated --format customers --burn-in 50
  rdiff compare --limit simulated --dt 0.05
  rdiff compare --plot law.png
"""


class Load(click.ParamType):
    """The arrival rate a server, or `estimated`."""

    name = "float|estimated"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        if value == "estimated":
            return value
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} must be a number or 'estimated'", param, ctx)


# What the adapter takes: these words are the keywords of `read_samples` too.
adapter_options = common.options(
    click.option("--n", type=int, help="Number of servers."),
    click.option(
        "--b", type=common.Buffer(endless=True),
        help="Buffer places a server, not counting the one in service.  [default: 1]",
    ),
    click.option("--beta", type=float, help="Drift parameter: lambda = 1 - beta/sqrt(n)."),
    click.option("--lam", type=Load(), help="Arrival rate over n, instead of --beta; `estimated`: from FILE."),
    click.option(
        "--format", type=click.Choice(["occupancy", "lengths", "fractions", "scaled", "customers"]), default="occupancy",
        show_default=True,
        help="Columns are Q_1..Q_{b+1}, customers of each server, Q_i/n, X itself; or a row is a customer: arrival, "
        "departure, server.",
    ),
    click.option("--columns", help="Names or ranges a:b with commas between them, in order."),
    click.option("--array", metavar="NAME", help="Which array of an .npz holds the states."),
    click.option("--time-column", help="Which column is the time."),
    click.option("--weights", metavar="time|regular|arrivals|COLUMN", help="How much a row counts."),
    click.option("--hold", type=click.Choice(["next", "previous"]), help="Until, or since, which time a row holds."),
    click.option("--end-time", type=float, help="When the last row ends."),
    click.option("--burn-in", type=float, help="Time to drop at the start."),
    click.option("--burn-in-rows", type=int, help="Rows to drop at the start."),
    click.option("--chain-column", help="Which rows belong together."),
    click.option("--averages", is_flag=True, help="Rows are means of independent runs: linear observables only."),
)  # fmt: skip
ADAPTER = (
    "n", "b", "beta", "lam", "format", "columns", "array", "time_column", "weights", "hold", "end_time", "burn_in",
    "burn_in_rows", "chain_column", "averages",
)  # fmt: skip


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@adapter_options
@common.observable_option
@click.option(
    "--limit",
    type=click.Choice(["exact", "simulated"]),
    help="How E h(Y) is found.  [default: exact; simulated with --dt, --chains or --horizon]",
)
@click.option("--dt", type=float, help="Time step of the simulated limit.  [default: 0.1]")
@click.option("--chains", type=int, help="Chains of the simulated limit.  [default: 4096]")
@click.option("--horizon", type=float, help="Averaged time of each chain of the simulated limit.  [default: 400]")
@click.option("--plot", type=common.OutFile(".png", ".pdf", ".svg"), help="Draw the samples' law over the limit's density.")
@common.seed_option
@common.level_option
@common.x64_option
@common.json_option
@common.out_option
@click.pass_context
def compare(
    ctx: click.Context, files: tuple[str, ...], observables: tuple[str, ...], limit: str | None, dt: float | None,
    chains: int | None, horizon: float | None, plot: Path | None, seed: int, level: float, x64: bool, as_json: bool,
    out: Path | None, **adapter: Any,
) -> Any:  # fmt: skip
    """Queue samples against the limit.

    Prints E h(X), E h(Y), the difference with its error, its size times sqrt(n), and the refined E h(Y) + C(h)/sqrt(n).
    E h(Y) is computed from the exact law; --limit simulated runs the reflected diffusion instead.

    FILE is .csv, .csv.gz, .npy, .npz or .parquet; the columns are mapped by the options below, and `rdiff inspect FILE`
    says which they are. Several files are chains of one record. Without FILE, a sample of the
    true join-the-shortest-queue at n = 100, b = 2, beta = 1 is used. The identities that the queue fulfils are
    checked on the sample, and a likely cause is named when one fails.
    """
    file = None if not files else files[0] if len(files) == 1 else list(files)
    given = _given(ctx, files)
    import rdiff
    from rdiff import plots

    if plot is not None:
        plots.matplotlib()  # missing: said before the work, not after it
    typed = {name: value for name, value in (("dt", dt), ("chains", chains), ("horizon", horizon)) if value is not None}
    if limit == "exact" and typed:
        raise click.UsageError(f"--{next(iter(typed))} is for --limit simulated: the exact limit has no steps", ctx)
    with common.running(x64) as said:
        samples = _read(file, given)
        beta, b = float(samples.beta), samples.b
        # Coordinates 3.. are 0 in the stationary limit, so an endless buffer has the law of the levels that are seen.
        process = rdiff.JSQDiffusion(beta, samples.x.shape[1] - 1 if math.isinf(b) else int(b))
        h = common.parse_observables(observables, process.dim)
        if plot is not None:
            plots.queue_law(plot, samples, limit_of(samples))
        exact = None if limit == "simulated" or typed else _exact(process, wanted=limit == "exact", said=said)
        used: dict[str, Any] = {"limit": "exact" if exact else "simulated", **SIMULATION, **typed}
        if exact:
            used.update(dict.fromkeys([*SIMULATION, "seed"]))  # nothing is drawn, nothing has a step
        simulation = {name: used[name] for name in SIMULATION}
        law = Interruptible(exact or rdiff.SimulatedLaw(process, key=seed, **simulation, progress=common.on_terminal()))
        found = rdiff.compare(samples, law, h)
        used["beta_stderr"] = samples.beta_stderr
        result = {
            "command": "compare",
            "settings": common.settings(ctx, observables=list(h), **given, file=file or f"embedded {SAMPLE}", **used),
            "results": found.to_dict(level),
            "checks": [check.to_dict() for check in found.checks],
            "notes": found.notes(),
            "interrupted": law.interrupted,
        }
        tables = [found.table(level, title=_title(samples)), found.checks_table()]
        notes = found.notes() + ["interrupted: the limit is what was reached"] * law.interrupted
        for note in notes:  # these are under the tables
            said.pop(note, None)
        notes += _about_refined(found)
        common.emit(result, [table for table in tables if table is not None], notes, "results", as_json, out)
    return INTERRUPTED if law.interrupted else 0


def _exact(process: Any, wanted: bool, said: dict[str, str]) -> Any:
    """The exact law of the limit; None, announced, where beta is outside its range and nobody asked for it by name."""
    import rdiff

    try:
        return rdiff.StationaryLaw(process)
    except rdiff.InputError as error:
        if wanted:
            raise
        said[f"the limit is simulated: {error}"] = "note"
        return None


def _about_refined(found: Any) -> list[str]:
    """What the column `refined` is, and for which h it is empty."""
    values = {name: comparison.refined for name, comparison in found.items() if comparison.refined is not None}
    empty = [name for name, value in values.items() if math.isnan(value)]
    lines = ["refined: E h(Y) + C(h)/sqrt(n), which is E h(X) up to O(1/n)"] if values else []
    if empty:
        lines.append(f"no refined value for {', '.join(empty)}: C(h) needs a smooth h")
    return lines


class Interruptible:
    """A law that answers with what was reached when Ctrl-C stops its simulation."""

    def __init__(self, law: Any) -> None:
        self.law = law
        self.interrupted = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.law, name)

    def expect(self, h: Any) -> Any:
        from rdiff.averages import Interrupted

        try:
            return self.law.expect(h)
        except Interrupted as stop:
            if stop.partial is None:
                raise
            self.interrupted = True
            return stop.partial


def _title(samples: Any) -> str:
    buffer = "inf" if math.isinf(samples.b) else f"{samples.b}"
    return f"Queue samples X against the limit Y: n = {samples.n}, b = {buffer}, beta = {samples.beta:.6g}"


def _given(ctx: click.Context, files: Sequence[str]) -> dict[str, Any]:
    """The keywords for `read_samples`: what was typed, or what belongs to the embedded sample."""
    typed = {
        name: ctx.params[name] for name in ADAPTER if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    if not files:
        wrong = [name for name, value in typed.items() if SAMPLE_OPTIONS.get(name) != value]
        if wrong:
            option = "--" + wrong[0].replace("_", "-")
            raise click.UsageError(f"{option} needs a FILE: the embedded sample has n = 100, b = 2, beta = 1", ctx)
        return dict(SAMPLE_OPTIONS)
    if "n" not in typed:
        raise click.UsageError("--n is needed: the number of servers of the queue in FILE", ctx)
    if ("beta" in typed) == ("lam" in typed):
        both = "--beta and --lam are both given, which are one parameter, give one of them"
        what = both if "beta" in typed else "one of --beta and --lam is needed"
        raise click.UsageError(f"{what}: lambda = 1 - beta/sqrt(n)", ctx)
    return {"b": 1, **typed}


def _read(file: str | list[str] | None, given: dict[str, Any]) -> Any:
    import rdiff

    if file is not None:
        return rdiff.read_samples(file, **given)
    with importlib.resources.as_file(importlib.resources.files("rdiff.data") / SAMPLE) as path:
        return rdiff.read_samples(path, **given)
