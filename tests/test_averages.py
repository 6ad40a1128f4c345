import dataclasses
import logging
import pickle
import tracemalloc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff import averages
from rdiff.layout import Layout

H = {"y1": lambda y: y[0], "y2": lambda y: y[1], "y1*y2": lambda y: y[0] * y[1], "y2>1": lambda y: y[1] > 1}
EXACT = {"y1": 1.0, "y2": 0.814059663, "y1*y2": 0.407029832, "y2>1": 0.2851928528}  # REFERENCE.md, beta = 1
SMALL = dict(key=7, chains=256, horizon=60.0)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("noise", [rdiff.Xoshiro(), rdiff.Threefry()], ids=["xoshiro", "threefry"])
def test_the_limit_at_beta_1(dtype, noise):
    est = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H, key=1, chains=1024, horizon=100.0, dtype=dtype, noise=noise)
    for name, exact in EXACT.items():
        # The bias of BridgeHeun at dt = 0.1 is below 1e-3.
        assert abs(est[name].mean - exact) < 4.5 * est[name].stderr + 1e-3
        assert est[name].reliable, est[name].cautions
    assert est["y2"].stderr < 0.02


@pytest.mark.parametrize("b", [2, 3])
def test_larger_buffers_have_the_same_law(b):
    est = rdiff.long_run_average(rdiff.JSQDiffusion(1.0, b), {**H, "y3": lambda y: y[2]}, key=1, chains=1024, horizon=100.0)
    assert all(abs(est[name].mean - exact) < 4.5 * est[name].stderr + 1e-3 for name, exact in EXACT.items())
    assert est["y3"].mean == est["y3"].stderr == 0 and est["y3"].reliable and est["y3"].rhat == 1


def test_reflected_ou_closed_form():
    # REFERENCE.md: mean 1.28759997, variance 0.62968629, for BridgeHeun at dt = 0.1 within 0.002.
    h = {"x": lambda y: y[0], "x^2": lambda y: y[0] ** 2}
    for model in (rdiff.ReflectedOU(1.0), rdiff.JSQDiffusion(1.0, b=0)):
        est = rdiff.long_run_average(model, h, key=2, dt=0.1, chains=2048, horizon=100.0)
        assert abs(est["x"].mean - 1.28759997) < 0.002 + 4 * est["x"].stderr
        assert abs(est["x^2"].mean - (0.62968629 + 1.28759997**2)) < 0.005 + 4 * est["x^2"].stderr


@pytest.mark.parametrize("solver, dt, exact", [
    (rdiff.ProjectedEuler(), 0.1, 0.3394566351), (rdiff.ProjectedEuler(), 0.01, 0.4441988211),
    (rdiff.BridgeEuler(), 0.1, 0.5), (rdiff.BridgeHeun(), 0.1, 0.5), (rdiff.BridgeHeun(), 1.0, 0.5),
], ids=str)  # fmt: skip
def test_reflected_brownian_motion_gives_the_numbers_of_its_scheme(solver, dt, exact):
    # REFERENCE.md: the projected chain's own mean, and the truth at any step for the bridge schemes.
    model = rdiff.ReflectedBrownianMotion(1.0, 1.0)
    est = rdiff.long_run_average(model, lambda y: y[0], key=3, dt=dt, chains=4096, horizon=50.0, solver=solver)
    assert abs(est.mean - exact) < 4.5 * est.stderr
    assert est.stderr < 0.002


@pytest.mark.parametrize("chunk", [1, 64, 1000, 10**6])
def test_chunk_size_changes_nothing_to_the_last_bit(chunk):
    Y = rdiff.JSQDiffusion(1.0)
    options = dict(key=5, chains=64, horizon=111.1, dt=0.1)
    assert rdiff.long_run_average(Y, H, chunk=chunk, **options) == rdiff.long_run_average(Y, H, **options)


def test_precisions_agree_within_error():
    single, double = (rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H, dtype=d, **SMALL) for d in (jnp.float32, jnp.float64))
    for name in H:
        error = np.hypot(single[name].stderr, double[name].stderr)
        assert abs(single[name].mean - double[name].mean) < 4.5 * error


def test_vmap_over_beta_equals_a_loop():
    betas = [0.5, 1.0, 2.0]
    run = lambda beta: rdiff.long_run_average(rdiff.JSQDiffusion(beta), H, burn_in=20.0, **SMALL)  # noqa: E731
    together = jax.jit(jax.vmap(run))(jnp.array(betas))
    for i, beta in enumerate(betas):
        alone = run(beta)
        for name in H:
            # Rounding differs between the compiled programs, and a path is chaotic only through it: 1e-4 is far below
            # the standard error.
            assert abs(float(together[name].mean[i]) - alone[name].mean) < max(
                1e-4 * alone[name].mean, 0.2 * alone[name].stderr
            )
            assert float(together[name].stderr[i]) == pytest.approx(alone[name].stderr, rel=0.02)


