"""A log with one row per customer as the occupancy in time.

A customer who arrived and has not left is present at a server; so the arrivals and departures of all customers say
at any time how many servers hold i or more.
"""

import numpy as np

from rdiff.errors import InputError
from rdiff.queue.problems import Record
from rdiff.queue.system import System

COLUMNS = ("arrival", "departure", "server")
_MOST = 1000  # levels


def columns(rows: np.ndarray, record: Record) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrivals, departures and servers of rows (customers, 3)."""
    if rows.shape[1] != 3:
        raise InputError(
            f"format='customers' needs 3 columns, arrival, departure, server, got {rows.shape[1]} "
            f"({', '.join(map(str, record.columns[:8]))})"
        )
    return rows[:, 0].astype(np.float64), rows[:, 1].astype(np.float64), rows[:, 2]


def events(
    arrival: np.ndarray, departure: np.ndarray, server: np.ndarray, chain: np.ndarray, system: System, record: Record
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Every arrival and departure as a row: times (rows,), Q (rows, levels) from then on, chains (rows,), and notes.

    **Arguments:** `arrival`, `departure` (customers,): a missing departure (NaN) is a customer who is still present;
    `server` (customers,), numbers; `chain` (customers,), integers from 0; `record` names the rows.
    **Raises:** `InputError` for a missing arrival, a departure before it, a server without a name, more servers than n
    and more customers at a server than it holds.
    """
    missing = np.isnan(departure)
    wrong = [
        (~np.isfinite(arrival), arrival, 0, "a time of arrival", "a missing cell, or a customer who never came"),
        (departure < arrival, departure, 1, "a departure after the arrival", "columns in another order, or times of service?"),
        (np.isinf(departure), departure, 1, "a time, or an empty cell for a customer still present", "a damaged cell"),
    ]
    for bad, values, j, expected, cause in wrong:
        cells, flags = np.zeros((len(arrival), 3)), np.zeros((len(arrival), 3), bool)
        cells[:, j], flags[:, j] = values, bad
        record.cell(flags, cells, expected, cause)
    nameless = ~np.isfinite(server.astype(np.float64))
    if nameless.any():
        record.complain(f"{record.rows(nameless)}: the server is missing: leave out customers who joined none (blocked ones)")
    record.refuse()
    for c in np.unique(chain):
        found = len(np.unique(server[chain == c]))
        if found > system.n:
            raise InputError(
                f"column {record.columns[2]} names {found} servers, expected at most n = {system.n}: n is not the "
                "simulator's n, or the column is not the server"
            )
    place = np.unique(np.stack([chain, server.astype(np.float64)]), axis=1, return_inverse=True)[1].reshape(-1)
    gone = np.flatnonzero(~missing)
    who = np.concatenate([np.arange(len(arrival)), gone])
    time = np.concatenate([arrival, departure[gone]])
    step = np.concatenate([np.ones(len(arrival), np.int64), -np.ones(len(gone), np.int64)])
    # At a server, of events at one time a departure comes first, except that nobody leaves before coming.
    instant = np.zeros(len(who), bool)
    instant[len(arrival) :] = departure[gone] == arrival[gone]
    rank = np.where(step > 0, 1, np.where(instant, 2, 0))
    by_server = np.lexsort((rank, time, place[who]))
    moves = step[by_server]
    total = np.cumsum(moves)
    first = np.flatnonzero(np.diff(place[who][by_server], prepend=-1))
    before = np.repeat(np.concatenate([[0], total])[first], np.diff(np.append(first, len(moves))))
    after = total - before
    level = np.where(moves > 0, after, after + 1)  # which Q_i the event moves
    most = system.levels or _MOST
    if (level > most).any():
        k = who[by_server][np.flatnonzero(level > most)[0]]
        raise InputError(
            f"{record.row(int(k))}: its server holds {int(level.max())} customers, expected at most {most}: "
            + ("b leaves out the customer in service" if system.levels else "departures that are missing?")
        )
    order = np.lexsort((rank[by_server], time[by_server], chain[who][by_server]))
    rows = by_server[order]
    levels = system.levels or max(2, int(level.max()))
    change = np.zeros((len(rows), levels), np.int64)
    change[np.arange(len(rows)), level[order] - 1] = moves[order]
    chains = chain[who][rows]
    q = np.cumsum(change, axis=0)
    starts = np.flatnonzero(np.diff(chains, prepend=-1))
    offset = np.concatenate([np.zeros((1, levels), np.int64), q])[starts]
    q -= np.repeat(offset, np.diff(np.append(starts, len(rows))), axis=0)
    notes = [f"{len(arrival)} customers at {len(np.unique(place))} servers, from their arrivals and departures"]
    if missing.any():
        notes.append(f"{int(missing.sum())} customers without a departure are taken as still present at the end")
    return time[rows], q, chains, notes
