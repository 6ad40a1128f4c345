"""The exact laws of the limit against theory, tables, each other, and themselves at another resolution."""

import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff.limit.law import LawGrid, StationaryLaw
from rdiff.limit.march import march

TABLE = {
    "y2": lambda y: y[1],
    "y2^2": lambda y: y[1] ** 2,
    "y2^3": lambda y: y[1] ** 3,
    "y1*y2": lambda y: y[0] * y[1],
    "y1^2": lambda y: y[0] ** 2,
    "exp": lambda y: jnp.exp(-y[0] - y[1]),
}
SMOOTH = {
    **TABLE,
    "sqrt": lambda y: jnp.sqrt(1 + y[0] ** 2 + y[1] ** 2),
    "rational": lambda y: 1 / (1 + y[1] ** 2),
    "waves": lambda y: jnp.sin(y[0]) * jnp.exp(-0.3 * y[1]),
    "log": lambda y: jnp.log1p(y[0] + 2 * y[1]),
}


def law(beta, b=1):
    return StationaryLaw(rdiff.JSQDiffusion(beta, b))


# Values as printed in the reference tables, which cut digits off rather than round: one unit of the last is the tolerance.
# Where the last digits printed were not converged (both methods here agree on others), the converged ones stand.
MEANS = {
    0.5: ("2.84361201", "15.2586145", "115.53185", "0.710903003", "0.127155003"),
    1.0: ("0.814059663", "1.82046837", "6.2357606", "0.407029832", "0.228106026"),
    2.0: ("0.0830503365", "0.065784103", "0.0923903", "0.0830503365", "0.179025654"),
}
TAILS = {
    (0.5, 0.5): "0.82848737", (0.5, 1): "0.71135293", (0.5, 2): "0.51757788", (0.5, 4): "0.25671889",
    (1, 0.01): "0.88388436", (1, 0.1): "0.71209341", (1, 0.25): "0.58340588", (1, 0.5): "0.4496034336",
    (1, 1): "0.2851928528", (1, 2): "0.1207357154", (1, 3): "0.05118690", (1, 4): "0.0214559815", (1, 6): "3.639316e-3",
    (2, 0.5): "0.0495008933", (2, 1): "0.0161737384", (2, 2): "2.1587814e-3", (2, 4): "4.54814e-5",
}  # fmt: skip
SLOPES = {0.5: "-8.403300449", 1.0: "-1.845957011", 2.0: "-0.202711270"}
CONSTANTS = {
    0.5: ("-9.028653", "-86.32285", "-3.678969", "0.335357", "0.465922"),
    1.0: ("-2.467469", "-8.732434", "-1.640764", "-0.173295", "0.374658"),
    2.0: ("-0.479088", "-0.485759", "-0.520613", "-1.562437", "0.028247"),
}


def printed(text, units=1.01):
    """The number, and a tolerance of `units` of its last digit."""
    mantissa, _, exponent = text.partition("e")
    return float(text), units * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


@pytest.mark.parametrize("beta", MEANS)
def test_means_of_the_reference(beta):
    got = law(beta).expect(TABLE)
    for name, text in zip(("y2", "y2^2", "y2^3", "y1*y2", "exp"), MEANS[beta]):
        value, tolerance = printed(text)
        assert abs(got[name].mean - value) < tolerance, name
        assert got[name].reliable and got[name].stderr == 0 and 0 < got[name].error < 1e-9 * max(1, value)
    # Var Y1 in the table is E Y1^2 - beta^2
    assert got["y1^2"].mean - beta**2 == pytest.approx(1 - beta / 2 * got["y2"].mean, abs=1e-10)


@pytest.mark.parametrize("beta,x", TAILS)
def test_tails_of_the_reference(beta, x):
    value, tolerance = printed(TAILS[beta, x])
    assert abs(law(beta).tail(x) - value) < tolerance


@pytest.mark.parametrize("beta,text", [(0.1, "1.936294"), (0.2, "1.824249"), (0.3, "1.694653")])
def test_small_beta(beta, text):
    value, tolerance = printed(text)
    assert abs(beta * law(beta).expect(TABLE["y2"]).mean - value) < tolerance


@pytest.mark.parametrize("beta,text", [(3, "1.17979"), (4, "1.08239"), (5, "1.04751")])
def test_large_beta(beta, text):
    value, tolerance = printed(text)
    phi = math.exp(-(beta**2) / 2) / math.sqrt(2 * math.pi)
    assert abs(law(beta).expect(TABLE["y2"]).mean / phi - value) < tolerance


