import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff.noise import Threefry, draw, lane_keys, root_key

SOLVERS = [rdiff.ProjectedEuler(), rdiff.BridgeEuler(), rdiff.BridgeHeun()]


@pytest.mark.parametrize("solver", SOLVERS, ids=[type(s).__name__ for s in SOLVERS])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_paths_stay_inside_and_local_time_grows_only_at_the_wall(solver, dtype):
    p = rdiff.sample_paths(
        rdiff.JSQDiffusion(1.0, b=2), np.arange(201) * 0.1, key=1, paths=64, dt=0.1, solver=solver, dtype=dtype
    )
    assert p.values.dtype == p.local_time.dtype == dtype
    y, u = np.asarray(p.values), np.asarray(p.local_time)
    assert y.shape == (64, 201, 3) and u.shape == (64, 201)
    assert y.min() >= 0 and np.all(u[:, 0] == 0)
    growth = np.diff(u, axis=1)
    assert growth.min() >= 0 and growth.max() > 0.1
    away = np.minimum(y[:, 1:, 0], y[:, :-1, 0]) > 8 * np.sqrt(0.2)
    assert np.any(away) or solver is SOLVERS[0]
    assert np.all(growth[away] == 0)


def test_equals_a_plain_scan_to_rounding():
    Y, solver, dt = rdiff.JSQDiffusion(1.0), rdiff.BridgeHeun(), 0.05

    def one(carry, _):
        y, u, state = carry
        state, normals, mark = draw(Threefry(), state, 1, jnp.float32)
        step = jnp.float32(dt)
        y, push = solver.advance(Y, y, step, jnp.sqrt(step) * normals, mark)
        return (y, u + push, state), (y, u + push)

    def plain(key):
        return jax.lax.scan(one, (Y.start, jnp.zeros(()), Threefry().init(key)), length=400)[1]

    ys, us = jax.jit(jax.vmap(plain))(lane_keys(root_key(0), 8))
    p = rdiff.sample_paths(Y, np.arange(0, 401, 2) * dt, key=0, paths=8, dt=dt)
    # The same numbers but for the compiler's choice of fused multiply-adds, which differs between two programs: over 200 steps
    # of a contracting chain that is a few units in the last place. Other noise would be off by tenths.
    assert np.allclose(ys[:, 1::2], p.values[:, 1:], rtol=3e-6, atol=3e-6)
    assert np.allclose(us[:, 1::2], p.local_time[:, 1:], rtol=3e-6, atol=3e-6)


def test_a_path_does_not_depend_on_the_others_or_on_the_saved_times():
    Y = rdiff.JSQDiffusion(1.0)
    many = rdiff.sample_paths(Y, [0.0, 1.0, 2.0], key=4, paths=8, dt=0.1)
    few = rdiff.sample_paths(Y, [2.0], key=4, paths=3, dt=0.1)
    assert np.allclose(many.values[:3, 2], few.values[:, 0], rtol=1e-6)
    assert len(set(np.asarray(many.values[:, -1, 0]).tolist())) == 8


def test_local_time_accounts_for_the_push():
    # E Y1(t) - E Y1(0) = int (beta - E Y1 - E Y2) + E U: checked through Y1 - Y2, whose reflection cancels.
    p = rdiff.sample_paths(rdiff.JSQDiffusion(1.0), np.arange(0, 1001) * 0.02, key=2, paths=4000, dt=0.02)
    y, u = np.asarray(p.values, float), np.asarray(p.local_time, float)
    flow = np.sum((y[:, 1:, 1] + y[:, :-1, 1]) / 2, axis=1) * 0.02
    residual = y[:, -1, 1] - (u[:, -1] - flow)  # Y2(t) = U(t) - int Y2, exact but for the steps
    assert abs(residual.mean()) < 0.02 * u[:, -1].mean() * 0.05 + 4.5 * residual.std() / np.sqrt(residual.size)


def test_a_path_that_explodes_is_refused():
    wall = rdiff.HalfSpace([1.0])
    away = rdiff.ReflectedDiffusion(lambda y: y**3, 1.0, wall)
    with pytest.raises(rdiff.InputError, match="does not stay finite"):
        rdiff.sample_paths(away, [20.0], key=0, dt=0.1)


def test_vmap_over_parameters():
    def end(beta):
        return rdiff.sample_paths(rdiff.JSQDiffusion(beta), [1.0], key=0, paths=2, dt=0.1).values

    betas = jnp.array([0.5, 2.0])
    assert np.allclose(jax.vmap(end)(betas), jnp.stack([end(beta) for beta in betas]), rtol=1e-5)


@pytest.mark.parametrize(
    "ts, options, message",
    [
        ([0.0, 0.155], {}, "step grid"),
        ([1.0, 0.5], {}, "not decrease"),
        ([-1.0, 0.5], {}, "start at 0"),
        ([np.nan], {}, "finite times"),
        (1.0, {}, "vector of finite times"),
        ([1.0], {"dt": 0.0}, "dt must be"),
        ([1.0], {"paths": 0}, "paths must be"),
        ([1.0], {"y0": [-1.0, 0.0]}, "lie in the domain"),
        ([1.0], {"y0": [0.0]}, "shape"),
        ([1e9], {}, "steps are more"),
        ([1000.0002], {"dt": 1e-3}, "step grid"),
        (["a"], {}, "vector of finite times"),
        ([1.0], {"dtype": jnp.int32}, "dtype must be"),
    ],
)
def test_bad_input(ts, options, message):
    with pytest.raises(rdiff.InputError, match=message):
        rdiff.sample_paths(rdiff.JSQDiffusion(1.0), ts, key=0, **options)
