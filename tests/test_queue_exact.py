"""The exact law of the queue: against tables, closed forms, sparse LU, and itself."""

import contextlib
import math
import pickle
import time
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

import rdiff
from rdiff.bench.queue import stationary_by_lu
from rdiff.queue.chain import JSQQueue
from rdiff.queue.space import Space
from rdiff.queue.truncation import slow

H = {"y1": lambda x: x[0], "y2": lambda x: x[1], "y1**2": lambda x: x[0] ** 2, "y1*y2": lambda x: x[0] * x[1],
     "y2**2": lambda x: x[1] ** 2, "exp": lambda x: jnp.exp(-x[0] - x[1]), "y2>1": lambda x: x[1] > 1}  # fmt: skip


def digits(printed):
    """Half a unit of the last digit printed."""
    mantissa, _, exponent = printed.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def agree(value, printed):
    assert abs(value - float(printed)) <= digits(printed) * 1.001, (value, printed)


# REFERENCE.md, but for E X1^2 at n = 25 (1.53867744, rounded up there) and at n = 400 (sparse LU gives 1.58286485002; there
# stands that of b = 2).
@pytest.mark.parametrize("n, x2, x1_squared, saturated, blocked", [
    (4, "0.1353927242", "1.39505693", "0.1421897871", "6.797063e-3"),
    (25, "0.4318311140", "1.5386774", "0.1082848211", "3.270426e-4"),
    (100, "0.5998094576", "1.570031747", "0.0666474750", "1.979698e-6"),
    (400, "0.6993050204", "1.582864850", "0.0368055275", "8.29e-11"),
    (1000, "0.739549492", None, "0.02415030817", None), (4000, "0.7759407587", None, "0.01246580227", None),
])  # fmt: skip
def test_the_table_at_b_1(n, x2, x1_squared, saturated, blocked):
    law = JSQQueue(n, 1, beta=1.0).exact()
    names = ("y1", "y2", "y1**2") if x1_squared else ("y1", "y2")
    est = law.expect({name: H[name] for name in names} | {"full": lambda x: x[0] == 0})
    agree(est["y2"].mean, x2)
    agree(est["full"].mean, saturated)
    if x1_squared is not None:
        assert est["y1**2"].mean == pytest.approx(float(x1_squared), abs=1.001 * digits(x1_squared))
        agree(law.blocking, blocked)
    assert est["y1"].mean == pytest.approx(1 + math.sqrt(n) * law.lam * law.blocking, abs=1e-11)
    assert est["y2"].stderr == 0 and est["y2"].error < 1e-11 and est["y2"].reliable
    assert all(check.ok for check in law.checks()) and law.outside == 0 and law.notes == ()


@pytest.mark.parametrize("n, b, beta, printed", [
    (4, 2, 1.0, {"y1": "1.0004344109", "y2": "0.1462558505", "y3": "0.0096546517"}), (25, 2, 1.0, {"y2": "0.4370164619"}),
    (100, 2, 1.0, {"y2": "0.5999611116", "total": "95.99997657"}), (10, 3, 1.0, {"y2": "0.2948116296"}),
    (50, 3, 1.0, {"y2": "0.5273635692"}), (100, 1, 0.5, {"y2": "2.034408345"}), (100, 2, 0.5, {"y2": "2.091474751"}),
])  # fmt: skip
def test_the_other_tables(n, b, beta, printed):
    total = lambda x: n + math.sqrt(n) * (x[1:].sum() - x[0])  # noqa: E731
    h = {"y1": H["y1"], "y2": H["y2"], "y3": lambda x: x[-1] if b == 2 else x[0], "total": total}
    est = JSQQueue(n, b, beta=beta).exact().expect(h)
    for name, value in printed.items():
        agree(est[name].mean, value)


def test_b_2_at_n_400():
    est = JSQQueue(400, 2, beta=1.0).exact(window=10.0, cap=33.0).expect(H["y2"])
    agree(est.mean, "0.6993050492")
    assert est.error < 1e-7


