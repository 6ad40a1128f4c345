"""Measurements of rdiff itself on the user's own machine: one module a benchmark, each with `run` and `table`.

`run(full=False, progress=False, **sizes)` returns {"rows": [{name, value, unit, ratio, ...}], "settings": {...}}; `table`
lays that out as a list of rich tables. The command line is `rdiff bench NAME`.
"""

import importlib
from types import ModuleType

from rdiff.errors import InputError

NAMES = ("throughput", "bias", "exact", "coverage", "queue", "noise", "sweep", "tune")


def benchmark(name: str) -> ModuleType:
    """The module of a benchmark, imported when asked for.

    **Raises:** `InputError` for a name that is not one of `NAMES`.

    ```python
    >>> from rdiff.bench import benchmark
    >>> benchmark("bias").__name__
    'rdiff.bench.bias'

    ```
    """
    if name not in NAMES:
        raise InputError(f"no benchmark is called {name!r}: there are {', '.join(NAMES)}")
    return importlib.import_module(f"rdiff.bench.{name}")
