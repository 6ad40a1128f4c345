"""What the benchmarks share: the settings that go with a measurement, and a line that says what runs now."""

import contextlib
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

import jax

from rdiff.devices import use_all_cores
from rdiff.errors import InputError


def settings(**more: Any) -> dict[str, Any]:
    """Where and with what a measurement was made, and `more`."""
    devices = jax.devices()
    return {
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": f"{devices[0].device_kind} x {len(devices)}",
        "cores": cores(),
        **more,
    }


def start() -> None:
    """All cores for JAX; the devices that there are when it runs already."""
    with contextlib.suppress(InputError):
        use_all_cores()


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def watch(progress: bool) -> Callable[[str], None]:
    """Prints what runs now on stderr, over what it printed before; does nothing unless wanted."""

    def say(text: str) -> None:
        if progress:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    return say
