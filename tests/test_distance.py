"""Distances between the queue and its limit: the theorem's d_{M_2}, Wasserstein, and those of the marginals."""

import json
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff.distances import programme
from rdiff.distances.along import Distances, distance
from rdiff.distances.between import Distance, distance_between
from rdiff.distances.continuum import Continuum
from rdiff.distances.lattice import Lattice
from rdiff.distances.splines import Axis, graded, uniform

# sqrt(n) d_{M_2} and sqrt(n) d_{M_1} at beta = 1, b = 1, computed beforehand by other programs
KNOWN = {16: (1.9929, 2.188), 64: (2.2382, 2.442), 256: (2.4100, 2.617), 1024: (2.5098, 2.719), 4096: (2.5624, None)}
KNOWN_LIMIT, C_Y2, MEAN_Y2 = 2.617, -2.467469, 0.8140597
SMOOTH = {
    "y2": lambda y: y[1],
    "y1": lambda y: y[0],
    "exp(-y1-y2)": lambda y: jnp.exp(-y[0] - y[1]),
    "sqrt(1+y1^2+y2^2)": lambda y: jnp.sqrt(1 + y[0] ** 2 + y[1] ** 2),
    "sin(y1)cos(y2)": lambda y: jnp.sin(y[0]) * jnp.cos(y[1]),
    "log(1+y1+y2)": lambda y: jnp.log1p(y[0] + y[1]),
    "sin(y1)-y2": lambda y: jnp.sin(y[0]) - y[1],
    "sin(y1-y2)": lambda y: jnp.sin(y[0] - y[1]),
}


def limit(beta=1.0, b=1):
    return rdiff.StationaryLaw(rdiff.JSQDiffusion(beta=beta, b=b))


@pytest.fixture(scope="module")
def along():
    return distance(KNOWN, beta=1.0)


@pytest.fixture(scope="module")
def pair():
    X, Y = rdiff.JSQQueue(n=16, b=1, beta=1.0).exact(), limit()
    return X, Y, distance_between(X, Y)


def test_the_theorems_distance_along_n(along):
    for row in along:
        second, first = KNOWN[row.n]
        assert abs(row.scaled_M2 - second) < 1e-4
        assert first is None or abs(row.scaled_M1 - first) < 6e-4
        assert 0 <= math.sqrt(row.n) * row.error_M2 < 5e-5
    found, error = along.limits["d_M2"]
    assert abs(found - KNOWN_LIMIT) < 5e-4 < error < 5e-3


def test_the_limits_that_theory_knows(along):
    # the largest jump is P(X_1 = 0), the density of Y1 at 0 over sqrt(n), which is E Y2
    found, error = along.limits["ks_1"]
    assert abs(found - MEAN_Y2) < error < 2e-3
    # W1 of X_2 is |E X_2 - E Y_2| where it is further from Y2 than its lattice is wide: nearly everywhere
    found, error = along.limits["w1_2"]
    assert -C_Y2 - 1e-4 < found < -1.01 * C_Y2
    assert abs(found - along.scaled()["w1_2"][-1]) <= error < 0.1
    assert along.limits.get("ks_2") is None
    assert along.scaled()["ks_2"][-1] > 2 * along.scaled()["ks_2"][1]


def test_beta_two():
    found = distance([16, 256, 1024], beta=2.0)
    assert abs(found[0].scaled_M2 - 0.9830) < 2e-4
    value, error = found.limits["d_M2"]
    assert abs(value - 1.066) < 1e-3 < error < 5e-3


def test_the_best_h_satisfies_its_bounds_between_the_nodes(along):
    one, two = np.linspace(0, 9, 2001), np.append(0, np.geomspace(1e-3, 40, 400))
    y = np.stack(np.meshgrid(one, two, indexing="ij"), axis=-1)
    for row in (along[0], along[-1]):
        for h in (row.h_M2, row.h_M1):
            assert np.abs(h.gradient(y)).max() <= 1 + 1e-9
            values = h(y)
            assert np.abs(np.diff(values, axis=0)).max() <= (one[1] - one[0]) * (1 + 1e-9)
            assert np.all(np.abs(np.diff(values, axis=1)) <= np.diff(two) * (1 + 1e-9) + 1e-12)
        assert 1 - 1e-6 < np.abs(row.h_M2.hessian(y)).max() <= 1 + 1e-9
        bends = np.abs(np.diff(row.h_M2(y), 2, axis=0)) / (one[1] - one[0]) ** 2
        assert bends.max() <= 1 + 1e-6


