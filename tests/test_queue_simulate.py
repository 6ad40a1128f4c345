"""The simulated queue: step by step against its rates, and in the mean against the exact law."""

import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

import rdiff
from rdiff import engine
from rdiff.bench import queue as bench
from rdiff.noise import AbstractNoise, lane_keys, root_key
from rdiff.queue import policies
from rdiff.queue.chain import JSQQueue, rates
from rdiff.queue.simulate import SimulatedQueueLaw
from rdiff.queue.uniformised import WORDS, resolution

y2 = lambda x: x[1]  # noqa: E731


class Given(AbstractNoise):
    """Hands out the words it is given: its state is the next one."""

    def init(self, key):
        return jnp.uint32(0)

    def bits(self, state, count):
        return state, [state] * count


@pytest.mark.parametrize("policy", list(policies.POLICIES), ids=str)
@pytest.mark.parametrize("q", [(4, 2, 1), (7, 3, 0), (7, 7, 2), (7, 7, 7), (0, 0, 0), (7, 5, 5), (6, 6, 6)])
def test_a_step_has_the_rates_of_the_queue(policy, q):
    # Every 2^16-th word: each move must come as often as its rate says, to one word.
    law = JSQQueue(7, 2, lam=0.8).simulate(key=0, policy=policy, noise=Given())
    words = jnp.asarray(np.arange(0, WORDS, 2**16) + 2**15, jnp.uint32)
    step = jax.vmap(lambda word: law._chain((), (), False).step((tuple(jnp.int32(x) for x in q), word))[0])
    moves = np.stack(step(words), axis=1) - q
    up, down = rates(q, 7, 7 * 0.8, law.policy)
    expected = {tuple(-int(i == j) for j in range(3)): r for i, r in enumerate(down)}
    expected |= {tuple(int(i == j) for j in range(3)): r for i, r in enumerate(up)}
    for move, rate in expected.items():
        assert abs(np.mean((moves == move).all(axis=1)) - rate / law.clock) <= 2 / len(words)
    assert set(map(tuple, moves.tolist())) <= {move for move, rate in expected.items() if rate > 0} | {(0, 0, 0)}


@pytest.mark.parametrize("n, lam", [(1, 0.5), (10, 0.68377), (100, 0.9), (1000, 0.9683772), (100_000, 0.99684), (2**20, 0.999)])
def test_a_word_resolves_the_load(n, lam):
    queue = JSQQueue(n, 1, lam=lam)
    service, arrivals = resolution(queue)
    assert n * service + arrivals <= WORDS
    assert n * service + arrivals > 0.9 * WORDS or n > 2**18  # little idling
    assert arrivals / (n * service) == pytest.approx(lam, rel=2e-10)


@pytest.mark.parametrize("b", [1, 2, 3])
def test_moments_agree_with_the_exact_law(b):
    queue = JSQQueue(10, b, beta=1.0)
    levels = range(b + 1)
    h = {f"y{i + 1}": lambda x, i=i: x[i] for i in levels}
    h |= {f"y{i + 1}*y{j + 1}": lambda x, i=i, j=j: x[i] * x[j] for i in levels for j in range(i + 1)}
    h["full"] = lambda x: x[0] == 0
    law = queue.simulate(key=b, chains=512, horizon=1000.0)
    est, exact = law.expect(h), queue.exact().expect(h)
    for name in h:
        assert abs(est[name].mean - exact[name].mean) < 4.5 * est[name].stderr, name
    busy = 10 - math.sqrt(10) * est["y1"].mean
    assert math.sqrt(10) * est["y1"].stderr < 0.01 * busy and est["y2"].stderr < 0.01 * est["y2"].mean
    assert all(est[name].reliable for name in ("y1", "y2", "y1*y1", "full")), est
    assert all(check.ok for check in law.checks())
    assert law.blocking == pytest.approx(queue.exact().blocking, abs=2e-3)


def test_a_larger_queue_and_no_buffer():
    est = JSQQueue(400, 1, beta=1.0).simulate(key=1, chains=64, horizon=200.0).expect(y2)
    assert abs(est.mean - 0.6993050204) < 4.5 * est.stderr and est.stderr < 0.05
    loss = JSQQueue(25, 0, beta=1.0)
    est = loss.simulate(key=1, chains=64, horizon=400.0).expect(lambda x: x[0] == 0)
    assert abs(est.mean - loss.exact().blocking) < 4.5 * est.stderr and est.stderr < 0.01


