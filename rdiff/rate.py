"""`rate`: the theorem as a number. E h(X) - E h(Y) along n, the power of n it falls with, and its constant."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax

from rdiff.averages import Interrupted
from rdiff.checks import failures
from rdiff.compare import Comparison, same_system
from rdiff.errors import InputError, integer, positive
from rdiff.estimate import notes as cautions
from rdiff.expansion import too_small
from rdiff.functionals import Observable, by_name
from rdiff.limit.law import StationaryLaw
from rdiff.models import JSQDiffusion
from rdiff.noise import root_key
from rdiff.progress import Done
from rdiff.provenance import provenance
from rdiff.queue.chain import JSQQueue
from rdiff.queue.exact import ExactQueueLaw
from rdiff.queue.simulate import MOST_SERVERS, SimulatedQueueLaw
from rdiff.queue.truncation import affordable
from rdiff.study import Rate, RateRow, fit

_TOLS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6)  # probability that an exact law may leave out
_QUICK = 1e6  # states, a second: more only for a law that they cannot hold
_SEEN = 1e-3  # of a gap
_METHODS = (None, "exact", "simulated")


def rate(
    ns: Iterable[Any], *, h: Observable | Mapping[str, Observable], beta: Any = None, b: Any = None, limit: Any = None,
    method: str | None = None, states: float = 1.5e7, memory: float = 2.0, key: Any = 0, chains: int = 64, horizon: float = 1e3,
    on_progress: Callable[[Done], None] | None = None,
) -> Rate:  # fmt: skip
    """E h(X) - E h(Y) along n, its order in n and its constant: Braverman's theorem says that it is at most C/sqrt(n).

    Exact law against exact law; a queue whose states are too many is simulated (and a note says so), and laws of your own, from
    samples say, may stand for numbers of servers. Then gaps have standard errors, and so has what is fitted to them. For
    smooth h the gap is a series in n^{-1/2} whose first coefficient, C(h), the limit alone gives: it is put beside the one that
    is fitted, and E h(Y) + C(h)/sqrt(n), off by O(1/n), beside E h(X).

    **Arguments:**

    - `ns`: numbers of servers in increasing order, each above beta^2; or laws of one system at such n, anything with `n`, `b`,
      `beta` and `expect(h)`: `Samples`, `JSQQueue(...).exact()`, `JSQQueue(...).simulate()`.
    - `h`: from a state (b + 1,) to a scalar, JAX-traceable; or a dict of these by name, all from one pass of each law.
    - `beta`, and `b` (default 1): the system. Laws know theirs.
    - `limit`: the law of Y, `StationaryLaw(JSQDiffusion(beta, b))` by default; any other has no C(h).
    - `method`: "exact" or "simulated" for every n; None simulates only where more than `states` states would have to be kept
      to lose a probability of 1e-6 at most, or `memory` GiB do not hold them.
    - `key`, `chains`, `horizon`: of the simulations, as in `JSQQueue.simulate`. `on_progress`: called with the n done.

    **Returns:** a `Rate`. **Raises:** `InputError`; `Interrupted` on Ctrl-C, with a `Rate` of the n reached, if any.

    Source: Braverman, The join-the-shortest-queue system in the Halfin-Whitt regime: rates of convergence to the diffusion
    limit, Stochastic Systems 13(1), 2023, doi 10.1287/stsy.2022.0102.

    ```python
    >>> import rdiff
    >>> found = rdiff.rate([25, 100, 400], beta=1.0, b=1, h=lambda y: y[1])
    >>> [round(row.scaled_gap, 3) for row in found.rows], round(found.constant, 6), round(found.slope, 1)
    ([-1.911, -2.143, -2.295], -2.467469, -0.5)

    ```
    """
    observables = by_name(h)
    sizes, laws, beta, b = _along(ns, beta, b, method, states, memory, (key, chains, horizon))
    Y: Any = StationaryLaw(JSQDiffusion(beta, b)) if limit is None else limit
    if not callable(getattr(Y, "expect", None)):
        raise InputError(f"limit must be a law with expect(h), such as rdiff.StationaryLaw(model), got {Y!r:.60}")
    mean = Y.expect(observables)
    constant = Y.constant(observables) if callable(getattr(Y, "constant", None)) else {}
    rows: list[RateRow] = []
    notes = [*(getattr(Y, "notes", None) or ()), *_ceiling(Y, sizes, b)]

    def study() -> Rate:
        early = too_small(rows[-1].n, beta, getattr(Y, "tail", None) if b else None)
        along = {name: [row for row in rows if row.observable == name] for name in observables}
        fits = {name: fit(along[name], constant.get(name), early) for name in observables}
        said = tuple(dict.fromkeys([*notes, *_coarse(rows)]))
        made = (("method", method), *provenance(key if any(row.stderr for row in rows) else None))
        return Rate(float(beta), int(b), tuple(rows), fits, said, isinstance(h, Mapping), made)

    try:
        for k, (n, make) in enumerate(zip(sizes, laws, strict=True)):
            if on_progress is not None:
                on_progress(Done(k, len(sizes)))
            law = make()
            same_system(law, Y)
            found = law.expect(observables)
            # An exact law has passed its own checks; what it leaves out on purpose is in its error.
            sampled = callable(getattr(law, "checks", None)) and not isinstance(law, ExactQueueLaw)
            checks = tuple(law.checks()) if sampled else ()
            for name in observables:
                first = constant.get(name)
                refined = None if first is None else float(mean[name].mean) + float(first.mean) / math.sqrt(n)
                rows.append(RateRow.of(Comparison(found[name], mean[name], n, refined, checks)))
            notes += [f"n = {n}: {note}" for note in _said(law, found, checks, method)]
    except KeyboardInterrupt:
        raise Interrupted(study() if rows else None) from None  # pyright: ignore[reportArgumentType]
    return study()


def _along(
    ns: Any, beta: Any, b: Any, method: str | None, states: float, memory: float, simulation: tuple[Any, int, float]
) -> tuple[list[int], list[Callable[[], Any]], float, int]:
    """The n, what makes the law at each, and their beta and b; everything is refused here that can be before any is solved."""
    if method not in _METHODS:
        raise InputError(f"method must be None, 'exact' or 'simulated', got {method!r}")
    states, memory = float(positive("states", states)), float(positive("memory", memory))
    given = _given(ns)
    laws: list[Callable[[], Any]]
    if any(callable(getattr(item, "expect", None)) for item in given):
        if method is not None:
            raise InputError(f"method = {method!r} is for numbers of servers: the laws given say how they answer")
        beta, b = _common(given, beta, b)
        sizes, laws = [int(law.n) for law in given], [lambda law=law: law for law in given]
    else:
        sizes = [integer("n", n, 1, "the number of servers") for n in given]
        if beta is None:
            raise InputError("beta is missing: n and b alone do not say how loaded the queues are")
        queues = [JSQQueue(n, 1 if b is None else b, beta=beta) for n in sizes]
        beta, b = queues[0].beta, queues[0].b
        laws = [lambda queue=queue: _law(queue, method, states, memory, *simulation) for queue in queues]
    if any(n >= m for n, m in itertools.pairwise(sizes)):
        said = ", ".join(map(str, sizes))
        raise InputError(f"the n must increase, each once, got {said}: several runs of one n go into one law")
    return sizes, laws, beta, b


def _given(ns: Any) -> list[Any]:
    try:
        given = list(ns)
    except TypeError:
        raise InputError(f"ns must be numbers of servers, such as [25, 100, 400], or laws at such n, got {ns!r:.60}") from None
    if not given:
        raise InputError("no n: give numbers of servers, such as [25, 100, 400], or laws at such n")
    return given


def _common(laws: Sequence[Any], beta: Any, b: Any) -> tuple[float, int]:
    """The beta and b of laws that must be of one system; an endless buffer has the levels that all of them have."""
    for law in laws:
        if any(getattr(law, name, None) is None for name in ("n", "b", "beta")):
            raise InputError(
                f"a law along n must say its n, b and beta, as Samples and the laws of JSQQueue do; {law!r:.60} does not"
            )
    for name, told in (("beta", beta), ("b", b)):
        have = [getattr(law, name) for law in laws] + ([told] if told is not None else [])
        if any(not math.isclose(value, have[0], rel_tol=1e-9) for value in have):
            raise InputError(f"the laws must share one {name}, got {', '.join(f'{value:.10g}' for value in have)}")
    b = laws[0].b
    if math.isinf(b):
        b = min(law.x.shape[1] for law in laws) - 1
    return float(laws[0].beta), int(b)


def _law(
    queue: JSQQueue, method: str | None, states: float, memory: float, key: Any, chains: int, horizon: float
) -> Any:  # fmt: skip
    """The exact law that leaves out least of those that can be kept, or a simulation."""
    tol = None
    for most in (min(states, _QUICK), states):
        if method != "simulated" and tol is None:
            tol = affordable(queue, _TOLS, most, memory)
    if method == "exact" or tol is not None:
        return queue.exact(tol=tol or _TOLS[-1], memory=memory)
    if queue.n > MOST_SERVERS:
        raise InputError(
            f"n = {queue.n}: no exact law fits (it keeps {states:.2g} states and {memory:g} GiB at most), and a simulation has "
            f"{MOST_SERVERS} servers at most; by then the gap is C(h)/sqrt(n) to several digits, C(h) from "
            "rdiff.StationaryLaw(model).constant(h) or `rdiff exact --constant`"
        )
    return queue.simulate(key=jax.random.fold_in(root_key(key), queue.n % 2**32), chains=chains, horizon=horizon)


def _said(law: Any, found: Mapping, checks: Sequence[Any], method: str | None) -> list[str]:
    """What a law guessed or left out, what of it is not reliable, and the identities that fail."""
    said = [] if isinstance(law, ExactQueueLaw) else [*(getattr(law, "notes", None) or ()), *cautions(found), *failures(checks)]
    if method is None and isinstance(law, SimulatedQueueLaw):
        said.append(f"simulated: {law.queue.size:.2g} states are more than an exact law may keep (states, memory)")
    return said


def _coarse(rows: Sequence[RateRow]) -> list[str]:
    """The n whose exact laws leave out so much that their error can be seen beside the gap."""
    seen = sorted({row.n for row in rows if row.stderr == 0 and row.prelimit_error > _SEEN * abs(row.gap)})
    if not seen:
        return []
    return [
        f"at n = {', '.join(map(str, seen))} the numerical error is more than {_SEEN:g} of some gap; more `states` lower it"
    ]


def _ceiling(Y: Any, sizes: Sequence[int], b: int) -> list[str]:
    """X_2 is at most sqrt(n), Y_2 is not: what that changes is no power of n^{-1/2}."""
    if not b or not callable(getattr(Y, "tail", None)):
        return []
    beyond = {n: float(Y.tail(math.sqrt(n))) for n in sizes}
    few = [n for n, chance in beyond.items() if chance > 0.01]
    if not few:
        return []
    return [
        f"at n = {', '.join(map(str, few))} P(Y2 > sqrt(n)) is up to {max(beyond.values()):.2g}, where X2 cannot be: "
        "differences of that order, about exp(-beta sqrt(n)), are no powers of n^(-1/2) and spoil the fits; take larger n"
    ]
