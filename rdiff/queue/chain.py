"""`JSQQueue`: the prelimit, n servers with a place in service and b places to wait; its states, rates and generator."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rdiff.errors import InputError, positive, real
from rdiff.queue.policies import Policy, jsq
from rdiff.queue.space import Space
from rdiff.queue.system import System, below_one, servers

_MOST_STATES = 5_000_000  # of a sparse generator


def rates(q: Sequence[Any], n: Any, arrivals: Any, policy: Policy = jsq) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The queue's transition rates, for numpy and for JAX: what its simulator, exact law and generator share.

    **Arguments:** `q` = (Q_1, ..., Q_{b+1}), numbers or arrays of one shape; `arrivals`, their total rate n lam; None for
    shares of it.
    **Returns:** (up, down): the rate at which each level rises by an arrival, and falls by a departure.

    ```python
    >>> from rdiff.queue.chain import rates
    >>> rates((4, 1), n=4, arrivals=2.0)
    ((0.0, 2.0), (3, 1))

    ```
    """
    chances = policy(q, n)
    up = chances if arrivals is None else tuple(arrivals * chance for chance in chances)
    return up, tuple(here - above for here, above in zip(q, (*q[1:], 0)))


@dataclasses.dataclass(frozen=True)
class JSQQueue:
    """Join-the-shortest-queue at finite n: Poisson arrivals at rate n lam, service rate 1, b places to wait a server.

    Its state is (Q_1, ..., Q_{b+1}), Q_i the number of servers with i or more customers; an arrival that finds all
    servers with b + 1 is blocked. X_1 = (n - Q_1)/sqrt(n), X_i = Q_i/sqrt(n), i >= 2. `exact()` and `simulate()` are
    laws of X.

    **Arguments:** `n`; `b` >= 0; `beta`, or `lam` = 1 - beta/n^alpha; `alpha` >= 0, 1/2 in the Halfin-Whitt regime (the
    only one that `JSQDiffusion` is the limit of).
    **Raises:** `InputError` for other numbers, among them lam outside (0, 1) and b = inf.

    ```python
    >>> import rdiff
    >>> Q = rdiff.JSQQueue(n=100, b=2, beta=1.0)
    >>> Q.lam, Q.size
    (0.9, 176851)

    ```
    """

    n: int
    b: int
    beta: float
    lam: float
    alpha: float

    def __init__(self, n: Any, b: Any, beta: Any = None, lam: Any = None, alpha: Any = 0.5) -> None:
        system, alpha = _system(n, b, beta, lam, alpha)
        if math.isinf(system.b):
            raise InputError(
                "b = inf has infinitely many states: take a finite b; levels beyond the third are empty but for a share "
                "of time of about exp(-2 beta sqrt(n))"
            )
        scaled = system.beta if alpha == 0.5 else float(f"{_power(system.n, alpha) * (1 - system.lam):.14g}")
        beta = scaled if beta is None else float(beta)
        for name, value in zip(("n", "b", "beta", "lam", "alpha"), (system.n, int(system.b), beta, system.lam, alpha)):
            object.__setattr__(self, name, value)

    @property
    def levels(self) -> int:
        """b + 1, the number of coordinates."""
        return self.b + 1

    @property
    def arrivals(self) -> float:
        """n lam, the total arrival rate."""
        return self.n * self.lam

    @property
    def drift(self) -> float:
        """sqrt(n) (1 - lam): beta in the Halfin-Whitt regime, whatever `alpha` is."""
        return math.sqrt(self.n) * (1 - self.lam)

    @property
    def size(self) -> int:
        """The number of states."""
        return math.comb(self.n + self.levels, self.levels)

    @property
    def relaxation_time(self) -> float:
        """About how long the queue remembers its start, in mean service times."""
        return 1.0 + (min(4 / self.drift**2, self.b**2 * self.n) if self.b else 0.0)

    def scaled(self, q: np.ndarray) -> np.ndarray:
        """X of states (..., b + 1) of occupancy, in float64."""
        x = np.asarray(q, np.float64).copy()
        x[..., 0] = self.n - x[..., 0]
        return x / math.sqrt(self.n)  # divide: multiplied by 1/sqrt(n), X_2 > 0.3 would hold at Q_2 = 3, n = 100

    def states(self) -> np.ndarray:
        """All states, (size, b + 1), sorted downwards by the last level, then the one before.

        **Raises:** `InputError` beyond five million.
        """
        if self.size > _MOST_STATES:
            raise InputError(
                f"{self.size:,} states are too many to list ({_MOST_STATES:,} at most): exact() needs no list of them"
            )
        return Space(self.n, self.levels).all()

    def generator(self, policy: Policy = jsq) -> Any:
        """The generator as a scipy CSR array in the order of `states()`, rows from, columns to.

        **Raises:** `InputError` beyond five million states.
        """
        from scipy.sparse import coo_array

        q = self.states()
        space = Space(self.n, self.levels)
        here = np.arange(len(q))
        rows, columns, values = [], [], []
        for sign, moves in zip((1, -1), rates(tuple(q.T), self.n, self.arrivals, policy)):
            for i, rate in enumerate(moves):
                rate = np.broadcast_to(np.asarray(rate, np.float64), here.shape)
                some = rate > 0
                target = here[some] + space.shift(q[some], i, sign)
                rows += [here[some], here[some]]
                columns += [target, here[some]]
                values += [rate[some], -rate[some]]
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return coo_array(entries, shape=(len(q), len(q))).tocsr()

    def exact(
        self, *, window: Any = None, cap: Any = None, tol: float | None = None, memory: float = 2.0,
        keep: bool | None = None, progress: bool = False,
    ) -> Any:  # fmt: skip
        """The stationary law of X, exact; see `rdiff.queue.exact.ExactQueueLaw`.

        **Arguments:** `window`: keep X_1 <= window; `cap`: keep X_2 + ... + X_{b+1} <= cap; "auto" for either sets both so
        that what is cut off is below rounding, or with `tol` of about that probability. `memory`, GiB, that it may use;
        `keep`, whether to keep the law there; `progress`, a bar on stderr.
        """
        from rdiff.queue.exact import ExactQueueLaw

        return ExactQueueLaw(self, window=window, cap=cap, tol=tol, memory=memory, keep=keep, progress=progress)

    def simulate(self, *, key: Any = 0, chains: int = 64, horizon: float = 1e3, burn_in: Any = None, **options: Any) -> Any:
        """The stationary law of X by simulation of the chain itself; see `rdiff.queue.simulate.SimulatedQueueLaw`."""
        from rdiff.queue.simulate import SimulatedQueueLaw

        return SimulatedQueueLaw(self, key=key, chains=chains, horizon=horizon, burn_in=burn_in, **options)


