"""`citation`: BibTeX of what rdiff builds on, or of what one result was made with."""

import functools
import importlib.resources
import json
import re
from collections.abc import Iterable
from typing import Any

from rdiff.provenance import __version__

# What in the settings of a result, as text, or in its kind calls for which work.
_LIMIT = ("braverman2023", "eschenfeldt2018")
_SIMULATED = ("asmussen2007", "vehtari2021", "margossian2024", "blackman2021")
_USES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("JSQDiffusion", _LIMIT),
    ("ReflectedOU", ("ward2003",)),
    ("ReflectedBrownianMotion", ("harrison1985",)),
    ("BridgeHeun", ("lepingle1995", "kidger2021")),
    ("BridgeEuler", ("lepingle1995", "gobet2001", "kidger2021")),
    ("ProjectedEuler", ("slominski1994", "kidger2021")),
    ("bridge-heun", ("lepingle1995", "kidger2021")),
    ("bridge-euler", ("lepingle1995", "gobet2001", "kidger2021")),
    ("projected-euler", ("slominski1994", "kidger2021")),
    ('"chains"', _SIMULATED),
    ('"n"', _LIMIT),
    ('"beta"', _LIMIT),
)
_KINDS: dict[str, tuple[str, ...]] = {
    "Distance": (*_LIMIT, "deboor1978"),
    "Distances": (*_LIMIT, "deboor1978"),
    "GeneratorComparison": (*_LIMIT, "barbour1990", "braverman2022"),
    "GeneratorComparisons": (*_LIMIT, "barbour1990", "braverman2022"),
    "SteinFactors": (*_LIMIT, "barbour1990"),
}


def citation(result: Any = None) -> str:
    """BibTeX of the works that rdiff builds on; of a result, of those whose methods made it.

    Docstrings name the sources too, each where its method is.

    **Arguments:** `result`: what a law, `compare`, `rate`, `distance`, `sweep`, `sample_paths` or `load` gave.
    **Returns:** BibTeX entries, rdiff's own first. **Raises:** `InputError` for anything else.

    ```python
    >>> import rdiff
    >>> law = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=1.0))
    >>> text = rdiff.citation(law.expect(lambda y: y[1]))
    >>> "braverman2023" in text, "asmussen2007" in text, "asmussen2007" in rdiff.citation()
    (True, False, True)

    ```
    """
    works = _works()
    keys: Iterable[str] = works
    if result is not None:
        from rdiff.errors import InputError
        from rdiff.export import made

        if getattr(result, "settings", None) is None or isinstance(result, type):
            raise InputError(f"citation is of a result, such as law.expect(h), or of nothing, got {result!r:.60}")
        settings = made(result)
        keys = {"rdiff", *_KINDS.get(type(result).__name__, ()), *_used(settings)}
    return "\n\n".join(entry for key, entry in works.items() if key in keys) + "\n"


def _used(settings: dict[str, Any]) -> set[str]:
    told = json.dumps(settings, default=str)
    queue_only = '"chains"' in told and '"n"' in told and "solver" not in told
    found = {key for word, keys in _USES if word in told for key in keys}
    return found | {"jensen1953"} if queue_only else found


@functools.cache
def _works() -> dict[str, str]:
    """The entries of the bibliography by their keys."""
    text = (importlib.resources.files("rdiff") / "data" / "references.bib").read_text(encoding="utf-8")
    entries = text.replace("VERSION", __version__).strip().split("\n\n")
    return {str(re.findall(r"{(\w+),", entry)[0]): entry for entry in entries}