def test_policies_are_told_apart_by_the_identities():
    queue, causes, second = JSQQueue(10, 2, beta=1.0), {}, {}
    for name in ("jsq", "join-idle-queue", "power-of-2"):
        checks = queue.simulate(key=2, chains=128, horizon=1000.0, policy=name).checks()
        causes[name] = [check.cause for check in checks if check.ok is False]
        second[name] = checks[1].value / checks[1].expected
    assert causes["jsq"] == []
    for name in ("join-idle-queue", "power-of-2"):
        assert any("not JSQ" in cause for cause in causes[name])
    assert second["jsq"] == pytest.approx(1, abs=0.02) and 0.9 < second["join-idle-queue"] < 0.97 and second["power-of-2"] > 5


def test_transients_have_the_law_of_the_queue():
    queue, start = JSQQueue(3, 1, lam=0.7), (3, 3)
    states = queue.states()
    first = np.eye(len(states))[[tuple(q) for q in states.tolist()].index(start)]
    times, q = queue.simulate(key=5, chains=20_000, start=start, burn_in=0.0).record(every=0.25, horizon=1.0)
    assert np.allclose(times, [0, 0.25, 0.5, 0.75, 1.0]) and q.shape == (20_000, 5, 2)
    for k, t in enumerate(times):
        p = first @ expm(t * queue.generator().toarray())
        for i, x in enumerate(states):
            share = np.mean((q[:, k] == x).all(axis=1))
            assert abs(share - p[i]) <= 4.5 * math.sqrt(max(p[i] * (1 - p[i]), 1e-9) / 20_000) + 1e-12


def test_samples_and_files_are_read_back(tmp_path):
    law = JSQQueue(10, 2, beta=1.0).simulate(key=4, chains=8, horizon=400.0)
    S = law.samples(every=0.5)
    assert S.chains == 8 and all(check.ok for check in S.checks())
    exact = law.queue.exact().expect(y2).mean
    assert abs(S.expect(y2).mean - exact) < 4.5 * S.expect(y2).stderr
    for ending in (".csv", ".csv.gz", ".npz"):
        path = tmp_path / f"run{ending}"
        law.write(path, every=0.5)
        options = dict(columns="Q1:Q3", time_column="t", chain_column="chain", weights="regular")
        again = rdiff.read_samples(path, n=10, b=2, beta=1.0, **options)
        assert np.array_equal(again.x, S.x) and again.expect(y2).stderr == S.expect(y2).stderr
    with pytest.raises(rdiff.InputError, match="end with"):
        law.write(tmp_path / "run.parquet")


def test_the_same_key_gives_the_same_numbers():
    queue = JSQQueue(20, 1, beta=1.0)
    options = dict(chains=32, horizon=77.7)
    law = queue.simulate(key=1, **options)
    est = law.expect({"y2": y2})
    for other in (dict(chunk=100), dict(chunk=1000)):
        assert queue.simulate(key=1, **options, **other).expect({"y2": y2}) == est
    assert queue.simulate(key=2, **options).expect({"y2": y2})["y2"].mean != est["y2"].mean
    double = queue.simulate(key=jax.random.key(1), dtype=jnp.float64, **options).expect(y2)
    assert double.mean == pytest.approx(est["y2"].mean, rel=1e-6)  # integer states: only the sums differ
    assert pickle.loads(pickle.dumps(law)).expect({"y2": y2}) == est  # a second question is about the same paths


def test_events_past_2_to_the_31(monkeypatch):
    # The engine's own count: each call of the device adds its steps to every sum.
    made = []

    def fast(static, layout, arrays, carry, steps, burning):
        made.append(int(steps[0]) * engine.BLOCK + int(steps[1]))
        sums = tuple(total.add(jnp.full_like(total.high, made[-1])) for total in carry.sums)
        carry = carry._replace(sums=sums)
        return carry, engine._together(carry)

    monkeypatch.setattr(engine, "_advance", fast)
    law = JSQQueue(1000, 1, beta=1.0).simulate(chains=4, horizon=3e6, burn_in=0.0, chunk=2**24)
    assert law.expect(y2).mean == pytest.approx(1.0, rel=1e-12)
    assert sum(made) == math.ceil(3e6 * law.clock) > 2**32


def test_a_short_run_says_so():
    short = JSQQueue(100, 1, beta=0.25).simulate(chains=4, horizon=5.0).expect(y2)
    assert not short.reliable and "relaxation times" in str(short) and "4 chains are too few" in str(short)


