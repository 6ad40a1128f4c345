"""What the columns of a file look like. Everything here is a guess, and says so in words."""

import dataclasses
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.columns import Source
from rdiff.queue.customers import COLUMNS as CUSTOMERS
from rdiff.queue.formats import FEW_DIGITS

_TIMES = re.compile(r"(?i)^(t|time|clock|date|now|.*time.*|.*clock.*)$")
_CHAINS = re.compile(r"(?i)^(chain|run|rep|replica|replication|replicate|seed|path|trajectory|sim|draw)s?(_?(id|no|number))?$")
_WEIGHTS = re.compile(r"(?i)^(w|weights?|durations?|holding.*|sojourn|dt)$")
_MOST_N = 100_000


@dataclasses.dataclass
class Guess:
    """`roles` of columns, `options` for `read_samples` (None: no way was found), guesses `said`, and `problems`."""

    roles: dict[str, str] = dataclasses.field(default_factory=dict)
    options: dict[str, Any] | None = None
    said: list[str] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)


def guess(source: Source, numbers: Mapping[str, np.ndarray], file: str, system: Mapping[str, Any]) -> Guess:
    """How to read the columns: `numbers` by name, with NaN where cells are missing; `system` as far as it is known."""
    found = Guess()
    system = _from_name(file, dict(system), found)
    if not numbers:
        found.problems.append("no column holds numbers: nothing to read")
        return found
    log = _customers(source, found)
    if log is not None:
        server = len(np.unique(numbers[log[2]])) if log[2] in numbers else len(set(map(str, source.servers(log[2]))))
        _known(found, system, n=server, b=math.inf)
        options = {"format": "customers"} | ({} if log == list(CUSTOMERS) else {"columns": ",".join(log)})
        return _finish(found, system, options)
    time = _time(numbers, found)
    chain = next((name for name in source.names if _CHAINS.match(name) and name != time and _few(numbers.get(name))), None)
    if chain is not None:
        found.roles[chain] = "chain"
        found.said.append(f"{chain} says which rows belong together")
    weight = next((name for name in numbers if _WEIGHTS.match(name) and name != time), None)
    if weight is not None and time is None and np.all(numbers[weight] >= 0):
        found.roles[weight] = "weight"
        found.said.append(f"{weight} says how much a row counts")
    index = [name for name in source.names[:1] if source.counts_up(name)]
    found.roles |= dict.fromkeys(index, "index")
    group = _group(source, found)
    left = [name for name in (group or numbers) if name not in found.roles and np.isfinite(numbers[name]).all()]
    dropped = [name for name in (group or source.names) if name not in found.roles and name not in left]
    if dropped:
        why = "; ".join(filter(None, (_fault(source, name) for name in dropped)))
        found.problems.append(
            f"left out, for they hold text or missing cells: {', '.join(name or '(unnamed)' for name in dropped)}"
            + (f" ({why})" if why else "")
        )
    if not left:
        found.problems.append("no column is left for the states")
        return found
    shapes = {numbers[name].shape for name in left}
    if len(shapes) > 1:
        found.problems.append("the columns have unequal lengths")
        return found
    rows = np.stack([numbers[name].reshape(-1) for name in left], axis=1)
    options, left, rows = _format(left, rows, system, found)
    if options is None:
        return found
    found.roles |= {name: "state" for name in left}
    options["columns"] = _columns(source, left)
    if chain is not None:
        options["chain_column"] = chain
    if options.get("averages"):
        return _finish(found, system, options)
    labels = None if chain is None else np.ravel(source.labels(chain))
    options |= _weights(numbers, rows, time, labels, found)
    if weight is not None and time is None:
        options["weights"] = weight
    return _finish(found, system, options) if "weights" in options else found


def _fault(source: Source, name: str) -> str:
    """What keeps a column from being numbers, in the words of a refusal; "" where that is a NaN."""
    try:
        source.read([name])
    except InputError as error:
        return str(error)
    return ""


def _known(found: Guess, system: dict[str, Any], **guessed: Any) -> None:
    """Fill in what the user did not say."""
    for name, value in guessed.items():
        if system.get(name) is None and value is not None:
            system[name] = value
            found.said.append(f"{name} = {value}")


def _finish(found: Guess, system: dict[str, Any], options: dict[str, Any]) -> Guess:
    if system["n"] is None:
        found.problems.append("n is not known: give --n, the number of servers")
        return found
    if system["beta"] is None and system["lam"] is None:
        system["lam"] = "estimated"
        found.said.append("lam is estimated from the record, because neither beta nor lam is given")
    load = {name: system[name] for name in ("beta", "lam") if system[name] is not None}
    found.options = {"n": system["n"], "b": 1 if system["b"] is None else system["b"], **load, **options}
    return found


