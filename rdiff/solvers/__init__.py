"""Reflected steps, one a file, as diffrax solvers."""

from rdiff.solvers.base import AbstractReflectedSolver as AbstractReflectedSolver
from rdiff.solvers.base import ReflectedTerm as ReflectedTerm
from rdiff.solvers.bridge_euler import BridgeEuler as BridgeEuler
from rdiff.solvers.bridge_heun import BridgeHeun as BridgeHeun
from rdiff.solvers.projected_euler import ProjectedEuler as ProjectedEuler
