"""The reflected diffusions of queueing that rdiff knows by name."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdiff.domain import HalfSpace
from rdiff.errors import integer, positive, real
from rdiff.process import AbstractReflectedDiffusion
from rdiff.types import Scalar

_NO_LIMIT = "the limit is stationary only for beta > 0, that is for load 1 - beta/sqrt(n) < 1"


class JSQDiffusion(AbstractReflectedDiffusion):
    """The limit of join-the-shortest-queue in the Halfin-Whitt regime, load 1 - beta/sqrt(n).

        dY1 = (beta - Y1 - Y2) dt + sqrt(2) dW + dU,   Y1 >= 0, U growing only while Y1 = 0
        dY2 = -(Y2 - Y3) dt + dU,   dYi = -(Yi - Y(i+1)) dt for i >= 3,   Y(b+2) = 0

    Y1 is the scaled number of idle servers, Y2 of servers with a customer waiting, Yi of servers with i or more
    customers. With b = 0 (no waiting room) it is the reflected Ornstein-Uhlenbeck process of the Erlang loss system.

    **Arguments:** `beta` > 0; `b` >= 0, places in each buffer beside the one in service. The state has shape (b + 1,).
    **Raises:** `InputError`.

    Sources: Eschenfeldt and Gamarnik, Join the shortest queue with many servers: the heavy-traffic asymptotics, Math. Oper.
    Res. 43 (2018); Braverman, The join-the-shortest-queue system in the Halfin-Whitt regime: rates of convergence to the
    diffusion limit, Stochastic Systems 13 (2023).

    ```python
    >>> import jax.numpy as jnp, rdiff
    >>> Y = rdiff.JSQDiffusion(beta=1.0, b=2)
    >>> Y.dim, Y.drift(jnp.array([0.5, 2.0, 0.25])).tolist()
    (3, [-1.5, -1.75, -0.25])

    ```
    """

    beta: Scalar
    b: int = eqx.field(static=True)
    additive = True
    linear = True

    def __init__(self, beta: Scalar, b: int = 1):
        self.beta = positive("beta", beta, _NO_LIMIT)
        self.b = integer("b", b, 0, "the places in each buffer, the customer in service left out")

    @property
    def domain(self) -> HalfSpace:  # pyright: ignore[reportIncompatibleVariableOverride]
        unit = np.eye(self.b + 1)
        return HalfSpace(normal=unit[0], direction=unit[:2].sum(axis=0))

    @property
    def nonnegative(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return tuple(range(1, self.b + 1))

    @property
    def relaxation_time(self) -> Scalar:
        """1 + 4.5/beta^2 (1 for b = 0): at most 30% above the inverse of the exact law's spectral gap for beta <= 2.

        The gap itself is `StationaryLaw(...).relaxation_time`: 18.4, 4.9, 1.6, 1.0 at beta = 0.5, 1, 2, 4.
        """
        return 1.0 + (4.5 / self.beta / self.beta if self.b else 0.0)

    @property
    def fastest_time(self) -> Scalar:
        """1, a mean service."""
        return 1.0

    def drift(self, y: Float[Array, " dim"]) -> Float[Array, " dim"]:
        """mu(y), shape (b + 1,)."""
        after = [*(y[i] for i in range(1, self.dim)), 0.0]
        rates = [after[i] - y[i] for i in range(self.dim)]
        return jnp.stack([self.beta - y[0] - after[0], *rates[1:]]).astype(y.dtype)

    def sigma(self, y: Float[Array, " dim"]) -> Float[np.ndarray, "dim 1"]:
        """sqrt(2) in the first coordinate."""
        return np.sqrt(2.0) * np.eye(self.dim, 1)


class ReflectedOU(AbstractReflectedDiffusion):
    """The reflected Ornstein-Uhlenbeck process dX = rate (center - X) dt + scale dW + dU on [0, inf).

    Stationary law: normal(center, scale^2/(2 rate)) cut to [0, inf). With rate 1 and scale sqrt(2) it is the limit of the
    Erlang loss system, `JSQDiffusion(beta=center, b=0)`; its push rate is then phi(center)/Phi(center).

    **Arguments:** `center`; `rate` > 0; `scale` > 0. The state has shape (1,).
    **Raises:** `InputError`.

    Source: Ward and Glynn, A diffusion approximation for a Markovian queue with reneging, Queueing Systems 43 (2003).

    ```python
    >>> import rdiff
    >>> float(rdiff.ReflectedOU(center=1.0).relaxation_time)
    1.0

    ```
    """

    center: Scalar
    rate: Scalar
    scale: Scalar
    additive = True
    linear = True
    nonnegative = ()

    def __init__(self, center: Scalar, rate: Scalar = 1.0, scale: Scalar = 2.0**0.5):
        self.center = real("center", center)
        self.rate = positive("rate", rate, "a process that does not return has no stationary law")
        self.scale = positive("scale", scale)

    @property
    def domain(self) -> HalfSpace:  # pyright: ignore[reportIncompatibleVariableOverride]
        return HalfSpace(normal=[1.0])

    @property
    def relaxation_time(self) -> Scalar:
        return 1 / self.rate

    @property
    def fastest_time(self) -> Scalar:
        return 1 / self.rate

    def drift(self, y: Float[Array, " 1"]) -> Float[Array, " 1"]:
        """rate (center - y)."""
        return jnp.asarray(self.rate * (self.center - y), y.dtype)

    def sigma(self, y: Float[Array, " 1"]) -> Float[Array, "1 1"]:
        """scale, as a matrix."""
        return jnp.asarray(self.scale, y.dtype).reshape(1, 1)


class ReflectedBrownianMotion(AbstractReflectedDiffusion):
    """Reflected Brownian motion dX = -mu dt + s dW + dU on [0, inf), the heavy-traffic limit of a single queue.

    Stationary law for mu > 0: exponential with rate 2 mu/s^2; push rate mu.

    **Arguments:** `mu` > 0, the speed towards the wall; `s` > 0. The state has shape (1,).
    **Raises:** `InputError`.

    Source: Harrison, Brownian Motion and Stochastic Flow Systems (1985), chapter 5.

    ```python
    >>> import rdiff
    >>> float(rdiff.ReflectedBrownianMotion(mu=1.0, s=1.0).relaxation_time)
    2.0

    ```
    """

    mu: Scalar
    s: Scalar
    additive = True
    linear = True
    nonnegative = ()

    def __init__(self, mu: Scalar, s: Scalar = 1.0):
        self.mu = positive("mu", mu, "the drift is -mu, and without one towards the wall there is no stationary law")
        self.s = positive("s", s)

    @property
    def domain(self) -> HalfSpace:  # pyright: ignore[reportIncompatibleVariableOverride]
        return HalfSpace(normal=[1.0])

    @property
    def relaxation_time(self) -> Scalar:
        """2 s^2/mu^2: the inverse of the spectral gap."""
        return 2 * (self.s / self.mu) * (self.s / self.mu)

    def drift(self, y: Float[Array, " 1"]) -> Float[Array, " 1"]:
        """-mu."""
        return jnp.broadcast_to(jnp.asarray(-self.mu, y.dtype), y.shape)

    def sigma(self, y: Float[Array, " 1"]) -> Float[Array, "1 1"]:
        """s, as a matrix."""
        return jnp.asarray(self.s, y.dtype).reshape(1, 1)
