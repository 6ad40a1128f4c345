"""How much is waiting at the two ends: beta E Y2 tends to 2 as beta falls to 0, and E Y2/phi(beta) to 1 as beta grows.

    python examples/beta_extremes.py [--small]

Near critical load the limit is one-dimensional and beta Y2 is close to a Gamma(2, 1); with much idle capacity a queue is as
rare as phi(beta), the normal density. Exact laws, computed, not simulated. Writes beta_extremes.png where it is run.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

import rdiff

count = 8 if "--small" in sys.argv else 40


def mean_y2(betas):
    """E Y2 at each beta, and the bound on its error."""
    found = rdiff.StationaryLaw.grid(betas).expect(lambda y: y[1])
    return found.mean, found.error


small, large = np.geomspace(0.02, 2.0, count), np.linspace(1.0, 6.0, count)
phi = np.exp(-(large**2) / 2) / np.sqrt(2 * np.pi)
(low, low_error), (high, high_error) = mean_y2(small), mean_y2(large)

print("    beta       E Y2      error   beta E Y2")
for row in zip(small[:: count // 8], low[:: count // 8], low_error[:: count // 8]):
    print("{:8.4f} {:12.8f} {:8.0e} {:11.7f}".format(*row, row[0] * row[1]))
print("\n    beta       E Y2      error   E Y2/phi(beta)")
for row in zip(large[:: count // 8], high[:: count // 8], high_error[:: count // 8], phi[:: count // 8]):
    print("{:8.4f} {:12.4e} {:8.0e} {:11.7f}".format(*row[:3], row[1] / row[3]))
gap_low, gap_high = 2 - small * low, high / phi - 1
order = np.log(gap_low[1] / gap_low[0]) / np.log(small[1] / small[0])
print(f"\nlimits: 2, where the gap falls like beta^{order:.1f} at beta = {small[0]:g};", end=" ")
print(f"and 1, where the gap is {gap_high[-1] * large[-1] ** 2:.2f}/beta^2 at beta = {large[-1]:g}")

figure = Figure(figsize=(8.0, 3.6), layout="constrained")
left, right = figure.subplots(1, 2)
left.semilogx(small, small * low, "o-", color="black", markersize=3, linewidth=0.8)
left.axhline(2, color="0.45", linestyle="--", linewidth=1.0)
left.set_xlabel(r"$\beta$")
left.set_ylabel(r"$\beta\,E\,Y_2$")
left.set_ylim(0, 2.1)
left.set_title(r"$\beta\,E\,Y_2 \to 2$ as $\beta \to 0$", fontsize="medium")
right.plot(large, high / phi, "o-", color="black", markersize=3, linewidth=0.8)
right.axhline(1, color="0.45", linestyle="--", linewidth=1.0)
right.set_xlabel(r"$\beta$")
right.set_ylabel(r"$E\,Y_2\,/\,\varphi(\beta)$")
right.set_ylim(bottom=0.9)
right.set_title(r"$E\,Y_2/\varphi(\beta) \to 1$ as $\beta \to \infty$", fontsize="medium")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
figure.savefig("beta_extremes.png", dpi=150)
