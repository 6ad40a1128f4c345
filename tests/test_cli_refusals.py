"""Bad input on the command line: one clear line and exit code 2."""

import numpy as np
import pytest
from cli_tools import SMALL, refused, run, shell

import rdiff


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ("nonsense", "nonsense"),
        ("--nonsense", "nonsense"),
        ("average --nonsense", "nonsense"),
        ("average stray", "stray"),
        ("average --beta", "--beta"),
        ("average --beta 0", "beta"),
        ("average --beta -1", "beta"),
        ("average --beta nan", "beta"),
        ("average --beta inf", "beta"),
        ("average --beta one", "beta"),
        ("average --dt 0", "dt"),
        ("average --dt -0.1", "dt"),
        ("average --dt nan", "dt"),
        ("average --dt 10 --horizon 5", "dt"),
        ("average --horizon 0", "horizon"),
        ("average --horizon inf", "horizon"),
        ("average --chains 1", "chains"),
        ("average --chains 0", "chains"),
        ("average --chains 2.5", "chains"),
        ("average --burn-in -1", "burn"),
        ("average --burn-in nan", "burn"),
        ("average --b -1", "b must"),
        ("average --b 1.5", "--b"),
        ("average --rtol 0", "rtol"),
        ("average --atol -1", "atol"),
        ("average --level 1", "level"),
        ("average --seed -1", "seed"),
        ("average --y0 1", "y0"),
        ("average --y0 -1,0", "y0"),
        ("average --y0 a,b", "y0"),
        ("average --solver magic", "solver"),
        ("average --out nowhere/x.json", "nowhere"),
        ("average --out x.xlsx", "x.xlsx"),
        ("average --out .", ".json"),
        ('average --observable __import__("os")', "__import__"),
        ("average --observable y9", "y9"),
        ("average --observable y0", "y0"),
        ("average --observable y1,y2", "vector"),
        ("average --observable y2 --b 0", "only y1"),
        ("average --observable 9**9**9", "finite"),
        ("average --observable log(-1-y1) --chains 16 --horizon 20", "finite"),
        ("average --observable 1/(y2-y2) --chains 16 --horizon 20", "finite"),
        ("path --paths 0", "paths"),
        ("path --horizon -1", "horizon"),
        ("path --dt 0", "dt"),
        ("path --dt 3 --horizon 2", "dt"),
        ("path --every 0.015", "every"),
        ("path --every 0.3 --horizon 1", "does not divide horizon = 1"),
        ("path --dt 0.3 --horizon 1", "does not divide horizon = 1"),
        ("path --dt 1e-13 --horizon 1", "too many"),
        ("path --dt 1 --horizon 10007 --points 10", "do not split"),
        ("average --b 100000000", "b must be at most 1000"),
        ("average --b 1001", "--b"),
        ("exact --b 100000000", "--b"),
        ("path --b 100000000", "--b"),
        ("compare x.csv --n 4 --beta 1 --b 100000000", "b = inf"),
        ("path --every 30", "every"),
        ("path --every 0.1 --points 5", "points"),
        ("path --points 0", "points"),
        ("path --paths 100000000", "numbers"),
        ("path --beta -2", "beta"),
        ("path --plot p.docx", "p.docx"),
        ("bench", "NAME"),
        ("bench nonsense", "nonsense"),
        ("compare missing.csv --n 4 --beta 1", "missing.csv"),
        ("compare missing.csv --beta 1", "--n"),
        ("compare missing.csv --n 4", "--beta"),
        ("compare missing.csv --n 4 --beta 1 --lam 0.5", "--lam"),
        ("compare missing.csv --n 4 --beta 1 --b 1.5", "--b"),
        ("compare missing.csv --n 4.5 --beta 1", "--n"),
        ("compare --beta 2", "embedded sample"),
        ("compare --format lengths", "embedded sample"),
        ("compare --observable y4", "y4"),
        ("compare --observable y1+", "y1+"),
        ("compare --dt 0", "dt"),
        ("compare --chains 1", "chains"),
    ],
)
def test_bad_arguments(args, word):
    refused(run(*args.split()), word)


def test_bad_expression_with_a_space():
    refused(run("average", "--observable", "y1 +"), "y1 +")
    refused(run("average", "--observable", ""), "empty")
    refused(run("average", "--observable", "(" * 10000 + "y1" + ")" * 10000), "characters")


GOOD = "t,Q1,Q2,Q3\n" + "".join(f"{t},{20 + t % 5},{t % 4},0\n" for t in range(200))
CSV = ["--n", "25", "--b", "2", "--beta", "1", "--time-column", "t", "--columns", "Q1:Q3", "--weights", "regular"]


def edited(old, new):
    assert old in GOOD
    return GOOD.replace(old, new, 1)


