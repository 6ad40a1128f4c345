"""First steps: paths of the limit, a stationary mean with its error, and your own reflected diffusion.

    python examples/first_steps.py [--small]

Writes first_steps.png where it is run.
"""

import sys

import jax.numpy as jnp
import numpy as np

import rdiff
from rdiff import plots

small = "--small" in sys.argv
rdiff.use_all_cores()

# The limit of join-the-shortest-queue at load 1 - 1/sqrt(n), and a picture of one path of it.
Y = rdiff.JSQDiffusion(beta=1.0)
ts = np.arange(0, 20.001, 0.02)
p = rdiff.sample_paths(Y, ts, key=3, paths=1, dt=0.01)
plots.paths("first_steps.png", ts, p.values, p.local_time, title="JSQ in the Halfin-Whitt limit, beta = 1")

# Stationary means, with the time-step bias measured in the same run.
h = {"y1": lambda y: y[0], "y2": lambda y: y[1], "y1 y2": lambda y: y[0] * y[1], "y2 > 1": lambda y: y[1] > 1}
print(rdiff.long_run_average(Y, h, key=0, chains=256 if small else 4096, horizon=100.0, bias=True))
print("exact: y1 1, y2 0.814060, y1 y2 0.407030, y2 > 1 0.285193\n")

# Your own: dX = -X^3 dt + sqrt(2) dW + dL on [0, inf), whose stationary density is proportional to exp(-x^4/4).
own = rdiff.ReflectedDiffusion(
    drift=lambda y: -(y**3), diffusion=jnp.sqrt(2.0), domain=rdiff.HalfSpace(normal=[1.0]), relaxation_time=1.0
)
x = np.linspace(0, 8, 80_001)
density = np.exp(-(x**4) / 4)
print(rdiff.long_run_average(own, {"x": lambda y: y[0]}, key=1, dt=0.02, chains=256 if small else 4096, horizon=50.0))
print(f"exact: {np.sum(x * density) / np.sum(density):.6f}")
