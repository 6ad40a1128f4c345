"""What goes wrong for people who do this work, 1 to 10: how a record was sampled. One test for each, by its number."""

import math

import numpy as np
import pytest
import queue_by_hand as by_hand
from cli_tools import refused as refused_by_command
from cli_tools import run, save, strict_json
from queue_by_hand import EX1, EX2, full_log, log, refused, within, y1, y2

from rdiff.queue.chain import JSQQueue
from rdiff.queue.inspect import inspect_file
from rdiff.queue.read import read_samples
from rdiff.queue.samples import Samples

SYSTEM = dict(n=4, b=1, beta=1.0)
ROWS = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
END = 12000.0
WORDS = ["--n", 4, "--b", 1, "--beta", 1, "--columns", "Q1:Q2", "--observable", "y2"]


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    """The first 2000 time units of the log of every event."""
    times, lengths, _ = log()
    some = times < 2000
    q = by_hand.occupancy(lengths[some], 2)
    return save(tmp_path_factory.mktemp("log"), {"t": times[some], "Q1": q[:, 0], "Q2": q[:, 1]})


def on_grid(every):
    """Times, and the state that the log shows at them."""
    times, lengths, _ = log()
    grid = np.arange(20.0, END, every)
    return grid, lengths[np.searchsorted(times, grid, side="right") - 1]


def compared(*args):
    """What `rdiff compare ARGS --json` says of y2, and its notes."""
    result = run("compare", *args, *WORDS, "--json")
    assert result.exit_code == 0, result.output
    found = strict_json(result.stdout)
    return found["results"][0], " ".join(found["notes"])


def test_01_event_rows_are_weighted_by_time(log_file, tmp_path):
    """Rows written at events: each counts for as long as it holds, the last needs an end, an unweighted mean must be asked."""
    times, lengths, _ = log()
    weighted = full_log().expect(y1).mean
    within(full_log().expect(y1), EX1[1])
    plain = Samples(lengths, **SYSTEM, format="lengths", weights="regular")  # asked for: then it is given, and shown wrong
    assert plain.expect(y1).mean < weighted - 0.05  # events are denser when more servers are busy
    assert any(check.ok is False and "event rows" in check.cause for check in plain.checks())
    assert "weights" in refused("must be stated", "regular", "arrivals", "every event", weights=None)
    # The last row has no end without end_time: left out, and said.
    part = dict(SYSTEM, format="lengths", time=times[:1000])
    S = Samples(lengths[:1000], **part)
    assert any("left out" in note and "row 999" in note for note in S.notes) and len(S.weights) == 999
    given = Samples(lengths[:1000], **part, end_time=times[999] + 7)
    assert given.weights[-1] == pytest.approx(7) and not given.notes
    # On the command line, and at first sight.
    refused_by_command(run("compare", log_file, *WORDS), "weights must be stated", "every event", log_file.name)
    count = len(log_file.read_text().splitlines())
    assert f"line {count} is left out" in compared(log_file, "--time-column", "t")[1]
    assert "left out" not in compared(log_file, "--time-column", "t", "--end-time", 2000)[1]
    assert inspect_file(log_file, **SYSTEM).options["weights"] == "time"
    q = by_hand.occupancy(lengths[:500], 2)
    timeless = inspect_file(save(tmp_path, {"Q1": q[:, 0], "Q2": q[:, 1]}), **SYSTEM)
    assert timeless.options is None and "cannot be weighted without their times" in timeless.notes[-1]


def test_02_snapshots_and_the_full_log_differ_in_error(log_file, tmp_path):
    """Sparse snapshots and every event of one path: both are accepted, and the snapshots have the larger error."""
    grid, rows = on_grid(8.0)
    S = Samples(rows, **SYSTEM, format="lengths", time=grid, weights="regular")
    sparse, dense = S.expect(y2), full_log().expect(y2)
    within(sparse, EX2[1])
    within(dense, EX2[1])
    assert sparse.stderr > 1.2 * dense.stderr
    some = grid < 2000
    q = by_hand.occupancy(rows[some], 2)
    snapshots = save(tmp_path, {"t": grid[some], "Q1": q[:, 0], "Q2": q[:, 1]})
    whole, _ = compared(log_file, "--time-column", "t", "--end-time", 2000, "--burn-in", 20)
    part, said = compared(snapshots, "--time-column", "t", "--weights", "regular")
    assert "grid of times: median spacing 8" in said and part["prelimit_stderr"] > 1.2 * whole["prelimit_stderr"]


