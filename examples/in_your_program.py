"""Inside a jitted program of yours: vmap over parameters, gradients, and paths that feed another computation.

    python examples/in_your_program.py [--small]

`long_run_average` becomes one fixed scan under `jit`, `vmap` and `grad`: burn_in is given, and its numbers are arrays.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import rdiff
from rdiff import table

chains = 128 if "--small" in sys.argv else 1024


def waiting(beta, key):
    """E Y2 at load 1 - beta/sqrt(n), estimated."""
    Y = rdiff.JSQDiffusion(beta)
    return rdiff.long_run_average(Y, lambda y: y[1], key=key, chains=chains, horizon=100.0, burn_in=20.0)


# 1. A vectorised, jitted function of beta; the same noise for all, so that differences are sharp and errors alike.
betas = jnp.array([0.8, 1.0, 1.25, 1.5])
found = jax.jit(jax.vmap(waiting, in_axes=(0, None)))(betas, jax.random.key(0))

# 2. Its derivative along the paths, forward through the reflection, beside the exact one.
slope = jax.jit(jax.vmap(jax.jacfwd(lambda beta: waiting(beta, jax.random.key(0)).mean)))(betas)
laws = [rdiff.StationaryLaw(rdiff.JSQDiffusion(float(beta))) for beta in betas]
exact = [(law.expect(lambda y: y[1]).mean, law.sensitivity(lambda y: y[1]).mean) for law in laws]
rows = [
    [f"{beta:.2f}", float(mean), float(stderr), value, float(d), dvalue]
    for beta, mean, stderr, d, (value, dvalue) in zip(betas, found.mean, found.stderr, slope, exact)
]
print(table.text(table.build(["beta", "E y2", "stderr", "exact", "d/dbeta, pathwise", "exact"], rows)))


# 3. Paths as part of a larger program: the chance that somebody waits at some time in [0, T], from 1 + Y1 spare servers.
@jax.jit
def busy_period(key, start):
    paths = rdiff.sample_paths(rdiff.JSQDiffusion(1.0), np.arange(0, 2.01, 0.1), key=key, paths=chains, y0=start, dt=0.1)
    return (paths.local_time > 0).mean(axis=0)


share = busy_period(jax.random.key(1), jnp.array([1.0, 0.0]))
print("\nP(somebody has had to wait by t) from Y1 = 1:")
print(", ".join(f"t = {t}: {share[i]:.3f}" for t, i in ((0.5, 5), (1, 10), (2, 20))))
