"""Your own queue: any simulator's log, read, checked against identities that must hold, and compared with the limit.

    python examples/own_queue.py [--small]

The simulator here is twenty lines of plain Python that write a row an event: time, Q1, Q2. Writes own_queue.png where it is
run.
"""

import csv
import random
import sys
import tempfile
from pathlib import Path

import rdiff
from rdiff import plots

n, beta, horizon = 100, 1.0, 400 if "--small" in sys.argv else 4000
arrivals = n - beta * n**0.5
rng = random.Random(7)


def events():
    """Join-the-shortest-queue, one place to wait at each server: the state after each event, from n lambda busy servers."""
    time, q1, q2 = 0.0, int(arrivals), 0
    while time < horizon:
        yield f"{time:.6f}", q1, q2
        time += rng.expovariate(arrivals + q1)
        u = rng.random() * (arrivals + q1)
        if u < q2:
            q2 -= 1  # one of the q2 servers with two customers
        elif u < q1:
            q1 -= 1  # one of those with a single customer
        elif q1 < n:
            q1 += 1
        elif q2 < n:
            q2 += 1


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "run.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([("t", "Q1", "Q2"), *events()])
    # What would the columns be taken for? The same as `rdiff inspect run.csv --n 100 --b 1 --beta 1`.
    print(rdiff.inspect_file(file, n=n, b=1, beta=beta), end="\n\n")
    # A row holds until the next one: rows are weighted by time, and the first 50 time units dropped.
    S = rdiff.read_samples(file, n=n, b=1, beta=beta, format="occupancy", time_column="t", weights="time", hold="next",
                           end_time=horizon, burn_in=50.0)  # fmt: skip

limit = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta))
h = {"y1": lambda y: y[0], "y2": lambda y: y[1], "y1*y2": lambda y: y[0] * y[1]}
print(rdiff.compare(S, limit, h))
exact = rdiff.JSQQueue(n=n, b=1, beta=beta).exact()
plots.marginals("own_queue.png", {"the log": S, "exact queue": exact, "limit": limit})
