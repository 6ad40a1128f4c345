"""Generator comparison: E h(X) - E h(Y) as one law's mean of the difference of the two generators, term by term."""

from rdiff.generator.from_lattice import prelimit as prelimit
from rdiff.generator.from_limit import checks as checks
from rdiff.generator.from_limit import classical as classical
from rdiff.generator.result import GeneratorComparison as GeneratorComparison
from rdiff.generator.result import GeneratorComparisons as GeneratorComparisons
