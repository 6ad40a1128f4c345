"""A progress bar for long runs: on stderr, and only when asked for."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Done(NamedTuple):
    """How many parts of how many are done."""

    done: float
    total: int


@contextlib.contextmanager
def progress_bar(wanted: bool, endless: bool = False, what: str = "simulating") -> Iterator[Callable[[Any], None]]:
    """Gives a function that shows where a run stands, by its `done` and `total`; it does nothing unless `wanted`.

    **Arguments:** `wanted`; `endless`: the total is not known; `what` is done, shown beside the bar.
    """
    if not wanted:
        yield lambda at: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()]
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda at: bar.update(task, total=None if endless else at.total, completed=at.done)
