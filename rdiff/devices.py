"""Which devices the lanes of a run are spread over."""

import logging
import os

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rdiff.errors import InputError

logger = logging.getLogger(__name__)


def use_all_cores(count: int | None = None) -> int:
    """Give JAX one host device a core, so that lanes run on all of them; call before JAX's first use.

    XLA runs a small scan on one core however many there are. The command line calls this; a library never does by itself.

    **Arguments:** `count`: how many devices; default one a core this process may use.
    **Returns:** the number of host devices.
    **Raises:** `InputError` when JAX has started with another number: it is fixed at first use.

    ```python
    >>> import rdiff
    >>> rdiff.use_all_cores()  # doctest: +SKIP
    8

    ```
    """
    count = len(os.sched_getaffinity(0)) if count is None and hasattr(os, "sched_getaffinity") else count
    count = count or os.cpu_count() or 1
    try:
        jax.config.update("jax_num_cpu_devices", count)
    except RuntimeError:
        found = len(jax.devices("cpu"))
        if found != count:
            raise InputError(
                f"JAX runs with {found} host devices already, {count} were asked for: the number is fixed at its first use, "
                "so call rdiff.use_all_cores() right after the imports"
            ) from None
    return count


def lane_sharding(lanes: int) -> NamedSharding | None:
    """Lanes over all devices of the default kind, or over the largest number of them that divides `lanes`."""
    devices = jax.devices()
    count = max(k for k in range(1, len(devices) + 1) if lanes % k == 0)
    if count == 1:
        return None
    if count < len(devices):
        logger.info("%d lanes are spread over %d of %d devices: %d does not divide them", lanes, count, len(devices), lanes)
    return NamedSharding(Mesh(np.array(devices[:count]), ("lanes",)), PartitionSpec("lanes"))
