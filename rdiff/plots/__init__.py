"""Pictures, with matplotlib (the extra `plot`): lines told apart by style, so that they read in black and white."""

from rdiff.plots.convergence import rate as rate
from rdiff.plots.distances import distances as distances
from rdiff.plots.figure import matplotlib as matplotlib
from rdiff.plots.lattice import queue_law as queue_law
from rdiff.plots.limit import law as law
from rdiff.plots.limit import poisson as poisson
from rdiff.plots.trajectories import paths as paths
