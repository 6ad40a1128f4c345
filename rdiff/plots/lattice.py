"""Pictures of the queue's law on its lattice, over the density of the limit."""

import math
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from rdiff.errors import InputError
from rdiff.limit.law import StationaryLaw
from rdiff.plots.figure import SMALL, label, matplotlib, save

_SEEN = 0.997  # of each coordinate's law, at least, is in the picture
_FEW = 90  # atoms that get a stem; more are dots alone
_FEWEST = 6
_ROWS = 1e6  # of a simulation that is drawn


class _Lattice(NamedTuple):
    """P(X1 = i/root), P(X2 = j/root), and of both for i and j as far as they are drawn."""

    root: float
    first: np.ndarray
    second: np.ndarray
    joint: np.ndarray


def queue_law(file: str | os.PathLike[str], X: Any, Y: StationaryLaw | None = None, title: str | None = None) -> None:
    """Draw the law of the scaled queue X over the density of its limit Y: jointly, by coordinate, and the tail of X2.

    X lives on a lattice of mesh 1/sqrt(n), so the probability of a point times n, or of a coordinate times sqrt(n), stands
    beside a density. The joint law is shaded by cells, and Y's contours are drawn at the levels where the shade changes.
    b = 0: X1 alone.

    **Arguments:** `file` ending in .png, .pdf or .svg; `X`, a law of the queue: exact, simulated, or `Samples`; `Y`, its
    limit, or None to draw X alone; `title`.
    **Raises:** `InputError` when X is no such law or Y not its limit, and when matplotlib is missing or does not know the
    ending of `file`.

    ```python
    >>> import pathlib, rdiff, tempfile
    >>> from rdiff import plots
    >>> Y = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0))
    >>> plots.queue_law(pathlib.Path(tempfile.mkdtemp()) / "law.png", rdiff.JSQQueue(n=25, b=1, beta=1.0).exact(), Y)

    ```
    """
    _check(X, Y)
    law, flat = _lattice(X, Y), X.b == 0
    figure = matplotlib()(figsize=(6.0, 4.0) if flat else (7.5, 6.4), layout="constrained")
    buffer = r"\infty" if math.isinf(X.b) else X.b
    said = f"Queue $X$, $n = {X.n}$, $b = {buffer}$, $\\beta = {X.beta:.5g}$"
    if getattr(X, "alpha", 0.5) != 0.5:
        said += f", $\\lambda = 1 - \\beta/n^{{{X.alpha:g}}}$"
    said += "" if Y is None else ", and its limit $Y$"
    figure.suptitle(title or said)
    if flat:
        _marginal(figure.subplots(), 1, law, Y)
    else:
        joint, tail, first, second = figure.subplots(2, 2).ravel()
        _joint(figure, joint, law, Y)
        _tail(tail, law, Y)
        _marginal(first, 1, law, Y)
        _marginal(second, 2, law, Y)
    save(figure, file)


def _check(X: Any, Y: Any) -> None:
    if not any(hasattr(X, name) for name in ("pieces", "record", "x")) or getattr(X, "averages", False):
        raise InputError(f"a law of a queue's states is needed: exact, simulated or Samples of states, got {X!r:.60}")
    if Y is None:
        return
    if not isinstance(Y, StationaryLaw):
        raise InputError(f"the limit is drawn by its density, which a StationaryLaw has, got {Y!r:.60}")
    if not math.isclose(X.beta, Y.beta, rel_tol=1e-9) or (X.b == 0) != (Y.b == 0) or getattr(X, "alpha", 0.5) != 0.5:
        raise InputError(f"{Y!r} is not the limit of this queue, b = {X.b}, beta = {X.beta:g}, at load 1 - beta/sqrt(n)")


def pieces(X: Any) -> Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]:
    """States of occupancy with their weights, as often as asked for."""
    if hasattr(X, "pieces"):
        return X.pieces  # large: one pass a question
    if hasattr(X, "record"):
        q = X.record(every=max(1.0, X.chains * X.horizon / _ROWS))[1].reshape(-1, X.b + 1)
        weights = np.full(len(q), 1 / len(q))
    else:
        q = np.rint(X.x * math.sqrt(X.n)).astype(np.int64)
        q[:, 0] = X.n - q[:, 0]
        weights = X.weights / X.weights.sum()
    return lambda: [(q, weights)]


def _lattice(X: Any, Y: StationaryLaw | None) -> _Lattice:
    root, n, each = math.sqrt(X.n), int(X.n), pieces(X)
    first, second = np.zeros(n + 1), np.zeros(n + 1)
    for q, weights in each():
        first += np.bincount(n - q[:, 0], weights, n + 1)
        if X.b > 0:
            second += np.bincount(q[:, 1], weights, n + 1)
    if X.b == 0:
        return _Lattice(root, first[: _reach(first, 0.0)], np.ones(1), np.zeros((0, 0)))
    wide, high = _reach(first, 0.0), _reach(second, 0.0 if Y is None else root * float(Y.quantile(_SEEN)))
    joint = np.zeros(wide * high)
    for q, weights in each():
        seen = (n - q[:, 0] < wide) & (q[:, 1] < high)
        joint += np.bincount((n - q[seen, 0]) * high + q[seen, 1], weights[seen], wide * high)
    return _Lattice(root, first[:wide], second, joint.reshape(wide, high))