def test_gradient_through_the_run():
    # d E Y2/d beta = -1.845956925 (REFERENCE.md), by common noise from 0 on.
    slope = jax.jit(
        jax.value_and_grad(
            lambda beta, key: (
                rdiff.long_run_average(rdiff.JSQDiffusion(beta), H, key=key, dt=0.1, chains=32, burn_in=30.0, horizon=170.0)[
                    "y2"
                ].mean
            )
        )
    )
    slopes = np.array([float(slope(1.0, jax.random.key(i))[1]) for i in range(16)])
    assert np.all(np.isfinite(slopes))
    assert abs(slopes.mean() + 1.845956925) < 4.5 * slopes.std(ddof=1) / 4 + 5e-3


def test_inside_jit_with_nothing_traced():
    run = lambda: rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H, burn_in=20.0, **SMALL)  # noqa: E731
    assert float(jax.jit(run)()["y2"].mean) == pytest.approx(run()["y2"].mean, rel=1e-4)


def test_tracers_inside_drift_and_observable_are_seen():
    kw = dict(key=0, chains=16, horizon=20.0, burn_in=5.0, dt=0.1)
    wall = rdiff.HalfSpace([1.0])

    def own(theta):  # reflected OU of rate theta: E x = sqrt(2/(pi theta)), slope -sqrt(1/(2 pi)) at theta = 1
        return rdiff.ReflectedDiffusion(drift=lambda y: -theta * y, diffusion=2.0**0.5, domain=wall)

    mean = lambda theta: rdiff.long_run_average(own(theta), lambda y: y[0], **kw).mean  # noqa: E731
    slope = jax.grad(mean)(1.0)
    assert float(slope) == pytest.approx(float(mean(1.01) - mean(0.99)) / 0.02, rel=0.02, abs=1e-3)
    both = jax.vmap(mean)(jnp.array([1.0, 2.0]))
    assert np.allclose(both, [mean(1.0), mean(2.0)], rtol=1e-4)
    tail = lambda x: rdiff.long_run_average(rdiff.JSQDiffusion(1.0), lambda y: y[1] > x, **kw).mean  # noqa: E731
    assert np.allclose(jax.vmap(tail)(jnp.array([0.5, 1.0])), [tail(0.5), tail(1.0)], atol=1e-3)
    scaled = lambda a: rdiff.long_run_average(rdiff.JSQDiffusion(1.0), lambda y: a * y[1], **kw).mean  # noqa: E731
    assert float(jax.grad(scaled)(1.0)) == pytest.approx(float(scaled(1.0)), rel=1e-4)


def test_parameters_beyond_all_bounds_have_a_message():
    with pytest.raises(rdiff.InputError, match="more than can ever be run"):
        rdiff.long_run_average(rdiff.JSQDiffusion(1e-300), H["y2"], **SMALL)
    with pytest.raises(rdiff.InputError, match="too large for float32"):
        rdiff.long_run_average(rdiff.JSQDiffusion(1e300), H["y2"], **SMALL)
    with pytest.raises(rdiff.InputError, match="state is not finite"):
        rdiff.long_run_average(rdiff.JSQDiffusion(1e38), H["y2"], **SMALL)


def test_arrays_of_parameters_want_vmap():
    with pytest.raises(rdiff.InputError, match=r"use jax\.vmap over the model"):
        rdiff.long_run_average(rdiff.JSQDiffusion(jnp.array([0.5, 1.0])), H["y2"], **SMALL)


def test_traced_use_says_what_it_needs():
    def run(beta, **options):
        return rdiff.long_run_average(rdiff.JSQDiffusion(beta), H, **SMALL, **options)["y2"].mean

    with pytest.raises(rdiff.InputError, match="give burn_in explicitly"):
        jax.jit(run)(1.0)
    for options in (dict(rtol=0.1), dict(progress=True), dict(chunk=64)):
        with pytest.raises(rdiff.InputError, match="one fixed scan"):
            jax.jit(lambda beta: run(beta, burn_in=1.0, **options))(1.0)  # noqa: B023
    with pytest.raises(rdiff.InputError, match="plain number"):
        jax.jit(lambda dt: rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H, dt=dt, **SMALL)["y2"].mean)(0.1)