def _from_name(file: str, system: dict[str, Any], found: Guess) -> dict[str, Any]:
    """Parameters that are only in the name of the file."""
    name = os.path.basename(file)
    n = re.search(r"(?<![a-zA-Z0-9])[nN][_=]?(\d{1,6})(?![0-9])", name)
    if n and system["n"] is None and int(n[1]) > 0:
        system["n"] = int(n[1])
        found.said.append(f"n = {n[1]}, from the name of the file")
    return system


def _customers(source: Source, found: Guess) -> list[str] | None:
    """The columns of a log with one row a customer."""
    patterns = (r"(?i)arriv", r"(?i)depart|exit|leav", r"(?i)server|node|queue")
    chosen = []
    for pattern in patterns:
        names = [name for name in source.names if re.search(pattern, name) and name not in chosen]
        if not names:
            return None
        chosen.append(names[0])
    found.roles |= dict(zip(chosen, CUSTOMERS, strict=True))
    found.said.append(f"a row is a customer: {', '.join(chosen)} are arrival, departure and server")
    return chosen


def _time(numbers: Mapping[str, np.ndarray], found: Guess) -> str | None:
    """A column called time, else the first one that grows from row to row and is no plain index."""
    finite = {name: v.reshape(-1) for name, v in numbers.items() if v.size and np.isfinite(v).all()}
    named = [name for name in finite if _TIMES.match(name)]
    growing = [name for name, v in finite.items() if name and v.size > 1 and np.all(np.diff(v) > 0)]
    for name in (*named, *growing):
        found.roles[name] = "time"
        found.said.append(f"{name} is the time" + ("" if name in named else ", for it grows from row to row"))
        return name
    return None


