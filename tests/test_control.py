"""The control variate and the start from the exact law."""

import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff.bench import coverage

H = {
    "y2": lambda y: y[1],
    "y1*y2": lambda y: y[0] * y[1],
    "exp(-y1-y2)": lambda y: jnp.exp(-y[0] - y[1]),
    "y2>1": lambda y: y[1] > 1,
}


@pytest.fixture(scope="module")
def law():
    return rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("started", [True, False], ids=["from the law", "after burn-in"])
def test_error_falls_and_the_mean_stays(law, dtype, started):
    options = dict(key=1, chains=512, horizon=50.0, dt=0.1, dtype=dtype)
    options |= dict(y0=law.sample(7, 512), burn_in=0.0) if started else {}
    plain = rdiff.long_run_average(law.process, H, **options)
    controlled = rdiff.long_run_average(law.process, H, control=law, **options)
    exact = law.expect(H)
    for name in H:
        # The bias of BridgeHeun at dt = 0.1 is 1e-4 in these.
        assert abs(controlled[name].mean - exact[name].mean) < 4.5 * controlled[name].stderr + 2e-4
        assert controlled[name].stderr < plain[name].stderr / 2.5
    assert controlled["y2"].stderr < plain["y2"].stderr / 5


def test_a_small_bias_is_seen_in_seconds(law):
    # BridgeEuler at dt = 0.1: +0.0247 (the numerical chain's own mean); a plain run of this size has an error of 0.01.
    est = rdiff.long_run_average(
        law.process, H["y2"], key=2, dt=0.1, chains=1024, horizon=100.0, solver=rdiff.BridgeEuler(), control=law
    )
    assert est.stderr < 0.002
    assert abs(est.mean - 0.814059663 - 0.0247) < 4.5 * est.stderr + 1e-4


@pytest.mark.parametrize("b", [0, 2])
def test_other_buffers(b):
    law = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0, b))
    h = {"y1": lambda y: y[0], "y1^2": lambda y: y[0] ** 2}
    options = dict(key=1, chains=256, horizon=50.0)
    plain = rdiff.long_run_average(law.process, h, **options)
    controlled = rdiff.long_run_average(law.process, h, control=law, **options)
    for name, exact in law.expect(h).items():
        assert abs(controlled[name].mean - exact.mean) < 4.5 * controlled[name].stderr + 2e-3
        assert controlled[name].stderr < plain[name].stderr / 2.5


def test_coverage():
    result = coverage.run(runs=400, horizon=20.0, dt=0.1)
    for row in result["rows"]:
        # 400 runs: the share has a standard error of 1.1%; short runs of skewed observables cover a little less.
        assert 0.95 - 4.5 * 0.011 < row["value"] < 0.95 + 4 * 0.011, row
        assert row["stderr"] == pytest.approx(row["spread"], rel=4.5 / np.sqrt(2 * 400) + 0.02)
    assert result["rows"][4]["ratio"] > 5  # y2 with the control


def test_what_is_refused(law):
    options = dict(key=0, chains=64, horizon=10.0)
    for process, control, message in [
        (rdiff.JSQDiffusion(2.0), law, "control is the law of beta = 1"),
        (rdiff.JSQDiffusion(1.0, b=0), law, "control is the law of"),
        (rdiff.ReflectedOU(1.0), law, "a control needs a JSQDiffusion"),
        (law.process, "law", "must be the exact law"),
    ]:
        with pytest.raises(rdiff.InputError, match=message):
            rdiff.long_run_average(process, lambda y: y[0], control=control, **options)
    with pytest.raises(rdiff.InputError, match="cannot go together"):
        rdiff.long_run_average(law.process, lambda y: y[0], control=law, bias=True, **options)
