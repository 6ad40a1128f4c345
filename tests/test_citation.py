"""`citation`: well-formed BibTeX of the works that a result was made with."""

import re

import pytest

import rdiff

Y = rdiff.JSQDiffusion(beta=1.0)


def h(y):
    return y[1]


def keys(text):
    return re.findall(r"^@\w+{(\w+),$", text, re.MULTILINE)


def test_all_of_it_is_bibtex():
    text = rdiff.citation()
    entries = text.strip().split("\n\n")
    assert len(entries) == len(keys(text)) == len(set(keys(text))) >= 15 and keys(text)[0] == "rdiff"
    for entry in entries:
        assert entry.count("{") == entry.count("}")
        fields = dict(re.findall(r"^  (\w+) = {(.*)},?$", entry, re.MULTILINE))
        assert len(fields) == entry.count("\n") - 1 and {"author", "title"} <= set(fields)
        assert "year" in fields or "rdiff" in entry
        assert entry.isascii()
    assert f"Version {rdiff.__version__}" in text and "10.1287/stsy.2022.0102" in text


@pytest.mark.parametrize(
    ("solver", "works"),
    [
        (rdiff.BridgeHeun(), {"lepingle1995"}),
        (rdiff.BridgeEuler(), {"lepingle1995", "gobet2001"}),
        (rdiff.ProjectedEuler(), {"slominski1994"}),
    ],
)
def test_a_simulation_cites_its_step(solver, works):
    found = set(keys(rdiff.citation(rdiff.long_run_average(Y, h, key=0, chains=16, horizon=5.0, solver=solver))))
    assert found == {"rdiff", "braverman2023", "eschenfeldt2018", "kidger2021", "asmussen2007", "vehtari2021",
                     "margossian2024", "blackman2021", *works}  # fmt: skip


def test_other_results(tmp_path):
    law, queue = rdiff.StationaryLaw(Y), rdiff.JSQQueue(16, 1, 1.0)
    theorem = {"rdiff", "braverman2023", "eschenfeldt2018"}

    def cited(result):
        return set(keys(rdiff.citation(result)))

    exact = law.expect(h)
    assert cited(exact) == theorem
    exact.to_json(tmp_path / "a.json")
    assert cited(rdiff.load(tmp_path / "a.json")) == theorem
    assert cited(rdiff.distance([16, 25], beta=1.0)) == theorem | {"deboor1978"}
    assert cited(rdiff.generator.classical(queue.exact(), law, h)) == theorem | {"barbour1990", "braverman2022"}
    simulated = cited(rdiff.compare(queue.simulate(key=0, chains=16, horizon=20.0), law, h))
    assert simulated == theorem | {"jensen1953", "asmussen2007", "vehtari2021", "margossian2024", "blackman2021"}
    assert "ward2003" in cited(rdiff.long_run_average(rdiff.ReflectedOU(1.0), lambda y: y[0], key=0, chains=16, horizon=5.0))


def test_what_is_no_result():
    for thing in (3, Y, rdiff.Estimate, "y2"):
        with pytest.raises(rdiff.InputError, match="result"):
            rdiff.citation(thing)
