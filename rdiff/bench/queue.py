"""`rdiff bench queue`: the exact law against sparse LU, and the simulated chain against a loop in numba and against Ciw."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rdiff import table as tables
from rdiff.bench.common import cores, settings, watch
from rdiff.queue.chain import JSQQueue

# (n, b, window, most seconds)
EXACT = ((4000, 1, None, 1.0), (400, 2, None, 4.0), (64000, 1, "auto", 10.0))


def run(
    full: bool = False, progress: bool = False, *, exact: Any = EXACT, superlu_n: int = 1000, n: int = 100, b: int = 2,
    chains: int = 2048, horizon: float = 500.0, repeat: int = 3,
) -> dict[str, Any]:  # fmt: skip
    """Seconds of exact laws at beta = 1, verified, and events a second of the simulator.

    **Arguments:** `full` repeats more; `exact`: rows (n, b, window, most seconds); `superlu_n`: where sparse LU is timed
    (b = 1); `n`, `b`, `chains`, `horizon` of the simulation; `repeat`: each is the best of so many.

    **Returns:** rows "exact" (ratio: to the most seconds wanted), "superlu" (ratio: its time to the elimination's) and
    "simulate" (events, idle ticks of the clock included, of rdiff, of numba and of Ciw; ratio: rdiff's rate to this one).
    A peer that is not installed has no value, and a `note`.
    """
    repeat = 3 * repeat if full else repeat
    say = watch(progress)
    rows: list[dict[str, Any]] = []
    for servers, places, window, most in exact:
        say(f"exact law, n = {servers}, b = {places}")
        queue = JSQQueue(servers, places, beta=1.0)
        seconds = _best(lambda: queue.exact(window=window), repeat)  # noqa: B023
        states = int(queue.exact(window=window).space.count)
        name = f"exact b={places} n={servers}" + (" windowed" if window else "")
        rows.append({"name": name, "value": seconds, "unit": "s", "ratio": seconds / most, "kind": "exact", "states": states,
                     "ok": seconds <= most})  # fmt: skip
    say(f"sparse LU, n = {superlu_n}")
    queue = JSQQueue(superlu_n, 1, beta=1.0)
    ours = _best(lambda: queue.exact(), repeat)
    theirs = _best(lambda: stationary_by_lu(queue), 1)
    rows.append({"name": f"superlu b=1 n={superlu_n}", "value": theirs, "unit": "s", "ratio": theirs / ours, "kind": "superlu",
                 "exact": ours, "ok": theirs >= 20 * ours})  # fmt: skip
    say("simulation")
    rows += _simulations(JSQQueue(n, b, beta=1.0), chains, horizon, repeat)
    say("")
    return {"rows": rows, "settings": settings(beta=1.0, n=n, b=b, chains=chains, horizon=horizon)}


def table(result: dict[str, Any]) -> list[Any]:
    """The result of `run` as a table."""
    return [
        tables.build(
            ["measurement", "value", "unit", "ratio"],
            [[row["name"], "-" if row["value"] is None else row["value"], row["unit"],
              "-" if row["ratio"] is None else f"{row['ratio']:.3g}"] for row in result["rows"]],
            "The queue at beta = 1",
            ["ratio: exact, to the time allowed; superlu, its time to the elimination's; simulate, rdiff to it",
             *(f"{row['name']}: {row['note']}" for row in result["rows"] if row.get("note"))],
        )
    ]  # fmt: skip


def stationary_by_lu(queue: JSQQueue) -> np.ndarray:
    """The stationary law over `queue.states()` by SuperLU: one equation dropped, symmetric ordering, no pivoting.

    (Its default ordering doubles the fill and returns negative probabilities.) Shares nothing with `rdiff.queue.elimination`.
    """
    from scipy.sparse.linalg import splu

    balance, states = queue.generator().T.tocsc(), queue.states()
    likely = (states[:, 0] == round(queue.arrivals)) & np.all(states[:, 1:] == 0, axis=1)  # its balance is the one dropped
    others = np.flatnonzero(~likely)
    lu = splu(
        balance[others][:, others].tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    law = np.ones(len(states))
    law[others] = lu.solve(-balance[others][:, np.flatnonzero(likely)].toarray().ravel())
    return law / law.sum()


def _best(go: Callable[[], Any], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        go()
        times.append(time.perf_counter() - began)
    return min(times)


def _simulations(queue: JSQQueue, chains: int, horizon: float, repeat: int) -> list[dict[str, Any]]:
    laws = [queue.simulate(key=i, chains=chains, horizon=horizon, burn_in=1.0, chunk=4096) for i in range(repeat + 1)]
    events = chains * laws[0].clock * (horizon + 1)
    laws[-1].checks()  # compiles
    ours = events / min(_best(lambda law=law: law.checks(), 1) for law in laws[:-1])
    rates: dict[str, float | None] = {"simulate rdiff": ours}
    rates["simulate numba"] = _numba(queue, chains, int(laws[0].clock * horizon), repeat)
    rates["simulate ciw"] = _ciw(queue, laws[0].clock)
    return [
        {"name": name, "value": rate, "unit": "events/s", "ratio": None if rate is None else ours / rate,
         "kind": "simulate", "note": None if rate else f"{name.split()[1]} is not installed"}
        for name, rate in rates.items()
    ]  # fmt: skip


def _numba(queue: JSQQueue, chains: int, steps: int, repeat: int) -> float | None:
    """Events a second of the loop; None without numba."""
    try:
        loop = numba_loop()
    except ImportError:
        return None
    each, total = max(1, chains // cores()) * cores(), queue.n + queue.arrivals
    loop(0, each, 10, queue.n, queue.levels, queue.arrivals, total)
    return each * steps / _best(lambda: loop(1, each, steps, queue.n, queue.levels, queue.arrivals, total), repeat)


def _ciw(queue: JSQQueue, clock: float, horizon: float = 20.0) -> float | None:
    """Events a second of Ciw, on the clock that the others run by; None without it."""
    try:
        simulation = ciw_simulation(queue)
    except ImportError:
        return None
    return clock * horizon / _best(lambda: simulation.simulate_until_max_time(horizon), 1)


def ciw_simulation(queue: JSQQueue) -> Any:
    """The queue in Ciw: a node that sends each arrival to the least loaded of n (who finds all of them full waits there).

    Its `JoinShortestQueue` leaves out the customer in service; `LoadBalancing` counts it.
    """
    import importlib

    ciw: Any = importlib.import_module("ciw")

    n = queue.n
    routers = [ciw.routing.LoadBalancing(destinations=list(range(2, n + 2))), *[ciw.routing.Leave()] * n]
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(queue.arrivals), *[None] * n],
        service_distributions=[ciw.dists.Deterministic(0.0), *[ciw.dists.Exponential(1.0)] * n],
        number_of_servers=[float("inf"), *[1] * n],
        queue_capacities=[float("inf"), *[queue.b] * n],
        routing=ciw.routing.NetworkRouting(routers=routers),
    )
    ciw.seed(0)
    return ciw.Simulation(network)


def numba_loop() -> Callable[..., np.ndarray]:
    """The uniformised step as a parallel loop over chains: averages of Q_1..Q_{b+1} and of 1(Q_i = n), (chains, 2 b + 2)."""
    import numba

    u32 = numba.uint32

    @numba.njit(parallel=True)
    def loop(seed, chains, steps, n, levels, arrivals, total):
        sums = np.zeros((chains, 2 * levels))
        for chain in numba.prange(chains):
            np.random.seed(seed * chains + chain)  # noqa: NPY002
            s0, s1 = u32(np.random.randint(1, 2**31)), u32(np.random.randint(0, 2**31))  # noqa: NPY002
            s2, s3 = u32(np.random.randint(0, 2**31)), u32(np.random.randint(0, 2**31))  # noqa: NPY002
            scale = total * 2.0**-32
            q = np.zeros(levels, np.int64)
            q[0] = int(arrivals)
            held = np.zeros(2 * levels, np.int64)
            for _ in range(steps):
                word = u32(s0 + s3)  # xoshiro128+
                shifted = u32(s1 << u32(9))
                s2 ^= s0
                s3 ^= s1
                s1 ^= s2
                s0 ^= s3
                s2 ^= shifted
                s3 = u32(u32(s3 << u32(11)) | u32(s3 >> u32(21)))
                v = word * scale
                if v >= n:
                    for i in range(levels):
                        if q[i] < n:
                            q[i] += 1
                            break
                else:
                    i = 0
                    while i < levels and v < q[i]:
                        i += 1
                    if i > 0:
                        q[i - 1] -= 1
                for i in range(levels):
                    held[i] += q[i]
                    held[levels + i] += q[i] == n
            for i in range(2 * levels):
                sums[chain, i] = held[i] / steps
        return sums

    return loop
