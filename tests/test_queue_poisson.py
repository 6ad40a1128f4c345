"""The Poisson equation on the lattice: against a sparse solve, the limit's, and the sizes that theory gives it."""

import math
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff.queue.chain import JSQQueue
from rdiff.stein import stein_factors

Y2 = {"y2": lambda x: x[1]}
EXP = {"exp": lambda x: jnp.exp(-x[0] - x[1])}
SYSTEMS = [(20, 1, 1), (10, 2, 1), (6, 3, 1), (15, 0, 1), (1, 0, 0.4), (1, 2, 0.4), (2, 2, 1), (30, 1, 5), (25, 2, 0.2)]


def by_sparse_lu(queue, values, weights):
    """f by SuperLU on the generator itself: one equation replaced by f = 0 at X = 0."""
    from scipy.sparse import lil_array
    from scipy.sparse.linalg import spsolve

    matrix, right = lil_array(queue.generator()), values - weights @ values
    zero = int(np.flatnonzero((queue.states() == [queue.n] + [0] * queue.b).all(axis=1))[0])
    most = int(np.argmax(weights))  # any equation follows from the others
    matrix[most], right[most] = 0.0, 0.0
    matrix[most, zero] = 1.0
    return spsolve(matrix.tocsc(), right)


def weights_of(law):
    """P at queue.states(), whatever the order in which the law gives its pieces."""
    states, p = (np.concatenate(part) for part in zip(*law.pieces()))
    return p[np.lexsort(states.T)[::-1]]


@pytest.mark.parametrize("n, b, beta", SYSTEMS)
def test_a_sparse_solve_agrees(n, b, beta):
    queue = JSQQueue(n, b, beta=beta)
    law, x = queue.exact(), queue.scaled(queue.states())
    f = law.poisson(lambda x: jnp.sin(x[0]) + x[-1] ** 2)
    values = np.sin(x[:, 0]) + x[:, -1] ** 2
    expected = by_sparse_lu(queue, values, weights_of(law))
    assert np.abs(f(queue.states()) - expected).max() < 1e-10 * max(1.0, np.abs(expected).max())
    assert f([n] + [0] * b) == 0.0
    assert f.residual < 1e-12 and f.mean == pytest.approx(weights_of(law) @ values, abs=1e-12)
    # and it solves the equation, by the generator's own matrix
    left = np.asarray(queue.generator() @ f(queue.states()))
    assert np.abs(left - (values - f.mean)).max() < 1e-10 * max(1.0, np.abs(values).max())


def test_the_number_in_the_loss_system():
    # b = 0, h = Q_1: with g(q) = f(q + 1) - f(q), the equation is n lam g(q) - q g(q - 1) = E Q_1 - q up to the scale.
    n, queue = 12, JSQQueue(12, 0, beta=1.0)
    f = queue.exact().poisson(lambda x: x[0])
    values = f(np.arange(n + 1)[:, None])
    steps, mean = np.diff(values), queue.arrivals * (1 - queue.exact().blocking)
    left = queue.arrivals * np.append(steps, 0.0) - np.arange(n + 1) * np.append(0.0, steps)
    assert np.allclose(left, (mean - np.arange(n + 1)) / math.sqrt(n), atol=1e-13)


def test_differences_are_those_of_the_values():
    law = JSQQueue(9, 2, beta=1.0).exact()
    f, root = law.poisson(Y2), 3.0
    q = np.array([[6, 3, 1], [6, 6, 0], [9, 9, 9], [3, 3, 0]])
    first, second = f.gradient(q), f.hessian(q)
    assert first.shape == (4, 3) and second.shape == (4, 3, 3)
    assert first[0, 0] == pytest.approx(root * (f([5, 3, 1]) - f([6, 3, 1])))
    assert first[0, 2] == pytest.approx(root * (f([6, 3, 2]) - f([6, 3, 1])))
    assert second[0, 0, 1] == pytest.approx(9 * (f([5, 4, 1]) - f([5, 3, 1]) - f([6, 4, 1]) + f([6, 3, 1])))
    assert second[0, 1, 1] == pytest.approx(9 * (f([6, 5, 1]) - 2 * f([6, 4, 1]) + f([6, 3, 1])))
    assert np.array_equal(second[0], second[0].T)
    assert np.isnan(first[1, :2]).all() and np.isfinite(first[1, 2])  # Q_1 = Q_2: neither moves
    assert np.isnan(first[2]).all() and np.isnan(second[3, 0]).all()
    assert f.gradient(q[0]).shape == (3,) and f(q).shape == (4,)


