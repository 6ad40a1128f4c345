"""`Estimate`: a number with its error, which every law answers `expect(h)` with."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rdiff import table
from rdiff.errors import InputError, is_traced, probability
from rdiff.export import Exports, arviz_data, made, shared
from rdiff.types import Scalar

_UNKNOWN = {**dict.fromkeys(("mean", "stderr", "ess", "rhat"), math.nan), "dof": math.inf, "bias": None, "error": None}


class Estimate(Exports, eqx.Module):
    """E h under some law: a mean, its standard error, and what is known of both.

    A pytree, so it comes out of `jit` and `vmap` (the numbers are arrays then).

    **Fields:**

    - `mean`, `stderr`: the estimate and its standard error (0 for an exact law, NaN when none can be given).
    - `name`: what was averaged.
    - `dof`: degrees of freedom of the Student t interval: independent lanes or batches less one.
    - `ess`: effective number of independent block means (arviz-stats); NaN where it means nothing.
    - `rhat`: nested R-hat of the two halves of the run; NaN where it means nothing.
    - `bias`: time-discretisation bias of `mean`, estimated or computed; None when not asked for.
    - `error`: bound on the numerical error of an exact law; None for samples.
    - `cautions`: why the error bar should not be trusted; empty when it can be.
    - `settings`: how the number was made, with seed, versions and device, as a tuple of (name, value).
    - `draws`: means of equal stretches of each chain, (chains, stretches), where they were asked for.

    ```python
    >>> from rdiff import Estimate
    >>> est = Estimate(mean=0.814, stderr=0.003, name="y2", dof=63)
    >>> low, high = est.ci(0.95)
    >>> round(low, 4), round(high, 4), est.reliable
    (0.808, 0.82, True)

    ```
    """

    mean: Scalar
    stderr: Scalar
    name: str = eqx.field(static=True, default="h")
    dof: float = eqx.field(static=True, default=math.inf)
    ess: Scalar = math.nan
    rhat: Scalar = math.nan
    bias: Scalar | None = None
    error: Scalar | None = None
    cautions: tuple[str, ...] = eqx.field(static=True, default=())
    settings: tuple[tuple[str, Any], ...] = eqx.field(static=True, default=())
    draws: Any = None

    @property
    def reliable(self) -> bool:
        """Whether the error bar can be trusted; `cautions` says why not."""
        return not self.cautions

    def ci(self, level: float = 0.95) -> tuple[Scalar, Scalar]:
        """Confidence interval: Student t, widened on both sides by |bias| and by the numerical error when known.

        **Arguments:** `level` in (0, 1).
        **Raises:** `InputError` when it is not.
        """
        half = self.stderr * t_quantile(probability("level", level), self.dof) + self.systematic
        return self.mean - half, self.mean + half

    @property
    def systematic(self) -> Scalar:
        """|bias| plus numerical error: what more sampling would not take away."""
        absolute = jnp.abs if is_traced(self.bias) or isinstance(self.bias, jax.Array) else np.abs
        return (0.0 if self.bias is None else absolute(self.bias)) + (0.0 if self.error is None else self.error)

    def __float__(self) -> float:
        return float(self.mean)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain numbers for JSON: NaN and infinity are None."""
        if self.error is not None:
            low, high, stderr = self.mean - self.error, self.mean + self.error, None
        else:
            (low, high), stderr = self.ci(level), plain(self.stderr)
        return {
            "observable": self.name,
            "mean": plain(self.mean),
            "stderr": stderr,
            "ci": [plain(low), plain(high)],
            "level": level,
            "reliable": self.reliable,
            "ess": plain(self.ess),
            "rhat": plain(self.rhat),
            "bias": plain(self.bias),
            "error": plain(self.error),
            "cautions": list(self.cautions),
        }

    @staticmethod
    def of(row: Mapping[str, Any]) -> "Estimate":
        """The estimate that `to_dict` made this row of, without its draws; the row may have `dof` and `settings` besides.

        ```python
        >>> from rdiff import Estimate
        >>> Estimate.of(Estimate(mean=0.814, stderr=0.003, name="y2").to_dict()).ci() == Estimate(0.814, 0.003).ci()
        True

        ```
        """
        known = {**_UNKNOWN, **{name: row[name] for name in _UNKNOWN if row.get(name) is not None and row[name] == row[name]}}
        if known["error"] is not None:
            known["stderr"] = 0.0
        settings = tuple((name, value) for name, value in row.get("settings", ()))
        return Estimate(**known, name=row["observable"], cautions=tuple(row["cautions"]), settings=settings)

    def to_arviz(self) -> Any:
        """The chains for ArviZ; see `Estimates.to_arviz`."""
        return Estimates({self.name: self}).to_arviz()

    def __str__(self) -> str:
        return str(Estimates({self.name: self}))

    def _shown(self) -> tuple[list[Any], list[str]]:
        return Estimates({self.name: self})._shown()