def test_the_best_h_attains_the_distance(pair):
    X, Y, found = pair
    assert found.w1[1] >= Y.expect(lambda y: y[1]).mean - X.expect(lambda y: y[1]).mean - 1e-9
    h = found.h_M2
    # the march's quadrature takes the jumps of second derivatives to about 1e-5
    assert abs(X.expect(h).mean - Y.expect(h, method="march").mean - found.d_M2) < 5e-5
    with jax.enable_x64(True):
        at = np.array([[0.3, 0.7], [1.9, 2.2], [30.0, 90.0]])
        np.testing.assert_allclose(jax.vmap(h)(jnp.asarray(at)), h(at), rtol=0, atol=1e-12)
        np.testing.assert_allclose(jax.vmap(jax.grad(h))(jnp.asarray(at[:2])), h.gradient(at[:2]), rtol=0, atol=1e-12)
    assert not np.any(h.gradient(at[2]))  # held constant far out


@pytest.mark.parametrize("n, b", [(16, 1), (64, 1), (16, 2)])
def test_no_function_of_the_class_does_better(n, b):
    X, Y = rdiff.JSQQueue(n=n, b=b, beta=1.0).exact(), limit(b=b)
    found = distance_between(X, Y)
    rng = np.random.default_rng(5)

    def wave(a, w, p):
        size = np.sum(np.abs(a) * np.maximum(1, np.abs(w).max(axis=1)) * np.abs(w).max(axis=1))  # of its derivatives, at most
        return lambda y: jnp.sum(jnp.asarray(a / size, y.dtype) * jnp.sin(jnp.asarray(w, y.dtype) @ y[:2] + p))

    waves = {f"wave {k}": wave(rng.normal(size=3), rng.normal(size=(3, 2)), float(rng.uniform(0, 6))) for k in range(20)}
    h = SMOOTH | waves
    prelimit, limiting = X.expect(h), Y.expect(h)
    gaps = {name: abs(prelimit[name].mean - limiting[name].mean) for name in h}
    assert max(gaps.values()) <= found.d_M2 + found.error_M2 <= found.d_M1 + found.error_M2
    assert max(gaps.values()) > 0.85 * found.d_M2


def test_further_coordinates_add_their_means():
    X = rdiff.JSQQueue(n=16, b=2, beta=1.0).exact()
    found, mean = distance_between(X, limit(b=2)), X.expect(lambda x: x[2]).mean
    assert abs(found.remainder - mean) < 1e-15 and mean > 1e-3
    assert abs(found.d_M1 - found.w1[0] - found.w1[1] - mean) < 1e-15
    assert found.h_M2.gradient(np.array([1.0, 1.0, 0.5]))[2] == 1.0
    assert abs(X.expect(found.h_M2).mean - limit(b=2).expect(found.h_M2, method="march").mean - found.d_M2) < 5e-5


@pytest.mark.parametrize("n, b, beta", [(16, 1, 1.0), (100, 2, 2.0), (50, 0, 1.0), (30, 1, 0.25)])
def test_marginals_against_scipy(n, b, beta):
    from scipy.stats import wasserstein_distance

    X, Y = rdiff.JSQQueue(n=n, b=b, beta=beta).exact(), limit(beta, b)
    found = distance_between(X, Y)
    step = 1e-3
    grid = np.arange(step / 2, beta + 9, step)
    mass = Y.marginal(1, grid) * step
    lattice = np.arange(n + 1) / math.sqrt(n)
    w1 = wasserstein_distance(lattice, grid, X.marginal(1)[::-1], mass)
    assert abs(found.w1[0] - w1) < 1e-4 * max(1, w1)
    ends, below = np.append(0.0, grid + step / 2), np.append(0.0, np.cumsum(mass))
    steps = np.cumsum(X.marginal(1)[::-1])
    at = np.interp(lattice, ends, below)
    ks = max(np.abs(steps - at).max(), np.abs(np.append(0.0, steps[:-1]) - at).max())
    assert abs(found.ks[0] - ks) < 1e-4
    if b == 0:
        assert len(found.w1) == 1 and found.d_M1 == found.w1[0]
        return
    p = (np.arange(50_000) + 0.5) / 50_000
    w1 = wasserstein_distance(lattice, Y.quantile(p), X.marginal(2))
    assert abs(found.w1[1] - w1) < 3e-4 * max(1, w1)
    steps, at = np.cumsum(X.marginal(2)), 1 - Y.tail(lattice)
    ks = max(np.abs(steps - at).max(), np.abs(np.append(0.0, steps[:-1]) - at).max())
    assert abs(found.ks[1] - ks) < 1e-12


