"""The noise of a reflected step, keyed by an integer step: a Brownian increment and an exponential mark.

A generator is a pair of functions: `init(key)` makes the state of one lane, `bits(state, count)` hands out 32-bit
words and the next state. Never keyed by time, so nothing repeats or jitters however long a run is.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, UInt32

from rdiff.errors import InputError
from rdiff.fusion import settle
from rdiff.types import PyTree


class AbstractNoise(eqx.Module):
    """A random generator whose state travels with the lane.

    ```python
    >>> import jax, rdiff
    >>> noise = rdiff.Xoshiro()
    >>> state, words = noise.bits(noise.init(jax.random.key(0)), 3)
    >>> len(words)
    3

    ```
    """

    @abc.abstractmethod
    def init(self, key: Key[Array, ""]) -> PyTree:
        """The generator's state for one lane."""

    @abc.abstractmethod
    def bits(self, state: PyTree, count: int) -> tuple[PyTree, list[UInt32[Array, ""]]]:
        """The next state, and `count` words of 32 random bits."""


class Threefry(AbstractNoise):
    """JAX's own counter-based generator: words of step k are `random.bits(fold_in(key, k))`.

    Random access in k, and the strongest of the generators here; several times slower than `Xoshiro` on a CPU.
    A lane has 2^32 steps before it repeats.

    ```python
    >>> import jax, rdiff
    >>> noise = rdiff.Threefry()
    >>> state, words = noise.bits(noise.init(jax.random.key(0)), 2)
    >>> len(words), words[0].dtype.name
    (2, 'uint32')

    ```
    """

    def init(self, key: Key[Array, ""]) -> tuple[Key[Array, ""], UInt32[Array, ""]]:
        return key, jnp.uint32(0)

    def bits(self, state: PyTree, count: int) -> tuple[PyTree, list[UInt32[Array, ""]]]:
        key, k = state
        words = jax.random.bits(jax.random.fold_in(key, k), (count,), jnp.uint32)
        return (key, k + jnp.uint32(1)), [words[i] for i in range(count)]


class Xoshiro(AbstractNoise):
    """xoshiro128+: 128 bits of state a lane, seeded from the lane's JAX key; period 2^128 - 1. The default.

    Its lowest bits are weak (linear), so only the upper 23 of a word (26 in float64) are used.

    Source: Blackman and Vigna, Scrambled linear pseudorandom number generators, ACM TOMS 47 (2021).

    ```python
    >>> import rdiff
    >>> Y = rdiff.JSQDiffusion(beta=1.0)
    >>> est = rdiff.long_run_average(Y, lambda y: y[1], key=0, chains=64, horizon=20.0, noise=rdiff.Xoshiro())
    >>> abs(est.mean - 0.814) < 4 * est.stderr
    True

    ```
    """

    def init(self, key: Key[Array, ""]) -> tuple[UInt32[Array, ""], ...]:
        words = jax.random.bits(key, (4,), jnp.uint32)
        # The all-zero state is the one the generator cannot leave.
        return words[0] | jnp.uint32(1), words[1], words[2], words[3]

    def bits(self, state: PyTree, count: int) -> tuple[PyTree, list[UInt32[Array, ""]]]:
        s0, s1, s2, s3 = state
        words = []
        for _ in range(count):
            words.append(s0 + s3)
            shifted = s1 << 9
            s2, s3 = s2 ^ s0, s3 ^ s1
            s1, s0 = s1 ^ s2, s0 ^ s3
            s2 = s2 ^ shifted
            s3 = (s3 << 11) | (s3 >> 21)
        return (s0, s1, s2, s3), words


def draw(
    noise: AbstractNoise, state: PyTree, noise_dim: int, dtype: jnp.dtype
) -> tuple[PyTree, Float[Array, " noise"], Float[Array, ""]]:
    """The noise of one step: the generator's next state, `noise_dim` standard normals, and an Exp(1) mark.

    The mark is what the minimum of a Brownian bridge is made from; it is independent of the normals.
    """
    words_each = 1 if dtype == jnp.float32 else 2
    state, words = noise.bits(state, words_each * (noise_dim + 1))
    # In (-1, 1), odd multiples of a power of two: never 0 or +-1, where a transform below would be infinite.
    u = [_symmetric(words[i : i + words_each], dtype) for i in range(0, len(words), words_each)]
    mark = _minus_log(0.5 + 0.5 * u[-1])
    *normals, mark = settle(*map(_normal, u[:-1]), mark)
    return state, jnp.stack(normals), mark


