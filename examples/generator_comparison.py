"""Generator comparison, both ways: how E h(X) - E h(Y) is made up, and the Stein factors that bound it, along n.

    python examples/generator_comparison.py [--small]

With f from the limit's Poisson equation, G_Y f = h - E h(Y), stationarity of the queue gives
E h(X) - E h(Y) = E_X[(G_Y - G_X) f(X)] exactly; with f from the lattice's, extended to the continuum by A, that of the limit
gives E h(Y) - E h(X) as the mean of (A G_X - G_Y A) f under Y and a term of its local time. Both are computed here term by
term, from exact laws, and both close.
"""

import math
import sys

import jax.numpy as jnp

import rdiff
from rdiff import table

beta, b = 1.0, 1
sizes = [64, 100, 144] if "--small" in sys.argv else [64, 256, 1024, 4096]
h = {"y2": lambda y: y[1], "exp(-y1-y2)": lambda y: jnp.exp(-y[0] - y[1])}

# Bounded h: bounded in n. h = y2: over the states that carry the mass, while over all of them they grow like sqrt(n).
for over in ("box", "all"):
    print(rdiff.stein_factors([16, *sizes[:3]], beta=beta, b=b, h=h, over=over), end="\n\n")

Y = rdiff.StationaryLaw(rdiff.JSQDiffusion(beta, b))
laws = {n: rdiff.JSQQueue(n, b, beta=beta).exact(window="auto") for n in sizes}
for compare in (rdiff.generator.classical, rdiff.generator.prelimit):
    found = {n: compare(X, Y, h) for n, X in laws.items()}
    rows = []
    for name in h:
        for n, each in found.items():
            numbers = [f"{math.sqrt(n) * value:.6f}" for value in (each[name].direct, *each[name].terms.values())]
            rows.append([name, n, *numbers, f"{each[name].residual:.0e}", f"{each[name].error:.0e}"])
    columns = ["observable", "n", "difference", *each[name].terms, "residual", "error"]
    print(table.text(table.build(columns, rows, f"{compare.__name__}: terms times sqrt(n), residual and error as they are")))
    print()
for name, function in h.items():
    print(f"C({name}) = {Y.constant(function).mean:.6f}, to which sqrt(n) (E h(X) - E h(Y)) tends")