@pytest.mark.parametrize("beta,k", [(0.5, "0.6488355"), (1, "0.3882383"), (2, "0.0972746")])
def test_power_at_zero(beta, k):
    value, tolerance = printed(k)
    tail = law(beta).tail(np.array([1e-9, 1e-8]))
    assert abs(march(beta).power - value) < tolerance
    assert math.log10((1 - tail[1]) / (1 - tail[0])) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("beta,bound", [(0.1, 1e-6), (0.25, 1e-6), (0.5, 1e-8), (1, 1e-8), (2, 1e-8), (4, 1e-6)])
def test_identities(beta, bound):
    found = law(beta).identities()
    assert len(found) == 6
    for identity in found:
        assert identity.residual < bound, identity


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_two_methods_agree_and_errors_bound(beta):
    here = law(beta)
    marched, solved = here.expect(SMOOTH), here.expect(SMOOTH, method="poisson")
    points, weights = march(beta, stages=8, refine=1.25).nodes(60)
    unit = here.expect(TABLE["y2"]).mean
    for name, h in SMOOTH.items():
        with jax.enable_x64(True):
            exact = float(weights @ np.asarray(jax.vmap(h)(jnp.asarray(points))))
        a, b = marched[name], solved[name]
        assert dict(a.settings)["method"] == "density march" and dict(b.settings)["method"] == "Poisson equation"
        assert abs(a.mean - b.mean) < 1e-8 * max(unit, abs(exact)), name
        assert abs(a.mean - exact) <= a.error and abs(b.mean - exact) <= b.error, name
        assert a.error < 1e-8 * max(unit, abs(exact)), name


def test_quadrature_weights():
    points, weights = law(1.0, b=2).quadrature()
    assert points.shape == (len(weights), 3) and np.all(points[:, 2] == 0) and np.all(weights > -1e-16)
    assert weights @ np.cos(points[:, 0]) == pytest.approx(law(1.0).expect(lambda y: jnp.cos(y[0])).mean, abs=1e-12)
    solution = law(1.0)._solved.collocations[0]
    assert solution.weights @ solution.points[:, 1] == pytest.approx(0.8140596634748, abs=1e-10)


# --- rough h -----------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_jumps_and_kinks(beta):
    here = law(beta)
    got = here.expect({"jump": lambda y: y[1] > 1, "kink": lambda y: jnp.maximum(y[1] - 1, 0), "wall": lambda y: y[0] > 0.3})
    x = np.linspace(1, 1 + 44 / beta, 20001)
    assert all("adaptive" in dict(e.settings)["method"] and e.error < 1e-8 for e in got.values())
    assert abs(got["jump"].mean - here.tail(1.0)) <= got["jump"].error
    simpson = np.sum((here.tail(x[:-2:2]) + 4 * here.tail(x[1:-1:2]) + here.tail(x[2::2])) * (x[1] - x[0]) / 3)
    assert got["kink"].mean == pytest.approx(simpson, abs=1e-9)
    gauss, weights = np.polynomial.legendre.leggauss(40)
    below = float(weights @ here.marginal(1, 0.15 + 0.15 * gauss)) * 0.15
    assert got["wall"].mean == pytest.approx(1 - below, abs=1e-8)


def test_curved_jump():
    est = law(1.0).expect(lambda y: y[0] + y[1] > 1)
    rng = law(1.0).sample(7, 50_000).sum(axis=1) > 1
    assert est.error < 1e-8 and abs(rng.mean() - est.mean) < 4.5 * rng.std() / math.sqrt(rng.size)


def test_spiky_h_is_not_trusted():
    est = law(1.0).expect(lambda y: jnp.exp(0.9 * y[1]))
    assert not est.reliable and "numerical error" in est.cautions[0]


# --- f -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["y2", "exp", "sqrt"])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_poisson_equation_holds(beta, name):
    f = law(beta).poisson(SMOOTH[name])
    y = np.random.default_rng(1).random((200, 2)) * [beta + 3, 6 / beta]
    with jax.enable_x64(True):
        h = np.asarray(jax.vmap(SMOOTH[name])(jnp.asarray(y)))
    first, second = f.gradient(y), f.hessian(y)
    left = (beta - y.sum(axis=1)) * first[:, 0] + second[:, 0, 0] - y[:, 1] * first[:, 1]
    assert np.max(np.abs(left - (h - f.mean))) < 1e-6
    y[:, 0] = 0
    assert np.max(np.abs(f.gradient(y).sum(axis=1))) < 1e-7
    assert f(np.zeros(2)) == pytest.approx(0, abs=1e-9)
    assert f.mean == pytest.approx(law(beta).expect(SMOOTH[name]).mean, abs=1e-8)


