"""Biases and orders of the schemes through their computed stationary means: theory, the table of biases, and sampled runs."""

import functools
import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff.numerical_chain import stationary_mean

SOLVERS = {"projected": rdiff.ProjectedEuler(), "euler": rdiff.BridgeEuler(), "heun": rdiff.BridgeHeun()}
EXACT = {"y2": 0.814059663, "y1": 1.0, "y1**2": 1.592970168}
OBSERVABLES = {"y2": lambda y: y[1], "y1": lambda y: y[0], "y1**2": lambda y: y[0] ** 2}


def first(x):
    return x[0]


@functools.cache
def jsq_bias(solver, dt, points=None):
    found = stationary_mean(rdiff.JSQDiffusion(1.0), SOLVERS[solver], dt, OBSERVABLES, points=points)
    return {name: value - EXACT[name] for name, value in found.items()}


def orders(biases, factor=2.0):
    return [math.log(abs(a / b), factor) for a, b in itertools.pairwise(biases)]


@pytest.mark.parametrize(
    ("s", "dt", "mean"),
    [(1.0, 0.1, 0.3394566351), (1.0, 0.01, 0.4441988211), (2**0.5, 0.1, 0.7635278676), (2**0.5, 0.01, 0.9200789995)],
)
def test_projected_brownian_motion_has_its_closed_form(s, dt, mean):
    process = rdiff.ReflectedBrownianMotion(mu=1.0, s=s)
    assert stationary_mean(process, SOLVERS["projected"], dt, first) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("solver", ["euler", "heun"])
@pytest.mark.parametrize("dt", [0.5, 0.1, 0.01])
def test_bridge_steps_are_exact_for_brownian_motion(solver, dt):
    process = rdiff.ReflectedBrownianMotion(mu=1.0)
    assert stationary_mean(process, SOLVERS[solver], dt, first) == pytest.approx(0.5, abs=1e-6)


def test_reflected_ou_at_a_tenth():
    mean = stationary_mean(rdiff.ReflectedOU(center=1.0), SOLVERS["heun"], 0.1, first)
    assert mean == pytest.approx(1.28759997, abs=0.002)
    # The loss system's limit is the same process.
    assert stationary_mean(rdiff.JSQDiffusion(1.0, b=0), SOLVERS["heun"], 0.1, first) == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize(
    ("solver", "dt", "bias"),
    [
        ("projected", 0.4, -0.4135), ("projected", 0.2, -0.3595), ("projected", 0.1, -0.2976), ("projected", 0.05, -0.2378),
        ("euler", 0.4, 0.0975), ("euler", 0.2, 0.0487), ("euler", 0.1, 0.0247), ("euler", 0.05, 0.0126),
    ],
)  # fmt: skip
def test_bias_of_y2(solver, dt, bias):
    # E Y1 = beta for Euler's drift whatever dt is: the chain's own identity, which the solution must keep.
    found = jsq_bias(solver, dt)
    assert found["y2"] == pytest.approx(bias, abs=1e-4)
    assert found["y1"] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    ("dt", "y2", "y1_squared"),
    [(0.4, -0.0021, -0.0201), (0.2, -0.0006, -0.0041), (0.1, -0.0001, -0.0009), (0.05, -0.00003, -0.0002)],
)
def test_bridge_heun_table(dt, y2, y1_squared):
    # The table is of the step that does not hold Y2 at 0 or more.
    free = rdiff.ReflectedDiffusion(
        drift=lambda y: jnp.stack([1.0 - y[0] - y[1], -y[1]]),
        diffusion=np.array([2.0**0.5, 0.0]),
        domain=rdiff.HalfSpace(normal=[1.0, 0.0], direction=[1.0, 1.0]),
    )
    found = stationary_mean(free, SOLVERS["heun"], dt, OBSERVABLES, box=(10.0, 34.0))
    assert found["y2"] - EXACT["y2"] == pytest.approx(y2, abs=1e-5 if dt == 0.05 else 6e-5)
    assert found["y1**2"] - EXACT["y1**2"] == pytest.approx(y1_squared, abs=6e-5)
    held = jsq_bias("heun", dt)
    assert held["y2"] == pytest.approx(y2, abs=3e-4)
    assert held["y1**2"] == pytest.approx(y1_squared, abs=3e-4)


def test_bias_converges_in_the_points():
    coarse, fine = (jsq_bias("heun", 0.1, points) for points in (None, (26, 36)))
    assert coarse["y2"] == pytest.approx(fine["y2"], abs=2e-5)
    assert coarse["y1**2"] == pytest.approx(fine["y1**2"], abs=1e-5)


@pytest.mark.parametrize(
    ("solver", "name", "steps", "low", "high"),
    [
        ("euler", "y2", (0.4, 0.2, 0.1), 0.8, 1.2),
        ("heun", "y1**2", (0.4, 0.2, 0.1), 1.7, 2.4),
        ("heun", "y2", (0.4, 0.2, 0.1), 1.5, 3.0),
        ("projected", "y2", (0.05, 0.025, 0.0125), 0.3, 0.5),
    ],
)
def test_orders(solver, name, steps, low, high):
    found = orders([jsq_bias(solver, dt)[name] for dt in steps])
    assert all(low <= order <= high for order in found), found


def test_order_with_curved_drift():
    process = rdiff.ReflectedDiffusion(lambda x: -(x**3), 2.0**0.5, rdiff.HalfSpace(normal=[1.0]))
    exact = math.sqrt(2 * math.pi) / math.gamma(0.25)  # of the density exp(-x^4/4)
    biases = [stationary_mean(process, SOLVERS["heun"], dt, first, box=(3.2,)) - exact for dt in (0.2, 0.1, 0.05)]
    assert all(1.8 <= order <= 2.6 for order in orders(biases)), biases


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_sampled_runs_agree_with_the_computed_chain(solver):
    sampled = rdiff.long_run_average(
        rdiff.JSQDiffusion(1.0), OBSERVABLES, key=11, dt=0.4, chains=2048, horizon=80.0, burn_in=40.0, solver=SOLVERS[solver]
    )
    for name, bias in jsq_bias(solver, 0.4).items():
        est = sampled[name]
        assert abs(est.mean - EXACT[name] - bias) < 4 * est.stderr, name


def test_what_cannot_be_computed_is_refused():
    heun = SOLVERS["heun"]
    with pytest.raises(rdiff.InputError, match="one or two coordinates"):
        stationary_mean(rdiff.JSQDiffusion(1.0, b=2), heun, 0.1, first)
    own = rdiff.ReflectedDiffusion(lambda x: -x, 1.0, rdiff.HalfSpace(normal=[1.0]))
    with pytest.raises(rdiff.InputError, match="box"):
        stationary_mean(own, heun, 0.1, first)
    with pytest.raises(rdiff.InputError, match="dt"):
        stationary_mean(rdiff.ReflectedOU(1.0), heun, -0.1, first)
