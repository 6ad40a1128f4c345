"""E h(Y) under JAX's transformations."""

import jax
import jax.numpy as jnp
import pytest

import rdiff
from rdiff.limit.gradient import expectation


def test_value_and_slope():
    with jax.enable_x64(True):
        value, slope = jax.jit(jax.value_and_grad(lambda beta: expectation(beta, lambda y: y[1])))(1.0)
        assert value == pytest.approx(0.8140596634748, abs=1e-10)
        assert slope == pytest.approx(-1.84595701127, abs=1e-8)


def test_single_precision_and_chain_rule():
    slope = jax.grad(lambda t: expectation(jnp.exp(t), lambda y: y[0] ** 2, b=2) ** 2)(jnp.float32(0.0))
    assert slope.dtype == jnp.float32 and slope == pytest.approx(2 * 1.592970168 * 2.515948674, rel=1e-4)


def test_vmap():
    assert jax.vmap(lambda beta: expectation(beta, lambda y: y[0]))(jnp.array([0.5, 2.0])) == pytest.approx(
        [0.5, 2.0], rel=1e-5
    )


def test_erlang():
    rate = 0.28759997094
    assert jax.grad(lambda beta: expectation(beta, lambda y: y[0], b=0))(1.0) == pytest.approx(1 - rate - rate**2, rel=1e-4)


def test_out_of_range():
    with pytest.raises(rdiff.InputError, match="beta must lie"):
        expectation(50.0, lambda y: y[0])