def _reach(chances: np.ndarray, least: float) -> int:
    """How many points of a coordinate are drawn: those with nearly all of its law, and at least some."""
    count = int(np.searchsorted(np.cumsum(chances), _SEEN)) + 2
    return min(len(chances), max(count, math.ceil(least), _FEWEST))


def _joint(figure: Any, axis: Any, law: _Lattice, Y: StationaryLaw | None) -> None:
    """Cells of n P(X = x) in steps of grey, and contours of the density of Y at the same steps."""
    from matplotlib.colors import BoundaryNorm, ListedColormap

    cells = law.root**2 * law.joint
    # Of the bulk: near x2 = 0 the density of Y is infinite.
    peak = math.floor(math.log10(cells[:, max(1, cells.shape[1] // 20) :].max()))
    levels = np.array([step * 10.0**k for k in range(peak - 2, peak + 1) for step in (1, 3)])
    greys = ListedColormap([str(grey) for grey in np.linspace(1.0, 0.3, len(levels) + 1)])
    norm = BoundaryNorm(levels, len(levels) + 1, extend="both")
    edges = [(np.arange(size + 1) - 0.5) / law.root for size in cells.shape]
    shades = axis.pcolormesh(*edges, cells.T, cmap=greys, norm=norm, rasterized=True)
    bar = figure.colorbar(shades, ax=axis, format="%g", label=r"$n\,P(X = x)$" + ("" if Y is None else ", density of $Y$"))
    if Y is not None:
        y1 = np.linspace(0, edges[0][-1], 200)
        y2 = edges[1][-1] * np.linspace(0, 1, 300)[1:] ** 2  # closer together at 0, where the density is infinite
        lines = axis.contour(y1, y2, Y.density(y1, y2[:, None]), levels=levels, colors="black", linewidths=0.9)
        bar.add_lines(lines)
    label(axis, "$x_1$", "$x_2$")
    axis.set_title("joint law: $X$ shaded" + ("" if Y is None else ", contours of $Y$"), **SMALL)


def _marginal(axis: Any, i: int, law: _Lattice, Y: StationaryLaw | None) -> None:
    """sqrt(n) P(Xi = x) at each x, and the density of Yi."""
    chances = law.root * (law.first if i == 1 else law.second)
    count = len(law.first) if i == 1 else law.joint.shape[1]
    x, chances = np.arange(count) / law.root, chances[:count]
    few, top = count <= _FEW, chances.max()
    if few:
        axis.vlines(x, 0, chances, color="0.6", linewidth=0.8)
    heads = {"color": "black", "markersize": 4.0 if few else 2.0, "markerfacecolor": "white", "zorder": 3}
    axis.plot(x, chances, "o", label=f"$\\sqrt{{n}}\\,P(X_{i} = x)$", **heads)
    if Y is not None:
        y = x[-1] * np.linspace(0, 1, 400)[(i == 2) :] ** 2
        density = Y.marginal(i, y)
        axis.plot(y, density, color="black", linewidth=1.0, label=f"density of $Y_{i}$")
        top = max(top, density.max()) if i == 1 else top  # of Y2 it is infinite at 0
    label(axis, f"$x_{i}$", None)
    axis.set_title(f"coordinate {i}", **SMALL)
    axis.set_xlim(-0.5 / law.root, x[-1] + 0.5 / law.root)  # whole heads at the ends
    axis.set_ylim(0, 1.1 * top)
    axis.legend(frameon=False, loc="best", **SMALL)


def _tail(axis: Any, law: _Lattice, Y: StationaryLaw | None) -> None:
    """P(X2 > x), which falls at each x, and P(Y2 > x)."""
    above = np.maximum(np.cumsum(law.second[::-1])[::-1][1:], 0)
    count = min(2 * law.joint.shape[1], int(np.argmin(above > 1e-12)) or len(above))
    x = np.arange(count) / law.root
    axis.step(x, above[:count], where="post", color="black", linewidth=1.4, label="$P(X_2 > x)$")
    axis.set_yscale("log")
    if Y is not None:
        y = np.linspace(0, x[-1], 300)
        axis.plot(y, Y.tail(y), "--", color="black", linewidth=1.0, label="$P(Y_2 > x)$")
    label(axis, "$x$", None)
    axis.set_title("tail of coordinate 2", **SMALL)
    axis.legend(frameon=False, loc="upper right", **SMALL)