def test_derivatives_of_f():
    f = law(1.0).poisson(SMOOTH["sqrt"])
    y, e = np.array([0.7, 1.3]), 1e-4
    for i, step in enumerate(np.eye(2) * e):
        assert f.gradient(y)[i] == pytest.approx((f(y + step) - f(y - step)) / (2 * e), rel=1e-6)
        assert f.hessian(y)[i] == pytest.approx((f.gradient(y + step) - f.gradient(y - step)) / (2 * e), rel=1e-6)
    single = jnp.asarray(y, jnp.float32)
    assert jax.jit(f)(single).dtype == jnp.float32
    assert np.asarray(jax.jit(f.gradient)(single)) == pytest.approx(f.gradient(y), rel=1e-4)
    assert np.asarray(jax.grad(f)(single)) == pytest.approx(f.gradient(y), rel=1e-4)
    assert f(np.ones((3, 4, 2))).shape == (3, 4) and f.hessian(np.ones((3, 4, 2))).shape == (3, 4, 2, 2)


def test_stein_factors():
    found = law(1.0).stein_factors(TABLE["y2"])
    assert set(found) == {"f1", "f2", "f11", "f12", "f22"}
    # f is about -y2^2/2, so f_2 about -y2 at the quantile 0.99995 of Y2
    assert found["f2"] == pytest.approx(law(1.0).quantile(0.99995), rel=0.3)
    bounded = law(1.0).stein_factors(TABLE["exp"])
    assert all(0 < value < 2 for value in bounded.values())


def test_poisson_warns_of_rough_h():
    with pytest.warns(rdiff.AccuracyWarning, match="jumps"):
        law(1.0).poisson(lambda y: y[1] > 1)


# --- derivatives in beta, and the constant -----------------------------------


@pytest.mark.parametrize("beta", SLOPES)
def test_sensitivity(beta):
    here = law(beta)
    got = here.sensitivity({**TABLE, "y1": lambda y: y[0]})
    value, tolerance = printed(SLOPES[beta])
    assert abs(got["y2"].mean - value) < tolerance
    assert got["y1"].mean == pytest.approx(1, abs=1e-8)
    y2 = here.expect(TABLE["y2"]).mean
    assert got["y1^2"].mean - 2 * beta == pytest.approx(-(y2 + beta * got["y2"].mean) / 2, abs=1e-8)
    e = 0.004
    at = {k: law(beta + k * e).expect(TABLE) for k in (-3, -2, -1, 1, 2, 3)}
    for name in TABLE:
        d1, d2, d3 = (at[k][name].mean - at[-k][name].mean for k in (1, 2, 3))
        assert got[name].mean == pytest.approx((45 * d1 - 9 * d2 + d3) / (60 * e), rel=1e-8, abs=1e-8), name


def test_sensitivity_of_a_tail():
    est = law(1.0).sensitivity(lambda y: y[1] > 1)
    e = 1e-3
    assert "difference" in dict(est.settings)["method"]
    assert abs(est.mean - (law(1 + e).tail(1.0) - law(1 - e).tail(1.0)) / (2 * e)) < 1e-6
    assert est.error < 1e-5


@pytest.mark.parametrize("beta", CONSTANTS)
def test_constants_of_the_reference(beta):
    got = law(beta).constant(TABLE)
    for name, text in zip(("y2", "y2^2", "y1*y2", "y1^2", "exp"), CONSTANTS[beta]):
        value, tolerance = printed(text)
        assert abs(got[name].mean - value) < tolerance and got[name].error < 1e-6, name
    assert law(beta).constant(lambda y: y[0]).mean == pytest.approx(0, abs=1e-9)


def test_refined_beats_the_limit():
    exact = 0.6993050204  # E X2 of the queue, n = 400, beta = 1
    limit, refined = law(1.0).expect(TABLE["y2"]).mean, law(1.0).refined(TABLE["y2"], 400)
    assert refined.mean == pytest.approx(0.69069, abs=5e-6)
    assert abs(refined.mean - exact) * 10 < abs(limit - exact)


def test_constant_of_a_jump_is_not_made_up():
    est = law(1.0).constant(lambda y: y[1] > 1)
    assert math.isnan(est.mean) and "jumps" in est.cautions[0]


# --- densities, quantiles, samples -------------------------------------------


