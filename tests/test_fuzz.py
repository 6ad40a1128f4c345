"""Malformed files, arrays, expressions and options: a clear refusal or a right number, never a traceback.

Of damaged input a number may be given only where it is unreliable, or where the damage left the states as they were.
"""

import contextlib
import io
import math
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import queue_by_hand as by_hand
from cli_tools import run, strict_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdiff.errors import InputError
from rdiff.observables import parse
from rdiff.queue.inspect import inspect_file
from rdiff.queue.read import read_samples
from rdiff.queue.samples import Samples

N, ROWS = 25, 60
Q = by_hand.on_a_grid(N, 1, 0.8, 2.0, ROWS, 20, 1)
T = 2.0 * np.arange(ROWS)
SYSTEM = dict(n=N, b=1, beta=1.0)
OPTIONS = dict(columns="Q1:Q2", time_column="t", weights="regular", **SYSTEM)
HEADER = "t,Q1,Q2"
LINES = [f"{t:g},{a},{b}" for t, (a, b) in zip(T.tolist(), Q.tolist(), strict=True)]
fuzz = settings(
    max_examples=250, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
plenty = settings(fuzz, max_examples=500)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def answered(read):
    """The samples, whose mean is a number; None when they were refused as they should be, on one line."""
    try:
        samples = read()
        means = samples.x.T @ samples.weights / samples.weights.sum()
        samples.checks()
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) > 10
        return None
    assert np.isfinite(means).all() and (samples.weights > 0).all()
    root = math.sqrt(samples.n)
    q = np.column_stack([samples.n - root * samples.x[:, 0], root * samples.x[:, 1:]])
    assert np.all(np.abs(q - np.rint(q)) < 1e-6) and q.min() > -1e-6 and q.max() < samples.n + 1e-6
    assert np.all(np.diff(q, axis=1) < 1e-6)
    return samples


# Text


CELLS = st.one_of(
    st.sampled_from(["", " ", "nan", "inf", "-1", "26", "1e9", "1e400", "0.5", "three", "1_0", "0x1f", "None", "'", '"', "1,2",
                     "\u0661", "\t", "1;2", "#", "--", "1e-320", "-0", "+3", "Q1", "9" * 40, "\0", "\u2028", "true"]),
    st.integers(-5, 40).map(str), st.floats().map(str), st.text(max_size=6),
)  # fmt: skip


@plenty
@given(row=st.integers(0, ROWS - 1), column=st.integers(0, 2), cell=CELLS)
def test_a_cell_of_a_csv(tmp_path, row, column, cell):
    lines = list(LINES)
    cells = lines[row].split(",")
    cells[column] = cell
    lines[row] = ",".join(cells)
    path = tmp_path / "run.csv"
    path.write_bytes(("\n".join([HEADER, *lines]) + "\n").encode("utf-8", "surrogatepass"))
    found = answered(lambda: read_samples(path, **OPTIONS))
    if found is None:
        return
    # Accepted: then what was in the cell is a possible value, and every other one is as it was.
    expected = Q.copy()
    if not lines[row].strip() or lines[row].startswith("#"):  # a blank line or a comment now
        assert len(found.x) == ROWS - 1
        return
    if column:
        expected[row, column - 1] = round(float(cell))
    else:
        assert abs(float(cell) - T[row]) <= 0.4 + 1e-9
    assert np.allclose(found.x, np.column_stack([N - expected[:, 0], expected[:, 1]]) / 5)


@fuzz
@given(data=st.data())
def test_bytes_of_a_csv(tmp_path, data):
    text = bytearray(("\n".join([HEADER, *LINES]) + "\n").encode())
    kind = data.draw(st.sampled_from(["flip", "cut", "insert", "double", "swap", "any"]))
    at = data.draw(st.integers(0, len(text) - 1))
    if kind == "flip":
        text[at] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del text[at:]
    elif kind == "insert":
        text[at:at] = data.draw(st.binary(min_size=1, max_size=8))
    elif kind == "double":
        text[at:at] = text[at : at + data.draw(st.integers(1, 400))]
    elif kind == "swap":
        other = data.draw(st.integers(0, len(text) - 1))
        text[at], text[other] = text[other], text[at]
    else:
        text = bytearray(data.draw(st.binary(max_size=200)))
    path = tmp_path / "run.csv"
    path.write_bytes(bytes(text))
    found = answered(lambda: read_samples(path, **OPTIONS))
    if found is not None:
        # 60 rows are too few to be called reliable whatever was done to them.
        assert not found.expect(lambda y: y[1] * 1.0).reliable
    with contextlib.suppress(InputError):
        str(inspect_file(path, n=N))