@pytest.mark.parametrize("b", [0, 1, 2, 3, 5])
def test_one_server_is_a_queue_with_one_line(b):
    law, lam = JSQQueue(1, b, lam=0.6).exact(), 0.6
    expected = np.array([lam**k for k in range(b + 2)])
    states = {tuple(q): p for part in law.pieces() for q, p in zip(part[0].tolist(), part[1])}
    found = [states[(1,) * k + (0,) * (b + 1 - k)] for k in range(b + 2)]
    assert np.allclose(found, expected / expected.sum(), rtol=1e-14)


@pytest.mark.parametrize("b", [64, 90, 130])
def test_a_long_line_of_one_server(b):
    law = JSQQueue(1, b, lam=0.7).exact()
    truth = 0.7 ** np.arange(b + 2) / (0.7 ** np.arange(b + 2)).sum()
    levels = np.concatenate([states.sum(axis=1) for states, _ in law.pieces()])
    chances = np.concatenate([weights for _, weights in law.pieces()])
    assert np.abs(chances / truth[levels] - 1).max() < 1e-12


@pytest.mark.parametrize("n, b", [(2, 40), (2, 45), (3, 31)])
def test_long_buffers_agree_with_sparse_lu(n, b):
    queue = JSQQueue(n, b, beta=0.5)
    law, p = queue.exact(), stationary_by_lu(queue)
    for i in range(b + 1):
        assert law.marginal(i + 1) @ np.arange(n + 1) == pytest.approx(p @ queue.states()[:, i], abs=1e-12)


def test_the_time_is_about_what_is_said():
    from rdiff.queue.elimination import seconds

    for n, b in ((2, 40), (20, 5), (3, 31), (1000, 1), (150, 2)):
        law = JSQQueue(n, b, beta=0.5).exact(keep=True)
        began = time.perf_counter()
        law._solve(False)
        took = time.perf_counter() - began
        assert 1 / 20 < took / seconds(law.space) < 20


def test_progress_and_a_word_before_a_long_run(monkeypatch):
    quick = JSQQueue(300, 3, beta=1.0)
    said = slow(quick, Space(300, 4, 0, 300))
    assert "minutes" in said and 'window="auto"' not in said  # which would keep nearly as many here
    assert 'window="auto" keeps' in slow(JSQQueue(400, 3, beta=4.0), Space(400, 4, 0, 400)) and not slow(quick, Space(9, 4))
    shown = {}

    @contextlib.contextmanager
    def bar(wanted, what):
        yield shown.setdefault(what, []).append

    monkeypatch.setattr("rdiff.queue.exact.progress_bar", bar)
    law = JSQQueue(30, 2, beta=1.0).exact(progress=True, keep=False)
    law.expect(H["y2"])
    for what in ("solving", "averaging"):
        done, total = zip(*shown[what])
        assert list(done) == sorted(set(done)) and len(done) == 31 and set(total) == {done[-1]} == {law.queue.size}


@pytest.mark.parametrize("n, scaled", [(25, "0.25110889"), (100, "0.26957380"), (400, "0.27863165")])
def test_no_buffer_is_the_loss_system(n, scaled):
    law = JSQQueue(n, 0, beta=1.0).exact()
    agree(math.sqrt(n) * law.blocking, scaled)
    load, blocked = n * law.lam, 1.0
    for k in range(1, n + 1):
        blocked = load * blocked / (k + load * blocked)
    assert law.blocking == pytest.approx(blocked, rel=1e-13)


@pytest.mark.parametrize("n, b, beta", [(50, 1, 1.0), (30, 2, 1.0), (12, 3, 1.0), (8, 4, 0.5), (40, 1, 4.0), (30, 2, 0.1)])
def test_sparse_lu_agrees(n, b, beta):
    queue = JSQQueue(n, b, beta=beta)
    law, p, x = queue.exact(), stationary_by_lu(queue), queue.scaled(queue.states())
    ours = np.concatenate([weights for _, weights in law.pieces()])
    states = np.concatenate([states for states, _ in law.pieces()])
    order = np.lexsort(states.T)[::-1]
    assert np.array_equal(states[order], queue.states())
    assert np.abs(ours[order] @ x - p @ x).max() < 1e-10
    assert np.abs(ours[order] - p).max() < 1e-12
    y1, y2 = x[:, 0], x[:, 1]
    values = dict(zip(H, (y1, y2, y1**2, y1 * y2, y2**2, np.exp(-y1 - y2), y2 > 1)))
    for name, est in law.expect(H).items():
        assert est.mean == pytest.approx(p @ values[name], abs=1e-10)


