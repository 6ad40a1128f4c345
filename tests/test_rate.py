"""The theorem as a number: orders, constants and refined values along n, exact, sampled and given."""

import math
import pickle
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from test_limit import CONSTANTS

import rdiff
from rdiff import InputError, expansion
from rdiff.averages import Interrupted
from rdiff.expansion import Series
from rdiff.queue.truncation import affordable
from rdiff.rate import rate

H = {"y2": lambda y: y[1], "y2**2": lambda y: y[1] ** 2, "y1*y2": lambda y: y[0] * y[1], "y1**2": lambda y: y[0] ** 2,
     "exp": lambda y: jnp.exp(-y[0] - y[1])}  # fmt: skip
Y2 = H["y2"]


def series(ns, values, stderr=0.0, common=0.0, error=0.0):
    ns = np.array(ns)
    covariance = np.diag(np.full(len(ns), float(stderr) ** 2)) + common**2
    return Series(ns, np.asarray(values, np.float64), covariance, np.full(len(ns), float(error)))


# ---- exact against exact


@pytest.mark.parametrize(("beta", "closeness"), [(0.5, 0.05), (1.0, 0.02), (2.0, 0.02)])
def test_the_theorem(beta, closeness):
    found = rate([64, 128, 256, 512, 1024], beta=beta, b=2, h=H)
    assert found.several and found.ns == (64, 128, 256, 512, 1024) and len(found.rows) == 25
    for name, text in zip(H, CONSTANTS[beta], strict=True):
        fit, rows, truth = found.fits[name], found.of(name), float(text)
        assert fit.constant.value == pytest.approx(truth, abs=1e-5)
        assert found.constant[name] == fit.constant.value
        off = abs(fit.constant_fitted.value - truth)
        assert off < closeness * abs(truth) and off < 2 * fit.constant_fitted.error, name
        # the terms of order exp(-beta sqrt(n)), which a note tells of at beta = 0.5, are not in the error
        assert abs(fit.limit_fitted.value - fit.limit.value) < (5 if beta == 0.5 else 2) * fit.limit_fitted.error, name
        if (name, beta) == ("exp", 2.0):  # of both signs
            assert math.isnan(fit.slope) and "changes sign between n = 64 and 128" in fit.notes[0]
        else:
            assert found.slope[name] == fit.corrected.value == pytest.approx(-0.5, abs=0.05), name
            assert fit.corrected.order == 2 and fit.notes == ()
        assert fit.refined.value == pytest.approx(-1.0, abs=0.1), name  # the refined values are off by O(1/n)
        refined = [abs(row.refined_gap) for row in rows]
        halved = np.array(refined[1:]) / refined[:-1]  # at twice n
        assert np.all((halved > 0.4) & (halved < 0.62)), name
    errors = [row.error / abs(row.gap) for row in found.rows]
    assert max(errors) < (1e-3 if beta == 0.5 else 1e-4)  # far below what the fits need
    assert any("P(Y2 > sqrt(n))" in note for note in found.notes()) == (beta == 0.5)


def test_rows_of_the_reference():
    found = rate([25, 100, 400, 1000, 4000], beta=1.0, b=1, h=Y2)
    means = [0.4318311140, 0.5998094576, 0.6993050204, 0.739549492, 0.7759407587]
    assert [row.prelimit for row in found.rows] == pytest.approx(means, abs=1e-9)
    assert [round(row.scaled_gap, 3) for row in found.rows[:3]] == [-1.911, -2.143, -2.295]
    for row in found.rows:
        assert row.limit == pytest.approx(0.814059663, abs=1e-9) and row.observable == "h" and row.reliable
        assert row.gap == row.prelimit - row.limit and row.scaled_gap == math.sqrt(row.n) * row.gap
        assert row.refined == pytest.approx(row.limit - 2.467469 / math.sqrt(row.n), abs=1e-6)
        assert row.refined_gap == row.prelimit - row.refined and row.stderr == 0 and row.error < 1e-8
    assert found.constant == pytest.approx(-2.467469, abs=1e-6) and isinstance(found.slope, float)
    assert found.slope == found.fits["h"].corrected.value
    again = pickle.loads(pickle.dumps(found))
    assert again == found and "corrected" in str(found) and str(again) == str(found)


