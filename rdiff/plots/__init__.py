"""Pictures, with matplotlib (the extra `plot`): lines told apart by style, so that they read in black and white."""

from rdiff.plots.bias import bias as bias
from rdiff.plots.convergence import rate as rate
from rdiff.plots.diagnostics import diagnostics as diagnostics
from rdiff.plots.distances import distances as distances
from rdiff.plots.figure import matplotlib as matplotlib
from rdiff.plots.grid import sweep as sweep
from rdiff.plots.lattice import queue_law as queue_law
from rdiff.plots.limit import law as law
from rdiff.plots.limit import poisson as poisson
from rdiff.plots.marginals import marginals as marginals
from rdiff.plots.trajectories import paths as paths
