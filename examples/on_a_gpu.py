"""A million lanes on a GPU, the same program on a CPU: the numbers of a lane do not depend on where it runs with others.

    python examples/on_a_gpu.py [--small]

Prints path-steps a second on the device there is. `rdiff bench throughput` and `rdiff bench tune` say more.
"""

import sys
import time

import jax

import rdiff
from rdiff import table

rdiff.use_all_cores()  # of no effect on a GPU
gpu = jax.default_backend() != "cpu"
chains = 2**20 if gpu else 2**14
horizon = 20.0 if "--small" in sys.argv else 200.0


def second(y):
    """Y2."""
    return y[1]


Y = rdiff.JSQDiffusion(beta=1.0)
rows = []
for key in range(3):  # the first run compiles
    began = time.perf_counter()
    found = rdiff.long_run_average(Y, second, key=key, chains=chains, horizon=horizon)
    seconds = time.perf_counter() - began
    steps = chains * (horizon + 10 * float(Y.relaxation_time)) / 0.1
    rows.append([f"run {key + 1}", f"{found.mean:.5f}", f"{found.stderr:.5f}", f"{seconds:.2f}", f"{steps / seconds:.3g}"])
devices = jax.devices()
title = f"{chains} chains of E y2 = 0.814060 on {len(devices)} x {devices[0].device_kind}"
print(table.text(table.build(["", "E y2", "stderr", "seconds", "path-steps/s"], rows, title)))