def test_the_chain_lowers_for_gpu_and_tpu():
    law = JSQQueue(100, 2, beta=1.0).simulate(chains=64)
    chain = law._chain(("y2",), (y2,), True)
    carry = engine.start(chain, lane_keys(root_key(0), 64), jnp.asarray(law.start))
    for platform in ("cuda", "tpu"):
        exported = jax.export.export(jax.jit(lambda c: engine.advance(chain, c, 3, 5)), platforms=[platform])(carry)
        assert exported.platforms == (platform,)


@pytest.mark.parametrize("options, message", [
    (dict(chains=1), "chains must be at least 2"), (dict(horizon=0.0), "horizon must be"), (dict(burn_in=-1.0), "burn_in must"),
    (dict(horizon=1e-3), "shorter than one event"), (dict(start=(3, 4)), "n >= Q_1"), (dict(start=(3,)), "shape"),
    (dict(start=(3.5, 1)), "n >= Q_1"), (dict(policy="best"), "policy must be one of"), (dict(key="a"), "key must be"),
    (dict(policy=lambda q, n: (0.7, 0.7)), "chances of sum 1"),
    (dict(policy=lambda q, n: 1), "2 chances, one a level, got 1"), (dict(policy=[1]), "policy must be one of"),
    (dict(policy=policies.PowerOf(5)), "cannot be drawn"),
    (dict(dtype="int8"), "dtype must be"), (dict(chunk=0), "chunk must be"),
])  # fmt: skip
def test_bad_options(options, message):
    with pytest.raises(rdiff.InputError, match=message):
        SimulatedQueueLaw(JSQQueue(4, 1, beta=1.0), **options)


def test_bad_observables():
    law = JSQQueue(4, 1, beta=1.0).simulate(horizon=10.0)
    for h, message in ((lambda x: x[2], "not there"), (lambda x: jnp.log(x[1]), "not finite"), ("y2", "must be a function")):
        with pytest.raises(rdiff.InputError, match=message):
            law.expect(h)
    with pytest.raises(rdiff.InputError, match="every must not exceed"):
        law.record(every=20.0)
    with pytest.raises(rdiff.InputError, match="32 bits"):
        JSQQueue(2**20 + 1, 1, beta=1.0).simulate()


def test_the_benchmark_runs(monkeypatch):
    def missing():
        raise ImportError

    monkeypatch.setattr(bench, "numba_loop", missing)
    monkeypatch.setattr(bench, "ciw_simulation", lambda queue: missing())
    sizes = dict(exact=((50, 1, None, 60.0), (50, 1, "auto", 60.0)), superlu_n=40, n=10, b=2, chains=16, horizon=20.0, repeat=1)
    result = bench.run(**sizes)
    assert [row["kind"] for row in result["rows"]] == ["exact", "exact", "superlu", *["simulate"] * 3]
    assert all(row["value"] > 0 for row in result["rows"][:4]) and result["rows"][4]["value"] is None
    text = rdiff.table.text(bench.table(result)[0])
    assert "superlu b=1 n=40" in text and "numba is not installed" in text and "simulate ciw: ciw is not installed" in text


def test_the_queue_in_ciw_is_this_queue():
    pytest.importorskip("ciw")
    queue = JSQQueue(10, 3, beta=1.0)
    simulation = bench.ciw_simulation(queue)
    simulation.simulate_until_max_time(8000.0)
    stays = [r.exit_date - r.arrival_date for r in simulation.get_all_records() if r.node > 1]
    law = queue.exact()  # Little: the customers present over the arrivals accepted
    customers = law.expect(lambda x: math.sqrt(10) * (math.sqrt(10) - x[0] + x[1] + x[2] + x[3])).mean
    assert np.mean(stays) == pytest.approx(customers / (queue.arrivals * (1 - law.blocking)), rel=0.03)


def test_a_policy_that_was_asked_for_is_named():
    queue = JSQQueue(10, 2, beta=1.0)
    for policy, name in (("join-idle-queue", "join-idle-queue"), (policies.PowerOf(3, True), "power-of-3 with replacement")):
        causes = [c.cause for c in queue.simulate(key=2, chains=64, horizon=500.0, policy=policy).checks() if c.ok is False]
        assert causes and set(causes) == {f"the policy simulated is {name}, not JSQ"}