def test_density():
    here = law(1.0)
    y = np.array([0.05, 0.5, 2.0, 8.0])
    assert here.density(0.0, y) / here.marginal(2, y) == pytest.approx(y, rel=1e-8)  # given Y2 = y, that of Y1 at 0 is y
    assert here.marginal(1, 0.0) == pytest.approx(0.8140596634748, abs=1e-10)
    gauss, weights = np.polynomial.legendre.leggauss(60)
    x, w = 4.5 * (1 + gauss), 4.5 * weights
    assert w @ here.density(x, 0.5) == pytest.approx(here.marginal(2, 0.5), rel=1e-8)
    assert w @ here.marginal(1, x) == pytest.approx(1, abs=1e-9) and w @ (x * here.marginal(1, x)) == pytest.approx(1, abs=1e-9)
    assert np.isinf(here.marginal(2, 0.0)) and here.density(-1.0, 1.0) == 0 and here.marginal(1, -1.0) == 0
    e = 1e-4
    assert (here.tail(1 - e) - here.tail(1 + e)) / (2 * e) == pytest.approx(here.marginal(2, 1.0), rel=1e-6)


@pytest.mark.parametrize("beta", [0.25, 1.0, 4.0])
def test_quantiles_invert_the_tail(beta):
    here = law(beta)
    p = np.array([0.9, 0.99, 1 - 1e-6, 1 - 1e-12]) if beta < 4 else np.array([0.9999, 1 - 1e-6])
    y = here.quantile(p)
    assert 1 - p == pytest.approx(here.tail(y), rel=2e-4 if beta < 4 else 1e-8)
    logs = here.quantile(np.array([1e-300, 1e-9, 1e-3]), log=True)
    assert np.diff(logs) == pytest.approx(np.diff(np.log([1e-300, 1e-9, 1e-3])) / march(beta).power, rel=2e-2)
    assert here.tail(-1.0) == 1 and here.tail(0.0) == 1 and here.tail(math.inf) == 0
    assert np.all(np.diff(here.tail(np.linspace(0, 60 / beta, 500))) <= 0)


def test_mass_at_the_bottom():
    assert 1 - law(2.0).tail(1e-9) == pytest.approx(0.13, abs=0.01)
    assert law(4.0).quantile(2 / 3, log=True) < -700


def test_far_tail_is_exponential():
    here = law(1.0)
    assert here.tail(120.0) / here.tail(100.0) == pytest.approx(1.2 * math.exp(-20), rel=0.01)


@pytest.mark.parametrize("beta,b", [(0.5, 1), (1.0, 2), (2.0, 1), (1.0, 0)])
def test_samples(beta, b):
    from scipy.stats import kstest

    here = law(beta, b)
    y = here.sample(jax.random.key(11), 100_000)
    assert y.shape == (100_000, b + 1) and y.dtype == np.float64 and np.all(y >= 0) and np.all(y[:, 2:] == 0)
    x = np.linspace(0, beta + 8, 4000)
    sums = np.concatenate([[0], np.cumsum((here.marginal(1, x[1:]) + here.marginal(1, x[:-1])) / 2 * np.diff(x))])
    assert kstest(y[:, 0], lambda at: np.interp(at, x, sums)).pvalue > 1e-3
    if b:
        assert kstest(y[:, 1], lambda at: 1 - here.tail(at)).pvalue > 1e-3
        product = y[:, 0] * y[:, 1]
        exact = beta / 2 * here.expect(TABLE["y2"]).mean
        assert abs(product.mean() - exact) < 4.5 * product.std() / math.sqrt(len(y))
    assert np.array_equal(here.sample(5, 10), here.sample(5, 10)) and not np.array_equal(here.sample(5, 10), here.sample(6, 10))
    assert here.sample(0, 0).shape == (0, b + 1)


# --- b = 0, the object itself ------------------------------------------------


def test_erlang_limit():
    here = law(1.0, b=0)
    got = here.expect({"y1": lambda y: y[0], "y1^2": lambda y: y[0] ** 2, "jump": lambda y: y[0] > 1})
    assert got["y1"].mean == pytest.approx(1.28759997094, abs=1e-11)
    assert got["y1^2"].mean - got["y1"].mean ** 2 == pytest.approx(0.62968628578, abs=1e-11)
    assert got["jump"].mean == pytest.approx(0.5 / 0.8413447460685429, abs=1e-10)
    rate = 0.28759997094
    assert here.sensitivity(lambda y: y[0]).mean == pytest.approx(1 - rate - rate**2, abs=1e-9)
    assert all(i.residual < 1e-12 for i in here.identities())
    f = here.poisson(lambda y: y[0])
    assert f.gradient([[0.0], [1.0]]).shape == (2, 1) and f.gradient([0.0])[0] == pytest.approx(0, abs=1e-9)
    # Erlang's loss system: E X1 = beta + sqrt(n) lambda B, so the constant shows in n (refined - exact) bounded
    for n in (400, 1600):
        load, blocked = n - math.sqrt(n), 1.0
        for k in range(1, n + 1):
            blocked = load * blocked / (k + load * blocked)
        assert abs(1 + load / math.sqrt(n) * blocked - here.refined(lambda y: y[0], n).mean) * n < 0.2


