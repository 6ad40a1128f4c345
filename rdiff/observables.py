"""Observables written as text: `"y1*y2"`, `"exp(-y1-y2)"`, `"y2>1"` become functions of the state.

`rdiff.expressions` reads them.
"""

import dataclasses
from collections.abc import Iterable

import jax.numpy as jnp
from jax import Array
from jaxtyping import ArrayLike, Float

from rdiff.errors import InputError
from rdiff.expressions import EXAMPLES, read


@dataclasses.dataclass(frozen=True)
class Observable:
    """A scalar function of the state, written as text; make one with `parse`.

    Equal texts give equal observables with equal hashes, so `jit` compiles once for all of them; they pickle.
    `observable(y)` takes a state of shape `(dim,)` and returns a scalar of the dtype of `y`. A comparison counts 1
    where it holds and 0 where it does not, so its mean is a probability.

    **Raises:** `InputError` when the text is not such an expression, or when `y` has too few coordinates.
    """

    text: str

    def __post_init__(self) -> None:
        read(self.text)

    @property
    def name(self) -> str:
        """Its text: what results call it."""
        return self.text

    @property
    def coordinates(self) -> int:
        """The largest coordinate it names: the least dimension that a state must have."""
        return read(self.text).coordinates

    def __call__(self, y: Float[ArrayLike, " dim"]) -> Float[Array, ""]:
        state = jnp.asarray(y)
        if not jnp.issubdtype(state.dtype, jnp.floating):
            state = state.astype(jnp.result_type(float))
        if state.ndim != 1:
            raise InputError(
                f"observable {self.text!r} takes one state, an array of shape (dim,), got shape {state.shape}: "
                "use jax.vmap over many states"
            )
        self.check(state.shape[0])
        return read(self.text).evaluate(state)

    def check(self, dim: int) -> None:
        """Raises `InputError` when a state of dimension `dim` lacks a coordinate that is named here."""
        if self.coordinates > dim:
            has = "only y1" if dim == 1 else f"y1 to y{dim}"
            raise InputError(
                f"observable {self.text!r} names y{self.coordinates}, but the state has {has}: "
                "it has b + 1 coordinates, counted from 1"
            )

    def __str__(self) -> str:
        return self.text


def parse(text: str, dim: int | None = None) -> Observable:
    """The observable that `text` describes: an expression of the coordinates `y1`, `y2`, ..., counted from 1.

    Known are `+ - * / **`, the comparisons `< <= > >= == !=`, `&`, `|` and `~` between comparisons in brackets, the
    constants `pi` and `e`, and the functions abs, cos, exp, expm1, log, log1p, max, min, sin, sqrt, tan, tanh.

    **Arguments:** `text`; `dim`, the dimension of the state when known, so that `y9` is refused at once.
    **Raises:** `InputError`, naming what was not understood and where.

    ```python
    >>> import jax.numpy as jnp
    >>> from rdiff.observables import parse
    >>> h = parse("y1*y2 + (y2 > 1)")
    >>> float(h(jnp.array([0.5, 2.0]))), h == parse("y1*y2 + (y2 > 1)")
    (2.0, True)

    ```
    """
    if not isinstance(text, str):
        raise InputError(f"an observable is a text such as {EXAMPLES}, got {text!r}")
    observable = Observable(text.strip())
    if dim is not None:
        observable.check(dim)
    return observable


def parse_all(texts: Iterable[str], dim: int | None = None) -> dict[str, Observable]:
    """Observables by their text, in order; what `long_run_average` and `compare` take for several at once."""
    return {observable.text: observable for observable in (parse(text, dim) for text in texts)}
