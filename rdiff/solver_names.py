"""The solvers by the words that the command line and grids have for them; read before JAX is, which takes a second."""

from typing import Any

SOLVERS = {"bridge-heun": "BridgeHeun", "bridge-euler": "BridgeEuler", "projected-euler": "ProjectedEuler"}
DEFAULT = "bridge-heun"


def solver_named(name: str) -> Any:
    """The solver of that name.

    **Raises:** `InputError` where there is none.

    ```python
    >>> from rdiff.solver_names import solver_named
    >>> solver_named("bridge-euler")
    BridgeEuler()

    ```
    """
    from rdiff import solvers
    from rdiff.errors import InputError

    if name not in SOLVERS:
        raise InputError(f"solver must be one of {', '.join(SOLVERS)}, got {name!r}")
    return getattr(solvers, SOLVERS[name])()