@fuzz
@given(head=st.lists(st.text(max_size=5), max_size=5), rows=st.lists(st.lists(CELLS, max_size=5), max_size=8),
       by=st.sampled_from([",", ";", "\t", " ", "|"]))  # fmt: skip
def test_any_table(tmp_path, head, rows, by):
    path = tmp_path / "run.csv"
    text = "\n".join(by.join(row) for row in [head, *rows])
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    found = answered(lambda: read_samples(path, weights="regular", **SYSTEM))
    assert found is None or not found.expect(lambda y: y[0] * 1.0).reliable
    with contextlib.suppress(InputError):
        found = inspect_file(path)
        assert "\n" in str(found)
        if found.command is not None:
            read_samples(path, **found.options)


# Arrays


def packed(damage):
    buffer = io.BytesIO()
    np.savez(buffer, t=T, Q=Q)
    content = bytearray(buffer.getvalue())
    damage(content)
    return bytes(content)


@fuzz
@given(data=st.data())
def test_bytes_of_an_npz(tmp_path, data):
    def damage(content):
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, len(content) - 1))
            if data.draw(st.booleans()):
                content[at] ^= 1 << data.draw(st.integers(0, 7))
            elif len(content) > 10:
                del content[at : at + data.draw(st.integers(1, 500))]
            if not content:
                content.extend(b"PK")

    path = tmp_path / "run.npz"
    path.write_bytes(packed(damage))
    found = answered(lambda: read_samples(path, array="Q", time_column="t", weights="regular", **SYSTEM))
    # An archive has check sums: what is read is what was written.
    assert found is None or np.array_equal(found.x, np.column_stack([N - Q[:, 0], Q[:, 1]]) / 5)


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
TYPES = st.sampled_from(["u1", "i1", "i8", "u8", "f2", "f4", "f8", "c16", "?", "U3", "O", "M8[s]", "S2"])
VALUES = st.one_of(st.integers(-3, 30), st.sampled_from([math.nan, math.inf, -math.inf, 1e300, 0.5, 2**62]))


@plenty
@given(shape=SHAPES, kind=TYPES, values=st.lists(VALUES, min_size=1, max_size=20),
       weights=st.sampled_from(["regular", "time", "arrivals"]),
       form=st.sampled_from(["occupancy", "lengths", "fractions", "scaled", "customers", "counts"]), averages=st.booleans(),
       n=st.sampled_from([1, 2, 4, 25, 0, -1, 2.0, "4", None]), b=st.sampled_from([0, 1, 2, math.inf, "inf", -1, 1.5, None]),
       lam=st.sampled_from([0.5, "estimated", 0, 1, math.nan, "x", None]))  # fmt: skip
def test_any_array(shape, kind, values, weights, form, averages, n, b, lam):
    try:
        array = np.resize(np.array(values), shape).astype(kind)
    except (OverflowError, ValueError, TypeError):
        array = np.resize(np.array([0, 1]), shape)
    time = np.arange(math.prod(shape[:-1])) if weights == "time" and shape else None
    options = dict(weights=None if form == "customers" and weights == "time" else weights, time=time, averages=averages)
    try:
        S = Samples(array, n=n, b=b, lam=lam, format=form, **options)
        S.checks()
        h = S.expect(lambda y: y[0] * 1.0)
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert math.isfinite(h.mean) and not h.reliable


@fuzz
@given(rows=st.lists(st.tuples(st.floats(-5, 60), st.one_of(st.none(), st.floats(-5, 80)), st.integers(0, 6)),
                     min_size=1, max_size=40),
       lam=st.sampled_from([0.5, "estimated"]))  # fmt: skip
def test_any_customers(rows, lam):
    """Who is present at a time can be counted; what is accepted must agree."""
    arrival, departure, server = (np.array([math.nan if v is None else v for v in c]) for c in zip(*rows, strict=True))
    try:
        S = Samples(np.stack([arrival, departure, server], axis=1), n=4, b="inf", lam=lam, format="customers")
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert len(np.unique(server)) <= 4 and np.all(~(departure < arrival))
    clock = arrival.min() + np.concatenate([[0.0], np.cumsum(S.weights)])
    for x, start, end in zip(S.x, clock[:-1], clock[1:], strict=True):
        t = (start + end) / 2
        if end - start < 1e-6:
            continue
        lengths = np.bincount(server[(arrival <= t) & ~(departure <= t)].astype(int), minlength=7)
        assert x[0] == (4 - (lengths >= 1).sum()) / 2 and x[1] == (lengths >= 2).sum() / 2
    assert not S.expect(lambda y: y[0] * 1.0).reliable


