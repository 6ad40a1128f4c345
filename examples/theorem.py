"""The theorem: d(X, Y) <= C/sqrt(n) for join-the-shortest-queue, as numbers and as pictures.

    python examples/theorem.py [--small]

Exact laws on both sides; nothing is simulated. Writes theorem.png, the gaps along n with their slope, and theorem_law.png, the
law of one queue over the density of the limit, where it is run.
"""

import sys

import jax.numpy as jnp

import rdiff
from rdiff import plots

small = "--small" in sys.argv
beta = 1.0

# 1. The theorem: sqrt(n) times the largest |E h(X) - E h(Y)|, over all h with first and second derivatives up to 1, is bounded.
print(rdiff.distance([16, 64] if small else [16, 64, 256, 1024], beta=beta, b=1))

# 2. The constant: for one smooth h the gap is C(h)/sqrt(n) up to O(1/n), and C(h) comes from the limit alone, by its Poisson
#    equation G f = h - E h(Y). "refined" is E h(Y) + C(h)/sqrt(n).
h = {
    "y2": lambda y: y[1],
    "y1*y2": lambda y: y[0] * y[1],
    "y2**2": lambda y: y[1] ** 2,
    "exp(-y1-y2)": lambda y: jnp.exp(-y[0] - y[1]),
}
study = rdiff.rate([64, 256, 1024] if small else [64, 256, 1024, 4096, 16384], beta=beta, b=1, h=h)
print(f"\n{study}")

# 3. The pictures: the gaps fall with slope -1/2; the queue's law, on its lattice of mesh 1/sqrt(n), over the limit's density.
limit = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta))
plots.rate("theorem.png", study)
plots.queue_law("theorem_law.png", rdiff.JSQQueue(n=100, b=1, beta=beta).exact(), limit)
