"""With what a number was made: the seed, the versions and the device, which travel with every result."""

from typing import Any

from rdiff import __version__ as __version__


def provenance(key: Any = None) -> tuple[tuple[str, Any], ...]:
    """(name, value) of the seed, where there is one, the versions and JAX's devices.

    **Arguments:** `key`, of the random numbers: an int or a JAX key; None where nothing is drawn.

    ```python
    >>> from rdiff.provenance import provenance
    >>> [name for name, _ in provenance(key=3)]
    ['seed', 'version', 'jax', 'device']

    ```
    """
    import jax

    devices = jax.devices()
    seed = () if key is None else (("seed", _seed(key)),)
    return (*seed, ("version", __version__), ("jax", jax.__version__), ("device", f"{devices[0].platform} x {len(devices)}"))


def _seed(key: Any) -> Any:
    """The number itself, or the words of a JAX key; None for a key that is not known yet, inside `jit`."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rdiff.errors import is_traced

    if is_traced(key):
        return None
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = jax.random.key_data(key)
    words = np.asarray(key)
    return words.item() if words.ndim == 0 else tuple(words.ravel().tolist())