def test_loss_system():
    X, Y = rdiff.JSQQueue(n=50, b=0, beta=1.0).exact(), limit(b=0)
    found = distance_between(Y, X)  # in either order
    gap = abs(X.expect(lambda x: x[0]).mean - Y.expect(lambda y: y[0]).mean)
    assert gap < found.d_M2 + found.error_M2 and found.d_M2 < 1.01 * gap
    assert abs(X.expect(found.h_M2).mean - Y.expect(found.h_M2).mean - found.d_M2) < 1e-8


def test_both_sides_give_means_of_the_bases():
    X, Y = rdiff.JSQQueue(n=25, b=1, beta=1.0).exact(), limit()
    lattice, continuum = Lattice.of(X), Continuum(Y)
    one, two = uniform(7.0, 30), graded(24.0, 0.5, 1.3)
    for side in (lattice, continuum):
        both = side.two(one, two)
        assert abs(both.sum() - 1) < 1e-8
        np.testing.assert_allclose(both.sum(axis=1), side.one(1, one), rtol=0, atol=1e-8)
        np.testing.assert_allclose(both.sum(axis=0), side.one(2, two), rtol=0, atol=1e-8)
    greville = (one.breaks[:-1] + one.breaks[1:]) / 2  # coefficients of y1 itself, away from the flat end
    means = [side.one(1, one)[1:-1] @ greville[:-1] for side in (lattice, continuum)]
    assert abs(means[0] - X.expect(lambda x: x[0]).mean) < 1e-8 and abs(means[1] - 1.0) < 1e-7


def test_splines_and_their_derivatives():
    axis = graded(5.0, 0.3, 1.25)
    c = np.random.default_rng(0).normal(size=axis.size)
    y = np.linspace(0, 4.999, 3000)
    np.testing.assert_allclose(axis.at(y).sum(axis=1), 1.0, rtol=0, atol=1e-12)
    slope = np.diff(axis.at(y) @ c) / np.diff(y)
    middle = (y[1:] + y[:-1]) / 2
    exact = np.interp(middle, axis.breaks, np.append(axis.slope @ c, 0.0))
    assert np.abs(slope - exact).max() < 1e-2 * np.abs(axis.curvature @ c).max()
    cells = np.searchsorted(axis.breaks, middle) - 1
    bends = (axis.curvature @ c)[cells]
    np.testing.assert_allclose(np.diff(exact) / np.diff(middle), bends[1:], atol=1e-6 + 1e9 * (np.diff(cells) > 0).max())
    fine = axis.refined(3)
    assert set(axis.breaks) <= set(fine.breaks) and len(fine.breaks) == 3 * len(axis.breaks) - 2


def test_programmes_with_known_answers():
    axis = Axis(np.linspace(0, 8, 65))
    half = lambda *points: axis.at(np.array(points)).mean(axis=0)  # noqa: E731
    # a point against a point: their distance; two points against their middle: half of it, bending as far as allowed
    assert abs(programme.one(axis, half(2.0) - half(0.5))[0] - 1.5) < 1e-9
    assert abs(programme.one(axis, half(0.0, 2.0) - half(1.0))[0] - 0.5) < 1e-9
    assert abs(programme.one(axis, half(0.0, 2.0) - half(1.0), order=1)[0] - 1.0) < 0.1
    # equal marginals, so that only h_12 can tell: by 1/2, and 1 for M_1
    axis = Axis(np.linspace(0, 6, 25))
    at = axis.at(np.array([0.0, 1.0])).toarray()
    same, crossed = (at.T @ np.array(joint) @ at for joint in ([[0.5, 0], [0, 0.5]], [[0, 0.5], [0.5, 0]]))
    value, c = programme.two(axis, axis, same - crossed)
    assert abs(value - 0.5) < 1e-6
    assert abs(np.sum(c * (same - crossed)) - value) < 1e-12
    assert 0.9 < programme.two(axis, axis, same - crossed, order=1)[0] < 1 + 1e-9
    assert programme.two(axis, axis, same - same)[0] == 0