def test_03_a_grid_that_is_none_is_detected(log_file):
    """A "grid" whose times are irregular is not weighted equally."""
    times, lengths, _ = log()
    refused(
        "row ", "20% of the median", "weights='time'",
        array=lengths[:500], format="lengths", time=times[:500], weights="regular",
    )  # fmt: skip
    time = np.arange(200.0)
    time[120:] += 0.5  # one gap
    refused("row 120", "1.5 after", "1 of 199", time=time)
    refused("row 120", "grid", time=np.where(np.arange(200) >= 120, time - 1.5, time))  # one row twice
    jitter = np.arange(200.0) + np.random.default_rng(0).uniform(-0.08, 0.08, 200)  # within 20%: a grid, printed
    assert "grid of times: median spacing" in Samples(ROWS, **SYSTEM, weights="regular", time=jitter).notes[0]
    # An irregular start is dropped with the burn-in.
    time = np.concatenate([[0.0, 0.1], np.arange(2.0, 200.0)])
    dropped = Samples(ROWS, **SYSTEM, weights="regular", time=time, burn_in=1.5)
    assert "grid of times: median spacing 1" in dropped.notes[0]
    words = [*WORDS, "--time-column", "t", "--weights", "regular"]
    refused_by_command(run("compare", log_file, *words), "line ", "expected a grid", "weights='time'")
    assert any("no grid" in guess for guess in inspect_file(log_file, **SYSTEM).guesses)


def test_04_a_row_holds_from_or_until_its_time(tmp_path):
    """Rows that show the state before the event need hold='previous'; the identities tell which."""
    times, lengths, _ = log()
    options = dict(SYSTEM, format="lengths", burn_in=20)
    before = np.concatenate([lengths[:1], lengths[:-1]])
    right = Samples(before, time=times, hold="previous", **options)
    wrong = Samples(before, time=times, hold="next", end_time=END, **options)
    within(right.expect(y1), EX1[1])
    within(right.expect(y2), EX2[1])
    assert all(check.ok for check in right.checks())
    failing = [check for check in wrong.checks() if check.ok is False]
    assert failing and all("hold='previous'" in check.cause for check in failing)
    assert any("held before" in note for note in right.notes)
    # The other way round: after the event, taken as before it.
    late = Samples(lengths, time=times, hold="previous", **options)
    assert any(check.ok is False and "hold='next'" in check.cause for check in late.checks())
    refused("hold must be", "'next' or 'previous'", "'after'", hold="after")
    q = by_hand.occupancy(before, 2)
    path = save(tmp_path, {"t": times, "Q1": q[:, 0], "Q2": q[:, 1]})
    assert any("with hold='previous' they hold" in line for line in inspect_file(path, **SYSTEM).lines())
    assert "with hold='previous' they hold" in compared(path, "--time-column", "t", "--burn-in", 20)[1]
    assert "fail" not in compared(path, "--time-column", "t", "--burn-in", 20, "--hold", "previous")[1]