@pytest.mark.parametrize("n, b, beta", [(180, 2, 2.0), (200, 1, 0.3), (400, 1, 8.0), (40, 3, 2.0), (100, 2, 6.0), (2, 2, 1.41)])
def test_local_balance_holds_relatively(n, b, beta):
    law = JSQQueue(n, b, beta=beta).exact()
    assert law.residual < 1e-14
    # By the generator itself where it can be listed.
    queue = JSQQueue(n, b, beta=beta)
    if queue.size < 4e5:
        states, p = (np.concatenate(part) for part in zip(*law.pieces()))
        p = p[np.lexsort(states.T)[::-1]]
        generator = queue.generator()
        flow = -generator.diagonal() * p
        seen = p > 1e-290
        assert np.abs((generator.T @ p)[seen] / flow[seen]).max() < 1e-12


def test_against_rational_numbers():
    # Every probability of a small lightly loaded queue, by exact elimination.
    queue = JSQQueue(6, 1, lam=0.25)  # n lam = 3/2
    generator = queue.generator().toarray()
    a = [[Fraction(float(x)).limit_denominator(4) for x in row] for row in generator]
    count = len(a)
    for k in range(count - 1, 0, -1):  # censoring (Grassmann, Taksar and Heyman)
        scale = sum(a[k][:k])
        for i in range(k):
            factor = a[i][k] / scale
            for j in range(k):
                a[i][j] += factor * a[k][j]
            a[i][k] = factor
    p = [Fraction(1)]
    for k in range(1, count):
        p.append(sum(p[i] * a[i][k] for i in range(k)))
    exact = np.array([float(x / sum(p)) for x in p])
    states, ours = (np.concatenate(part) for part in zip(*queue.exact().pieces()))
    assert np.allclose(ours[np.lexsort(states.T)[::-1]], exact, rtol=1e-14, atol=0)


@pytest.mark.parametrize("n, b, beta, options", [
    (1000, 1, 1.0, dict(window=5.0, cap=8.0)), (1000, 1, 1.0, dict(cap=4.0)), (1000, 1, 1.0, dict(window=4.0)),
    (400, 1, 2.0, dict(cap=3.0)), (100, 2, 0.5, dict(cap=12.0)), (100, 2, 0.5, dict(cap=9.0)), (30, 3, 0.3, dict(cap=9.0)),
    (100, 2, 1.0, dict(window=5.0)), (1000, 1, 1.0, dict(window="auto")), (100, 2, 1.0, dict(cap="auto")),
])  # fmt: skip
def test_windows_stay_within_what_they_report(n, b, beta, options):
    queue = JSQQueue(n, b, beta=beta)
    whole, part = queue.exact().expect(H), queue.exact(**options)
    cut = part.expect(H)
    for name in H:
        assert abs(cut[name].mean - whole[name].mean) <= cut[name].error + whole[name].error, name
    if "auto" in options.values():
        assert part.outside < 1e-15 and cut["y2"].error < 1e-11 and all(check.ok for check in part.checks())
        assert part.space.count <= queue.size
    else:
        assert part.notes and cut["y2"].error < 200 * part.outside  # said, and not without bounds


def test_a_large_queue_in_a_window():
    law = JSQQueue(16000, 1, beta=1.0).exact(window=9.0, cap=30.0)  # all but e^-30
    est = law.expect(H["y2"])
    assert est.error < 1e-9 and law.residual < 1e-14
    # First order in 1/sqrt(n), with the next one of the size that n = 4000 shows.
    assert est.mean == pytest.approx(0.814059663 - 2.467469 / math.sqrt(16000), abs=1e-3)