@pytest.mark.parametrize("n, b", [(16, 1), (6, 2), (5, 3), (9, 0)])
def test_the_order_of_the_states(n, b):
    space = JSQQueue(n, b, beta=1.0).exact().space
    assert np.array_equal(space.places(space.all()), np.arange(int(space.count)))
    wrong = np.array([[n + 1] + [0] * b, [-1] + [0] * b, [0] * b + [n + 1]])
    assert (space.places(wrong) == -1).all()
    if b:
        assert (space.places(np.array([[3, 4] + [0] * (b - 1), [3] * b + [-1]])) == -1).all()


def test_f_and_its_differences_tend_to_those_of_the_limit():
    limit = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0)).poisson(lambda y: y[1])
    errors = []
    for n in (100, 400, 1600):
        f, root = JSQQueue(n, 1, beta=1.0).exact(window=8.0).poisson(Y2), math.isqrt(n)
        q = np.array([[n - root, root // 2], [n - 2 * root, 2 * root], [n, root]])
        y = np.array([[1.0, 0.5], [2.0, 2.0], [0.0, 1.0]])
        gaps = f(q) - limit(y), f.gradient(q) - limit.gradient(y), f.hessian(q) - limit.hessian(y)
        errors.append([np.abs(gap).max() for gap in gaps])
    errors = np.array(errors)
    # order 1/sqrt(n): halved from one n to the next
    assert np.all(errors[1:] < 0.62 * errors[:-1]) and np.all(errors[-1] < 0.25)


def test_a_law_that_is_not_kept_and_a_cap_answer_the_same():
    queue = JSQQueue(60, 1, beta=1.0)
    whole, passing, cut = queue.exact(), queue.exact(keep=False), queue.exact(window=7.5, cap=7.0)
    q = np.array([[60, 5], [50, 10], [40, 0]])
    expected = whole.poisson(Y2)(q)
    assert np.abs(passing.poisson(Y2)(q) - expected).max() < 1e-12
    assert cut.outside > 1e-6
    assert np.abs(cut.poisson(Y2)(q) - expected).max() < 1e-2
    assert whole.stein_factors(Y2) == pytest.approx(passing.stein_factors(Y2), rel=1e-11)
    third = JSQQueue(40, 2, beta=1.0)
    near = third.exact(cap=5.0)  # without a third level
    assert near.space.levels == 2
    a, b = (law.poisson(Y2)(np.array([[40, 3, 0], [33, 9, 0]])) for law in (near, third.exact()))
    assert np.abs(a - b).max() < 0.2 * np.abs(b).max()
    with pytest.raises(rdiff.InputError, match="no state that was kept"):
        near.poisson(Y2)([40, 3, 1])
    assert np.isnan(near.poisson(Y2).gradient([40, 3, 0])[2])


def test_many_states_in_good_time_and_small():
    f = JSQQueue(1000, 1, beta=1.0).exact().poisson(Y2)  # half a million states
    assert f.residual < 1e-9 and len(f.values) == 501501
    assert pickle.loads(pickle.dumps(f))([990, 40]) == f([990, 40])


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_stein_factors_of_a_bounded_function_are_bounded(beta):
    found = stein_factors([16, 64, 256, 1024], beta=beta, h=EXP, over="all")
    queue, limit = found.queue["exp"], found.limit["exp"]
    for name in limit:
        sizes = np.array([factors[name] for factors in queue.values()])
        assert sizes.max() < 2.2 * limit[name], name
        assert sizes[3] < 1.2 * sizes[2], name
    # from below, like 1/sqrt(n)
    gaps = np.array([limit["f11"] - factors["f11"] for factors in queue.values()])
    assert np.all(gaps > 0) and np.all(gaps[1:] < 0.7 * gaps[:-1])


def test_stein_factors_of_y2_grow_like_the_root_of_n_over_all_states_only():
    n = [64, 256, 1024]
    found = {over: stein_factors(n, beta=1.0, h=Y2, over=over) for over in ("all", "box", "weighted", "mean")}
    for name in ("f1", "f2", "f11", "f12", "f22"):
        size = {over: np.array([row[name] for row in f.queue["y2"].values()]) for over, f in found.items()}
        growth = size["all"][1:] / size["all"][:-1]
        assert np.all(growth > 2.0) and np.all(growth < 3.2), (name, growth)  # sqrt(4), from above
        for over in ("box", "weighted", "mean"):
            assert size[over][-1] < 1.3 * size[over][-2], (name, over)
        for over in ("box", "mean"):
            assert size[over][-1] == pytest.approx(found[over].limit["y2"][name], rel=0.15), (name, over)
    assert found["all"].limit["y2"]["f1"] == math.inf and found["all"].limit["y2"]["f12"] < 1.1
    # by hand: E f_1 = -d E Y2/d beta, and f_2 = f_1 + 1 is that of y1 + y2
    assert found["mean"].limit["y2"]["f1"] == pytest.approx(1.845957, abs=1e-5)


def test_the_box_is_that_of_the_marginal_quantiles():
    law, mass = JSQQueue(100, 2, beta=1.0).exact(), 0.99
    f = law.poisson(Y2)
    states, p = (np.concatenate(part) for part in zip(*law.pieces()))
    ends = []
    for i in range(3):
        steps = 100 - states[:, 0] if i == 0 else states[:, i]
        ends.append(next(k for k in range(101) if p[steps > k].sum() <= (1 - mass) / 3))
    inside = (100 - states[:, 0] <= ends[0]) & (states[:, 1] <= ends[1]) & (states[:, 2] <= ends[2])
    assert p[inside].sum() >= mass
    expected = np.nanmax(np.abs(f.difference(states[inside], 1, 1)))
    assert law.stein_factors(Y2, mass)["f11"] == expected
    assert law.stein_factors(Y2, over="mean")["f2"] == pytest.approx(p @ np.nan_to_num(np.abs(f.difference(states, 2))))


def test_the_table():
    found = stein_factors([16, 25], beta=1.0, h={**Y2, "one": lambda y: 1.0 + 0 * y[0]}, b=2)
    rows = found.to_dict()
    assert [(row["observable"], row["n"]) for row in rows] == [(name, n) for name in ("y2", "one") for n in (16, 25, None)]
    assert rows[3]["f1"] < 1e-12 and rows[5]["f22"] < 1e-6  # of a constant
    text = str(found)
    assert text.startswith("Stein factors, beta = 1, b = 2") and "0.9999" in text and text.count("limit") == 2
    assert list(stein_factors([9], beta=1.0, b=0, h=lambda y: y[0]).limit["h"]) == ["f1", "f11"]
    assert stein_factors([16], beta=1.0, h=Y2, over="all").to_dict()[-1]["f1"] is None
    assert pickle.loads(pickle.dumps(found)) == found


def test_bad_input():
    law = JSQQueue(25, 1, beta=1.0).exact()
    for sizes in ([16, 16], [64, 16]):
        with pytest.raises(rdiff.InputError, match="increasing order, each once"):
            stein_factors(sizes, beta=1.0, h=Y2)
    with pytest.raises(rdiff.InputError, match=r"inf at the state \(0, 0\)"):
        law.poisson(lambda x: 1 / (x[0] + x[1]))
    with pytest.raises(rdiff.InputError, match="at least one observable"):
        law.poisson({})
    with pytest.raises(rdiff.InputError, match="one observable"):
        law.poisson({**Y2, **EXP})
    f = law.poisson(Y2)
    for q in ([3, 4], [26, 0], [3, -1]):
        with pytest.raises(rdiff.InputError, match="no state that was kept: 25 >= Q_1 >= "):
            f(q)
    for q in ([0.2, 0.4], [3], 3):
        with pytest.raises(rdiff.InputError, match="states of occupancy"):
            f(q)
    for along in ((0,), (3,), (1.0,)):
        with pytest.raises(rdiff.InputError, match="coordinate"):
            f.difference([20, 2], *along)
    limit = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    for which in (law, limit):
        with pytest.raises(rdiff.InputError, match="over must be one of box, all, weighted, mean"):
            which.stein_factors(lambda y: y[1], over="most")
        with pytest.raises(rdiff.InputError, match="mass"):
            which.stein_factors(lambda y: y[1], mass=1.0)
    with pytest.raises(rdiff.InputError, match="a list of numbers of servers"):
        stein_factors([], beta=1.0, h=Y2)
    with pytest.raises(rdiff.InputError, match="n must"):
        stein_factors([16, 1], beta=2.0, h=Y2)
    with pytest.raises(rdiff.InputError, match="a list of numbers of servers"):
        stein_factors(16, beta=1.0, h=Y2)  # pyright: ignore[reportArgumentType]
    with pytest.raises(rdiff.InputError, match="b must"):
        stein_factors([16], beta=1.0, b=-1, h=Y2)
