"""The generator comparison in both directions: identities that hold at every n, and the terms that theory names."""

import math
import pickle
import time
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff import generator
from rdiff.generator import classical, prelimit
from rdiff.generator.result import GeneratorComparison
from rdiff.queue.chain import JSQQueue

H = {"y1": lambda y: y[0], "y2": lambda y: y[1], "exp": lambda y: jnp.exp(-y[0] - y[1])}
MORE = {**H, "y2**2": lambda y: y[1] ** 2, "y1*y2": lambda y: y[0] * y[1], "rational": lambda y: 1 / (1 + y[1] ** 2)}


def laws(n, b, beta=1.0, **options):
    return JSQQueue(n, b, beta=beta).exact(**options), rdiff.StationaryLaw(rdiff.JSQDiffusion(beta, b))


@pytest.mark.parametrize("n, b", [(4, 1), (25, 1), (100, 1), (400, 1), (9, 2), (100, 2), (12, 3)])
def test_classical_closes(n, b):
    X, Y = laws(n, b)
    found = classical(X, Y, MORE)
    for name, c in found.items():
        assert abs(c.residual) < 1e-8, (name, c.residual)
        assert c.closes and c.error < 5e-7, (name, c.error)
        assert c.direct == pytest.approx(X.expect(MORE[name]).mean - Y.expect(MORE)[name].mean, abs=1e-12)
        assert c.generator == pytest.approx(sum(c.terms.values()), abs=1e-15)


@pytest.mark.parametrize("n, b, beta", [(100, 1, 0.25), (64, 2, 0.5), (50, 1, 2.0), (60, 1, 3.0), (3, 2, 1.5), (20, 2, 0.25)])
def test_classical_closes_within_its_error_at_other_beta(n, b, beta):
    for name, c in classical(*laws(n, b, beta), MORE).items():
        assert c.closes and c.error < 3e-6 * max(1.0, abs(c.direct)), (name, c.residual, c.error)


def test_classical_without_a_buffer():
    h = {"y1": lambda y: y[0], "y1**2": lambda y: y[0] ** 2, "exp": lambda y: jnp.exp(-y[0])}
    X, Y = laws(100, 0)
    for name, c in classical(X, Y, h).items():
        assert abs(c.residual) < 1e-12 and c.closes, name
        assert c.terms["third level, blocking"] == pytest.approx(0.0, abs=1e-12)  # f_1 = 0 at y1 = 0
    # E Y1 = beta + push rate and E X1 = beta + sqrt(n) lam P_block, whose limit that is
    assert c.n == 100 and classical(X, Y, h["y1"]).direct == pytest.approx(0.9 * 0.26957380 - 0.28759997, abs=1e-7)


def test_classical_by_the_definition():
    """State by state, by f's own derivatives and the sparse generator."""
    X, Y = laws(20, 2)
    queue, f = X.queue, Y.poisson(MORE["y2**2"])
    x = queue.scaled(queue.states())
    states, p = (np.concatenate(part) for part in zip(*X.pieces()))
    p = p[np.lexsort(states.T)[::-1]]
    first, second = f.gradient(x), f.hessian(x)
    limit = (1 - x[:, 0] - x[:, 1]) * first[:, 0] + second[:, 0, 0] - (x[:, 1] - x[:, 2]) * first[:, 1]
    moved = queue.generator() @ f(x)
    # off the plane G_Y f = h - E h + x3 f_2, for an h that does not see x3
    expected = p @ (limit - moved - x[:, 2] * first[:, 1])
    c = classical(X, Y, MORE["y2**2"])
    assert c.generator == pytest.approx(expected, abs=1e-11)
    interior = p @ ((1 + x[:, 0] + x[:, 1]) * second[:, 0, 0] - (x[:, 1] - x[:, 2]) * second[:, 1, 1]) / 2 / math.sqrt(20)
    assert c.terms["second order"] == pytest.approx(interior, abs=1e-11)
    wall = x[:, 0] == 0
    open_ = wall & (queue.states()[:, 1] < 20)
    boundary = queue.lam / 2 * (p[wall] @ second[wall, 0, 0] - p[open_] @ second[open_, 1, 1])
    assert c.terms["boundary"] == pytest.approx(boundary, abs=1e-11)