def test_the_errors_of_the_limits_hold(along):
    for few in ([16, 64], [64, 256], [16, 64, 256], [64, 256, 1024]):
        limits = Distances(row for row in along if row.n in few).limits
        for name, truth in (("d_M2", KNOWN_LIMIT), ("ks_1", MEAN_Y2), ("w1_2", -C_Y2)):
            value, error = limits[name]
            assert abs(value - truth) < error + 5e-4, (few, name)


def test_no_limit_where_n_is_not_large():
    found = distance([30, 60], beta=5.0)
    assert found.limits["ks_1"] is None and all(pair is None or pair[0] > pair[1] for pair in found.limits.values())
    said = " ".join(found.notes())
    assert "no limit of W1 of X1, KS of X1" in said and "n = 60 is not large against beta" in said and "two n" in said
    found = distance([4, 9, 16], beta=0.1)
    assert not any(found.limits.values()) and "n = 16 is not large against 1/beta^2" in str(found)


def test_results_print_pickle_and_become_json(pair):
    found = Distances([pair[2]])
    assert "1.9929" in str(found) and "+-" not in str(found)
    assert str(pair[2]) == str(found)
    assert "there is no limit to be had" in str(distance([16, 20], beta=0.25))
    assert "n = 16 is not large against 1/beta^2" in str(distance([16, 64], beta=1.0)) and "spoils" in str(
        distance([16, 64], beta=1.0)
    )
    again = pickle.loads(pickle.dumps(found))
    assert isinstance(again[0], Distance) and again.to_dict() == found.to_dict()
    y = np.array([0.4, 1.3])
    assert again[0].h_M2(y) == found[0].h_M2(y)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert {"n", "d_M2", "d_M1", "scaled_M2", "scaled_M1"} <= set(plain["rows"][0])
    assert plain["limit"]["d_M2"] is None
    seen = []
    assert [row.n for row in distance([4, 9], beta=1.0, on_progress=seen.append)] == [4, 9]
    assert [tuple(at) for at in seen] == [(0, 2), (1, 2)]


def samples():
    return rdiff.Samples(np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 100), n=4, b=1, beta=1.0, weights="regular")


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: distance([], beta=1.0), "increasing"),
        (lambda: distance([64, 16], beta=1.0), "increasing"),
        (lambda: distance([16, 16], beta=1.0), "increasing"),
        (lambda: distance(16, beta=1.0), "servers"),
        (lambda: distance([16.5], beta=1.0), "integer"),
        (lambda: distance([4, 16], beta=2.0), "n must exceed beta\\^2"),
        (lambda: distance([16], beta=-1.0), "beta must be"),
        (lambda: distance([16], beta=1.0, b=-1), "b must be"),
        (lambda: distance([1000], beta=7.0), "\\[0.01, 6\\]"),
        (lambda: distance([4096], beta=1.0, memory=1e-5), "memory"),
        (lambda: distance_between(samples(), limit()), "noise"),
        (lambda: distance_between(limit(), limit()), "two limits"),
        (lambda: distance_between(rdiff.JSQQueue(n=16, b=1, beta=1.0), limit()), "exact\\(\\)"),
        (lambda: distance_between(rdiff.JSQQueue(n=16, b=1, beta=1.0).exact(), rdiff.JSQDiffusion(1.0)), "StationaryLaw"),
        (lambda: distance_between(rdiff.JSQQueue(n=16, b=1, beta=1.0).exact(), limit(2.0)), "different beta"),
        (lambda: distance_between(rdiff.JSQQueue(n=16, b=0, beta=1.0).exact(), limit()), "without a buffer"),
        (lambda: distance_between(rdiff.JSQQueue(n=16, b=1, beta=1.0, alpha=0.75).exact(), limit()), "Halfin-Whitt"),
    ],
)  # fmt: skip
def test_what_is_refused(make, words):
    with pytest.raises(rdiff.InputError, match=words):
        make()
