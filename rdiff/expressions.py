"""Expressions of the state, read from text.

The text is parsed with `ast` and every node is looked up in a whitelist; nothing is ever evaluated as Python.
"""

import ast
import functools
import math
import operator
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import jax.numpy as jnp
from jax import Array

from rdiff.errors import InputError

EXAMPLES = "y1, y1*y2, y2**2, exp(-y1-y2), y2>1"
LONGEST, DEEPEST, LARGEST_POWER = 1000, 100, 64


class Part(NamedTuple):
    """A piece of an expression, understood."""

    evaluate: Callable[[Array], Any]
    constant: float | None = None  # its value, when it does not depend on the state
    truth: bool = False  # whether it is a comparison
    coordinates: int = 0  # the largest coordinate in it


_ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_SIGNS = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_COMPARISONS = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
_LOGIC = {ast.BitAnd: operator.mul, ast.And: operator.mul, ast.BitOr: jnp.maximum, ast.Or: jnp.maximum}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_FUNCTIONS = {  # on arrays, and on constants
    "abs": (jnp.abs, abs), "cos": (jnp.cos, math.cos), "exp": (jnp.exp, math.exp), "expm1": (jnp.expm1, math.expm1),
    "log": (jnp.log, math.log), "log1p": (jnp.log1p, math.log1p), "sin": (jnp.sin, math.sin),
    "sqrt": (jnp.sqrt, math.sqrt), "tan": (jnp.tan, math.tan), "tanh": (jnp.tanh, math.tanh),
}  # fmt: skip
_EXTREMES = {"max": (jnp.maximum, max), "min": (jnp.minimum, min)}


def _negation(truth: Any) -> Any:
    return 1 - truth