def test_h_of_the_third_level():
    X, Y = laws(30, 2, 0.5)
    h = {"y3": lambda y: y[2], "mixed": lambda y: jnp.exp(-y[1]) * (1 + y[0] * y[2])}
    for name, c in classical(X, Y, h).items():
        assert abs(c.residual) < 1e-8 and c.closes, name
    assert classical(X, Y, h["y3"]).terms["third level, blocking"] == pytest.approx(X.expect(h["y3"]).mean, rel=1e-12)


@pytest.mark.parametrize("name, constant", [("y2", -2.467469), ("exp", 0.374658)])
def test_the_first_two_terms_tend_to_the_constant(name, constant):
    gaps, rests = [], []
    for n in (100, 400, 1600):
        c = classical(*laws(n, 1, window=9.0), H[name])
        gaps.append(math.sqrt(n) * (c.terms["second order"] + c.terms["boundary"]) / constant - 1)
        rests.append(n * c.terms["remainder"])
    assert np.all(np.abs(gaps[1:]) < 0.62 * np.abs(gaps[:-1])) and abs(gaps[-1]) < 0.04  # order 1/sqrt(n)
    assert max(rests) / min(rests) < 1.3 or min(rests) / max(rests) < 1.3  # order 1/n


def test_a_window_keeps_the_identity():
    # of the chain that stays inside, exactly: however much is cut off
    X, Y = laws(60, 1, window=4.0, cap=4.0)
    assert X.outside > 1e-4
    for name, c in classical(X, Y, H).items():
        assert abs(c.residual) < 1e-8 and c.error > 1e-6, name


def test_classical_on_eight_million_states_takes_seconds():
    X, Y = laws(4000, 1)
    Y.poisson(H["y2"])
    start = time.perf_counter()
    c = classical(X, Y, H["y2"])
    assert time.perf_counter() - start < 30  # 2 on an idle machine
    assert abs(c.residual) < 1e-9 and c.terms["remainder"] == pytest.approx(-3.2996e-5, abs=1e-8)


@pytest.mark.parametrize("n, b", [(64, 1), (100, 1), (400, 1), (100, 2)])
def test_prelimit_closes(n, b):
    X, Y = laws(n, b)
    for name, c in prelimit(X, Y, H).items():
        assert abs(c.residual) < (1e-5 if n > 64 else 1e-4), (name, c.residual)
        assert c.closes and c.error < (2e-5 if n > 64 else 2e-4), (name, c.error)
        assert c.direct == pytest.approx(Y.expect(H)[name].mean - X.expect(H[name]).mean, abs=1e-12)


def test_prelimit_closes_without_a_buffer_and_in_a_window():
    h = {"y1": lambda y: y[0], "exp": lambda y: jnp.exp(-y[0])}
    for X, Y in (laws(100, 0), laws(900, 1, window=8.0, cap=25.0)):
        for name, c in prelimit(X, Y, h).items():
            assert abs(c.residual) < 1e-6 and c.closes, name


def test_the_two_directions_have_the_same_terms():
    X, Y = laws(1024, 1)
    there, back = classical(X, Y, H), prelimit(X, Y, H)
    for name in ("y2", "exp"):
        for term in ("second order", "boundary"):
            # both are C(h)'s, times 1/sqrt(n), up to O(1/n)
            assert back[name].terms[term] == pytest.approx(-there[name].terms[term], rel=0.06)
        # without the local time of Y, as if D A f = 0, it would not close
        assert abs(back[name].terms["boundary"]) > 1e3 * back[name].error
        assert abs(back[name].terms["between points"]) < 1e-6