@pytest.mark.parametrize(
    ("name", "content", "options", "word"),
    [
        ("empty.csv", "", CSV, "empty"),
        ("header.csv", "t,Q1,Q2,Q3\n", CSV, "rows"),
        ("binary.csv", bytes(range(256)) * 20, CSV, "binary.csv"),
        ("zip.npz", b"PK\x03\x04" + bytes(100), [*CSV[:6], "--weights", "regular"], "zip.npz"),
        ("noise.npy", b"\x93NUMPY\x01\x00", [*CSV[:6], "--weights", "regular"], "noise.npy"),
        ("file.docx", "nothing", CSV, "docx"),
        ("gzip.csv.gz", b"\x1f\x8b" + bytes(30), CSV, "gzip.csv.gz"),
        ("columns.csv", GOOD, [*CSV, "--columns", "Q1:Q9"], "Q9"),
        ("time.csv", GOOD, [*CSV, "--time-column", "clock"], "clock"),
        ("text.csv", edited("\n7,22,3,0", "\n7,22,three,0"), CSV, "three"),
        ("nan.csv", edited("\n7,22,3,0", "\n7,nan,3,0"), CSV, "nan"),
        ("blank.csv", edited("\n7,22,3,0", "\n7,,3,0"), CSV, "Q1"),
        ("short.csv", edited("\n7,22,3,0", "\n7,22,3"), CSV, ""),
        ("order.csv", edited("\n7,22,3,0", "\n7,22,3,4"), CSV, "Q3"),
        ("many.csv", edited("\n7,22,3,0", "\n7,26,3,0"), CSV, "26"),
        ("negative.csv", edited("\n7,22,3,0", "\n7,22,-3,-4"), CSV, "-3"),
        ("half.csv", edited("\n7,22,3,0", "\n7,22.5,3,0"), CSV, "22.5"),
        ("back.csv", edited("\n7,22,3,0", "\n5.5,22,3,0"), CSV, "5.5"),
        ("jump.csv", edited("\n7,22,3,0", "\n7.9,22,3,0"), CSV, "grid"),
        ("n.csv", GOOD, [*CSV, "--n", "1"], "n"),
        ("rho.csv", GOOD, [*CSV, "--beta", "5"], "beta"),
        ("beta.csv", GOOD, [*CSV, "--beta", "nan"], "beta"),
        ("b.csv", GOOD, [*CSV, "--b", "-1"], "b"),
        ("buffer.csv", GOOD, [*CSV, "--b", "3"], "b"),
        ("weights.csv", GOOD, [*CSV, "--weights", "nonsense"], "nonsense"),
        ("burn.csv", GOOD, [*CSV, "--burn-in", "-5"], "burn"),
        ("all.csv", GOOD, [*CSV, "--burn-in", "1e6"], ""),
        ("rows.csv", GOOD, [*CSV, "--burn-in-rows", "-1"], "burn"),
        ("both.csv", GOOD, [*CSV, "--burn-in-rows", "1", "--burn-in", "1"], "burn"),
        ("y4.csv", GOOD, [*CSV, "--observable", "y4"], "y4"),
        ("nonfinite.csv", GOOD, [*CSV, "--observable", "log(y2)"], "log(y2)"),
    ],
)
def test_bad_files(tmp_path, name, content, options, word):
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(run("compare", file, *options, *SMALL), word)


def test_good_file_is_not_refused(tmp_path):
    (tmp_path / "good.csv").write_text(GOOD)
    result = run("compare", tmp_path / "good.csv", *CSV, *SMALL, "--json")
    assert result.exit_code == 0, result.output


def test_a_guess_is_announced_once(tmp_path):
    (tmp_path / "good.csv").write_text(GOOD)
    words = [*CSV[:8], "--weights", "regular"]  # no --columns
    result = run("compare", tmp_path / "good.csv", *words, *SMALL)
    assert result.exit_code == 0, result.output
    assert result.output.count("columns taken as the states") == 1


def test_truncated_npz(tmp_path):
    whole = tmp_path / "whole.npz"
    np.savez(whole, Q=np.array([[20, 1, 0]] * 500))
    (tmp_path / "cut.npz").write_bytes(whole.read_bytes()[:600])
    refused(run("compare", tmp_path / "cut.npz", *CSV[:6], "--weights", "regular"), "cut.npz")


def test_folder_for_a_file(tmp_path):
    refused(run("compare", tmp_path, *CSV))


def test_bad_input_in_a_shell():
    result = shell("average", "--beta", "-1")
    assert result.returncode == 2 and result.stdout == "" and len(result.stderr.splitlines()) == 1


def test_a_fault_is_one_line(monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr(rdiff, "long_run_average", broken)
    result = run("average")
    assert result.exit_code == 1 and len(result.stderr.splitlines()) == 1 and "RuntimeError" in result.stderr
