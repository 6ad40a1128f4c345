"""Reflected diffusions in queueing: simulation, long-run averages, and comparison with queue samples."""

from rdiff import generator as generator
from rdiff.averages import SimulatedLaw as SimulatedLaw
from rdiff.averages import long_run_average as long_run_average
from rdiff.checks import Check as Check
from rdiff.compare import Comparison as Comparison
from rdiff.compare import Comparisons as Comparisons
from rdiff.compare import compare as compare
from rdiff.devices import use_all_cores as use_all_cores
from rdiff.distances.along import Distances as Distances
from rdiff.distances.along import distance as distance
from rdiff.distances.between import Distance as Distance
from rdiff.distances.between import distance_between as distance_between
from rdiff.domain import HalfSpace as HalfSpace
from rdiff.errors import AccuracyWarning as AccuracyWarning
from rdiff.errors import InputError as InputError
from rdiff.estimate import Estimate as Estimate
from rdiff.estimate import Estimates as Estimates
from rdiff.limit.law import LawGrid as LawGrid
from rdiff.limit.law import StationaryLaw as StationaryLaw
from rdiff.models import JSQDiffusion as JSQDiffusion
from rdiff.models import ReflectedBrownianMotion as ReflectedBrownianMotion
from rdiff.models import ReflectedOU as ReflectedOU
from rdiff.noise import Threefry as Threefry
from rdiff.noise import Xoshiro as Xoshiro
from rdiff.paths import Paths as Paths
from rdiff.paths import sample_paths as sample_paths
from rdiff.process import AbstractReflectedDiffusion as AbstractReflectedDiffusion
from rdiff.process import ReflectedDiffusion as ReflectedDiffusion
from rdiff.queue.chain import JSQQueue as JSQQueue
from rdiff.queue.read import read_samples as read_samples
from rdiff.queue.samples import Samples as Samples
from rdiff.rate import rate as rate
from rdiff.solvers import BridgeEuler as BridgeEuler
from rdiff.solvers import BridgeHeun as BridgeHeun
from rdiff.solvers import ProjectedEuler as ProjectedEuler
from rdiff.solvers import ReflectedTerm as ReflectedTerm
from rdiff.stein import SteinFactors as SteinFactors
from rdiff.stein import stein_factors as stein_factors
from rdiff.study import Rate as Rate

__version__ = "0.1.0"