def test_comparisons_of_exact_laws_check_themselves():
    X, Y = laws(50, 1)
    h = {**H, "y2>1": lambda y: y[1] > 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checks = rdiff.compare(X, Y, h).checks
    names = [check.name for check in checks]
    assert names[-3:] == [f"E_X[(G_Y - G_X) f], h = {name}" for name in H]  # none for the jump
    assert all(check.ok for check in checks)
    one = rdiff.compare(X, Y, H["y2"])
    assert one.reliable and one.checks[-1].expected == one.difference
    assert abs(one.checks[-1].value - one.difference) < 1e-9
    assert not any("G_X" in check.name for check in rdiff.compare(X, X, H["y2"]).checks)
    assert not any("G_X" in check.name for check in rdiff.compare(X, Y, h["y2>1"]).checks)


def test_the_check_fails_when_a_law_is_not_what_it_says():
    X, Y = laws(50, 1)
    left = {name: rdiff.Estimate(est.mean + 1e-6, 0.0, name, error=est.error) for name, est in X.expect(H).items()}
    for check in generator.checks(X, Y, H, left, Y.expect(H)):
        assert check.ok is False and "less accurate" in check.cause
    X._kept = X._kept[::-1].copy()  # not a stationary law
    checks = generator.checks(X, Y, H, X.expect(H), Y.expect(H))
    assert not any(check.ok for check in checks)


def test_an_error_as_large_as_the_terms_closes_nothing():
    def made(error):
        return GeneratorComparison("h", 4, 0.1, {"second order": 0.1, "remainder": 0.019}, error)

    assert made(0.16).verdict == "not resolved" and not made(0.16).closes and "not resolved" in str(made(0.16))
    assert made(0.001).verdict == "FAILS" and not made(0.001).closes
    nothing = GeneratorComparison("h", 4, 1e-12, {"second order": 0.0}, 1e-10)  # 0 on both sides
    assert nothing.closes and made(math.nan).verdict == "FAILS"


def test_results_print_pickle_and_export():
    found = classical(*laws(25, 1), H)
    text = str(found)
    for word in ("observable", "difference", "second order", "boundary", "remainder", "residual", "y2", "exp"):
        assert word in text
    row = found["y2"].to_dict()
    assert row["observable"] == "y2" and row["n"] == 25 and row["closes"] and set(row["terms"]) == set(found["y2"].terms)
    assert [row["observable"] for row in found.to_dict()] == list(H)
    assert pickle.loads(pickle.dumps(found)) == found
    assert "difference" in str(classical(*laws(25, 1), H["y2"]))


@pytest.mark.parametrize("compare", [classical, prelimit])
def test_bad_input(compare):
    X, Y = laws(25, 1)
    for pair in ((Y, X), (X, X), (X, 3.0)):
        with pytest.raises(rdiff.InputError, match="two exact laws, of a queue and of its limit"):
            compare(*pair, H["y2"])
    with pytest.raises(rdiff.InputError, match="different beta"):
        compare(X, laws(25, 1, 2.0)[1], H["y2"])
    with pytest.raises(rdiff.InputError, match="without a buffer"):
        compare(X, laws(25, 0)[1], H["y2"])
    with pytest.raises(rdiff.InputError, match="not the Halfin-Whitt regime"):
        compare(JSQQueue(25, 1, beta=1.0, alpha=0.6).exact(), Y, H["y2"])
    with pytest.raises(rdiff.InputError, match="inf"):
        compare(X, Y, lambda y: 1 / (y[0] + y[1]))
    with pytest.raises(rdiff.InputError, match="coordinate"):
        compare(X, Y, lambda y: y[2])
    with pytest.warns(rdiff.AccuracyWarning, match="jumps"):
        compare(X, Y, lambda y: y[1] > 1.0)


def test_prelimit_refuses_a_lattice_too_small_for_a_spline():
    with pytest.raises(rdiff.InputError, match="too few for a spline"):
        prelimit(*laws(9, 1), H["y2"])