def test_the_loss_system():
    found = rate([25, 100, 400], beta=1.0, b=0, h=lambda y: y[0])
    erlang = np.array([0.25110889, 0.26957380, 0.27863165])  # sqrt(n) B
    load = 1 - 1 / np.sqrt([25, 100, 400])
    assert [row.prelimit for row in found.rows] == pytest.approx(1 + load * erlang, abs=1e-8)
    assert found.slope == pytest.approx(-0.5, abs=0.01)
    assert found.fits["h"].constant_fitted.value == pytest.approx(found.constant, rel=1e-3)


def test_a_gap_below_its_error_has_no_slope():
    found = rate([25, 100, 400], beta=1.0, b=2, h={"y1": lambda y: y[0], "y2": Y2})
    fit = found.fits["y1"]  # E X1 - beta = sqrt(n) lam P_block, 1e-12 at n = 400
    assert (
        math.isnan(fit.slope) and math.isnan(fit.raw.value) and "n = 400" in fit.notes[0] and "not told apart" in fit.notes[0]
    )
    assert abs(fit.constant.value) < 1e-9 and abs(found.fits["y2"].slope + 0.5) < 0.05


def test_jumps_have_no_constant():
    found = rate([25, 100, 400], beta=1.0, h=lambda y: y[1] > 1)
    assert math.isnan(found.constant) and math.isnan(found.fits["h"].refined.value) and math.isfinite(found.slope)
    assert all(math.isnan(row.refined) and math.isnan(row.refined_gap) for row in found.rows)
    assert any("jumps" in note for note in found.notes())


@pytest.mark.parametrize(("beta", "ns", "word"), [
    (5.0, [26, 50, 101, 203], "against beta"), (0.02, [2, 3, 5], "against 1/beta^2")
])  # fmt: skip
def test_no_series_is_fitted_before_it_sets_in(beta, ns, word):
    found = rate(ns, beta=beta, h={"y2": Y2, "exp": lambda y: jnp.exp(-y[0] - y[1])})
    fit = found.fits["y2"]
    missing = (fit.corrected, fit.constant_fitted, fit.refined, fit.limit_fitted)
    assert all(math.isnan(one.value) for one in missing) and math.isfinite(fit.raw.value) and math.isfinite(fit.constant.value)
    assert any("no series" in note and word in note and "y2" in note for note in found.notes())
    other = found.fits["exp"]
    if beta == 5.0:  # of the bulk, where few wait: its series has set in
        assert abs(other.constant_fitted.value - other.constant.value) < 3e-4
    else:
        assert math.isnan(other.constant_fitted.value)


def test_a_number_of_servers_beyond_all_methods():
    with pytest.raises(InputError, match=r"no exact law fits .* a simulation has 1048576 servers at most"):
        rate([10**20], beta=1.0, h=Y2)


def test_few_n():
    one, two = rate([100], beta=1.0, h=Y2), rate([25, 100], beta=1.0, h=Y2)
    assert math.isnan(one.slope) and math.isnan(one.fits["h"].constant_fitted.value) and "no slope" in one.notes()[0]
    assert two.slope == two.fits["h"].raw.value == pytest.approx(math.log(0.21425 / 0.38223) / math.log(4), abs=1e-4)
    fit = two.fits["h"]
    assert math.isnan(fit.corrected.value) and abs(fit.constant_fitted.value - two.constant) < 2 * fit.constant_fitted.error


# ---- sampled


@pytest.fixture(scope="module")
def sampled():
    return rate([16, 64, 256], beta=2.0, h=H, method="simulated", key=5, chains=64, horizon=1500.0)


def test_simulated_queues_have_error_bars(sampled):
    exact = rate([16, 64, 256], beta=2.0, h=H)
    for row, truth in zip(sampled.rows, exact.rows, strict=True):
        assert row.stderr > 0 and abs(row.gap - truth.gap) < 4.5 * row.stderr, (row.n, row.observable)
    for name in ("y2", "y1*y2", "y1**2"):
        fit = sampled.fits[name]
        assert fit.corrected.stderr > fit.raw.stderr > 0
        # three n leave the fits off by what they leave out; both have the same, weighted otherwise
        assert abs(fit.raw.value - exact.fits[name].raw.value) < 4.5 * fit.raw.stderr + 0.02
        assert abs(fit.corrected.value - exact.fits[name].corrected.value) < 4.5 * fit.corrected.stderr + 1e-6
        spread = math.hypot(fit.constant_fitted.stderr, fit.constant_fitted.error)
        assert 0 < spread < abs(fit.constant.value) and abs(fit.constant_fitted.value - fit.constant.value) < 4.5 * spread
    assert "stderr" in str(sampled)


