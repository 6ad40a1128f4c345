import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdiff


@pytest.mark.parametrize("b", [0, 1, 2, 4])
def test_jsq_drift_is_the_equation(b):
    y = np.arange(1.0, b + 2) / 3
    after = [*y[1:], 0.0]
    expected = [1.5 - y[0] - after[0]] + [-(y[i] - after[i]) for i in range(1, b + 1)]
    Y = rdiff.JSQDiffusion(beta=1.5, b=b)
    assert np.allclose(Y.drift(jnp.asarray(y, jnp.float32)), expected)
    assert Y.domain.direction.tolist() == [1.0, 1.0][: b + 1] + [0.0] * (b - 1)
    assert Y.noise_dim == 1 and Y.dim == b + 1


@pytest.mark.parametrize("beta", [0, -1.0, np.nan, np.inf, "1", None, 1j, [1.0]])
def test_beta_must_be_positive(beta):
    with pytest.raises(rdiff.InputError, match="beta must be a positive, finite number"):
        rdiff.JSQDiffusion(beta=beta)


@pytest.mark.parametrize("b", [-1, 1.0, 1.5, "1", True, None])
def test_b_must_be_an_integer(b):
    with pytest.raises(rdiff.InputError, match="b must be"):
        rdiff.JSQDiffusion(beta=1.0, b=b)


def test_models_are_pytrees_and_pickle():
    betas = jnp.array([0.5, 1.0])
    drift = jax.vmap(lambda beta: rdiff.JSQDiffusion(beta).drift(jnp.zeros(2)))(betas)
    assert drift[:, 0].tolist() == [0.5, 1.0]
    slope = jax.grad(lambda beta: rdiff.ReflectedOU(beta).drift(jnp.zeros(1))[0])(1.0)
    assert float(slope) == 1.0
    assert pickle.loads(pickle.dumps(rdiff.JSQDiffusion(1.0, 2))).b == 2


def test_own_diffusion_is_checked():
    wall = rdiff.HalfSpace(normal=[1.0, 0.0])
    with pytest.raises(rdiff.InputError, match=r"drift must return shape \(2,\)"):
        rdiff.ReflectedDiffusion(lambda y: y[0], np.eye(2), wall)
    with pytest.raises(rdiff.InputError, match="drift fails on a state"):
        rdiff.ReflectedDiffusion(lambda y: undefined_name, np.eye(2), wall)  # noqa: F821
    with pytest.raises(rdiff.InputError, match="diffusion must have shape"):
        rdiff.ReflectedDiffusion(lambda y: -y, np.eye(3), wall)
    with pytest.raises(rdiff.InputError, match="across the boundary"):
        rdiff.ReflectedDiffusion(lambda y: -y, np.array([0.0, 1.0]), wall)
    with pytest.raises(rdiff.InputError, match="finite"):
        rdiff.ReflectedDiffusion(lambda y: -y, np.array([np.nan, 1.0]), wall)
    with pytest.raises(rdiff.InputError, match=r"drift must return shape \(2,\).*list of 2"):
        rdiff.ReflectedDiffusion(lambda y: [-y[0], y[1]], np.eye(2), wall)
    with pytest.raises(rdiff.InputError, match="real numbers"):
        rdiff.ReflectedDiffusion(lambda y: -y, "a", wall)
    for bad in (0, (5,)):
        with pytest.raises(rdiff.InputError, match="nonnegative must be"):
            rdiff.ReflectedDiffusion(lambda y: -y, np.eye(2), wall, nonnegative=bad)
    with pytest.raises(rdiff.InputError, match="relaxation_time must be"):
        rdiff.ReflectedDiffusion(lambda y: -y, np.eye(2), wall, relaxation_time="x")


def test_start_lies_in_the_domain():
    away = rdiff.ReflectedDiffusion(lambda y: -y, np.eye(2), rdiff.HalfSpace([1.0, 0.0], [1.0, 1.0], offset=2.0))
    assert away.start.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("model", [rdiff.ReflectedOU(1.0), rdiff.ReflectedBrownianMotion(2.0, 3.0)])
def test_relaxation_times(model):
    # OU forgets at its rate; reflected Brownian motion has spectral gap mu^2/(2 s^2).
    expected = 1.0 if isinstance(model, rdiff.ReflectedOU) else 2 * 9 / 4
    assert float(model.relaxation_time) == pytest.approx(expected)
