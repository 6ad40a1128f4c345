"""Comparisons of laws: the arithmetic of the difference, what is refused, and what is printed."""

import json
import math
import pickle

import numpy as np
import pytest

import rdiff
from rdiff.checks import Check, failures, queue_identities
from rdiff.compare import Comparison, Comparisons, compare
from rdiff.errors import InputError
from rdiff.estimate import Estimate, Estimates
from rdiff.queue.samples import Samples


class Law:
    """A law that knows its numbers."""

    def __init__(self, mean=0.8, stderr=0.0, dof=math.inf, **known):
        self.estimate = {"mean": mean, "stderr": stderr, "dof": dof}
        self.estimate |= {key: known.pop(key) for key in ("error", "bias", "cautions") if key in known}
        vars(self).update(known)

    def expect(self, h):
        if isinstance(h, dict):
            return Estimates({name: Estimate(name=name, **self.estimate) for name in h})
        return Estimate(**self.estimate)


def y2(y):
    return y[1]


def test_difference_and_errors():
    found = compare(Law(0.6, 0.03, 20, n=100, beta=1.0), Law(0.8, 0.04, 30, beta=1.0), y2)
    assert isinstance(found, Comparison)
    assert found.difference == pytest.approx(-0.2) and found.stderr == pytest.approx(0.05)
    assert found.scaled == pytest.approx(-2.0) and found.z == pytest.approx(-4.0)
    dof = 0.05**4 / (0.03**4 / 20 + 0.04**4 / 30)
    assert found.dof == pytest.approx(dof)
    low, high = found.ci(0.95)
    # Student t at 49.7 degrees of freedom, from tables (2.0096 at 49, 2.0086 at 50)
    assert (high - low) / 2 == pytest.approx(2.0089 * 0.05, rel=1e-4)
    assert found.reliable and found.checks == ()


def test_one_exact_law_keeps_the_others_degrees_of_freedom():
    assert compare(Law(0.6, 0.03, 20), Law(0.8, 0.0, error=1e-9), y2).dof == pytest.approx(20)


def test_known_bias_and_numerical_error_widen_the_interval():
    narrow = compare(Law(0.6, 0.03), Law(0.8), y2).ci()
    wide = compare(Law(0.6, 0.03, bias=-0.01), Law(0.8, error=0.02), y2).ci()
    assert wide[0] == pytest.approx(narrow[0] - 0.03) and wide[1] == pytest.approx(narrow[1] + 0.03)


def test_two_exact_laws_have_no_z():
    found = compare(Law(0.6, error=1e-10, n=100), Law(0.8, error=1e-10), y2)
    assert found.z is None and found.stderr == 0 and found.scaled == pytest.approx(-2)
    assert found.ci() == pytest.approx((-0.2, -0.2), abs=1e-9)
    assert found.to_dict()["z"] is None


def test_exact_laws_have_errors_and_no_standard_errors():
    row = compare(Law(0.6, 0.03, 20), Law(0.8, error=1e-10), y2).to_dict()
    assert row["prelimit_stderr"] == 0.03 and row["prelimit_error"] is None
    assert row["limit_stderr"] is None and row["limit_error"] == 1e-10 and row["stderr"] == 0.03
    row = compare(Law(0.6, error=1e-9), Law(0.8, error=1e-10), y2).to_dict()
    assert row["stderr"] is None and row["prelimit_stderr"] is None and row["prelimit_error"] == 1e-9
    row = compare(Law(0.6, 0.03), Law(0.8, 0.01), y2).to_dict()
    assert row["limit_stderr"] == 0.01 and row["limit_error"] is None


def test_unknown_error_gives_no_z():
    found = compare(Law(0.6, math.nan, 0, cautions=("one row",)), Law(0.8), y2)
    assert found.z is None and not found.reliable
    row = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert row["stderr"] is None and row["ci"] == [None, None] and row["reliable"] is False
    assert "one row" in str(found) and "nan" not in str(found)


def test_unequal_beta_is_refused():
    with pytest.raises(InputError, match="different beta, 1 and"):
        compare(Law(beta=1.0), Law(beta=1.1), y2)
    with pytest.raises(InputError, match="different beta"):
        compare(Law(beta=1.0), Law(beta=1.0 + 1e-8), y2)
    compare(Law(beta=1.0), Law(beta=1.0 + 1e-12), y2)
    compare(Law(beta=1.0), Law(), y2)


def test_b_zero_has_another_limit():
    with pytest.raises(InputError, match="b = 0"):
        compare(Law(b=0), Law(b=1), y2)
    compare(Law(b=math.inf), Law(b=1), y2)


def test_not_a_law():
    with pytest.raises(InputError, match="SimulatedLaw"):
        compare(Law(), object(), y2)
    with pytest.raises(InputError, match="first law"):
        compare("run.csv", Law(), y2)


def test_n_of_two_queues():
    assert compare(Law(n=100), Law(n=100), y2).n == 100
    assert compare(Law(n=100), Law(n=25), y2).scaled is None
    assert compare(Law(), Law(), y2).scaled is None
    assert compare(Law(), Law(n=25), y2).n == 25


def test_refined_comes_from_the_limit_law():
    limit = Law(0.8, refined=lambda h, n: 0.8 + h([0, 1]) / math.sqrt(n))
    assert compare(Law(0.6, 0.1, n=100), limit, y2).to_dict()["refined"] == pytest.approx(0.9)
    assert compare(Law(0.6, 0.1), limit, y2).refined is None