def test_laws_of_your_own(sampled):
    laws = [rdiff.JSQQueue(n, 1, beta=2.0).exact() for n in (16, 64, 256)]
    for mine, row in zip(rate(laws, h=Y2).rows, rate([16, 64, 256], beta=2.0, h=Y2).rows, strict=True):
        assert mine.n == row.n and abs(mine.gap - row.gap) <= row.prelimit_error + 1e-14
    samples = [rdiff.JSQQueue(n, 1, beta=2.0).simulate(key=n, chains=32, horizon=500.0).samples() for n in (16, 64)]
    found = rate([*samples, laws[2]], h=Y2)
    assert [row.stderr > 0 for row in found.rows] == [True, True, False] and found.beta == 2.0
    assert [row.prelimit for row in found.rows] == [float(law.expect(Y2).mean) for law in (*samples, laws[2])]
    assert any(note.startswith("n = 16: ") for note in found.notes())
    limit = rdiff.SimulatedLaw(rdiff.JSQDiffusion(2.0), key=1, chains=512, horizon=100.0)
    found = rate(laws, h=Y2, limit=limit)
    assert (
        math.isnan(found.constant) and found.rows[0].stderr == found.rows[2].stderr > 0 and found.rows[0].prelimit_stderr == 0
    )
    assert found.fits["h"].raw.stderr > 0 == found.fits["h"].limit_fitted.stderr


def test_queues_that_do_not_fit_are_simulated():
    found = rate([16, 100], beta=1.0, h=Y2, states=200, chains=32, horizon=300.0)
    small, large = found.rows
    assert small.stderr == 0 and large.stderr > 0 and abs(large.prelimit - 0.5998094576) < 4.5 * large.stderr
    assert any(note.startswith("n = 100: simulated: ") for note in found.notes())
    assert found == rate([16, 100], beta=1.0, h=Y2, states=200, chains=32, horizon=300.0)  # the same key
    with pytest.raises(InputError, match="states"):
        rate([3000], beta=0.1, b=3, h=Y2, method="exact")


def test_interrupted():
    def stop(at):
        if at.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        rate([16, 25, 36], beta=1.0, h=Y2, on_progress=stop)
    reached: Any = caught.value.partial
    assert reached.ns == (16, 25) and reached.rows == rate([16, 25], beta=1.0, h=Y2).rows


# ---- fits


def test_fits_recover_what_was_put_in():
    ns = np.array([64, 128, 256, 512, 1024])
    x = ns**-0.5
    fitted = expansion.limit(series(ns, 2 - 2.5 * x + 3 * x**2 + x**3 - 7 * x**4))
    assert fitted.value == pytest.approx(2, abs=1e-11) and fitted.order == 4
    values = -0.3 * ns**-0.7 * np.exp(1.5 * x - 2 / ns)
    assert expansion.power(series(ns, values)).value == pytest.approx(-0.7, abs=1e-10)
    assert expansion.power(series(ns[:3], 2 * ns[:3] ** -0.5 * np.exp(x[:3]))).value == pytest.approx(-0.5, abs=1e-12)
    assert expansion.limit(series(ns, 0 * x)).value == 0


@pytest.mark.parametrize(("stderr", "common"), [(0.01, 0.0), (0.003, 0.01)])
def test_standard_errors_are_those_of_the_fits(stderr, common):
    ns, rng = np.array([16, 64, 256, 1024]), np.random.default_rng(1)
    truth = ns**-0.5 * 4 * (1 - ns**-0.5)
    slopes, limits = [], []
    for _ in range(400):
        values = truth + stderr * rng.standard_normal(4) + common * rng.standard_normal()
        one = series(ns, values, stderr, common)
        slopes.append(expansion.power(one, 0))
        limits.append(expansion.limit(one.scaled()))
    for kind in (slopes, [fit for fit in limits if fit.order == 1]):
        spread = np.std([fit.value for fit in kind])
        if len(kind) > 100:
            assert np.median([fit.stderr for fit in kind]) == pytest.approx(spread, rel=0.2)
    held = [abs(fit.value - 4) < 2 * math.hypot(fit.stderr, fit.error) for fit in limits]
    assert np.mean(held) > 0.9


