"""What every command takes besides its own options: `--quiet`, `--config`, `--write-config`, help, completion, colours."""

import os
import pty
import subprocess
import sys
import tomllib

import click
import pytest
from cli_tools import refused, run, shell, strict_json

from rdiff.cli import main

SMALL = ["--chains", "32", "--horizon", "20", "--observable", "y2"]


def commands(group=main, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = list(commands())
NAMES = [" ".join(path) for path, _ in ALL]


@pytest.mark.parametrize(("path", "command"), ALL, ids=NAMES)
def test_every_command_has_help_with_an_example_and_the_common_options(path, command):
    result = run(*path, "--help")
    assert result.exit_code == 0 and f"rdiff {' '.join(path)}" in result.stdout.split("Example")[1]
    for option in ("--quiet", "--config", "--write-config", "--help", "--json"):
        assert option in result.stdout


def test_an_option_is_one_thing_in_all_commands():
    """The same name has the same help, but for what the library calls differently; the same short name always."""
    kinds, shorts = {}, {}
    for _, command in ALL:
        for param in command.params:
            for name in param.opts:
                (shorts if not name.startswith("--") else {}).setdefault(name, set()).add(param.name)
            if param.name in ("as_json", "level", "x64", "write_config", "quiet"):
                kinds.setdefault(param.name, set()).add((param.help, param.type.name))
    assert all(len(each) == 1 for each in kinds.values()) and shorts["-q"] == {"quiet"}


def test_options_from_a_file(tmp_path):
    (tmp_path / "run.toml").write_text(
        'beta = 2\nobservable = ["y2", "y2>1"]\nchains = 32\nhorizon = 20.0\nburn-in = 5\ny0 = [0.5, 1]\n'
        "bias = true\njson = true\n"
    )
    told = strict_json(run("average", "--config", tmp_path / "run.toml").stdout)
    typed = ["average", "--beta", 2, "--observable", "y2", "--observable", "y2>1", "--chains", 32, "--horizon", 20]
    assert told == strict_json(run(*typed, "--burn-in", 5, "--y0", "0.5,1", "--bias", "--json").stdout)
    more = strict_json(run("average", "--config", tmp_path / "run.toml", "--beta", 1.5, "--observable", "y1").stdout)
    assert more["settings"]["beta"] == 1.5 and more["settings"]["observables"] == ["y1"] and more["settings"]["burn_in"] == 5
    (tmp_path / "n.toml").write_text('n = [25, 64]\nobservable = "y2"\n')
    found = strict_json(run("rate", "--config", tmp_path / "n.toml", "--json").stdout)
    assert found["settings"]["n"] == [25, 64]


def test_what_is_required_may_be_in_the_file(tmp_path):
    (tmp_path / "q.toml").write_text('n = 16\nlam = 0.75\ncap = "auto"\n')
    assert run("queue", "exact", "--config", tmp_path / "q.toml").exit_code == 0
    (tmp_path / "s.toml").write_text(f'file = "{tmp_path / "a.json"}"\n')
    run("average", *SMALL, "--out", tmp_path / "a.json")
    assert run("show", "--config", tmp_path / "s.toml").exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("betta = 1", ("betta", "perhaps beta")), ("frobnicate = 1", ("frobnicate", "known are")), ("beta = true", ("beta",)),
        ("bias = 1", ("bias", "true or false")), ("chains = 2.5", ("--chains", "2.5")), ("beta = -1", ("beta", "positive")),
        ("beta = {a = 1}", ("beta", "number")), ("beta = [1, 2]", ("--beta", "1,2")), ("beta = ", ("TOML",)),
        ("command = 'rate'", ("another command",)), ("solver = 'magic'", ("magic",)), ("[average]\nbeta = 1", ("average",)),
        ("write-config = 'x.toml'", ("write-config",)), ("observable = [[1]]", ("observable",)),
        ("beta = 1979-05-27", ("beta",)),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(tmp_path, text, words):
    (tmp_path / "run.toml").write_text(text)
    refused(run("average", "--config", tmp_path / "run.toml"), *words)


def test_no_file():
    refused(run("average", "--config", "nowhere.toml"), "nowhere.toml")
    refused(run("average", "--write-config", "nowhere/run.toml"), "nowhere")
    refused(run("average", "--write-config", "run.json"), ".toml")


RUNS = {
    "average": ["average", *SMALL, "--y0", "0.5,1", "--seed", 3],
    "exact": ["exact", "--observable", "exp(-y1-y2)", "--tail", 1, "--tail", 2],
    "compare": ["compare", "--limit", "simulated", "--horizon", 20, "--chains", 32],
    "queue": ["queue", "exact", "--n", 16, "--beta", 1, "--window", "auto", "--cap", 3.5],
    "rate": ["rate", "--n", "25,64", "--observable", "y2"],
    "path": ["path", "--points", 5, "--horizon", 1],
}


@pytest.mark.parametrize("name", RUNS)
def test_what_is_written_runs_again(name, tmp_path):
    words = RUNS[name]
    first = run(*words, "--json", "--write-config", tmp_path / "run.toml")
    assert first.exit_code == 0, first.output
    told = tomllib.loads((tmp_path / "run.toml").read_text())
    assert told["json"] is True and told["command"] == " ".join(w for w in words[:2] if not str(w).startswith("-"))
    command = told["command"].split()
    again = run(*command, "--config", tmp_path / "run.toml", "--write-config", tmp_path / "again.toml")
    assert again.stdout == first.stdout
    assert (tmp_path / "again.toml").read_text() == (tmp_path / "run.toml").read_text()


def test_defaults_are_written_as_comments(tmp_path):
    run("average", *SMALL, "--write-config", tmp_path / "run.toml")
    text = (tmp_path / "run.toml").read_text()
    assert "\n# dt = 0.1\n" in text and "chains = 32\n" in text
    defaults = text.split("# defaults\n")[1].replace("# ", "")
    assert tomllib.loads(defaults)["solver"] == "bridge-heun"


def test_odd_texts_come_back(tmp_path):
    odd = str(tmp_path / 'a "b" \\ é.json')
    run("average", *SMALL, "--out", odd, "--write-config", tmp_path / "run.toml")
    assert tomllib.loads((tmp_path / "run.toml").read_text(encoding="utf-8"))["out"] == odd


def test_quiet(tmp_path):
    words = ["compare", "--observable", "y2"]
    loud, quiet = run(*words), run(*words, "--quiet")
    assert "note:" in loud.stderr or "warning:" in loud.stderr or loud.stderr == ""
    assert quiet.stderr == "" and quiet.stdout == loud.stdout
    rows = "chain,t,Q1,Q2\n" + "".join(f"0,{t},{4 - t % 2},{t % 3 == 0:d}\n" for t in range(200))
    (tmp_path / "s.csv").write_text(rows)
    words = ["compare", tmp_path / "s.csv", "--n", 4, "--beta", 1, "--weights", "regular", "--observable", "y2"]
    words += ["--columns", "Q1:Q2", "--beta", "1", "--limit", "exact"]
    loud, quiet = run(*words), run(*words, "-q")
    assert quiet.exit_code == loud.exit_code == 0 and quiet.stderr == "" and quiet.stdout == loud.stdout
    refused(run("average", "--quiet", "--beta", -1), "beta")  # errors are said


@pytest.mark.parametrize(
    ("words", "expected"), [("rdiff av", "average"), ("rdiff average --hor", "--horizon"), ("rdiff queue s", "simulate")]
)
def test_completion(words, expected):
    env = {**os.environ, "_RDIFF_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = shell(env=env)
    assert done.returncode == 0 and expected in done.stdout and done.stderr == ""


def test_completion_is_told_by_help():
    assert "_RDIFF_COMPLETE=bash_source rdiff" in run("--help").stdout
    source = shell(env={**os.environ, "_RDIFF_COMPLETE": "bash_source"})
    assert source.returncode == 0 and "complete" in source.stdout


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals")
@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_only_on_a_terminal(more, coloured):
    words = [sys.executable, "-m", "rdiff", "average", "--chains", "4", "--horizon", "5", "--observable", "y2", "-q"]
    env = {**os.environ, "TERM": "xterm", **more}
    if not more:
        env.pop("NO_COLOR", None)
    mine, its = pty.openpty()
    with subprocess.Popen(words, stdout=its, stderr=subprocess.PIPE, env=env) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(mine, 65536)
            except OSError:
                break
            if not part:
                break
            said += part
        process.wait(timeout=120)
    os.close(mine)
    assert process.returncode == 0 and b"not reliable" in said and (b"\x1b[" in said) == coloured, said
    if coloured:
        assert b"\x1b[" not in subprocess.run(words, capture_output=True, env=env, check=True).stdout