def _few(values: np.ndarray | None) -> bool:
    return values is None or len(np.unique(values)) <= max(1, values.size // 2)


def _group(source: Source, found: Guess) -> list[str] | None:
    """The array of an npz that holds the states."""
    groups = {name: of for name, of in source.groups().items() if name}
    if not groups:
        return None
    name = next(iter(groups))
    if len(groups) > 1:
        found.said.append(f"of the arrays {', '.join(groups)}, {name} holds the states")
    return groups[name]


def _format(
    left: list[str], rows: np.ndarray, system: dict[str, Any], found: Guess
) -> tuple[dict[str, Any] | None, list[str], np.ndarray]:
    """The format of the states (None where it shows none), with n and b where they show."""
    n, b = system["n"], system["b"]
    whole = bool(np.all(rows == np.rint(rows))) and bool(np.all(rows >= 0))
    falling = rows.shape[1] > 1 and bool(np.all(np.diff(rows, axis=1) <= 1e-12))
    top = float(rows[:, 0].max())
    if whole and n is not None and not falling and rows.shape[1] == n + 1:
        found.said.append(f"{left[0]} is a dummy beside the {n} servers and left out")
        left, rows = left[1:], rows[:, 1:]
        falling = bool(np.all(np.diff(rows, axis=1) <= 0))
    count, levels = rows.shape[1], -1 if b is None else b + 1
    servers = count != levels if n is None else count >= n  # else one damaged row would make lengths of an occupancy
    if whole and servers and (not falling or (n is not None and count == n != levels and top < n)):
        found.said.append(f"{rows.shape[1]} columns of whole numbers in no order: customers of each server")
        _known(found, system, n=rows.shape[1], b=math.inf)
        return {"format": "lengths"}, left, rows
    constant = rows.shape[1] > 1 and bool(np.all(rows[:, 0] == rows[0, 0])) and len(rows) > 1
    if whole:
        found.said.append("whole numbers that fall from column to column: occupancy Q_1, Q_2, ...")
        if constant and rows[0, 0] >= rows[:, 1].max() and (b is None or rows.shape[1] == b + 2):
            found.said.append(f"{left[0]} is Q_0 = n, and left out")
            _known(found, system, n=int(rows[0, 0]))
            left, rows = left[1:], rows[:, 1:]
        _known(found, system, b=_buffer(rows))
        return {}, left, rows
    if falling and rows.min() >= -1e-9 and rows.max() <= 1 + 1e-9:
        if constant and rows[0, 0] == 1:
            found.said.append(f"{left[0]} is Q_0/n = 1, and left out")
            left, rows = left[1:], rows[:, 1:]
        found.said.append("numbers in [0, 1] that fall from column to column: fractions Q_i/n")
        _known(found, system, n=_denominator(rows))
        if system["n"] is None:
            found.problems.append("no n makes all of these multiples of 1/n: averages of runs? then give --n")
            return None, left, rows
        averages = {} if _multiples(rows * system["n"]) else {"averages": True}
        _known(found, system, b=math.inf if averages else _buffer(rows))
        if averages:
            found.said.append("they are no multiples of 1/n: averages of independent runs")
        return {"format": "fractions", **averages}, left, rows
    if n is not None and _multiples(rows * math.sqrt(n)):
        found.said.append("multiples of 1/sqrt(n): X itself")
        _known(found, system, b=_buffer(rows))
        return {"format": "scaled"}, left, rows
    if n is not None and falling and rows.min() >= -1e-9 and top <= n:
        found.said.append("numbers that are not whole and fall from column to column: averages of Q_i over independent runs")
        _known(found, system, b=math.inf if rows.shape[1] > 1 else 0)
        return {"averages": True}, left, rows
    found.problems.append(
        "the columns left look like no states: neither counts nor fractions"
        + ("" if n is not None else " (X itself, multiples of 1/sqrt(n), shows once --n is given)")
    )
    return None, left, rows


def _buffer(rows: np.ndarray) -> int:
    return rows.shape[1] - 1


def _multiples(values: np.ndarray, within: float = FEW_DIGITS) -> bool:
    return bool(np.all(np.abs(values - np.rint(values)) <= within))


def _denominator(rows: np.ndarray) -> int | None:
    """The least n of which all fractions are multiples."""
    values = np.unique(rows)[:2000]
    positive = values[values > 1e-12]
    if not len(positive):
        return None
    for within in (1e-6, FEW_DIGITS):
        for n in range(1, min(_MOST_N, 10_000) + 1):
            if _multiples(positive[:1] * n, within) and _multiples(positive * n, within):
                return n
    return None


def _columns(source: Source, left: list[str]) -> str:
    """As short as the columns can be said."""
    for name, of in source.groups().items():
        if name and of == left:
            return name
    names = source.names
    i = names.index(left[0])
    if names[i : i + len(left)] == left and len(left) > 1:
        return f"{left[0]}:{left[-1]}"
    return ",".join(left)


def _weights(
    numbers: Mapping[str, np.ndarray], rows: np.ndarray, time: str | None, labels: np.ndarray | None, found: Guess
) -> dict[str, Any]:
    """How rows count: by time, on a grid, or equally."""
    if time is None:
        moves = np.abs(np.diff(rows, axis=0)).sum(axis=1)
        if len(moves) > 20 and float((moves <= moves[moves > 0].min(initial=np.inf)).mean()) > 0.99:
            found.problems.append(
                "rows move by one customer at a time, so they were written at events, and no column is the time: they "
                "cannot be weighted without their times"
            )
            return {}
        found.said.append("no column is the time: rows are taken as equally spaced in time")
        return {"weights": "regular"}
    clock = numbers[time].reshape(-1)
    spacing = np.diff(clock) if labels is None else np.diff(clock)[labels[1:] == labels[:-1]]
    later = spacing[len(spacing) // 20 :] if labels is None else spacing
    median = float(np.median(later)) if len(later) else 0.0
    options: dict[str, Any] = {"time_column": time}
    if median > 0 and bool(np.all(np.abs(later - median) <= 0.2 * median)):
        found.said.append(f"times lie on a grid of {median:.4g}: rows count equally")
        options["weights"] = "regular"
    else:
        found.said.append("times lie on no grid: rows are events, and count by the time until the next")
        options["weights"] = "time"
    # A first row with far fewer customers than later ones is a start from empty; one that is wild may stand before it.
    if rows[:3].sum(axis=1).min() < 0.5 * np.median(rows.sum(axis=1)) or bool(len(spacing) > len(later) and np.any(
        np.abs(spacing[: len(spacing) - len(later)] - median) > 0.2 * median) and options["weights"] == "regular"
    ):  # fmt: skip
        options["burn_in"] = float(f"{_first_tenth(clock, labels):.6g}")
        found.said.append(f"it starts far from where it stays: the first tenth, {options['burn_in']:g}, is dropped")
    return options


def _first_tenth(clock: np.ndarray, labels: np.ndarray | None) -> float:
    """The time in which a tenth of the rows of every chain has passed: of rows, for a first time may be far from the rest."""
    chains = [clock] if labels is None else [clock[labels == label] for label in np.unique(labels)]
    return max(0.0, *(float(times[len(times) // 10] - times[0]) for times in chains))
