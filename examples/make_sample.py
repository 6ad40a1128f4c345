"""Make the sample that ships inside rdiff: true join-the-shortest-queue, n = 100, b = 2, beta = 1.

    python examples/make_sample.py [FILE]           FILE is rdiff/data/jsq_n100_b2_beta1.csv.gz for the one inside rdiff

Twenty independent queues, simulated by rdiff, seen every four mean service times after a burn-in: all rows weigh the same.
The same key makes the same file on every machine, since the chain moves by integers only, and it says of no version or device
(files of `rdiff queue simulate` do). A loop in plain Python that shares nothing with the simulator checks it in the tests.
"""

import sys
from pathlib import Path

import rdiff
from rdiff.queue.write import write_occupancy

CHAINS, ROWS, EVERY = 20, 1250, 4.0
target = Path(sys.argv[1] if len(sys.argv) > 1 else "jsq_n100_b2_beta1.csv.gz")

queue = rdiff.JSQQueue(n=100, b=2, beta=1.0)
write_occupancy(target, *queue.simulate(key=2023, chains=CHAINS, horizon=EVERY * (ROWS - 1)).record(EVERY))

S = rdiff.read_samples(target, n=100, b=2, beta=1.0, columns="Q1:Q3", time_column="t", chain_column="chain", weights="regular")
print(f"{target.name}: {CHAINS} chains of {ROWS} rows, {target.stat().st_size / 1000:.0f} kB")
print(rdiff.compare(S, queue.exact(), {"x1": lambda x: x[0], "x2": lambda x: x[1], "x1 x2": lambda x: x[0] * x[1]}))
