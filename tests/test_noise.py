import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import rdiff
import rdiff.noise as noise_module
from rdiff.noise import Threefry, Xoshiro, draw, lane_keys, root_key

LANES, STEPS = 512, 400
GENERATORS = [Threefry(), Xoshiro()]


def sample(noise, dtype):
    def lane(key):
        def one(state, _):
            state, normals, mark = draw(noise, state, 2, dtype)
            return state, (normals, mark)

        return jax.lax.scan(one, noise.init(key), length=STEPS)[1]

    normals, marks = jax.jit(jax.vmap(lane))(lane_keys(jax.random.key(11), LANES))
    return np.asarray(normals, float), np.asarray(marks, float)


@pytest.mark.parametrize("noise", GENERATORS, ids=["threefry", "xoshiro"])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_laws_and_independence(noise, dtype):
    with jax.enable_x64(True):
        normals, marks = sample(noise, jnp.dtype(dtype))
    assert stats.kstest(normals.ravel(), "norm").pvalue > 1e-5
    assert stats.kstest(marks.ravel(), "expon").pvalue > 1e-5
    assert np.all(np.isfinite(normals)) and marks.min() > 0
    # Correlations are normal(0, 1/N): between the numbers of a step, along a lane, and between neighbouring lanes.
    u = [*(stats.norm.cdf(normals[..., i]) for i in range(2)), stats.expon.cdf(marks)]
    pairs = [(u[0], u[1]), (u[0], u[2]), *((x[:, 1:], x[:, :-1]) for x in u), *((x[1:], x[:-1]) for x in u)]
    for a, b in pairs:
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4.5 / np.sqrt(a.size)


def test_xoshiro_is_the_published_generator():
    # xoshiro128+ from state (1, 2, 3, 4), worked out from the published recurrence in plain integers.
    def reference(s, count):
        out, mask = [], 2**32 - 1
        for _ in range(count):
            out.append((s[0] + s[3]) & mask)
            t = (s[1] << 9) & mask
            s[2] ^= s[0]
            s[3] ^= s[1]
            s[1] ^= s[2]
            s[0] ^= s[3]
            s[2] ^= t
            s[3] = ((s[3] << 11) | (s[3] >> 21)) & mask
        return out

    state = tuple(jnp.uint32(i) for i in (1, 2, 3, 4))
    _, words = Xoshiro().bits(state, 20)
    assert [int(w) for w in words] == reference([1, 2, 3, 4], 20)
    assert int(words[0]) == 5


def test_every_float32_draw_is_the_quantile_it_should_be():
    words = [jnp.arange(2**23, dtype=jnp.uint32) << 9]  # all there are
    x = noise_module._symmetric(words, jnp.dtype(jnp.float32))
    normal, mark = jax.jit(lambda x: (noise_module._normal(x), noise_module._minus_log(0.5 + 0.5 * x)))(x)
    exact = np.asarray(x, float)
    tail = stats.norm.isf((1 - np.abs(exact)) / 2) * np.sign(exact)
    # The rational function is good to 2.5e-7, and the float operations after it to a few units in the last place.
    np.testing.assert_allclose(normal, tail, rtol=6e-7)
    np.testing.assert_allclose(mark, -np.log(np.asarray(0.5 + 0.5 * x, float)), rtol=4e-7)


def test_lanes_do_not_depend_on_their_number():
    few, many = (jax.random.key_data(lane_keys(jax.random.key(3), count)) for count in (4, 9))
    assert np.array_equal(few, many[:4])
    assert len({tuple(k) for k in np.asarray(many).tolist()}) == 9


def test_keys():
    assert np.array_equal(jax.random.key_data(root_key(7)), jax.random.PRNGKey(7))
    assert np.array_equal(jax.random.key_data(root_key(jax.random.PRNGKey(7))), jax.random.PRNGKey(7))
    data = {tuple(np.asarray(jax.random.key_data(root_key(key))).tolist()) for key in (0, 2**32, 2**40, -1, np.int64(3))}
    assert len(data) == 5
    for bad in (1.5, "0", None, True, jax.random.split(jax.random.key(0))):
        with pytest.raises(rdiff.InputError, match="key must be"):
            root_key(bad)