def test_stops_at_the_tolerance():
    est = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], key=0, chains=256, horizon=20.0, rtol=0.02)
    low, high = est.ci(0.95)
    assert (high - low) / 2 <= 0.02 * est.mean
    assert (high - low) / 2 > 0.01 * est.mean  # and not long after
    assert est.reliable


def test_tolerance_that_is_not_reached_is_said(monkeypatch):
    monkeypatch.setattr(averages, "MAX_ROUNDS", 2)
    est = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], key=0, chains=64, horizon=20.0, rtol=1e-6)
    assert not est.reliable and "tolerance was not reached" in est.cautions[0] and "not reliable" in str(est)


@pytest.mark.parametrize("solver, dt, name, bias, horizon", [
    (rdiff.BridgeEuler(), 0.2, "y2", 0.048, 100.0), (rdiff.BridgeHeun(), 0.4, "y1^2", -0.0201, 200.0),
], ids=str)  # fmt: skip
def test_paired_run_finds_the_bias(solver, dt, name, bias, horizon):
    # the table of the numerical chain; extrapolation from dt and dt/2 leaves the next order, a tenth at these steps.
    h = {**H, "y1^2": lambda y: y[0] ** 2}
    est = rdiff.long_run_average(
        rdiff.JSQDiffusion(1.0), h, key=0, dt=dt, chains=2048, horizon=horizon, solver=solver, bias=True
    )[name]
    assert est.bias == pytest.approx(bias, rel=0.12)
    low, high = est.ci()
    assert (high - low) / 2 > abs(bias) * 0.88


def test_paired_run_leaves_the_coarse_law_alone():
    # The coarse path's marks are made from the fine path: its law, hence its mean, must be that of the plain scheme.
    pair = rdiff.long_run_average(
        rdiff.JSQDiffusion(1.0),
        H["y2"],
        key=0,
        dt=0.4,
        chains=2048,
        horizon=200.0,
        solver=rdiff.BridgeEuler(),
        bias=True,
    )
    assert abs(pair.mean - (0.814059663 + 0.097)) < 4.5 * pair.stderr + 5e-4


def test_a_short_run_says_so():
    few = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], key=0, chains=4, horizon=2000.0)
    assert not few.reliable and "4 chains are too few" in str(few)
    short = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], key=0, chains=16, horizon=1.0)
    assert not short.reliable and "relaxation times" in str(short)
    cold = rdiff.long_run_average(rdiff.JSQDiffusion(0.5), H["y2"], key=0, chains=2048, horizon=40.0, burn_in=0.0)
    assert not cold.reliable and "longer burn-in" in " ".join(cold.cautions)
    one = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], key=0, chains=64, horizon=0.1, dt=0.1)
    assert not one.reliable and np.isnan(one.rhat)


@pytest.mark.parametrize(("dt", "bias", "coarse"), [(3.0, False, True), (0.5, False, False), (3.0, True, False)])
def test_a_step_too_coarse_for_the_drift_says_so(dt, bias, coarse):
    # with its bias estimated the interval is wide enough: it holds the exact value
    est = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], key=0, dt=dt, chains=256, horizon=100.0, bias=bias)
    assert coarse == any("coarse" in caution for caution in est.cautions)
    low, high = est.ci(0.99999)
    assert (low < 0.814060 < high) != coarse


def test_what_is_coarse_depends_on_the_drift():
    for rate, coarse in ((1.0, False), (20.0, True)):
        process = rdiff.ReflectedOU(center=1.0, rate=rate)
        assert rdiff.long_run_average(process, lambda y: y[0], key=0, chains=64, horizon=100.0).reliable != coarse


def test_start_may_differ_by_lane():
    starts = np.abs(np.random.default_rng(0).normal(size=(64, 2)))
    options = dict(key=0, dt=0.01, chains=64, horizon=0.01, burn_in=0.0)
    est = rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], y0=starts, **options)
    assert est.mean == pytest.approx(starts[:, 1].mean(), abs=0.05)


def test_memory_does_not_grow_with_the_horizon():
    Y = rdiff.JSQDiffusion(1.0)
    peaks = []
    rdiff.long_run_average(Y, H, key=0, chains=256, horizon=10.0)
    for horizon in (640.0, 2560.0):
        tracemalloc.start()
        rdiff.long_run_average(Y, H, key=0, chains=256, horizon=horizon)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]  # states kept, not sums, would be 150 MB more