def _system(n: Any, b: Any, beta: Any, lam: Any, alpha: Any) -> tuple[System, float]:
    alpha = float(real("alpha", alpha, "the exponent of lam = 1 - beta/n^alpha"))
    if alpha < 0:
        raise InputError(f"alpha must not be negative, got {alpha:g}: lam = 1 - beta/n^alpha, 1/2 for Halfin-Whitt")
    if alpha == 0.5:
        return System.of(n, b, beta, lam), alpha
    if beta is not None:
        beta = float(positive("beta", beta, "with beta <= 0 (lam >= 1) there is no limit to compare with"))
        n = servers(n)
        load = below_one(1 - beta / _power(n, alpha), beta)
        if load <= 0:
            raise InputError(f"n^alpha must exceed beta = {beta:g}, got n = {n}, alpha = {alpha:g}: lam must be positive")
        if lam is not None and not math.isclose(float(lam), load, rel_tol=1e-9):
            raise InputError(f"beta = {beta:g} and lam = {lam} contradict each other at n = {n}, alpha = {alpha:g}: give one")
        lam = load
    return System.of(n, b, None, lam), alpha


def _power(n: int, alpha: float) -> float:
    try:
        return float(n) ** alpha
    except OverflowError:
        raise InputError(f"n^alpha must have a double, got n = {n}, alpha = {alpha:g}: lam = 1 - beta/n^alpha") from None