def root_key(key: int | Array) -> Key[Array, ""]:
    """A JAX key from an int seed, a typed key or a raw `PRNGKey`.

    **Raises:** `InputError` for anything else.
    """
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        high, low = divmod(int(key) % 2**64, 2**32)
        # Without 64-bit integers JAX takes the low half alone.
        return jax.random.fold_in(jax.random.key(low), high) if high else jax.random.key(low)
    if isinstance(key, jax.Array) and key.shape == () and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if isinstance(key, jax.Array) and key.dtype == jnp.uint32 and key.shape == (2,):
        return jax.random.wrap_key_data(key)
    raise InputError(f"key must be an int or one JAX key (jax.random.key(0)), got {key!r}")


def lane_keys(key: Key[Array, ""], lanes: int) -> Key[Array, " lanes"]:
    """One key a lane, by number: lane i's noise does not depend on how many lanes there are."""
    return jax.vmap(lambda lane: jax.random.fold_in(key, lane))(jnp.arange(lanes, dtype=jnp.uint32))


# The normal with distribution function (1 + x)/2 is x R(w), w = -log(1 - x^2), R smooth and growing like sqrt(2 w): a rational
# function of degree 5 over 4 is within 2.5e-7 of it for all x of 24 bits. All its coefficients are positive: nothing cancels.
_ABOVE = (1.2533144446522435, 0.49336837815969686, 0.10064668126138855, 0.013374504119019652, 0.0011052606141061844,
          1.039551665493636e-05)  # fmt: skip
_BELOW = (1.0, 0.1318579681551579, 0.03272653942485752, 0.003057830085594673, 0.00011980058977543017)
# log(1 + t)/t on [sqrt(1/2) - 1, sqrt(2) - 1], within 1.7e-7.
_LOG1P = (0.9999999453229247, -0.5000036513321515, 0.3333505867861351, -0.2496990827684401, 0.1990017319503962,
          -0.1725084817205691, 0.162225244566137, -0.10106764293669596)  # fmt: skip
_ROOT_HALF = 0x3F3504F3  # the bits of sqrt(1/2)


def _normal(x: Float[Array, ""]) -> Float[Array, ""]:
    """A standard normal from x uniform in (-1, 1)."""
    if x.dtype != jnp.float32:
        return 2.0**0.5 * jax.lax.erf_inv(x)
    w = _minus_log((1 - x) * (1 + x))
    return x * (_polynomial(_ABOVE, w) / _polynomial(_BELOW, w))


def _minus_log(u: Float[Array, ""]) -> Float[Array, ""]:
    """-log u for u in (0, 1]; for float32 without the cases that a general logarithm must look for, within 3e-7."""
    if u.dtype != jnp.float32:
        return -jnp.log(u)
    bits = jax.lax.bitcast_convert_type(u, jnp.int32)
    exponent = (bits - _ROOT_HALF) >> 23  # u = 2^exponent (1 + t)
    t = jax.lax.bitcast_convert_type(bits - (exponent << 23), jnp.float32) - 1
    return -(exponent.astype(jnp.float32) * np.float32(math.log(2)) + t * _polynomial(_LOG1P, t))


def _polynomial(coefficients: tuple[float, ...], x: Float[Array, ""]) -> Float[Array, ""]:
    value = jnp.asarray(coefficients[-1], x.dtype)
    for c in coefficients[-2::-1]:
        value = value * x + np.float32(c)
    return value


def _symmetric(words: list[UInt32[Array, ""]], dtype: jnp.dtype) -> Float[Array, ""]:
    if len(words) == 1:
        # 23 bits and a half: exact in float32; converted as int32, which vectorises everywhere.
        return (jax.lax.convert_element_type(words[0] >> 9, jnp.int32).astype(dtype) + 0.5) * 2.0**-22 - 1.0
    high, low = (jax.lax.convert_element_type(word >> 6, jnp.int32).astype(dtype) for word in words)
    return (high * 2.0**26 + low + 0.5) * 2.0**-51 - 1.0