def test_dict_of_observables_prints_as_one_table():
    bad = Check("E Q2 = n lam P(Q1 = n)", 5.74, 3.1, 0.25, 10.6, False, "the policy is not JSQ")
    good = Check("E Q1 = n lam", 56.2, 56.0, 0.16, 1.4, True)
    X = Law(0.6, 0.03, 29, n=64, beta=1.0, checks=lambda: [good, bad], notes=("grid of times",))
    found = compare(X, Law(0.8, 0.001, beta=1.0, cautions=("only 4 lanes",)), {"y2": y2, "y2>1": lambda y: y[1] > 1})
    assert isinstance(found, Comparisons) and list(found) == ["y2", "y2>1"]
    text = str(found)
    assert text.count("prelimit  ") == 1 and text.count("verdict") == 1
    assert "FAILS" in text and "E Q2 = n lam P(Q1 = n) fails: the policy is not JSQ" in text
    assert "limit not reliable: only 4 lanes" in text and "grid of times" in text
    assert not found.reliable and found.checks == (good, bad)
    rows = found.to_dict()
    for key in ["observable", "prelimit", "limit", "difference", "stderr", "ci", "scaled", "z", "refined", "reliable"]:
        assert key in rows[0]
    json.dumps(rows, allow_nan=False)
    again = pickle.loads(pickle.dumps(compare(Law(0.6, 0.03), Law(), {"y2": y2})))
    assert again["y2"].difference == pytest.approx(-0.2)


def test_samples_against_a_law():
    rows = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 250)
    found = compare(Samples(rows, n=4, b=1, beta=1.0, weights="regular"), Law(0.8, beta=1.0), y2)
    assert found.prelimit.mean == 0.25 and found.scaled == pytest.approx(2 * -0.55)
    assert len(found.checks) == 2


# The identities themselves


def test_exact_identities():
    """M/M/1/2: pi = (4, 2, 1)/7 at lam = 1/2, so E Q1 = 3/7, E Q2 = P_block = 1/7."""
    holds = queue_identities(1, 0.5, 1, [3 / 7, 1 / 7], [3 / 7, 1 / 7], exact=True)
    assert [check.ok for check in holds] == [True, True] and holds[0].stderr == 0
    assert holds[0].expected == pytest.approx(3 / 7) and math.isnan(holds[0].z)
    fails = queue_identities(1, 0.5, 1, [3 / 7, 1 / 7 + 1e-6], [3 / 7, 1 / 7], exact=True)
    assert [check.ok for check in fails] == [True, False]
    assert fails[1].to_dict()["z"] is None


def test_identities_by_paired_batches():
    """Both sides move together: the error is that of the difference, not of each."""
    rng = np.random.default_rng(0)
    common, noise = rng.normal(0, 1, 40), rng.normal(0, 0.1, 40)
    q = np.stack([20 + 0.1 * noise, 2.5 + common], axis=1)
    full = np.stack([(2.5 + common + noise) / 20, np.zeros(40)], axis=1)
    check = queue_identities(25, 0.8, math.inf, q, full)[1]
    assert check.stderr == pytest.approx(noise.std(ddof=1) / math.sqrt(40))
    assert check.ok and check.name == "E Q2 = n lam P(Q1 = n)"
    # unequal batches: weights count
    w = np.r_[np.ones(20), 3 * np.ones(20)]
    weighted = queue_identities(25, 0.8, math.inf, q, full, w)[1]
    assert weighted.value == pytest.approx(np.average(q[:, 1], weights=w))


@pytest.mark.parametrize(
    "q1, q2, full, first, second",
    [
        (20.0, 2.0, 0.1, "", ""),
        (16.0, 2.0, 0.1, "service rate", ""),
        (2.4, 0.1, 0.001, "customer in service", "customer in service"),
        (20.3, 2.5, 0.1, "wrong weights", "wrong weights"),
        (20.0, 4.0, 0.1, "", "with replacement"),
        (20.0, 16.0, 0.1, "", "one in service ignored"),
        (20.0, 16.0, 0.001, "", "random routing"),
        (20.0, 16.0, 0.0, "", "though no arrival"),
        (20.0, 1.0, 0.1, "", "hold"),
    ],
)
def test_causes(q1, q2, full, first, second):
    jitter = 0.01 * np.sin(np.arange(30))[:, None]
    checks = queue_identities(25, 0.8, math.inf, np.array([[q1, q2]]) + jitter, np.full((30, 2), [full, 0.0]))
    for check, cause in zip(checks, (first, second), strict=True):
        assert (check.ok is False) == bool(cause), check
        assert cause in check.cause
    assert len(failures(checks)) <= 2
    assert all(check.name in " ".join(failures(checks)) for check in checks if check.ok is False)


def test_only_the_halfin_whitt_regime_has_this_limit():
    limit = rdiff.StationaryLaw(rdiff.JSQDiffusion(1.0))
    with pytest.raises(InputError, match="alpha = 1/2"):
        compare(rdiff.JSQQueue(n=100, b=1, beta=1.0, alpha=0.75).exact(), limit, lambda y: y[1])
    half = compare(rdiff.JSQQueue(n=100, b=1, beta=1.0).exact(), limit, lambda y: y[1])
    assert half.scaled == pytest.approx(10 * (0.5998094576 - 0.814059663), abs=1e-7)
    assert half.refined == pytest.approx(0.814059663 - 0.2467469, abs=1e-6)