def test_05_a_start_from_empty_is_noticed(tmp_path):
    """Burn-in goes by time or by rows; a first block far from the rest is told; wild first rows fool no automatic burn-in."""
    times, lengths, _ = by_hand.simulate(25, 1, 0.8, 300.0, 5, start=0)
    options = dict(n=25, b=1, beta=1.0, format="lengths", time=times, end_time=300.0)
    assert any("starts from the empty system" in text for text in Samples(lengths, **options).expect(y1).cautions)
    assert not any("empty" in text for text in Samples(lengths, burn_in=30, **options).expect(y1).cautions)
    # A start far away that is not empty: the first batch stands out.
    q = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 500)
    q = q[np.random.default_rng(0).permutation(len(q))]
    assert Samples(q, **SYSTEM, weights="regular").expect(y2).reliable
    q[:60] = [4, 4]
    assert any("first batch" in text for text in Samples(q, **SYSTEM, weights="regular").expect(y2).cautions)
    assert Samples(q, **SYSTEM, weights="regular", burn_in_rows=60).expect(y2).reliable
    # By time, counted from the first row, or by rows.
    time = 100 + np.arange(200.0)
    by_time = Samples(ROWS, **SYSTEM, time=time, weights="regular", burn_in=50)
    by_rows = Samples(ROWS, **SYSTEM, time=time, weights="regular", burn_in_rows=50)
    assert len(by_time.x) == len(by_rows.x) == 150 and np.array_equal(by_time.x, by_rows.x)
    held = Samples(ROWS, **SYSTEM, time=time, end_time=300.0, burn_in=50.5)
    assert held.weights.sum() == pytest.approx(149.5)
    refused("not both", time=time, burn_in=1, burn_in_rows=1)
    refused("must not be negative", time=time, burn_in=-1)
    refused("burn_in_rows", burn_in_rows=-1)
    refused("needs the time", burn_in=5.0)
    refused("no row counts", time=time, burn_in=900)
    # The burn-in that a first look suggests is that of the rows, however wild the first one or two are.
    system, q, grid = dict(n=25, b=1, beta=1.0), by_hand.on_a_grid(25, 1, 0.8, 2.0, 400, 20, 1), 2.0 * np.arange(400)
    for first, start, least in [
        ([[0, 0]], [0.0], 80.0), ([[25, 25], [0, 0]], [0.0, 2.0], 80.0), (q[:1], [-5e5], 5e5), (q[:2], [-1e3, -3.0], 1e3),
    ]:  # fmt: skip
        rows, clock = q.copy(), grid.copy()
        rows[: len(first)], clock[: len(start)] = first, start
        found = inspect_file(save(tmp_path, {"t": clock, "Q1": rows[:, 0], "Q2": rows[:, 1]}), **system)
        assert found.options is not None, found.notes
        S = read_samples(tmp_path / "run.csv", **found.options)
        assert found.options["burn_in"] >= least and 350 <= len(S.x) <= 361
        assert any("the first tenth" in guess for guess in found.guesses) and S.expect(y1).mean == pytest.approx(1.0, abs=0.3)
    # That of rdiff's own simulation is ten relaxation times of the model, whatever the paths do.
    queue = JSQQueue(25, 1, beta=1.0)
    assert queue.simulate(start=(25, 25)).burn_in == queue.simulate().burn_in == 10 * queue.relaxation_time
    q = by_hand.occupancy(lengths[:500], 2)
    path = save(tmp_path, {"t": times[:500], "Q1": q[:, 0], "Q2": q[:, 1]})
    result = run("compare", path, *WORDS, "--n", 25, "--time-column", "t")
    assert "not reliable: the record starts from the empty system: drop the start" in " ".join(result.stdout.split())


def test_06_a_constant_column_has_mean_and_error_0(tmp_path):
    """Q_3 = 0 in every row, the normal case at large n: mean 0 and error 0, no exception, and no NaN anywhere."""
    rows = np.concatenate([ROWS, np.zeros((200, 1), int)], axis=1)
    S = Samples(rows, n=4, b=2, beta=1.0, weights="regular")
    found = S.expect({"y3": lambda y: y[2], "y2": y2})
    assert found["y3"].mean == 0 and found["y3"].stderr == 0 and found["y3"].ci() == (0, 0)
    assert found["y2"].mean == 0.25 and math.isfinite(found["y2"].stderr)
    assert not any(math.isnan(v) for e in found.values() for v in (e.mean, e.stderr, e.ess, *e.ci()))
    assert S.checks()[2].ok and S.checks()[2].z == 0
    still = Samples(np.full((200, 2), 2), **SYSTEM, weights="regular")  # every column
    assert still.expect(y1).stderr == 0 and not any(math.isnan(check.value) for check in still.checks())
    path = save(tmp_path, {f"Q{i + 1}": column for i, column in enumerate(rows.T)})
    words = ["--n", 4, "--b", 2, "--beta", 1, "--weights", "regular", "--observable", "y3", "--observable", "y2", "--json"]
    result = run("compare", path, *words)
    y3, other = strict_json(result.stdout)["results"]
    assert (y3["prelimit"], y3["prelimit_stderr"], y3["difference"]) == (0, 0, 0)
    assert None not in (other["prelimit"], other["stderr"], other["z"]) and "nan" not in result.output.lower()