def test_nothing_is_fitted_through_nonsense():
    ns = [16, 64, 256]
    for bad, word in [
        (series(ns, [1, -1, -2]), "changes sign between n = 16 and 64"), (series(ns, [1, 0.5, 1e-9], error=1e-8), "n = 256"),
        (series(ns, [1, 0.5, 0.25], stderr=0.1), "n = 256"), (series(ns, [1, math.nan, 0.25]), "not known"),
        (series(ns, [1, 0.5, 0.25], stderr=math.nan), "not known"), (series(ns, [1, 0.5, 0.0]), "n = 256"),
    ]:  # fmt: skip
        assert word in expansion.unresolved(bad) and math.isnan(expansion.power(bad, 0).value)
    assert expansion.unresolved(series(ns, [-3, -2, -1])) == ""


# ---- what an exact law may leave out


@pytest.mark.parametrize(("n", "b", "beta"), [(400, 1, 1.0), (100, 2, 0.5), (144, 2, 1.0)])
def test_tol_leaves_out_what_it_says(n, b, beta):
    queue = rdiff.JSQQueue(n, b, beta=beta)
    whole = queue.exact(window="auto", cap="auto").expect(H)
    for tol in (1e-4, 1e-6, 1e-8):
        law = queue.exact(tol=tol)
        cut = law.expect(H)
        assert law.space.count <= queue.size and (law.outside < 20 * tol or not np.isfinite(law.outside))
        for name in H:
            off = abs(cut[name].mean - whole[name].mean)
            assert off <= cut[name].error + whole[name].error, (name, tol)
            assert cut[name].error < 1000 * tol * (1 + abs(whole[name].mean) * n), (name, tol)
    assert affordable(queue, (1e-10, 1e-6), 1e9, 2.0) == 1e-10 and affordable(queue, (1e-10, 1e-6), 10, 2.0) is None
    few = queue.exact(tol=1e-6).space.count
    assert affordable(queue, (1e-10, 1e-6), few, 2.0) == (1e-6 if few < queue.exact(tol=1e-10).space.count else 1e-10)


# ---- refusals


@pytest.mark.parametrize(("ns", "options", "word"), [
    ([], {}, "no n"), (100, {}, "numbers of servers"), ([100, 25], {}, "increase"), ([25, 25], {}, "increase"),
    ([25.0, 100], {}, "integer"), ([25, "100"], {}, "integer"), ([1, 25], {}, "beta"), ([0, 25], {}, "at least 1"),
    ([25, 100], dict(beta=None), "beta is missing"), ([25, 100], dict(beta=-1.0), "positive"), ([25, 100], dict(b=-1), "b"),
    ([25, 100], dict(h={}), "at least one"), ([25, 100], dict(h=lambda y: y[5]), "coordinate"),
    ([25, 100], dict(h=lambda y: jnp.log(y[1])), "inf"), ([25, 100], dict(method="both"), "method"),
    ([25, 100], dict(limit=3), "limit"), ([25, 100], dict(beta=50.0), "beta"), ([4000], dict(beta=7.0), "6"),
    ([10**12], {}, "servers"),
    ([25, 100], dict(states=-1), "states"), ([25, 100], dict(h="y2"), "function"), ([True, 25], {}, "integer"),
])  # fmt: skip
def test_refusals(ns, options, word):
    with pytest.raises(InputError, match=word):
        rate(ns, **{"beta": 1.0, "h": Y2, **options})


def test_laws_must_be_of_one_system():
    def law(n, b=1, beta=1.0):
        return rdiff.JSQQueue(n, b, beta=beta).exact()

    for laws, options, word in [
        ([law(16), law(25, beta=0.5)], {}, "one beta"), ([law(16), law(25, b=2)], {}, "one b"),
        ([law(25), law(16)], {}, "increase"), ([law(16), law(16)], {}, "increase"), ([law(16), 25], {}, "does not"),
        ([law(16)], dict(beta=2.0), "one beta"),
        ([law(16)], dict(method="exact"), "numbers of servers"),
        ([rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))], {}, "does not"),
        ([rdiff.JSQQueue(16, 1, beta=1.0, alpha=0.4).exact()], {}, "Halfin-Whitt"),
        ([law(16)], dict(limit=rdiff.StationaryLaw(rdiff.JSQDiffusion(0.5))), "different beta"),
    ]:  # fmt: skip
        with pytest.raises(InputError, match=word):
            rate(laws, h=Y2, **options)