# Expressions


VOCABULARY = """
    y1 y2 y3 y0 y y1.real 1 2 0 .5 1e9 1e999 1j True None pi e + - * / ** // % @ < <= > >= == != & | ~ ^ and or not in is
    ( ) [ ] { } , : ; = := . ... lambda if else for exp( log( sqrt( sin( max( min( abs( foo( __import__ 'os' "x" f'{1}'
    \\ # $ ! ? 0x1 1_0 \u00b2 \uff591 yield await *y1 **
"""
TOKENS = st.sampled_from([*VOCABULARY.split(), "\n", "\t", "\0"])


def checked(text):
    try:
        h = parse(text)
    except InputError as error:
        assert "Traceback" not in str(error)
        return
    value = np.asarray(h(jnp.full(max(2, h.coordinates), 0.5)))
    assert value.shape == () and value.dtype.kind == "f"
    assert parse(h.text) == h


@plenty
@given(st.lists(TOKENS, max_size=12).map(lambda parts: " ".join(parts)))
def test_any_tokens(text):
    checked(text)


@fuzz
@given(st.one_of(st.text(max_size=30), st.text("y12+-*/()<>&|~. exp", max_size=25)))
def test_any_text(text):
    checked(text)


NUMBERS = {"y1": 0.5, "y2": 1.5, "2": 2.0, "0.25": 0.25, "pi": math.pi}
EXPRESSIONS = st.recursive(
    st.sampled_from(sorted(NUMBERS)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(st.sampled_from(["sin", "cos", "tanh", "abs", "exp"]), inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(inner, st.sampled_from(["<", ">=", "=="]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
    ),
    max_leaves=6,
)  # fmt: skip


@fuzz
@given(EXPRESSIONS)
def test_what_is_read_has_the_value_that_it_says(text):
    functions = {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "abs": abs, "exp": math.exp, "pi": math.pi}
    try:
        truth = float(eval(text, {"__builtins__": {}}, {**functions, "y1": 0.5, "y2": 1.5}))
    except (OverflowError, ZeroDivisionError):
        return
    try:
        h = parse(text)
    except InputError:
        return
    import jax

    with jax.enable_x64(True):
        value = float(h(jnp.array([0.5, 1.5], jnp.float64)))
    assert value == pytest.approx(truth, rel=1e-9, abs=1e-9)


# Options of the command line


WORDS = st.one_of(
    st.sampled_from(["0", "1", "2", "25", "-1", "1.5", "nan", "inf", "", " ", "estimated", "Q1:Q2", "Q2:Q1", "t", "Q1", "time",
                     "regular", "arrivals", "next", "previous", "occupancy", "lengths", "fractions", "customers", "scaled",
                     "1e400", "--n", "y1"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
)  # fmt: skip
FLAGS = st.sampled_from([
    "--n", "--b", "--beta", "--lam", "--format", "--columns", "--array", "--time-column", "--weights", "--hold", "--end-time",
    "--burn-in", "--burn-in-rows", "--chain-column", "--observable", "--level", "--seed",
])  # fmt: skip


@settings(fuzz, max_examples=300)
@given(pairs=st.lists(st.tuples(FLAGS, WORDS), max_size=3), averages=st.booleans())
def test_any_options(tmp_path, pairs, averages):
    path = tmp_path / "run.csv"
    path.write_text("\n".join([HEADER, *LINES]) + "\n")
    words = [
        "--n",
        "25",
        "--beta",
        "1",
        "--columns",
        "Q1:Q2",
        "--time-column",
        "t",
        "--weights",
        "regular",
        "--observable",
        "y1",
    ]
    words += ["--observable", "y1"]
    typed = [word for pair in pairs for word in pair]
    result = run("compare", path, *words, *typed, *["--averages"] * averages, "--json")
    assert result.exit_code in (0, 2), (typed, result.output)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 2:
        assert result.stdout == "" and len(result.stderr.strip().splitlines()) == 1
        return
    for row in strict_json(result.stdout)["results"]:
        assert row["reliable"] is False and row["prelimit"] is not None