def test_07_too_few_rows_are_not_reliable(tmp_path):
    """Few rows give an unreliable error, one row none; n independent rows are worth n."""
    for rows in (2, 5, 30):
        found = Samples(ROWS[:rows], **SYSTEM, weights="regular").expect(y1)
        assert not found.reliable and math.isfinite(found.mean) and "not reliable" in str(found)
        assert any(f"only {rows} rows" in text for text in found.cautions)
    S = Samples(np.array([[4, 1]]), **SYSTEM, weights="regular")
    one = S.expect(y2)
    assert one.mean == 0.5 and math.isnan(one.stderr) and not one.reliable and "one row" in one.cautions[0]
    assert all(check.ok is None for check in S.checks())
    # Independent: runs are worth their number exactly, rows drawn at random about theirs.
    runs = np.random.default_rng(1).normal([2.0, 0.3], 0.05, (50, 2))
    found = Samples(runs, **SYSTEM, averages=True).expect(y2)
    assert found.ess == 50 and found.reliable and found.dof == 49
    assert found.stderr == pytest.approx(runs[:, 1].std(ddof=1) / math.sqrt(50) / 2)
    drawn = ROWS[np.random.default_rng(2).integers(0, 4, 3000)]
    found = Samples(drawn, **SYSTEM, weights="regular").expect(y2)
    assert found.reliable and 3000 / 2.2 < found.ess <= 3000  # 29 degrees of freedom: 4 sigma of a variance
    # Two long stretches: 10^4 rows worth two.
    found = Samples(np.repeat([[4, 1], [3, 0]], 5000, axis=0), **SYSTEM, weights="regular").expect(y2)
    assert not found.reliable and found.ess < 50
    path = save(tmp_path, {"t": [0.0], "Q1": [4], "Q2": [1]})
    alone, said = compared(path, "--weights", "regular")
    assert alone["prelimit"] == 0.5 and alone["prelimit_stderr"] is None and "one row has no standard error" in said
    refused_by_command(run("compare", path, *WORDS, "--time-column", "t"), "no row counts", "line 2", "end_time would")
    assert inspect_file(path, **SYSTEM).columns[0].role == "time"


def test_08_chains_are_never_joined(tmp_path):
    """Several chains or replications stay apart: in the error, the burn-in and the last row of each."""
    runs = []
    for seed in range(32):
        times, lengths, _ = by_hand.simulate(4, 1, 0.5, 300.0, seed)
        grid = np.arange(10.0, 300.0, 1.0)
        runs.append(by_hand.occupancy(lengths[np.searchsorted(times, grid, side="right") - 1], 2))
    array = np.stack(runs)
    count = array.shape[1]
    S = Samples(array, **SYSTEM, weights="regular")
    estimate = S.expect(y2)
    means = array[..., 1].mean(axis=1) / 2
    assert S.chains == 32 and estimate.dof == 31
    assert estimate.stderr == pytest.approx(means.std(ddof=1) / math.sqrt(32))
    within(estimate, EX2[1])
    # The same rows mixed, with labels.
    labels = np.repeat(np.arange(32), count)
    order = np.argsort(np.tile(np.arange(count), 32), kind="stable")
    mixed = Samples(array.reshape(-1, 2)[order], **SYSTEM, weights="regular", chain=labels[order])
    assert mixed.expect(y2).stderr == pytest.approx(estimate.stderr)
    # A burn-in and a last row belong to each chain.
    held = Samples(array, **SYSTEM, time=np.tile(np.arange(count) * 1.0, (32, 1)), burn_in=5)
    assert held.weights.sum() == pytest.approx(32 * (count - 1 - 5))
    # Few chains: batches do not straddle them.
    few = Samples(array[:2], **SYSTEM, weights="regular").expect(y2)
    assert few.dof == 29 and few.mean == pytest.approx(array[:2, :, 1].mean() / 2)
    # In files: one after the other without a name for them is refused; a column or a file each names them.
    part, clock = array[:3].reshape(-1, 2), np.tile(np.arange(count), 3)
    path = save(tmp_path, {"run": labels[: 3 * count], "t": clock, "Q1": part[:, 0], "Q2": part[:, 1]})
    words = ["--time-column", "t", "--weights", "regular"]
    refused_by_command(run("compare", path, *WORDS, *words), f"line {count + 2}", "do not decrease", "name their chains")
    assert inspect_file(path, **SYSTEM).options["chain_column"] == "run"
    files = [save(tmp_path, {"t": clock[:count], "Q1": q[:, 0], "Q2": q[:, 1]}, f"{k}.csv") for k, q in enumerate(array[:3])]
    apart, _ = compared(*files, *words)
    named, _ = compared(path, *words, "--chain-column", "run")
    assert apart["prelimit_stderr"] == named["prelimit_stderr"]
    assert named["prelimit"] == pytest.approx(array[:3, :, 1].mean() / 2)


