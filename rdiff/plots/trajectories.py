"""Pictures of sample paths."""

import os

import numpy as np
from jaxtyping import ArrayLike, Float

from rdiff.plots.figure import matplotlib, save

STYLES = [("black", "-"), ("0.45", "-"), ("black", ":"), ("0.45", "--")]  # grey level and dash of each path in turn


def paths(
    file: str | os.PathLike[str],
    ts: Float[ArrayLike, " times"],
    values: Float[ArrayLike, "paths times dim"],
    local_time: Float[ArrayLike, "paths times"],
    title: str | None = None,
) -> None:
    """Draw sample paths of the limit of a queue to a file: a panel for Y1, one for Y2, and one for the local time U.

    Coordinates 3.. only decay and are left out. More than four paths are drawn in thin grey lines.

    **Arguments:** `file` ending in .png, .pdf or .svg; `ts`, `values` and `local_time` as `sample_paths` takes and
    gives them; `title`.
    **Raises:** `InputError` when matplotlib is not installed or does not know the ending of `file`.

    ```python
    >>> import rdiff, tempfile
    >>> p = rdiff.sample_paths(rdiff.JSQDiffusion(1.0), [0.0, 1.0, 2.0], key=0, paths=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rdiff.plots.paths(f"{folder}/paths.png", p.ts, p.values, p.local_time)

    ```
    """
    figure = matplotlib()(figsize=(7.0, 6.0), layout="constrained")
    times, states, pushed = np.asarray(ts), np.asarray(values), np.asarray(local_time)
    panels = [("$Y_1$\nidle servers / $\\sqrt{n}$", states[..., 0])]
    if states.shape[-1] > 1:
        panels.append(("$Y_2$\nservers with queue / $\\sqrt{n}$", states[..., 1]))
    panels.append(("$U$\nlocal time at $Y_1 = 0$", pushed))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    many = len(states) > len(STYLES)
    for axis, (label, lines) in zip(axes, panels, strict=True):
        for i, line in enumerate(lines):
            grey, dash = ("0.35", "-") if many else STYLES[i]
            axis.plot(times, line, dash, color=grey, linewidth=0.5 if many else 1.0, label=f"path {i + 1}")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.margins(x=0)
        axis.spines[["top", "right"]].set_visible(False)
    if len(states) > 1 and not many:
        axes[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(states), frameon=False, fontsize="small")
    axes[-1].set_xlabel("time $t$, in mean service times")
    figure.align_ylabels()
    if title:
        figure.suptitle(title)
    save(figure, file)
