"""Pictures, with matplotlib (the extra `plot`): lines told apart by style, so that they read in black and white."""

from rdiff.plots.figure import matplotlib as matplotlib
from rdiff.plots.limit import law as law
from rdiff.plots.limit import poisson as poisson
from rdiff.plots.trajectories import paths as paths