def test_object():
    here = law(1.0, b=3)
    again = pickle.loads(pickle.dumps(here))
    assert (again.beta, again.b) == (1.0, 3) and "beta=1, b=3" in repr(again)
    assert again.expect(lambda y: y[1] + 5 * y[3]).mean == law(1.0).expect(TABLE["y2"]).mean
    f = pickle.loads(pickle.dumps(here.poisson(TABLE["y2"])))
    assert f(np.array([0.5, 1.0, 0, 0])) == here.poisson(TABLE["y2"])(np.array([0.5, 1.0, 0, 0]))
    assert "y2^2" in str(here.expect(TABLE))
    assert not jax.config.jax_enable_x64


def test_grid():
    laws = StationaryLaw.grid([0.5, 1.0, 2.0], b=2)
    assert isinstance(laws, LawGrid) and laws.beta.tolist() == [0.5, 1.0, 2.0]
    est = laws.expect(TABLE)
    assert est["y2"].mean == pytest.approx([2.84361201152, 0.81405966347, 0.08305033648], abs=1e-10)
    assert laws.sensitivity(TABLE["y2"]).mean[1] == pytest.approx(-1.84595701, abs=1e-7)
    with pytest.raises(rdiff.InputError, match="empty"):
        StationaryLaw.grid([]).expect(TABLE["y2"])


def test_relaxation_time():
    # reflected OU: the derivative in the start decays at 1 plus the power of y2 near 0 at the same beta
    assert 1 / law(1.0, b=0).relaxation_time == pytest.approx(1 + march(1.0).power, abs=1e-6)
    for beta in (0.1, 1.0, 3.0):
        rate = 1 / law(beta).relaxation_time
        assert 0.8 * min(beta**2 / 4, 0.95) < rate <= beta**2 / 4
    assert law(0.02).relaxation_time * 0.02**2 == pytest.approx(4.5, rel=0.01)
    assert 1 / law(6.0, b=2).relaxation_time <= 1


@pytest.mark.parametrize(
    "ask,said",
    [
        (lambda: StationaryLaw(rdiff.ReflectedBrownianMotion(mu=1.0, s=1.0)), "JSQDiffusion"),  # pyright: ignore
        (lambda: law(0.001), r"\[0.01, 6\]"),
        (lambda: law(7.0), r"\[0.01, 6\]"),
        (lambda: law(np.array([1.0, 2.0])), "grid"),
        (lambda: law(-1.0), "positive"),
        (lambda: law(1.0).expect(lambda y: jnp.exp(y[1])), "infinite"),
        (lambda: law(2.0).expect(lambda y: jnp.exp(2.5 * y[1])), "infinite"),
        (lambda: law(1.0).expect(lambda y: jnp.exp(y[1] ** 2)), "inf at"),
        (lambda: law(1.0).expect(lambda y: jnp.exp(y[0] ** 2 / 2)), "y1"),
        (lambda: law(1.0).expect(lambda y: jnp.sqrt(y[1] - 1)), "nan at"),
        (lambda: law(1.0).expect(lambda y: math.sin(y[0])), r"law.quadrature\(\)"),
        (lambda: law(1.0).expect(lambda y: y), "scalar"),
        (lambda: law(1.0).expect({}), "at least one"),
        (lambda: law(1.0).expect(TABLE["y2"], method="guess"), "method"),
        (lambda: law(1.0).quantile(1.0), "between 0 and 1"),
        (lambda: law(1.0).quantile([0.5, -0.1]), "between 0 and 1"),
        (lambda: law(1.0).tail(math.nan), "real"),
        (lambda: law(1.0).marginal(3, 0.0), "Y3"),
        (lambda: law(1.0).marginal(0, 0.0), "at least 1"),
        (lambda: law(1.0).density(1.0), "both"),
        (lambda: law(1.0, 0).tail(1.0), "no Y2"),
        (lambda: law(1.0, 0).density(1.0, 1.0), "no Y2"),
        (lambda: law(1.0).sample("seed", 3), "key"),
        (lambda: law(1.0).sample(0, -1), "size"),
        (lambda: law(1.0).refined(TABLE["y2"], 0), "n must"),
    ],
)
def test_bad_input(ask, said):
    with pytest.raises(rdiff.InputError, match=said):
        ask()
