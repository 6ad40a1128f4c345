"""Observables written as text."""

import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdiff.errors import InputError
from rdiff.observables import parse, parse_all

Y1, Y2 = 0.5, 2.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y1", Y1),
        ("y2", Y2),
        ("y1*y2", Y1 * Y2),
        ("y2**2", Y2**2),
        ("exp(-y1-y2)", math.exp(-Y1 - Y2)),
        ("y2>1", 1.0),
        ("y2<=1", 0.0),
        ("sqrt(1+y1**2+y2**2)", math.sqrt(1 + Y1**2 + Y2**2)),
        ("sin(y1)*cos(y2)", math.sin(Y1) * math.cos(Y2)),
        ("-y1 + +y2", Y2 - Y1),
        ("(y1 - y2) / 4", (Y1 - Y2) / 4),
        ("max(y1, y2, 3) + min(y1, y2)", 3 + Y1),
        ("abs(y1-y2)", Y2 - Y1),
        ("log(y2) + log1p(y1) + expm1(y1)", math.log(Y2) + math.log1p(Y1) + math.expm1(Y1)),
        ("tan(y1) + tanh(y2)", math.tan(Y1) + math.tanh(Y2)),
        ("2*pi*y1 + e", math.pi + math.e),
        ("y1**-2 + y1**0.5 + 2**y2", Y1**-2 + Y1**0.5 + 4),
        ("-y2**2", -(Y2**2)),
        ("(y2>1) & (y1<1)", 1.0),
        ("(y2>3) | (y1>1)", 0.0),
        ("y2>1 and not y1>1", 1.0),
        ("~(y2>1)", 0.0),
        ("(y2>1)*y1", Y1),
        ("(y1==0.5) + (y1!=0.5)*9", 1.0),
        ("~(1<2) + y1", Y1),
        ("sqrt(4)*y1 + max(1, 2)", 3.0),
        ("  y1\t", Y1),
    ],
)
def test_value(text, value):
    h = parse(text, dim=2)
    found = h(jnp.array([Y1, Y2], jnp.float32))
    assert found.shape == () and found.dtype == jnp.float32
    np.testing.assert_allclose(found, value, rtol=2e-6)
    np.testing.assert_allclose(jax.jit(h)(jnp.array([Y1, Y2])), value, rtol=2e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('__import__("os")', "unknown function"),
        ("eval('1')", "unknown function"),
        ("exp(y1).__class__", "attributes"),
        ("y1.real", "attributes"),
        ("y9", "y1 to y2"),
        ("y0", "count from 1"),
        ("y01", "unknown name"),
        ("y-1", "unknown name"),
        ("Y1", "unknown name"),
        ("x1", "unknown name"),
        ("y1 +", "not a complete expression"),
        ("(y1", "not a complete expression"),
        ("y1)", "not a complete expression"),
        ("2y1", "not a complete expression"),
        ("y1; y2", "not a complete expression"),
        ("import os", "not a complete expression"),
        ("y1 = 2", "not a complete expression"),
        ("", "empty"),
        ("   ", "empty"),
        ("3", "does not depend on the state"),
        ("pi", "does not depend on the state"),
        ("y1, y2", "vector"),
        ("[y1, y2]", "vector"),
        ("y", "unknown name"),
        ("y[0]", "no indices"),
        ("0 < y1 < 2", "cannot be chained"),
        ("y1>1 & y2>1", "cannot be chained"),
        ("(y1>0) > 0", "cannot be chained"),
        ("y1 & y2", "between comparisons"),
        ("~y1", "only a comparison"),
        ("y1 is y2", "unknown comparison"),
        ("y1^2", r"written \*\*"),
        ("y1 % 2", "unknown operator"),
        ("y1 if y2 > 1 else 0", "factor"),
        ("lambda: y1", "not known"),
        ("(y1 := 3)", "not known"),
        ("f'{y1}'", "not known"),
        ("True", "real numbers"),
        ("'y1'", "real numbers"),
        ("2j*y1", "real numbers"),
        ("exp", "needs an argument"),
        ("exp(y1, y2)", "one argument"),
        ("max(y1)", "two or more"),
        ("exp(x=y1)", "plain expressions"),
        ("max(*y1)", "plain expressions"),
        ("9**9**9", "not a finite number"),
        ("y1*9**9**9", "not a finite number"),
        ("1/0*y1", "not a finite number"),
        ("log(0)*y1", "not a finite number"),
        ("sqrt(-1) + y1", "not a finite number"),
        ("(-1)**0.5 + y1", "not a finite number"),
        ("1e999*y1", "not a finite number"),
        ("y1**1000", "power beyond"),
        ("9" * 999, "not a finite number"),
        ("(" * 10000 + "y1" + ")" * 10000, "more than"),
        ("(" * 200 + "y1" + ")" * 200, "nested"),
        ("-" * 990 + "y1", "nested"),
        ("exp(" * 101 + "y1" + ")" * 101, "nested"),
        ("y1 # y2", "no place"),
        ("y1\n+y2", "no place"),
        ("y1\x00", "no place"),
        (None, "is a text"),
        (lambda y: y, "is a text"),
    ],
)
def test_refused(text, said):
    with pytest.raises(InputError, match=said) as caught:
        parse(text, dim=2)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_the_place_is_named():
    with pytest.raises(InputError, match=r"at column 6 \(foo\)"):
        parse("y1 + foo")


def test_same_text_is_the_same_object_for_jit():
    traces = []

    def mean(h, ys):
        traces.append(h)
        return jnp.mean(jax.vmap(h)(ys))

    compiled = jax.jit(mean, static_argnums=0)
    ys = jnp.ones((3, 2))
    for _ in range(3):
        compiled(parse("y1*y2"), ys)
    assert len(traces) == 1
    assert parse("y1*y2") == parse(" y1*y2 ") and hash(parse("y1*y2")) == hash(parse("y1*y2"))
    assert parse("y1*y2") != parse("y2*y1")


def test_pickles():
    h = pickle.loads(pickle.dumps(parse("(y2>1) & (y1<1)")))
    assert h == parse("(y2>1) & (y1<1)") and float(h(jnp.array([0.0, 2.0]))) == 1.0


@pytest.mark.parametrize("text", ["y1*pi", "(y2>1)*1.5", "max(y1, 0.1)", "y1**2 + 2**y2", "y2>1", "exp(0.5)*y1"])
def test_dtype_follows_the_state(text):
    with jax.enable_x64(True):
        assert parse(text)(jnp.ones(2, jnp.float32)).dtype == jnp.float32
        assert parse(text)(jnp.ones(2, jnp.float64)).dtype == jnp.float64
        assert parse(text)(jnp.ones(2, jnp.int32)).dtype == jnp.float64


def test_integer_powers_have_a_gradient_at_zero():
    gradient = jax.grad(parse("y1**2 + y2**3"))(jnp.zeros(2))
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


def test_state_of_the_wrong_shape():
    with pytest.raises(InputError, match="only y1"):
        parse("y2")(jnp.ones(1))
    with pytest.raises(InputError, match=r"shape \(3, 2\)"):
        parse("y2")(jnp.ones((3, 2)))


def test_several():
    assert list(parse_all([" y1", "y2", "y1"], dim=2)) == ["y1", "y2"]
