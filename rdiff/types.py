"""Names for what arguments may be; shapes are written beside them in each docstring."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Array

Scalar: TypeAlias = float | Array | np.ndarray
Points: TypeAlias = Scalar | Sequence[float] | Sequence[Sequence[float]]
PyTree: TypeAlias = Any  # of arrays, in tuples, dicts and modules: jaxtyping's own has no type that checkers know