def test_09_the_end_cuts_and_repeated_times_weigh_nothing(log_file, tmp_path):
    """A log past the end that was asked for is cut at end_time; a time that comes twice holds for no time, and is no error."""
    rows = np.array([[4, 0], [3, 0], [2, 0], [4, 1]])
    S = Samples(rows, **SYSTEM, time=[0.0, 2.0, 2.0, 5.0], end_time=4.0)
    assert S.weights.tolist() == [2.0, 2.0] and S.x[:, 0].tolist() == [0.0, 1.0]
    before = Samples(rows, **SYSTEM, time=[0.0, 2.0, 2.0, 5.0], end_time=4.0, hold="previous")
    assert before.weights.tolist() == [2.0, 2.0] and before.x[:, 1].tolist() == [0.0, 0.5]
    refused("row 2", "do not decrease", array=rows, time=[0.0, 3.0, 2.0, 5.0], weights="time")
    refused("finite", array=rows, time=[0.0, math.nan, 2.0, 5.0], weights="time")
    refused("one number a row", array=rows, time=[0.0, 1.0], weights="time")
    refused("end_time", array=rows, time=[0.0, 1.0, 2.0, 3.0], end_time=math.nan)
    refused("no row counts", array=rows, time=[0.0, 1.0, 2.0, 3.0], end_time=-1.0, weights="time")
    times, lengths, _ = log()
    some = times < 1000
    cut = Samples(lengths[some], **SYSTEM, format="lengths", time=times[some], end_time=1000.0).expect(y2).mean
    assert compared(log_file, "--time-column", "t", "--end-time", 1000)[0]["prelimit"] == pytest.approx(cut, rel=1e-12)
    q, twice = by_hand.occupancy(lengths[some], 2), np.repeat(np.arange(some.sum()), 2)
    doubled = save(tmp_path, {"t": times[twice], "Q1": q[twice, 0], "Q2": q[twice, 1]})
    found, _ = compared(doubled, "--time-column", "t", "--end-time", 1000)
    assert found["prelimit"] == pytest.approx(cut, rel=1e-12)


def test_10_customers_without_a_departure_are_still_present(tmp_path):
    """A table of customers with missing departures: those are still there, not dropped."""
    # Four servers, one customer each who never leaves: dropped, they would make the system empty.
    rows = np.array([[0.0, math.nan, k] for k in range(4)] + [[1.0, 3.0, 0], [2.0, 5.0, 1], [5.0, math.nan, 2]])
    S = Samples(rows, **SYSTEM, format="customers", end_time=9.0)
    found = dict.fromkeys(map(tuple, S.x.tolist()), 0.0)
    for x, weight in zip(S.x.tolist(), S.weights.tolist(), strict=True):
        found[tuple(x)] += weight
    # Q = (4, 0), (4, 1), (4, 2), (4, 1), (4, 1) from 0, 1, 2, 3, 5 on.
    assert found == {(0.0, 0.0): 1.0, (0.0, 0.5): 7.0, (0.0, 1.0): 1.0}
    assert any("5 customers without a departure are taken as still present" in note for note in S.notes)
    for missing in ("", "NaN", "NA"):
        cells = [[arrival, missing if math.isnan(gone) else gone, int(server)] for arrival, gone, server in rows.tolist()]
        path = save(tmp_path, dict(zip(("arrival", "departure", "server"), zip(*cells, strict=True), strict=True)))
        words = ["--n", 4, "--b", 1, "--beta", 1, "--format", "customers", "--end-time", 9, "--observable", "y2", "--json"]
        told = strict_json(run("compare", path, *words).stdout)
        assert told["results"][0]["prelimit"] == pytest.approx(S.expect(y2).mean)
        assert any("5 customers without a departure" in note for note in told["notes"])
    refused_by_command(run("compare", save(tmp_path, {"arrival": ["", 1], "departure": [2, 3], "server": [0, 1]}),
                           "--n", 4, "--b", 1, "--beta", 1, "--format", "customers"), "line 2", "arrival")  # fmt: skip
