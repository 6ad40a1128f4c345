"""Make the sample that ships inside rdiff: true join-the-shortest-queue, n = 100, b = 2, beta = 1.

    python examples/make_sample.py [FILE]

A plain simulator on purpose: it shares nothing with rdiff, so it can serve as a check of it. The chain is uniformised:
candidate events come as a Poisson process of rate n lambda + n; a candidate is an arrival with probability
n lambda / (n lambda + n), else the departure of a customer from one of n servers, void when that server is idle.
The state is recorded every `EVERY` time units, after a burn-in from the empty system, so that all rows weigh the same.
"""

import gzip
import io
import math
import sys
from pathlib import Path

import numpy as np

N, B, BETA = 100, 2, 1.0
EVERY, ROWS, BURN_IN = 4, 25_000, 400
EXACT = 0.5999611116  # E X2 of the stationary chain
SAMPLE = Path(__file__).parent.parent / "rdiff" / "data" / "jsq_n100_b2_beta1.csv.gz"


def simulate(seed: int) -> np.ndarray:
    """Rows (Q1, Q2, Q3), where Qi is the number of servers with i or more customers."""
    rng = np.random.default_rng(seed)
    arrivals = N * (1 - BETA / math.sqrt(N))  # arrivals per unit time; each server completes at rate 1
    q1 = q2 = q3 = 0
    rows = np.empty((ROWS, 3), dtype=np.int64)
    for i in range(-BURN_IN // EVERY, ROWS):
        events = rng.poisson((arrivals + N) * EVERY)
        for v in (rng.random(events) * (arrivals + N)).tolist():
            if v >= N:  # an arrival joins a server with the fewest customers; all full: it is lost
                if q1 < N:
                    q1 += 1
                elif q2 < N:
                    q2 += 1
                elif q3 < N:
                    q3 += 1
            elif v < q3:  # servers in order of length: the first q3 hold three, the next q2 - q3 hold two, ...
                q3 -= 1
            elif v < q2:
                q2 -= 1
            elif v < q1:
                q1 -= 1
        if i >= 0:
            rows[i] = q1, q2, q3
    return rows


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    rows = simulate(seed=2023)
    text = io.StringIO()
    text.write("time,Q1,Q2,Q3\n")
    np.savetxt(text, np.column_stack([EVERY * np.arange(ROWS), rows]), fmt="%d", delimiter=",")
    target.write_bytes(gzip.compress(text.getvalue().encode(), 9, mtime=0))  # mtime=0: the same bytes every time

    x2 = rows[:, 1] / math.sqrt(N)
    batches = x2.reshape(50, -1).mean(axis=1)
    stderr = batches.std(ddof=1) / math.sqrt(len(batches))
    print(f"{target.name}: {ROWS} rows, {target.stat().st_size / 1000:.0f} kB")
    print(f"E X2 = {x2.mean():.4f} +- {stderr:.4f}; exact {EXACT:.5f}, z = {(x2.mean() - EXACT) / stderr:.2f}")


if __name__ == "__main__":
    main()
