"""Where the lanes of a run live: shares of equal size on every device, and on a CPU in tiles that fit its first cache."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from rdiff.accumulate import BLOCK
from rdiff.devices import lane_sharding
from rdiff.errors import InputError, integer
from rdiff.types import PyTree

UNIT = 64  # lanes come in multiples of this: a compiler's loop over a remainder may round otherwise
TUNING = {"RDIFF_TILE": 512, "RDIFF_UNROLL": 1}  # set in the environment to what `rdiff bench tune` finds best


@dataclasses.dataclass(frozen=True)
class Layout:
    """`total` lanes, those asked for and a few more to fill the last tiles, in tiles of `width`; `unroll` steps
    compiled as one.

    A CPU runs a call on one tile from its first step to its last before it turns to the next: states and all that a step
    needs stay in the first cache, and XLA does not split its loops over threads, which costs more than it gains. Other devices
    take all their lanes at once. The numbers of a lane do not depend on the layout.
    """

    total: int
    width: int
    sharding: NamedSharding | None
    unroll: int = 1

    @staticmethod
    def of(lanes: int) -> "Layout":
        """The layout of so many lanes on the devices there are, with the tuning of the environment (`TUNING`).

        **Raises:** `InputError` when that is none.

        ```python
        >>> from rdiff.layout import Layout
        >>> layout = Layout.of(4000)
        >>> layout.total >= 4000, layout.width <= 512
        (True, True)

        ```
        """
        devices = len(jax.devices())
        tile, unroll = _tuned("RDIFF_TILE"), _tuned("RDIFF_UNROLL")
        if BLOCK % unroll:
            raise InputError(f"RDIFF_UNROLL must divide {BLOCK}, got {unroll}")
        tiles = -(-lanes // (tile * devices)) * devices
        width = -(-lanes // (tiles * UNIT)) * UNIT
        return Layout(tiles * width, width, lane_sharding(tiles * width), unroll)

    def fill(self, lanes: PyTree) -> PyTree:
        """Arrays of lanes with the last one repeated to fill the layout, on their devices."""
        count = jax.tree.leaves(lanes)[0].shape[0]
        if count < self.total:
            index = jnp.minimum(jnp.arange(self.total), count - 1)
            lanes = jax.tree.map(lambda x: x[index], lanes)
        return lanes if self.sharding is None else jax.device_put(lanes, self.sharding)

    def each(self, work: Callable[..., PyTree], lanes: PyTree, *shared: Any) -> PyTree:
        """work(lanes, *shared), which gives as many lanes, device by device and tile by tile."""

        def tiled(lanes: PyTree, *shared: Any) -> PyTree:
            tiles = jax.tree.map(lambda x: x.reshape(-1, self.width, *x.shape[1:]), lanes)
            done = jax.lax.map(lambda tile: work(tile, *shared), tiles)
            return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), done)

        def local(lanes: PyTree, *shared: Any) -> PyTree:
            return jax.lax.platform_dependent(lanes, *shared, cpu=tiled, default=work)

        if self.sharding is None:
            return local(lanes, *shared)
        split, whole = PartitionSpec("lanes"), PartitionSpec()
        return jax.shard_map(
            local, mesh=self.sharding.mesh, in_specs=(split, *(whole for _ in shared)), out_specs=split, check_vma=False
        )(lanes, *shared)


def _tuned(name: str) -> int:
    try:
        value = int(os.environ.get(name, TUNING[name]))
    except ValueError:
        value = os.environ[name]
    return integer(name, value, 1, "the tuning of a run, as `rdiff bench tune` finds it")
