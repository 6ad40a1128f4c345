"""Files as samples: what is accepted, how columns are found, and one clear refusal for each way a file can be bad."""

import gzip
import logging
import math
import pickle
import time
import zipfile

import numpy as np
import pytest

from rdiff.errors import InputError
from rdiff.queue.read import read_samples
from rdiff.queue.samples import Samples

Q = np.array([[4, 0], [4, 1], [3, 1], [3, 0]] * 50)
T = np.arange(200.0)
SYSTEM = dict(n=4, b=1, beta=1.0)


def y1(y):
    return y[0]


def y2(y):
    return y[1]


def table(header="t,Q1,Q2", columns=(T, *Q.T), delimiter=","):
    rows = [delimiter.join(f"{value:.17g}" for value in row) for row in np.stack(columns, axis=1)]
    return "\n".join([*([header] if header else []), *rows]) + "\n"


def write(folder, content, name="run.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path, *words, **options):
    with pytest.raises(InputError) as caught:
        read_samples(path, **(SYSTEM | {"time_column": "t"} | options))
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    for word in words:
        assert word in message, (word, message)


# What is accepted


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "semicolon", "tab", "blanks", "crlf", "bom", "comments", "quotes"])
def test_text(tmp_path, kind):
    text = table()
    text = {
        "semicolon": table("t;Q1;Q2", delimiter=";"),
        "tab": table("t\tQ1\tQ2", delimiter="\t"),
        "blanks": table("t Q1 Q2", delimiter=" "),
        "crlf": text.replace("\n", "\r\n"),
        "bom": "\ufeff" + text,
        "comments": "# a run\n\n" + text + "\n",
        "quotes": text.replace("t,Q1,Q2", '"t","Q1","Q2"').replace("\n5,", '\n"5",'),
    }.get(kind, text)
    content = gzip.compress(text.encode()) if kind == "csv.gz" else text
    S = read_samples(write(tmp_path, content, f"run.{kind}" if kind == "csv.gz" else "run.csv"),
                     columns="Q1:Q2", time_column="t", end_time=200.0, **SYSTEM)  # fmt: skip
    direct = Samples(Q, time=T, end_time=200.0, **SYSTEM)
    assert np.array_equal(S.x, direct.x) and np.array_equal(S.weights, direct.weights)
    assert S.expect(y2).stderr == direct.expect(y2).stderr
    assert np.array_equal(pickle.loads(pickle.dumps(S)).x, S.x)


@pytest.mark.parametrize("columns", ["Q1:Q2", "Q1,Q2", "Q1, Q2", ["Q1", "Q2"], [1, 2], "Q1:Q1,Q2"])
def test_columns_by_name_range_and_position(tmp_path, columns):
    path = write(tmp_path, table())
    assert np.array_equal(read_samples(path, columns=columns, weights="regular", **SYSTEM).x[:, 1], Q[:, 1] / 2)


