import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdiff


def test_direction_is_rescaled_to_unit_push():
    wall = rdiff.HalfSpace(normal=[0.0, 2.0], direction=[3.0, 4.0], offset=1.0)
    assert np.allclose(wall.normal @ wall.direction, 1)
    y = jnp.array([5.0, 0.25])
    assert float(wall.height(y)) == -0.5
    assert not wall.contains(y)
    assert float(wall.height(wall.push(y, 0.5))) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("direction", [[-1.0, 0.0], [0.0, 1.0], [1e-20, 1.0], [0.0, 0.0]])
def test_direction_must_point_inwards(direction):
    with pytest.raises(rdiff.InputError, match="must point into the domain"):
        rdiff.HalfSpace(normal=[1.0, 0.0], direction=direction)


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], ["a", "b"]])
def test_numbers_must_be_finite(bad):
    with pytest.raises(rdiff.InputError, match="finite"):
        rdiff.HalfSpace(normal=[1.0, 0.0], direction=bad)


def test_shapes_must_agree():
    with pytest.raises(rdiff.InputError, match="offset must be"):
        rdiff.HalfSpace(normal=[1.0, 0.0], offset=[1.0, 2.0])
    with pytest.raises(rdiff.InputError, match="one length"):
        rdiff.HalfSpace(normal=[1.0, 0.0], direction=[1.0])


def test_is_a_pytree_under_vmap_and_grad():
    def height(offset):
        return rdiff.HalfSpace(normal=[1.0, 1.0], offset=offset).height(jnp.array([1.0, 2.0]))

    assert jax.vmap(height)(jnp.array([0.0, 1.0])).tolist() == [3.0, 2.0]
    assert float(jax.grad(height)(1.0)) == -1.0