@pytest.mark.parametrize("n, b, options", [(300, 1, {}), (40, 2, {}), (16, 3, {}), (200, 1, dict(window=6.0, cap=9.0))])
def test_without_keeping_the_law(n, b, options):
    kept, passes = (JSQQueue(n, b, beta=1.0).exact(keep=keep, **options) for keep in (True, False))
    assert kept._kept is not None and passes._kept is None
    first, second = kept.expect(H), passes.expect(H)
    for name in H:
        assert first[name].mean == pytest.approx(second[name].mean, rel=1e-13)
        assert first[name].error == pytest.approx(second[name].error, rel=1e-6)
    assert np.allclose(kept.marginal(2), passes.marginal(2), rtol=1e-12, atol=1e-300)


def test_marginals():
    law = JSQQueue(50, 2, beta=1.0).exact()
    chances = [law.marginal(i) for i in (1, 2, 3)]
    for i, p in enumerate(chances):
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert p @ np.arange(51) == pytest.approx(law._occupancy[i], rel=1e-12)
    assert chances[2][-1] == pytest.approx(law.blocking, rel=1e-12)
    with pytest.raises(rdiff.InputError, match="at most b"):
        law.marginal(4)


def test_other_regimes():
    # alpha = 1/4 and 1 at n = 16 against the same lam given directly; E Q1 = n lam (1 - P_block) in each.
    for alpha in (0.0, 0.25, 1.0):
        beta = 0.5
        law = JSQQueue(16, 2, beta=beta, alpha=alpha).exact()
        assert law.alpha == alpha and law.beta == beta
        same = JSQQueue(16, 2, lam=1 - beta / 16**alpha).exact()
        assert law.expect(H["y2"]).mean == pytest.approx(same.expect(H["y2"]).mean, rel=1e-12)
        assert all(check.ok for check in law.checks())


def test_laws_and_results_pickle_and_compare():
    law = JSQQueue(25, 1, beta=1.0).exact()
    copy = pickle.loads(pickle.dumps(law))
    assert copy.expect(H["y2"]).mean == law.expect(H["y2"]).mean
    S = rdiff.Samples(np.array([[25, 0], [20, 0]] * 50), n=25, b=1, beta=1.0, weights="regular")
    together = rdiff.compare(law, S, H["y2"])
    assert together.prelimit.error is not None


@pytest.mark.parametrize("n, b, options, words", [
    (64000, 1, {}, ["2.05e+09 states", "15.3 GiB", "a window fits", "window=11"]),
    (3000, 3, {}, ["3.39e+12 states", "a window fits"]), (100, 1, dict(memory=1e-7), ["even a window does not fit"]),
    (4, 1, dict(window="wide"), ["window must be"]), (4, 1, dict(cap=-1.0), ["X_2"]), (4, 1, dict(memory=0), ["GiB"]),
    (400, 1, dict(beta=19.0), ["1e-357"]), (1, 1000, dict(beta=0.5), ["too deep", "for n = 1, b up to 499", "a window fits"]),
    (10**20, 1, {}, ["far too many servers"]),
])  # fmt: skip
def test_refusals(n, b, options, words):
    options = dict(options)
    queue = JSQQueue(n, b, beta=options.pop("beta", 1.0))
    with pytest.raises(rdiff.InputError) as caught:
        queue.exact(**options)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_an_observable_must_be_finite():
    with pytest.raises(rdiff.InputError, match="is -inf at the state"):
        JSQQueue(4, 1, beta=1.0).exact().expect(lambda x: jnp.log(x[1]))


@pytest.mark.parametrize("n", [100, 1024, 20_000])
def test_without_a_buffer_it_is_erlangs_system_at_any_size(n):
    law = JSQQueue(n, 0, beta=1.0).exact()
    blocked = 1.0
    for servers in range(1, n + 1):  # Erlang's recursion, stable
        blocked = law.queue.arrivals * blocked / (servers + law.queue.arrivals * blocked)
    assert law.blocking == pytest.approx(blocked, rel=1e-12)
