"""Your own reflected diffusion: a drift of yours in a half-space, its time-step bias, and a check against a known density.

    python examples/own_diffusion.py [--small]

With noise sqrt(2) dW, drift -grad V and normal reflection the stationary density is proportional to exp(-V). Here
V(x, y) = x^4/4 + (y - x)^2/2 on x >= 0, so that E Y = E X and E XY = E X^2. Writes own_diffusion.png where it is run.
"""

import sys

import jax.numpy as jnp
import numpy as np
from scipy.special import erfc

import rdiff
from rdiff import plots

small = "--small" in sys.argv
rdiff.use_all_cores()

Z = rdiff.ReflectedDiffusion(
    drift=lambda z: jnp.stack([-(z[0] ** 3) + z[1] - z[0], z[0] - z[1]]),
    diffusion=np.sqrt(2) * np.eye(2),
    domain=rdiff.HalfSpace(normal=[1.0, 0.0]),
    relaxation_time=4.0,
)
h = {"x": lambda z: z[0], "y": lambda z: z[1], "x y": lambda z: z[0] * z[1], "y < 0": lambda z: z[1] < 0}
found = rdiff.long_run_average(Z, h, key=0, dt=0.05, chains=512 if small else 4096, horizon=100.0, bias=True, draws=True)
print(found)

x, step = np.linspace(0, 6, 60_001, retstep=True)
density = np.exp(-(x**4) / 4) / (np.exp(-(x**4) / 4).sum() * step)
tail = erfc(x / np.sqrt(2)) / 2  # P(Y < 0 | X = x)
exact = {"x": x @ density * step, "y": x @ density * step, "x y": x**2 @ density * step, "y < 0": tail @ density * step}
for name, value in exact.items():
    corrected = found[name].mean - found[name].bias
    print(f"{name:6} exact {value:.6f}, found less bias {corrected:.6f}, z = {(corrected - value) / found[name].stderr:.1f}")

# An Euler step with the end point pushed back misses most of the time spent at the wall.
worse = rdiff.SimulatedLaw(Z, key=0, dt=0.05, chains=512, horizon=100.0, solver=rdiff.ProjectedEuler()).expect(h["x"])
print(f"projected Euler, the same step: x {worse.mean:.4f} +- {worse.stderr:.4f}")
plots.diagnostics("own_diffusion.png", {name: found[name] for name in ("x", "y < 0")})