def test_ctrl_c_hands_over_what_was_reached(monkeypatch):
    def stop_after(calls, run):
        def running(*args, **options):
            for i, at in enumerate(run(*args, **options)):
                if i == calls:
                    raise KeyboardInterrupt
                yield at

        return running

    run = averages.engine.run
    for calls, there in ((1, False), (100, True)):
        monkeypatch.setattr(averages.engine, "run", stop_after(calls, run))
        with pytest.raises(averages.Interrupted) as caught:
            rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H, key=0, chains=64, horizon=2000.0, chunk=64)
        assert isinstance(caught.value, KeyboardInterrupt)
        assert (caught.value.partial is not None) == there
    partial = caught.value.partial
    assert not partial["y2"].reliable and "interrupted after" in str(partial)


def test_results_and_laws_pickle():
    law = rdiff.SimulatedLaw(rdiff.JSQDiffusion(1.0), **SMALL)
    est = law.expect(H["y2"])
    assert pickle.loads(pickle.dumps(est)) == est
    assert pickle.loads(pickle.dumps(law)).expect(H["y2"]) == est
    assert (law.beta, law.b) == (1.0, 1)


def test_prints_nothing(capsys, caplog):
    with caplog.at_level(logging.WARNING):
        rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H, **SMALL)
    assert capsys.readouterr() == ("", "") and not caplog.records


@pytest.mark.parametrize("options, message", [
    (dict(dt=0.0), "dt must be a positive"), (dict(dt=np.nan), "dt must be"), (dict(dt=100.0), "must not exceed the horizon"),
    (dict(horizon=-1.0), "horizon must be"), (dict(chains=1), "chains must be at least 2"),
    (dict(chains=2.5), "chains must be an integer"),
    (dict(burn_in=-1.0), "burn_in must be"), (dict(burn_in=np.inf), "burn_in must be"), (dict(rtol=0.0), "rtol must be"),
    (dict(dtype="float16"), "dtype must be"), (dict(key="a"), "key must be"), (dict(y0=[-1.0, 0.0]), "lie in the domain"),
    (dict(chunk=0), "chunk must be"), (dict(dt=np.ones(2)), "dt must be one number"), (dict(y0="a"), "y0 must be"),
    (dict(noise="x"), "noise must be"), (dict(noise=rdiff.Threefry), "noise must be"),
    (dict(horizon=1e300), "more than can ever be run"),
])  # fmt: skip
def test_bad_options(options, message):
    with pytest.raises(rdiff.InputError, match=message):
        rdiff.long_run_average(rdiff.JSQDiffusion(1.0), H["y2"], **{**SMALL, **options})


@pytest.mark.parametrize("h, message", [
    (lambda y: y, "must return a scalar"), (lambda y: y[5], "a coordinate that is not there"),
    (lambda y: np.sin(y[0]), "cannot be traced"),
    (lambda y: 1.0 if y[0] > 1 else 0.0, "cannot be traced"), ("y2", "must be a function"), ({}, "at least one observable"),
    (lambda y: jnp.asarray(y, jnp.complex64)[0], "must be real"), (lambda y: jnp.log(y[1]), "not finite"),
    (lambda y: jnp.inf * y[0], "not finite"),
])  # fmt: skip
def test_bad_observables(h, message):
    with pytest.raises(rdiff.InputError, match=message):
        rdiff.long_run_average(rdiff.JSQDiffusion(1.0), h, **SMALL)


@pytest.mark.parametrize("platform", ["cuda", "tpu", "cpu"])
@pytest.mark.parametrize("unroll", [1, 8])
def test_the_engine_lowers_for_any_device(platform, unroll):
    plan = averages._plan(rdiff.JSQDiffusion(1.0), H, 0, 0.1, 64, 10.0, None, None, None, jnp.float32, False, None, None)
    engine, layout = averages.engine, dataclasses.replace(Layout.of(64), unroll=unroll)
    arrays, static = eqx.partition(plan.chain, eqx.is_array)
    calls = (np.int32(3), np.int32(5)), np.bool_(False)
    run = jax.jit(lambda carry: engine._advance.__wrapped__(static, layout, arrays, carry, *calls))
    exported = jax.export.export(run, platforms=[platform])(engine._start(plan.chain, *layout.fill((plan.keys, plan.starts))))
    assert exported.platforms == (platform,)
    # Tiles, and numbers kept in memory, are for CPUs.
    text = exported.mlir_module()
    assert ("optimization_barrier" in text) == (platform == "cpu")
    loops = 2 + (unroll > 1) + (platform == "cpu")
    assert text.count("stablehlo.while") == loops
