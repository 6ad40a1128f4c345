"""`rdiff exact`: E h under the exact law of the limit, sensitivities, tails, quantiles and the constant C(h)."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rdiff.cli import common
from rdiff.table import digits

EXAMPLE = """\b
Examples:
  rdiff exact --beta 1
  rdiff exact --beta 0.5 --observable y2 --observable "exp(-y1-y2)" --sensitivity --constant --n 100
  rdiff exact --beta 1 --tail 0.5,1,2,4 --quantile 0.5,0.99 --json
  rdiff exact --beta 1 --plot law.png
  rdiff exact --beta 1 --observable y2 --plot-f f.png
"""
PICTURE = common.OutFile(".png", ".pdf", ".svg")


@click.command(epilog=EXAMPLE)
@common.limit_options()
@common.observable_option
@click.option("--sensitivity", is_flag=True, help="d/dbeta E h(Y) too.")
@click.option("--constant", is_flag=True, help="C(h) of E h(X) = E h(Y) + C(h)/sqrt(n) + O(1/n) too.")
@click.option("--n", type=int, help="Servers of a queue: E h(Y) + C(h)/sqrt(n) too.")
@click.option("--tail", type=common.Numbers(), multiple=True, help="P(Y2 > x); repeatable.")
@click.option("--quantile", type=common.Numbers(), multiple=True, help="The y with P(Y2 <= y) = p; repeatable.")
@click.option("--plot", type=PICTURE, help="Draw the densities and the tail to a .png, .pdf or .svg.")
@click.option("--plot-f", type=PICTURE, help="Draw f of the Poisson equation G f = h - E h(Y) for each h.")
@common.json_option
@common.out_option
@click.pass_context
def exact(
    ctx: click.Context, beta: float, b: int, observables: tuple[str, ...], sensitivity: bool, constant: bool, n: int | None,
    tail: tuple[tuple[float, ...], ...], quantile: tuple[tuple[float, ...], ...], plot: Path | None, plot_f: Path | None,
    as_json: bool, out: Path | None,
) -> None:  # fmt: skip
    """Stationary means E h(Y), computed.

    To about ten digits, with a bound on the numerical error; nothing is simulated. The identities that the law fulfils
    are computed from the same solution and printed as a check.
    """
    import rdiff
    from rdiff import plots
    from rdiff.errors import InputError, integer, probability

    if plot is not None or plot_f is not None:
        plots.matplotlib()  # missing: said before the work, not after it
    with common.running():
        law = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta, b))
        h = common.parse_observables(observables, b + 1)
        if n is not None and integer("n", n, 1, "the number of servers") <= beta * beta:
            raise InputError(f"n must exceed beta^2 = {beta * beta:g}, got {n}: the queue's load is 1 - beta/sqrt(n) > 0")
        xs = [x for group in tail for x in group]
        ps = [probability("the p of --quantile", p) for group in quantile for p in group]
        tails = [{"x": x, "value": law.tail(x)} for x in xs]
        quantiles = [{"p": p, "value": law.quantile(p), "log": law.quantile(p, log=True)} for p in ps]
        rows = [_row(law, name, function, sensitivity, constant, n) for name, function in h.items()]
        settings = common.settings(ctx, observables=list(h), tail=xs, quantile=ps, tol=law.tol)
        del settings["plot_f"]  # equal runs have equal settings, wherever they draw
        result = {
            "command": "exact",
            "settings": settings,
            "results": rows,
            "tail": tails,
            "quantile": quantiles,
            "identities": [identity._asdict() for identity in law.identities()],
        }
        if plot is not None:
            plots.law(plot, law)
        if plot_f is not None:
            plots.poisson(plot_f, law, h)
        common.emit(result, _tables(law, rows, tails, quantiles, n), _notes(rows), "results", as_json, out)


def _row(law: Any, name: str, h: Any, sensitivity: bool, constant: bool, n: int | None) -> dict[str, Any]:
    """One observable: every number asked for, each with its error; None for what was not asked or does not exist."""
    mean = _asked(law.expect, name, h)
    slope = _asked(law.sensitivity, name, h) if sensitivity else None
    first = _asked(law.constant, name, h) if constant or n is not None else None
    cautions = [*mean.cautions]
    for what, estimate in (("d/dbeta", slope), ("C(h)", first)):
        said = getattr(estimate, "cautions", ())
        cautions += [caution if caution.startswith(what) else f"{what}: {caution}" for caution in said]
    refined, refined_error = None, None
    if n is not None and first is not None:
        refined, refined_error = (a + c / math.sqrt(n) for a, c in ((mean.mean, first.mean), (mean.error, first.error)))
    known = [mean, *(e for e in (slope, first) if e is not None and math.isfinite(e.mean))]
    kept = {key: value for key, value in mean.to_dict().items() if key not in ("level", "ess", "rhat", "bias", "cautions")}
    return {
        **kept,
        "reliable": all(estimate.reliable for estimate in known),
        "dbeta": getattr(slope, "mean", None),
        "dbeta_error": getattr(slope, "error", None),
        "constant": getattr(first, "mean", None),
        "constant_error": getattr(first, "error", None),
        "refined": refined,
        "refined_error": refined_error,
        "method": dict(mean.settings)["method"],
        "cautions": cautions,
    }


def _asked(question: Callable[[Any], Any], name: str, h: Any) -> Any:
    """The answer for h; a refusal names the observable."""
    from rdiff.errors import InputError

    try:
        return question({name: h})[name]
    except InputError as error:
        if name in str(error):
            raise
        raise InputError(f"--observable {name!r}: {error}") from None


def _tables(
    law: Any, rows: Sequence[Mapping], tails: Sequence[Mapping], quantiles: Sequence[Mapping], n: int | None
) -> list[Any]:
    from rdiff import table

    columns = {"d/dbeta": "dbeta", "C(h)": "constant", f"refined, n = {n}": "refined"}
    shown = {title: key for title, key in columns.items() if any(row[key] is not None for row in rows)}
    cells = [
        [
            row["observable"],
            digits(row["mean"], row["error"]),
            f"{row['error']:.1e}",
            *(digits(row[key], row[f"{key}_error"]) for key in shown.values()),
            row["method"],
        ]
        for row in rows
    ]
    title = f"Exact stationary law of the limit, beta = {law.beta:g}, b = {law.b}"
    found = [table.build(["observable", "mean", "error", *shown, "method"], cells, title)]
    if tails:
        found.append(table.build(["x", "P(Y2 > x)"], [[f"{t['x']:g}", _ten(t["value"])] for t in tails]))
    if quantiles:
        cells = [[f"{q['p']:g}", _ten(q["value"]), _ten(q["log"])] for q in quantiles]
        found.append(table.build(["p", "quantile of Y2", "its logarithm"], cells))
    cells = [[i.name, _ten(i.left), _ten(i.right), f"{i.residual:.0e}"] for i in law.identities()]
    found.append(table.build(["identity of the limit", "left", "right", "residual"], cells))
    return found


def _notes(rows: Sequence[Mapping]) -> list[str]:
    """One line a caution, with the observables that it holds for."""
    holders: dict[str, list[str]] = {}
    for row in rows:
        for caution in row["cautions"]:
            holders.setdefault(caution, []).append(row["observable"])
    notes = [f"{', '.join(names)}: {caution}" for caution, names in holders.items()]
    if any(row["refined"] is not None for row in rows):
        notes.append("refined: E h(Y) + C(h)/sqrt(n), which is E h(X) of the queue up to O(1/n)")
    return notes


def _ten(value: float) -> str:
    return f"{value:.10g}"
