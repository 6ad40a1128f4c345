"""A picture of several laws by coordinate: data, the exact queue and the limit together."""

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.limit.law import StationaryLaw
from rdiff.plots.figure import SMALL, label, matplotlib, save
from rdiff.plots.lattice import pieces

_QUEUES = (("o", 5.0, "none"), (".", 3.5, "black"), ("^", 5.0, "none"), ("x", 4.0, "black"))  # seen one over the other
_SHOWN = 40  # markers of a tail
_SEEN = 0.997


def marginals(file: str | os.PathLike[str], laws: Mapping[str, Any], title: str | None = None) -> None:
    """Draw the laws of coordinates 1 and 2 and the tail of coordinate 2 of any number of laws of one system.

    Queues are markers, their probabilities times sqrt(n); limits are lines.

    **Arguments:** `file` ending in .png, .pdf or .svg; `laws` by the name to be shown: `Samples`, exact or simulated queues of
    b >= 1, and `StationaryLaw`s; `title`.
    **Raises:** `InputError` when something is no such law, and when matplotlib is missing.

    ```python
    >>> import pathlib, rdiff, tempfile
    >>> from rdiff import plots
    >>> Q, Y = rdiff.JSQQueue(n=25, b=1, beta=1.0), rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    >>> laws = {"simulated": Q.simulate(key=0, horizon=50.0), "exact": Q.exact(), "limit": Y}
    >>> plots.marginals(pathlib.Path(tempfile.mkdtemp()) / "laws.png", laws)

    ```
    """
    figure = matplotlib()(figsize=(10.5, 3.6), layout="constrained")
    axes = figure.subplots(1, 3)
    reach, top = [1.0, 1.0], 0.0
    heads = iter(_QUEUES)
    for name, law in laws.items():
        known = isinstance(law, StationaryLaw) or any(hasattr(law, kind) for kind in ("pieces", "record", "x"))
        if not known or law.b == 0:
            raise InputError(f"{name!r} is no law of a queue with a buffer, nor a StationaryLaw of its limit: {law!r:.60}")
        if isinstance(law, StationaryLaw):
            continue
        marker, size, face = next(heads, _QUEUES[-1])
        root, n = math.sqrt(law.n), int(law.n)
        chances = np.zeros((2, n + 1))
        for q, weights in pieces(law)():
            chances[0] += np.bincount(n - q[:, 0], weights, n + 1)
            chances[1] += np.bincount(q[:, 1], weights, n + 1)
        style = {"color": "black", "markersize": size, "markerfacecolor": face, "linestyle": "none", "label": name}
        style["markeredgewidth"] = 0.8
        for i in (0, 1):
            count = int(np.searchsorted(np.cumsum(chances[i]), _SEEN)) + 2
            reach[i] = max(reach[i], count / root)
            axes[i].plot(np.arange(min(count, n + 1)) / root, root * chances[i][:count], marker, **style)
        top = max(top, root * chances[1].max())
        above = np.maximum(np.cumsum(chances[1][::-1])[::-1][1:], 0)
        seen = np.flatnonzero(above > 1e-6)[:: max(1, -(-np.count_nonzero(above > 1e-6) // _SHOWN))]
        axes[2].plot(seen / root, above[seen], marker, **style)
    for name, law in laws.items():
        if not isinstance(law, StationaryLaw):
            continue
        reach[1] = max(reach[1], float(law.quantile(_SEEN)))
        for i in (0, 1):
            y = reach[i] * np.linspace(0, 1, 400)[i:] ** 2
            axes[i].plot(y, law.marginal(i + 1, y), color="black", linewidth=1.0, label=name)
        y = np.linspace(0, 2 * reach[1], 300)
        axes[2].plot(y, law.tail(y), color="black", linewidth=1.0, label=name)
    for i in (0, 1):
        label(axes[i], f"$x_{i + 1}$", f"density, or $\\sqrt{{n}}\\,P(X_{i + 1} = x)$")
        axes[i].set_xlim(-0.02 * reach[i], reach[i])
        axes[i].set_ylim(bottom=0)
    axes[1].set_ylim(0, 1.2 * top if top else None)  # the density of Y2 is infinite at 0
    axes[2].set_yscale("log")
    axes[2].set_ylim(1e-6, 1.5)
    label(axes[2], "$x$", "$P(Y_2 > x)$, $P(X_2 > x)$")
    axes[0].legend(frameon=False, **SMALL)
    if title:
        figure.suptitle(title)
    save(figure, file)