@functools.lru_cache(maxsize=1024)
def read(text: str) -> Part:
    """The expression in `text`, checked; it evaluates to a scalar array of the state's dtype.

    **Raises:** `InputError`, naming what was not understood and where.

    ```python
    >>> from rdiff.expressions import read
    >>> read("y1*y2").coordinates
    2

    ```
    """
    part = _Reader(text).read()
    return part._replace(evaluate=lambda y: jnp.asarray(part.evaluate(y), y.dtype))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0

    def read(self) -> Part:
        if not self.text:
            self.refuse("it is empty")
        if len(self.text) > LONGEST:
            self.refuse(f"it has {len(self.text)} characters, more than {LONGEST}")
        if self.nesting() > DEEPEST:  # the parser of Python itself fails on this, so it must not see it
            self.refuse(f"brackets are nested more than {DEEPEST} deep")
        if "#" in self.text or not self.text.isprintable():
            self.refuse("it holds a character that has no place in an expression")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python's advice on dubious syntax, which is refused here anyway
                tree = ast.parse(self.text, mode="eval")
        except SyntaxError as e:
            at = "" if not e.offset else f" at column {min(e.offset, len(self.text) + 1)}"
            self.refuse(f"it is not a complete expression{at} ({e.msg})")
        except (ValueError, MemoryError, RecursionError):
            self.refuse("it cannot be read as an expression")
        part = self.part(tree.body)
        if part.constant is not None:
            self.refuse("it does not depend on the state")
        return part

    def refuse(self, why: str, node: ast.AST | None = None) -> NoReturn:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        at = ""
        if node is not None:
            piece = ast.get_source_segment(self.text, node) or ""  # pyright: ignore[reportArgumentType]
            piece = piece if len(piece) <= 40 else piece[:37] + "..."
            at = f", at column {getattr(node, 'col_offset', 0) + 1} ({piece})" if piece != self.text else ""
        raise InputError(f"observable {shown!r}: {why}{at}; write an expression of the state, such as {EXAMPLES}")

    def nesting(self) -> int:
        deepest = depth = 0
        for character in self.text:
            depth += (character in "([{") - (character in ")]}")
            deepest = max(deepest, depth)
        return deepest

    def part(self, node: ast.AST) -> Part:
        """The meaning of `node`: the method of the same name as its type, or a refusal."""
        method = getattr(self, f"part_{type(node).__name__}", None)
        if method is None:
            self.refuse(_UNKNOWN.get(type(node).__name__, "this is not known here"), node)
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"it is nested more than {DEEPEST} deep")
        part = method(node)
        self.depth -= 1
        return part

    def part_Constant(self, node: ast.Constant) -> Part:
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            self.refuse("only real numbers are known here", node)
        return self.folded(node, lambda: float(node.value))  # pyright: ignore[reportArgumentType]

    def part_Name(self, node: ast.Name) -> Part:
        if node.id in _CONSTANTS:
            return self.folded(node, lambda: _CONSTANTS[node.id])
        found = re.fullmatch(r"y(0|[1-9][0-9]{0,5})", node.id)
        if found is None:
            if node.id in _FUNCTIONS or node.id in _EXTREMES:
                self.refuse(f"the function {node.id} needs an argument in brackets", node)
            self.refuse("unknown name: coordinates are y1, y2, ..., constants pi and e", node)
        i = int(found[1])
        if i == 0:
            self.refuse("coordinates count from 1", node)
        return Part(lambda y: y[i - 1], coordinates=i)

    def part_UnaryOp(self, node: ast.UnaryOp) -> Part:
        inner = self.part(node.operand)
        if isinstance(node.op, (ast.Invert, ast.Not)):
            if not inner.truth:
                self.refuse("only a comparison can be negated; for the sign write -", node)
            return self.combined(node, _negation, _negation, inner)._replace(truth=True)
        return self.combined(node, _SIGNS[type(node.op)], _SIGNS[type(node.op)], inner)

    def part_BinOp(self, node: ast.BinOp) -> Part:
        kind = type(node.op)
        if kind in _LOGIC:
            return self.logic(node, kind, [node.left, node.right])
        if kind is ast.Pow:
            return self.power(node)
        if kind not in _ARITHMETIC:
            self.refuse("unknown operator" + (": a power is written **" if kind is ast.BitXor else ""), node)
        return self.combined(node, _ARITHMETIC[kind], _ARITHMETIC[kind], self.part(node.left), self.part(node.right))

    def part_BoolOp(self, node: ast.BoolOp) -> Part:
        return self.logic(node, type(node.op), node.values)

    def part_Compare(self, node: ast.Compare) -> Part:
        if len(node.ops) > 1:
            self.refuse("comparisons cannot be chained: write (y2>1) & (y2<2)", node)
        compare = _COMPARISONS.get(type(node.ops[0]))
        if compare is None:
            self.refuse("unknown comparison", node)
        left, right = self.part(node.left), self.part(node.comparators[0])
        if left.truth or right.truth:
            self.refuse("comparisons cannot be chained: write (y2>1) & (y2<2)", node)
        part = self.combined(node, lambda a, b: jnp.asarray(compare(a, b)), compare, left, right)
        if part.constant is not None:  # a number, not an array that has a dtype
            return part._replace(truth=True)
        return part._replace(evaluate=lambda y: part.evaluate(y).astype(y.dtype), truth=True)

    def part_Call(self, node: ast.Call) -> Part:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in _FUNCTIONS and name not in _EXTREMES:
            self.refuse(f"unknown function: known are {', '.join(sorted([*_FUNCTIONS, *_EXTREMES]))}", node)
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
            self.refuse("arguments are plain expressions", node)
        parts = [self.part(arg) for arg in node.args]
        if name in _FUNCTIONS:
            if len(parts) != 1:
                self.refuse(f"{name} takes one argument, got {len(parts)}", node)
            return self.combined(node, *_FUNCTIONS[name], parts[0])
        if len(parts) < 2:
            self.refuse(f"{name} takes two or more arguments, got {len(parts)}", node)
        return functools.reduce(functools.partial(self.combined, node, *_EXTREMES[name]), parts)

    def power(self, node: ast.BinOp) -> Part:
        base, exponent = self.part(node.left), self.part(node.right)
        k = exponent.constant
        if base.constant is None and k is not None:
            if abs(k) > LARGEST_POWER:
                self.refuse(f"a power beyond {LARGEST_POWER}", node)
            if k == int(k):  # integer powers are products: exact, and with finite gradients at 0
                return base._replace(evaluate=lambda y: base.evaluate(y) ** int(k), truth=False)
        return self.combined(node, operator.pow, math.pow, base, exponent)

    def logic(self, node: ast.AST, kind: type, operands: list[ast.expr]) -> Part:
        parts = [self.part(operand) for operand in operands]
        if not all(part.truth for part in parts):
            self.refuse("& and | stand between comparisons, each in brackets: (y1>1) & (y2>1)", node)
        joined = functools.reduce(functools.partial(self.combined, node, _LOGIC[kind], _LOGIC[kind]), parts)
        return joined._replace(truth=True)

    def combined(self, node: ast.AST, on_arrays: Callable, on_numbers: Callable, *parts: Part) -> Part:
        if all(part.constant is not None for part in parts):
            return self.folded(node, lambda: float(on_numbers(*(part.constant for part in parts))))
        return Part(
            lambda y: on_arrays(*(part.evaluate(y) for part in parts)),
            coordinates=max(part.coordinates for part in parts),
        )

    def folded(self, node: ast.AST, value: Callable[[], float]) -> Part:
        """A constant, as a Python float: it takes the dtype of the state that it meets."""
        try:
            constant = value()
        except (ArithmeticError, ValueError, TypeError):
            constant = math.nan
        if not math.isfinite(constant):
            self.refuse("its value is not a finite number", node)
        return Part(lambda y: constant, constant)


_UNKNOWN = {
    "Tuple": "this is a vector: give one observable for each component",
    "List": "this is a vector: give one observable for each component",
    "Set": "this is a vector: give one observable for each component",
    "Subscript": "there are no indices: coordinates are y1, y2, ...",
    "Attribute": "attributes are not known here",
    "IfExp": "write a condition as a factor: (y2>1)*y1",
}