class Estimates(Exports, dict[str, Estimate]):
    """Several estimates of one law by name; prints as one table. A pytree like the `Estimate`s in it.

    ```python
    >>> import rdiff
    >>> law = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    >>> found = law.expect({"y1": lambda y: y[0], "y2": lambda y: y[1]})
    >>> {name: round(est.mean, 4) for name, est in found.items()}
    {'y1': 1.0, 'y2': 0.8141}

    ```
    """

    def to_dict(self, level: float = 0.95) -> list[dict[str, Any]]:
        """A list of the estimates' plain dicts."""
        return [estimate.to_dict(level) for estimate in self.values()]

    def table(self, level: float = 0.95, title: str | None = None) -> Any:
        """The `rich` table that `print` shows as text, with the `notes` under it."""
        rows = [cells(name, est, level) for name, est in self.items()]
        exact = any(est.error is not None for est in self.values())
        biased = any(est.bias is not None for est in self.values())
        columns = ["observable", "mean", "error" if exact else "stderr", f"{100 * level:g}% interval", "ess", "rhat"]
        if biased:
            columns.append("bias")
        else:
            rows = [row[:-1] for row in rows]
        return table.build(columns, rows, title)

    def notes(self) -> list[str]:
        """Lines to print under the table: what is not reliable, and why."""
        return notes(self)

    @property
    def settings(self) -> dict[str, Any]:
        """How the numbers were made; what differs between them is a dict by name."""
        return shared({name: dict(estimate.settings) for name, estimate in self.items()})

    def to_arviz(self) -> Any:
        """The chains for ArviZ, as a posterior: means of equal stretches of each chain, a draw each.

        The stretches are those of batch means, 64 to 127 of a long run however long it is, so these draws serve for traces,
        R-hat and ESS of the mean; quantiles are those of the means and not of the law.

        **Returns:** a `DataTree`, or `InferenceData` of ArviZ before 1.0; its attributes are the settings.
        **Raises:** `InputError` when the chains were not kept, or without arviz.
        """
        missing = [name for name, estimate in self.items() if estimate.draws is None]
        if missing:
            raise InputError(
                f"no chains were kept of {', '.join(missing)}: ask for them with draws=True in `long_run_average`, "
                "`SimulatedLaw` or `JSQQueue.simulate`; an exact law has none, and samples have their own `to_arviz`"
            )
        return arviz_data({name: np.asarray(estimate.draws) for name, estimate in self.items()}, made(self))

    def __str__(self) -> str:
        return super().__str__() if self._plain() else "\n".join(f"{name}: {est!r}" for name, est in self.items())

    def _shown(self) -> tuple[list[Any], list[str]]:
        return ([self.table()], self.notes()) if self._plain() else ([], [f"{name}: {est!r}" for name, est in self.items()])

    def _plain(self) -> bool:
        """Whether these are numbers now, neither arrays of `vmap` nor traced."""
        return not is_traced(dict(self)) and not any(np.ndim(est.mean) for est in self.values())


jax.tree_util.register_pytree_with_keys(
    Estimates,
    lambda e: ([(jax.tree_util.DictKey(k), v) for k, v in e.items()], tuple(e)),
    lambda names, values: Estimates(zip(names, values, strict=True)),
)


def notes(estimates: Mapping[str, Estimate]) -> list[str]:
    """One line a caution, naming the observables it holds for (or none when it holds for all)."""
    holders: dict[str, list[str]] = {}
    for name, est in estimates.items():
        for caution in est.cautions:
            holders.setdefault(caution, []).append(name)
    return [
        "not reliable" + ("" if len(names) == len(estimates) else f" ({', '.join(names)})") + f": {caution}"
        for caution, names in holders.items()
    ]


@functools.lru_cache(maxsize=256)
def t_quantile(level: float, dof: float) -> float:
    """Two-sided Student t quantile: P(|T| <= t) = level; NaN without degrees of freedom."""
    from scipy.special import ndtri, stdtrit

    if not dof > 0:
        return math.nan
    p = 0.5 + level / 2
    return float(ndtri(p) if math.isinf(dof) else stdtrit(dof, p))


def plain(value: Any) -> Any:
    """A float for JSON: None for None, NaN and infinities; lists for arrays."""
    if value is None:
        return None
    if np.ndim(value):
        return [plain(x) for x in np.asarray(value)]
    value = float(value)
    return value if math.isfinite(value) else None


def cells(name: str, est: Estimate, level: float) -> list[str]:
    """A row of a table: name, mean, error, interval, ESS, R-hat and bias, with the digits that the error leaves."""
    scale = est.stderr if est.error is None else est.error
    low, high = est.ci(level)
    digits = functools.partial(table.number, error=scale)
    return [
        name,
        digits(est.mean),
        table.number(scale),
        f"[{digits(low)}, {digits(high)}]",
        "-" if np.isnan(est.ess) else f"{float(est.ess):.0f}",
        "-" if np.isnan(est.rhat) else f"{float(est.rhat):.3f}",
        table.number(est.bias),
    ]
