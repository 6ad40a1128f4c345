"""A grid of beta: means simulated and exact, and how they move with beta.

    python examples/beta_grid.py [--small]

All points run as lanes of one program. d/dbeta E h(Y) = -E f_1(Y), f the solution of the Poisson equation. Writes beta_grid.png
where it is run.
"""

import sys

import jax.numpy as jnp
import numpy as np

import rdiff
from rdiff import plots, table

rdiff.use_all_cores()
betas = np.linspace(0.4, 2.0, 5 if "--small" in sys.argv else 17)
h = {
    "y2": lambda y: y[1],
    "y1*y2": lambda y: y[0] * y[1],
    "y1**2": lambda y: y[0] ** 2,
    "exp(-y1-y2)": lambda y: jnp.exp(-y[0] - y[1]),
}

found = rdiff.sweep({"beta": betas}, h, chains=256, horizon=500.0)
exact = rdiff.sweep({"beta": betas}, h, law="exact")
z = {name: (found.mean(name) - exact.mean(name)) / found.stderr(name) for name in h}
slopes = rdiff.StationaryLaw.grid(betas).sensitivity(h)

rows = []
for name in h:
    for i in range(0, len(betas), len(betas) // 4):
        at, slope = f"{betas[i]:.2f}", float(slopes[name].mean[i])
        rows.append([name, at, found.mean(name)[i], found.stderr(name)[i], exact.mean(name)[i], f"{z[name][i]:.1f}", slope])
columns = ["observable", "beta", "simulated", "stderr", "exact", "z", "d/dbeta"]
print(table.text(table.build(columns, rows)))
print(f"\nlargest |z| of {len(betas) * len(h)}: {max(np.abs(each).max() for each in z.values()):.1f}")
plots.sweep("beta_grid.png", found, exact)