def test_a_guess_is_announced(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        S = read_samples(write(tmp_path, table(",t,Q1,Q2", (np.arange(200), T, *Q.T))), time_column="t", end_time=200, **SYSTEM)
    assert np.array_equal(S.x, Samples(Q, weights="regular", **SYSTEM).x)
    assert "counts 0, 1, 2, ...: taken as an index" in caplog.text and "Q1, Q2" in caplog.text
    assert len(S.notes) == 2
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        read_samples(write(tmp_path, table(None, Q.T)), weights="regular", **SYSTEM)
    assert "columns are named 0, 1" in caplog.text


def test_npy_and_npz(tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([T, Q]))
    by_position = read_samples(tmp_path / "a.npy", columns="1:2", time_column="0", end_time=200, **SYSTEM)
    np.savez(tmp_path / "b.npz", t=T, Q=Q.astype(np.uint8), n=4)
    by_name = read_samples(tmp_path / "b.npz", columns="Q", time_column="t", end_time=200, **SYSTEM)
    np.savez_compressed(tmp_path / "c.npz", t=T, one=Q[:, 0], two=Q[:, 1])
    apart = read_samples(tmp_path / "c.npz", columns="one,two", time_column="t", end_time=200, **SYSTEM)
    np.savez(tmp_path / "d.npz", t=T.reshape(2, 100), Q=Q.reshape(2, 100, 2))
    chains = read_samples(tmp_path / "d.npz", columns="Q", time_column="t", end_time=[100, 200], **SYSTEM)
    direct = Samples(Q, time=T, end_time=200, **SYSTEM)
    for S in (by_position, by_name, apart, chains):
        assert np.array_equal(S.x, direct.x) and np.array_equal(S.weights, direct.weights)
    assert chains.chains == 2


def test_chain_column_and_weights_column(tmp_path):
    labels = np.repeat([7, 3], 100)
    path = write(tmp_path, table("t,run,w,Q1,Q2", (np.tile(T[:100], 2), labels, 1 + Q[:, 1], *Q.T)))
    S = read_samples(path, columns="Q1:Q2", time_column="t", chain_column="run", **SYSTEM)
    assert S.chains == 2 and len(S.x) == 198  # the last row of each chain has no end
    weighted = read_samples(path, columns="Q1:Q2", weights="w", **SYSTEM)
    assert weighted.expect(y2).mean == pytest.approx(np.average(Q[:, 1] / 2, weights=1 + Q[:, 1]))
    refused(path, "do not decrease", "chains", columns="Q1:Q2")
    text = table("t,run,Q1,Q2", (np.tile(T[:100], 2), labels, *Q.T)).replace(",7,", ",first,")
    named = read_samples(write(tmp_path, text), columns="Q1:Q2", time_column="t", chain_column="run", **SYSTEM)
    assert named.chains == 2


# What is refused


def test_missing_empty_and_folders(tmp_path):
    refused(tmp_path / "no.csv", "No such file")
    refused(tmp_path, "cannot be read")
    refused(write(tmp_path, ""), "empty")
    refused(write(tmp_path, "\n\n"), "no rows")
    refused(write(tmp_path, "t,Q1,Q2\n"), "a header and no rows")
    with pytest.raises(InputError):
        read_samples("a\0b.csv", **SYSTEM)
    with pytest.raises(InputError):
        read_samples(None, **SYSTEM)  # pyright: ignore


def test_not_what_the_name_says(tmp_path):
    refused(write(tmp_path, bytes(range(256)) * 20), "binary")
    refused(write(tmp_path, b"\xff\xfe\xfa" * 1000), "no CSV")
    np.save(tmp_path / "a.npy", Q)
    refused(write(tmp_path, (tmp_path / "a.npy").read_bytes()), "NumPy npy file")
    np.savez(tmp_path / "a.npz", Q=Q)
    refused(write(tmp_path, (tmp_path / "a.npz").read_bytes()), "npz")
    refused(write(tmp_path, table(), "b.npy"), "not a NumPy .npy file")
    refused(write(tmp_path, table(), "b.npz"), "not a NumPy .npz file")
    refused(write(tmp_path, pickle.dumps(Q)), "binary")


def test_damaged_archives(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", t=T, Q=np.random.default_rng(0).integers(0, 4, (500, 2)))
    whole = (tmp_path / "a.npz").read_bytes()
    for size in (5, 100, len(whole) // 2, len(whole) - 10):
        refused(write(tmp_path, whole[:size], "b.npz"), "truncated")
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 255
    with pytest.raises(InputError):
        read_samples(write(tmp_path, bytes(broken), "b.npz"), time_column="t", **SYSTEM)
    np.save(tmp_path / "c.npy", Q)
    refused(write(tmp_path, (tmp_path / "c.npy").read_bytes()[:-40], "d.npy"), "truncated")
    packed = gzip.compress(table().encode())
    refused(write(tmp_path, packed[:-20], "run.csv.gz"), "gzip")
    np.save(tmp_path / "e.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    refused(tmp_path / "e.npy", "Python objects")
    with zipfile.ZipFile(tmp_path / "f.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(tmp_path / "f.npz", "no array of rows")
    np.savez(tmp_path / "g.npz", t=T, Q=Q[:50])
    refused(tmp_path / "g.npz", "one number a row", columns="Q")
    np.savez(tmp_path / "h.npz", t=T, one=Q[:, 0], two=Q[:50, 1])
    refused(tmp_path / "h.npz", "unequal length", columns="one,two")


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("\n7,3,0\n", "\n7,three,0\n", ["line 9, column Q1", "'three'"]),
        ("\n7,3,0\n", "\n7,,0\n", ["line 9, column Q1", "empty"]),
        ("\n7,3,0\n", "\n7,nan,0\n", ["line 9, column Q1", "found nan"]),
        ("\n7,3,0\n", "\n7,3,inf\n", ["line 9, column Q2", "found inf"]),
        ("\n7,3,0\n", "\n7,3\n", ["line 9", "found 2 cells, expected 3", "unequal length"]),
        ("\n7,3,0\n", "\n7,3,0,1\n", ["line 9", "found 4 cells"]),
        ("\n199,3,0\n", "\n199,3", ["line 201", "cut off"]),
        ("\n7,3,0\n", "\n7,3,4\n", ["line 9, column Q2", "Q_1 >= Q_2"]),
        ("\n7,3,0\n", "\n7,5,0\n", ["line 9, column Q1", "at most n = 4"]),
        ("\n7,3,0\n", "\n7,3,-1\n", ["line 9, column Q2", "at least 0"]),
        ("\n7,3,0\n", "\n7,3,0.5\n", ["line 9, column Q2", "integer"]),
        ("\n7,3,0\n", "\n5,3,0\n", ["line 9", "do not decrease"]),
        ("\n7,3,0\n", "\n\n# note\n5,3,0\n", ["line 11", "do not decrease"]),
        ("\n7,3,0\n", "\nnan,3,0\n", ["line 9", "time nan"]),
    ],
)
def test_bad_cells(tmp_path, old, new, words):
    text = table()
    assert old in text
    refused(write(tmp_path, text.replace(old, new)), *words, columns="Q1:Q2")


def test_missing_columns(tmp_path):
    path = write(tmp_path, table())
    refused(path, "'Q3'", "t, Q1, Q2", columns="Q1:Q3")
    refused(path, "time_column", "'clock'", "t, Q1, Q2", time_column="clock")
    refused(path, "weights", "'w'", columns="Q1:Q2", weights="w")
    refused(path, "chain_column", columns="Q1:Q2", chain_column="run")
    refused(path, "the last column comes before", columns="Q2:Q1")
    refused(path, "named twice", columns="Q1,Q1")
    refused(path, "cannot be a state and a time", columns="t,Q1")
    refused(path, "no column 9", columns=[9])
    refused(path, "names or ranges", columns=[])
    refused(write(tmp_path, table("t,Q,Q")), "2 columns are called 'Q'", columns="Q")
    refused(write(tmp_path, table()), "needs 3 columns", b=2)


def test_pitfall_03_regular_weights_need_a_grid(tmp_path):
    text = table(columns=(T + 0.3 * (T % 2), *Q.T))
    refused(write(tmp_path, text), "line 4", "20% of the median", columns="Q1:Q2", weights="regular")


def test_pitfall_25_all_faults_of_a_file_in_one_message(tmp_path):
    text = table().replace("\n7,3,0\n", "\n7,9,0\n").replace("\n9,4,1\n", "\n9,1,4\n").replace("\n20,", "\n1,")
    refused(write(tmp_path, text), "line 9, column Q1", "line 11, column Q2", "line 22", columns="Q1:Q2")


# Files that other people's simulators wrote


def test_ciw(data):
    start = time.perf_counter()
    S = read_samples(
        data / "ciw_loadbalancing_n25.csv", n=25, b=math.inf, beta=1, format="lengths", columns="node_2:node_26",
        time_column="time", weights="time", end_time=800, burn_in=30,
    )  # fmt: skip
    assert time.perf_counter() - start < 5
    found = S.expect({"y1": y1, "y2": y2})
    assert found["y2"].mean == pytest.approx(0.489, abs=0.001) and 0.05 < found["y2"].stderr < 0.08
    assert found["y1"].mean == pytest.approx((25 - 20.25) / 5, abs=0.002)
    assert found["y2"].reliable
    z = [check.z for check in S.checks()]
    assert z[0] == pytest.approx(1.1, abs=0.25) and z[1] == pytest.approx(-0.1, abs=0.1)
    assert all(check.ok for check in S.checks())
    # with the routing dummy, or with lengths of one server missing, it is refused
    for columns in ("node_1:node_26", "node_3:node_26"):
        with pytest.raises(InputError, match="one column a server, n = 25"):
            read_samples(
                data / "ciw_loadbalancing_n25.csv", n=25, b=math.inf, beta=1, format="lengths", columns=columns,
                time_column="time",
            )  # fmt: skip


def test_ciw_with_the_wrong_hold_is_named(data):
    S = read_samples(
        data / "ciw_loadbalancing_n25.csv", n=25, b="inf", beta=1, format="lengths", columns="node_2:node_26",
        time_column="time", hold="previous", end_time=800, burn_in=30,
    )  # fmt: skip
    failing = [check for check in S.checks() if check.ok is False]
    assert failing and "with hold='next' they hold" in failing[0].cause


def test_ciw_event_rows_are_no_grid(data):
    with pytest.raises(InputError, match="weights='time'"):
        read_samples(
            data / "ciw_loadbalancing_n25.csv", n=25, b="inf", beta=1, format="lengths", columns="node_2:node_26",
            time_column="time", weights="regular",
        )  # fmt: skip


def test_power_of_d_is_named_not_jsq(data):
    S = read_samples(
        data / "pod_n64.csv", n=64, b=3, beta=1, format="fractions", columns="s_1:s_4", time_column="curr_time",
        weights="regular", burn_in=50,
    )  # fmt: skip
    first, second = S.checks()[:2]
    assert first.ok and second.ok is False
    assert second.value / (64 * 0.875 * S.expect(lambda y: y[0] == 0).mean) == pytest.approx(1.85, abs=0.005)
    assert 10 < second.z < 12
    assert "not JSQ" in second.cause and "with replacement" in second.cause and "1.85" in second.cause
    assert any("grid of times" in note for note in S.notes)


@pytest.mark.parametrize(
    "file, n, lam, word",
    [
        ("exp_rho90_d2_N10_NEW", 10, 0.9, "row 1050 and 9 more"),
        ("exp_rho94_d2_N50", 50, 0.94, "wrote nothing"),
        ("exp_rho200_d0.7_N10", 10, 0.7, "one state or one column"),
    ],
)
def test_rmf_tool_defects(data, file, n, lam, word):
    with pytest.raises(InputError, match=word):
        read_samples(data / "rmf_tool" / f"{file}.npy", n=n, b="inf", lam=lam, format="fractions", averages=True)


def test_rmf_tool_good_file(data):
    path = data / "rmf_tool" / "exp_rho95_d4_N100.npy"
    S = read_samples(path, n=100, b="inf", lam=0.95, format="fractions", averages=True)
    assert S.expect(y1).mean == pytest.approx(0.500132, abs=1e-6) and S.checks()[0].ok
    with pytest.raises(InputError, match="averages=True"):
        read_samples(path, n=100, b="inf", lam=0.95, format="fractions", weights="regular")


def test_duplicate_columns_are_refused(tmp_path):
    """A second column of the same name would be read as the first."""
    path = write(tmp_path, table("t,Q1,Q1"))
    refused(path, "2 columns are called 'Q1'", "rename")
    refused(path, "2 columns are called 'Q1'", columns=[1, 2])
    refused(path, "2 columns are called 'Q1'", columns=[2])
    refused(path, "2 columns are called 'Q1'", "time_column", columns="t", time_column=1)
    unused = write(tmp_path, table("t,Q1,Q2,x,x", (T, *Q.T, T, T)))
    assert len(read_samples(unused, columns="Q1:Q2", time_column="t", end_time=200.0, **SYSTEM).x) == 200
    np.savez(tmp_path / "a.npz", **{"Q": Q, "Q[1]": Q[:, 1]})
    refused(tmp_path / "a.npz", "2 columns are called 'Q[1]'", columns="Q", time_column=None, weights="regular")


def test_end_times_follow_the_chains_of_a_file(tmp_path):
    """Chains count in the order of the file, not in that of their labels as text."""
    labels = np.repeat([10, 9], 100)
    path = write(tmp_path, table("t,run,Q1,Q2", (np.tile(T[:100], 2), labels, *Q.T)))
    options = dict(columns="Q1:Q2", time_column="t", chain_column="run", **SYSTEM)
    for ends in ([103.0, 120.0], {"10": 103.0, "9": 120.0}, {9: 120.0, 10: 103.0}):
        S = read_samples(path, end_time=ends, **options)
        assert S.weights[99] == 4 and S.weights[199] == 21 and np.array_equal(S.chain, np.repeat([0, 1], 100))
    for ends in ({10: 103.0}, {10: 103.0, 9: 120.0, 8: 1.0}, {10: 103.0, 9: "end"}, [1.0, 2.0, 3.0], [[103.0], [120.0]]):
        with pytest.raises(InputError, match="end_time"):
            read_samples(path, end_time=ends, **options)


def test_a_blank_chain_label_is_refused(tmp_path):
    text = table("t,run,Q1,Q2", (np.tile(T[:100], 2), np.repeat([1, 2], 100), *Q.T)).replace("\n7,1,", "\n7,,", 1)
    refused(write(tmp_path, text), "line 9, column run", "empty", columns="Q1:Q2", chain_column="run")
    refused(write(tmp_path, text.replace("\n7,,", "\n7,nan,")), "line 9", "missing", columns="Q1:Q2", chain_column="run")


@pytest.mark.parametrize("cell", ["1e300", "-1e300", "1e16", "1.7e18"])
def test_times_that_no_clock_shows(tmp_path, cell):
    text = table().replace("\n199,", f"\n{cell},").replace("\n0,", f"\n{cell},", 1 if cell.startswith("-") else 0)
    line = "line 2" if cell.startswith("-") else "line 201"
    refused(write(tmp_path, text), line, "1e+15", columns="Q1:Q2")
