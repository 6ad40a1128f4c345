"""The steps themselves; orders and biases are measured in test_orders.py."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfcx, ndtr

import rdiff
from rdiff.noise import Threefry, draw, lane_keys
from rdiff.solvers.bridge_heun import _mills

SOLVERS = [rdiff.ProjectedEuler(), rdiff.BridgeEuler(), rdiff.BridgeHeun()]
NAMES = [type(solver).__name__ for solver in SOLVERS]


def noise(key, steps, dt):
    def one(state, _):
        state, normals, mark = draw(Threefry(), state, 1, jnp.float64)
        return state, (np.sqrt(dt) * normals, mark)

    return jax.lax.scan(one, Threefry().init(key), length=steps)[1]


def trajectory(process, solver, y, dt, dws, marks):
    def one(y, inputs):
        y, push = solver.advance(process, y, jnp.asarray(dt, y.dtype), *inputs)
        return y, (y, push)

    return jax.lax.scan(one, y, (dws, marks))[1]


def test_mills_ratio_is_good_to_8e_5():
    x = np.linspace(0, 60, 60_001)
    exact = np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2))
    assert np.max(np.abs(_mills(x) / exact - 1)) < 8.1e-5


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_rotating_and_shifting_the_half_space_changes_nothing(solver, key):
    # Pathwise to rounding: the same noise, the same path in other coordinates.
    with jax.enable_x64(True):
        angle, shift, dt = 0.7, jnp.array([0.3, -1.1]), 0.1
        turn = jnp.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        drift = lambda y: jnp.stack([1.0 - y[0] - y[1] + 0.3 * jnp.sin(y[1]), -y[1] + 0.1 * y[0] ** 2])  # noqa: E731
        sigma = jnp.array([[1.2, 0.0], [0.5, 0.4]])
        normal, direction = jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0])
        plain = rdiff.ReflectedDiffusion(drift, sigma, rdiff.HalfSpace(normal, direction))
        moved = rdiff.ReflectedDiffusion(
            lambda z: turn @ drift(turn.T @ (z - shift)),
            turn @ sigma,
            rdiff.HalfSpace(turn @ normal, turn @ direction, offset=(turn @ normal) @ shift),
        )
        dws = np.sqrt(dt) * jax.random.normal(key, (400, 2), jnp.float64)
        marks = jax.random.exponential(key, (400,), jnp.float64)
        y = jnp.array([0.2, 0.1])
        ys, pushes = trajectory(plain, solver, y, dt, dws, marks)
        zs, pushed = trajectory(moved, solver, turn @ y + shift, dt, dws, marks)
        assert np.sum(np.asarray(pushes) > 0) > 20
        assert np.allclose(zs, ys @ turn.T + shift[None], atol=1e-9)
        assert np.allclose(pushes, pushed, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_scaling_the_direction_changes_nothing(solver):
    y, dt, dw, mark = jnp.array([0.05, 1.0]), jnp.array(0.2), jnp.array([-0.4]), jnp.array(0.7)
    drift, sigma = (lambda y: -y), np.array([1.0, 0.5])
    results = [
        solver.advance(rdiff.ReflectedDiffusion(drift, sigma, rdiff.HalfSpace([1.0, 0.0], direction)), y, dt, dw, mark)
        for direction in ([1.0, 1.0], [5.0, 5.0])
    ]
    assert float(results[0][1]) > 0
    assert np.allclose(results[0][0], results[1][0]) and np.allclose(results[0][1], results[1][1])


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_half_space_and_local_time(solver, key):
    with jax.enable_x64(True):
        Y, dt = rdiff.JSQDiffusion(1.0, b=2), 0.05
        ys, pushes = trajectory(Y, solver, jnp.zeros(3), dt, *noise(key, 4000, dt))
        ys, pushes = np.asarray(ys), np.asarray(pushes)
        assert ys.min() >= 0 and pushes.min() >= 0
        # U grows only at the wall: no push in a step that starts and ends far from it (10 standard deviations).
        far = np.minimum(ys[1:, 0], ys[:-1, 0]) > 10 * np.sqrt(2 * dt)
        assert np.all(pushes[1:][far] == 0)


@pytest.mark.parametrize("solver", SOLVERS[1:], ids=NAMES[1:])
def test_bridge_steps_are_exact_for_constant_coefficients(solver):
    # One step of any size: P(X_t <= y | x) of reflected Brownian motion in closed form (REFERENCE.md).
    with jax.enable_x64(True):
        mu, s, t, x, size = 0.7, 1.3, 2.0, 0.4, 40_000
        process = rdiff.ReflectedBrownianMotion(mu, s)
        keys = jax.random.split(jax.random.key(5), 2)
        dws = np.sqrt(t) * jax.random.normal(keys[0], (size, 1), jnp.float64)
        marks = jax.random.exponential(keys[1], (size,), jnp.float64)
        step = jax.vmap(lambda dw, mark: solver.advance(process, jnp.array([x]), jnp.asarray(t), dw, mark)[0][0])
        sample = np.sort(np.asarray(step(dws, marks)))
        root = s * np.sqrt(t)
        cdf = ndtr((sample - x + mu * t) / root) - np.exp(-2 * mu * sample / s**2) * ndtr((-sample - x + mu * t) / root)
        ks = np.max(np.abs(cdf - (np.arange(size) + 0.5) / size))
        assert ks < 2.2 / np.sqrt(size)  # P(larger) about 1e-4


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
@pytest.mark.parametrize("dt", [0.5, 1.0])
def test_no_blow_up_from_far_away(solver, dt, key):
    Y = rdiff.JSQDiffusion(1.0)
    with jax.enable_x64(True):
        many = jax.vmap(lambda k: trajectory(Y, solver, jnp.array([0.0, 50.0]), dt, *noise(k, int(40 / dt), dt))[0])
        ys = np.asarray(many(lane_keys(key, 2000)))
    assert np.all(np.isfinite(ys)) and ys[..., 1].max() < 60
    if isinstance(solver, rdiff.BridgeHeun):
        # The mean of Y2 at t = 40 is 12.1 +- 0.2 at every step.
        final = ys[:, -1, 1]
        assert abs(final.mean() - 12.1) < 0.2 + 4 * final.std() / np.sqrt(final.size)


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_gradients_stay_finite_through_2000_steps(solver, key):
    dws = 0.3 * jax.random.normal(key, (2000, 1))
    marks = jax.random.exponential(key, (2000,)).at[::7].set(0.0)  # a mark of 0 occurs in float32

    def end(beta, y):
        return trajectory(rdiff.JSQDiffusion(beta), solver, y, 0.1, dws, marks)[0][-1].sum()

    for y in (jnp.zeros(2), jnp.array([0.0, 1.0])):
        gradients = jax.grad(end, argnums=(0, 1))(jnp.array(1.0), y)
        assert all(bool(jnp.all(jnp.isfinite(g))) for g in jax.tree.leaves(gradients))


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
@pytest.mark.parametrize("y", [[0.0, 0.0], [0.0, 1.0], [0.3, 0.7]])
def test_values_and_gradients_at_mark_and_height_zero(solver, y):
    # At y = (0, 1), dw = 0 the free rise is 0 too: every denominator of the bridge vanishes.
    Y = rdiff.JSQDiffusion(1.0)
    step = lambda y: solver.advance(Y, y, jnp.array(0.1), jnp.array([0.0]), jnp.array(0.0))[0]  # noqa: E731
    assert bool(jnp.all(jnp.isfinite(step(jnp.array(y)))))
    assert bool(jnp.all(jnp.isfinite(jax.jacobian(step)(jnp.array(y)))))


def test_state_dependent_noise():
    wall = rdiff.HalfSpace(normal=[1.0])
    varying = rdiff.ReflectedDiffusion(lambda y: 1 - y, lambda y: jnp.sqrt(1 + y)[:, None], wall)
    with pytest.raises(rdiff.InputError, match="additive noise"):
        rdiff.long_run_average(varying, lambda y: y[0], key=0)
    # Stationary density ~ exp(int 2(1-y)/(1+y))/(1+y) = (1+y)^3 e^{-2y}: mean by quadrature.
    x = np.linspace(0, 30, 300_001)
    p = (1 + x) ** 3 * np.exp(-2 * x)
    exact = np.sum(x * p) / np.sum(p)
    est = rdiff.long_run_average(
        varying, lambda y: y[0], key=0, dt=0.01, chains=1024, horizon=60.0, burn_in=15.0, solver=rdiff.BridgeEuler(), bias=True
    )  # fmt: skip
    assert abs(est.mean - exact) < 4.5 * est.stderr + 1.5 * abs(est.bias)


def test_adaptive_steps_are_refused_with_the_reason():
    Y = rdiff.JSQDiffusion(1.0)
    run = lambda solver, controller: diffrax.diffeqsolve(  # noqa: E731
        rdiff.ReflectedTerm(Y, jax.random.key(0)), solver, t0=0.0, t1=1.0, dt0=0.1, y0=(Y.start, jnp.zeros(())),
        stepsize_controller=controller, adjoint=diffrax.ForwardMode(), max_steps=None,
    )  # fmt: skip
    pid = diffrax.PIDController(rtol=1e-3, atol=1e-3)
    with pytest.raises(rdiff.InputError, match="cannot be rejected or halved"):
        run(diffrax.HalfSolver(rdiff.BridgeHeun()), pid)
    with pytest.raises(RuntimeError, match="error estimates"):
        run(rdiff.BridgeHeun(), pid)
    with pytest.raises(rdiff.InputError, match="cannot be rejected or halved"):
        rdiff.sample_paths(Y, [0.0, 1.0], key=0, solver=diffrax.HalfSolver(rdiff.BridgeHeun()))
    with pytest.raises(rdiff.InputError, match="must be a reflected one"):
        rdiff.sample_paths(Y, [0.0, 1.0], key=0, solver=diffrax.Euler())
    with pytest.raises(rdiff.InputError, match="without its parentheses"):
        rdiff.long_run_average(Y, lambda y: y[1], key=0, solver=rdiff.BridgeHeun)
