"""What a newcomer does wrong: one clear line that says what to do, in the words of the place."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import warnings
from inspect import signature

import pytest

import panprivacy as pp
from panprivacy.cli import aggregator
from panprivacy.cli.collector import collector
from panprivacy.cli.dashboard import dashboard
from panprivacy.service.config.config import ServerConfig
from panprivacy.service.web.app import _problem_of
from tests.commands import run_command

RUN = ["run", "a.csv", "--user", "user", "--epsilon", 1, "--stat", "distinct,expected=1000"]
COMMANDS = {
    "a format that is not told": (["run", "a.log", *RUN[2:]], "name it with --format, of: csv"),
    "standard input": (["run", "-", *RUN[2:]], "name it with --format, of: csv"),
    "JSON": (["run", "a.json", *RUN[2:]], "a.json: say --format ndjson, which is"),
    "NDJSON as CSV": (["run", "j.csv", *RUN[2:]], "this looks like NDJSON, not CSV; say --format"),
    "a null": (["run", "null.csv", *RUN[2:]], "or have --nulls skip them"),
    "an undeclared group": ([*RUN, "--by", "page", "--groups", "x"], "declare all --groups, or "),
    "groups twice": ([*RUN, "--by", "page", "--groups", "x,x"], "--groups must be 1 to"),
    "a wrong column": (["run", "a.csv", *RUN[4:], "--user", "users"], "the columns are 'user'"),
    "a pattern": ([*RUN, "--pattern", "x"], "a pattern is for the format lines"),
    "releases": ([*RUN, "--releases", 0], "--releases must be"),
    "confidence": ([*RUN, "--confidence", 2], "--confidence must lie"),
    "a folder": ([*RUN, "--plot", "none/x.png"], "there is no folder none; make it first"),
    "serve": (["serve"], "type, for example, panprivacy serve panprivacy.toml"),
    "where to listen": (["collector", "t.json", "--listen", "x"], None),
    "the key of restore": (["restore", "c.toml", "--identity", "kye.txt"], None),
    "nothing to read": (["run"], "type, for example, panprivacy run visits.csv --user"),
    "no epsilon": (RUN[:4] + RUN[6:], "give the loss of all that is counted, such as --epsilon 1"),
    "no statistic": (RUN[:6], "say what to count, such as: panprivacy run a.csv --user user"),
    "a misspelt statistic": ([*RUN[:7], "distict"], "did you mean distinct?"),
    "a size in words": ([*RUN[:7], "distinct,expected=few"], "must be a number of users, or LOW"),
    "a statistic as an option": ([*RUN[:6], "--distinct"], "is written --stat distinct"),
    "a file that is not there": (["run", "b.csv", *RUN[2:]], "cannot read b.csv: No such file"),
    "no user": (["run", "a.csv", *RUN[4:]], "distinct needs --user: the column that says whose"),
    "an epsilon in words": ([*RUN[:5], "one", *RUN[6:]], "--epsilon must be a positive finite"),
    "epsilon 0": ([*RUN[:5], 0, *RUN[6:]], "--epsilon must be a positive finite number"),
    "a window in words": ([*RUN, "--window", "day"], "such as 30s, 15m, 12h, 1d or 1w"),
    "a window of a file": ([*RUN, "--window", "1d"], "--window is for a pipe: a file is there"),
    "one answer every minute": ([*RUN, "--every", 60], "needs --releases of at least 2"),
    "windows with more answers": ([*RUN, "--window", "1d", "--releases", 5], "one answer a window"),
    "by without groups": ([*RUN, "--by", "page"], "--by COL and --groups a,b,c go together"),
    "deltas that are texts": ([*RUN, "--delta", "page"], "must hold whole numbers"),
    "a picture of noise": (
        [*RUN[:7], "threshold,threshold=5,universe=60", "--plot", "x.png"],
        "would be noise",
    ),
    "groups one by one": (
        [*RUN, "--by", "page", "--groups", "home", "--groups", "help"],
        "--groups is there 2 times: give it once, as --groups a,b,c",
    ),
    "epsilon twice": ([*RUN, "--epsilon", 2], "--epsilon is there 2 times: give it once"),
    "more groups of a user than there are": (
        [*RUN, "--by", "page", "--groups", "home", "--per-user", 2],
        "--per-user must be at most 1, as there is 1 group",
    ),
    "a size for deletions": ([*RUN[:7], "distinct,bound=3"], "and signed= are for deletions\n"),
    "a stream of a recipe": (
        ["init", "c.toml", "--recipe", "shop", "--stream", "x"],
        "--stream names the only stream where there is no --recipe",
    ),
    "a token of no configuration": (
        ["token", "x", "--may", "read"],
        "there is no configuration panprivacy.toml: name the one of the service with --config",
    ),
    "a configuration as an argument": (
        ["token", "x", "--may", "read", "mine.toml"],
        "name the configuration with --config mine.toml",
    ),
    "an error in words": (
        ["plan", "distinct", "--epsilon", 1, "--error", "small"],
        "--error must be a share of the number, such as 2% or 0.02",
    ),
    "a zone without its continent": (
        [*RUN[:1], "-", *RUN[2:], "--format", "csv", "--window", "1d", "--zone", "Paris"],
        "--zone must be the name of a time zone, such as Europe/Paris",
    ),
    "no token": (
        ["announce", "http://127.0.0.1:1", "visits"],
        "panprivacy announce http://127.0.0.1:8642 visits --token token.txt",
    ),
    "a dashboard before its service": (
        ["dashboard", "made.toml"],
        "`panprivacy serve` makes it, so start it first",
    ),
    "a picture in JPEG": ([*RUN, "--plot", "x.jpg"], "name a file that ends in .png"),
    "a statistic and a blank": (
        [*RUN[:7], "distinct expected=9"],
        "a comma parts a statistic from its sizes: distinct,expected=9",
    ),
    "a misspelt option": ([*RUN, "--ignore-other"], "did you mean --ignore-others?"),
    "an option that is not there": (
        [*RUN, "--output", "json"],
        "there is no option --output: panprivacy run --help lists them",
    ),
    "a folder of a configuration": (["init", "none/c.toml"], "there is no folder none; make it"),
    "a misspelt command": (["rn"], "No such command 'rn': there are run, "),
    "a configuration that is not there": (["serve", "c.toml"], "`panprivacy init` writes a"),
    "an attack that is not there": (["attack", "nothing"], "the attacks are dictionary, replay"),
    "a misspelt recipe": (["init", "c.toml", "--recipe", "blog"], "'website', 'app', 'hotline'"),
    "a plan of nothing": (["plan", "--epsilon", 1], "panprivacy plan distinct,expected=3000"),
    "advice without numbers": (["advise"], "panprivacy advise --people 300 --every 1d --error 10%"),
}


def test_there_are_thirty_mistakes():
    assert len(COMMANDS) >= 30


@pytest.mark.parametrize("given", COMMANDS)
def test_a_command_speaks_of_its_options(given, tmp_path):
    tmp_path.joinpath("a.csv").write_text("user,page\nada,home\n")
    tmp_path.joinpath("j.csv").write_text('{"user": 1}\n')
    tmp_path.joinpath("null.csv").write_text("user,page\n,home\n")
    tmp_path.joinpath("a.log").touch()
    if "made.toml" in COMMANDS[given][0]:
        assert run_command("init", "made.toml", cwd=tmp_path).code == 0
    arguments, says = COMMANDS[given]
    told = run_command(*arguments, cwd=tmp_path)
    assert told.code == 2
    assert told.stdout == ""
    assert told.stderr.count("\n") == 1
    assert "Traceback" not in told.stderr
    assert not re.search(r"\b(?:format|groups|nulls|by|releases|confidence|epsilon)=", told.stderr)
    assert says is None or says in told.stderr
    assert not (tmp_path / "none").exists()
    assert not [*tmp_path.glob("*.png")]


def test_an_error_may_be_in_percent():
    told = [run_command("plan", "distinct", "--epsilon", 1, "--error", e) for e in ("30%", "0.3")]
    assert told[0].stdout == told[1].stdout
    assert "reach an error of" in told[0].stdout


def test_a_plan_without_use_says_what_would_do():
    told = run_command("plan", "distinct,expected=30:60", "--epsilon", "0.05")
    assert told.code == 0
    found = re.search(
        r"answers are noise: --epsilon ([\d.]+) or .* for expected=(\d+):(\d+) would do, for ±50 %",
        told.stdout,
    )
    assert found, told.stdout
    for epsilon, expected in (
        (found[1], (30, 60)),
        ("0.05", (int(found[2]), int(found[3]))),
    ):
        plan = pp.plan("distinct", expected=expected, epsilon=epsilon)
        assert min(plan.relative_margin(0.95, truth) for truth in plan.error_points) <= 0.5
    good = run_command("plan", "distinct,expected=1000", "--epsilon", 1)
    assert "answers are noise" not in good.stdout


def test_a_plan_prints_its_error():
    plan = pp.plan(pp.DistinctCount, expected=(1_000, 100_000), epsilon=1)
    assert "Fraction" not in str(plan)
    for truth in plan.error_points:
        assert f"±{100 * plan.relative_margin(0.95, truth):.2g} %" in str(plan)
    assert f"{plan.table.nbytes:,} bytes at epsilon 1 for 1 release;" in str(plan)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: pp.plan(pp.Density(universe=10, epsilon=1)), r"pp\.plan\(pp\.Density, \.\.\.\)"),
        (lambda: pp.plan(7, epsilon=1), "there is no statistic of that name: there are"),
        (lambda: pp.plan(int, epsilon=1), "such as DistinctCount, not int"),
        (lambda: pp.Together([pp.Density(universe=10, epsilon=1)]), "by name, .* not a list"),
        (lambda: pp.Together(7), "by name, .* not a int"),
        (
            lambda: pp.Together({one: pp.Density(universe=999, epsilon=1) for one in "ab"}),
            r"make ledger = pp.Ledger\(2\), and each statistic with ledger=ledger",
        ),
        (
            lambda: pp.Grouped(lambda: None, ["a"], epsilon=1),
            "is given epsilon: write it as lambda epsilon:",
        ),
        (lambda: pp.Grouped(lambda a, b: None, ["a"], epsilon=1), "is given epsilon"),
        (lambda: pp.Grouped(lambda epsilon: epsilon, ["a"], epsilon=1), "made a Fraction"),
        (
            lambda: pp.ChangeTriggered(lambda: None, threshold=10, updates=3, epsilon=1),
            "is given epsilon=, releases=, ledger=: write it as partial",
        ),
        (lambda: pp.Windowed(lambda a: None, 60), "is given nothing: write it as lambda:"),
    ],
)
def test_what_is_made_wrongly_gets_one_line(make, says):
    with pytest.raises(pp.PlanError, match=says) as refused:
        make()
    assert "\n" not in str(refused.value)


ENTRIES = {
    "a statistic": lambda: pp.Density(universe=10, epsilon=21),
    "a plan": lambda: pp.plan(pp.Density, universe=10, epsilon=22),
    "a ledger": lambda: pp.Ledger(23),
    "groups": lambda: pp.Grouped(
        lambda epsilon: pp.Density(universe=10, epsilon=epsilon), ["a", "b"], epsilon=24
    ),
    "a counter": lambda: pp.continual.Counter(horizon=3, epsilon=25),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_warning_is_of_the_line_that_uses_the_package(entry):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ENTRIES[entry]()
    assert caught
    assert {one.filename for one in caught} == {__file__}
    assert {one.category for one in caught} == {pp.WeakEpsilonWarning}


def test_a_command_without_its_extra_names_it():
    program = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "coincurve":
            raise ModuleNotFoundError("No module named 'coincurve'", name="coincurve")
sys.meta_path.insert(0, Absent())
sys.argv = "panprivacy task t.json --kind count-nonzero --horizon 3 --epsilon 1".split()
sys.argv += ["--signer", "s.key"]
from panprivacy.cli import main
main()
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert run.returncode == 2
    assert "pip install '.[federated]' in a clone" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device", "/a"), "/a: No space left on device"),
        (OSError(28, "No space left on device", b"/b"), "/b: No space left on device"),
        (OSError("a library wants\na folder"), "a library wants a folder"),
        (OSError(), "the system refused something, and did not say why (OSError)"),
    ],
)
def test_an_error_of_the_system_has_its_path_and_reason(error, says, monkeypatch):
    def refuse(**_):
        raise error

    monkeypatch.setattr("panprivacy.cli.app", refuse)
    told = run_command("stats")
    assert (told.code, told.stderr) == (2, f"panprivacy: {says}\n")


def test_a_recipe_says_already_what_to_count(tmp_path):
    told = run_command("init", "c.toml", "--recipe", "shop", cwd=tmp_path).stdout.splitlines()[-1]
    assert told.startswith("Compare the names and numbers in c.toml with yours, then start: ")
    told = run_command("init", "d.toml", cwd=tmp_path).stdout.splitlines()[-1]
    assert told.startswith("Say in d.toml what to count, then start: ")


@pytest.mark.parametrize(
    ("says", "in_words_of_the_place"),
    [
        ("declare all groups=, or say ignore_others=True", "all groups, or say ignore_others = t"),
        ("bound= and signed= are for deletions=True", "bound and signed are for deletions = true"),
        ('say deletions="strict", or horizon=1', 'say deletions = "strict", or horizon = 1'),
        ("hard must be True or False", "hard must be true or false"),
        ("a pair (lowest, highest)", "a list [lowest, highest]"),
    ],
)
def test_the_service_speaks_toml(says, in_words_of_the_place):
    problem = _problem_of(pp.InputError(says))
    assert in_words_of_the_place in problem.detail
    assert "True" not in problem.detail


def test_a_folder_that_is_not_there_is_named(tmp_path):
    config = tmp_path / "c.toml"
    assert run_command("init", config).code == 0
    text = config.read_text().replace('#directory = "."', 'directory = "nowhere"')
    config.write_text(text)
    told = run_command("serve", config)
    assert told.code == 2
    assert f"there is no folder {tmp_path / 'nowhere'}; make it first" in told.stderr


def test_the_dashboard_starts_without_matplotlib():
    """It writes a cache where it is loaded, which fails where nothing can be written."""
    program = "import sys, panprivacy.service.dashboard.server; print('matplotlib' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert ran.stdout == "False\n"


def test_every_server_has_a_port_of_its_own():
    ports = {"service": ServerConfig().address.port}
    for command in (dashboard, collector):
        ports[command.__name__] = int(signature(command).parameters["listen"].default.split(":")[1])
    ports |= {role.name: port for role, port in aggregator._PORTS.items()}
    assert len({*ports.values()}) == len(ports) == 5


def test_a_compressed_file_is_read_as_it_is(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"user,page\nada,home\n"))
    told = run_command("run", "a.csv.gz", *RUN[2:], cwd=tmp_path)
    assert (told.code, told.stderr) == (0, "")


def test_an_absent_forwarded_address_is_a_null(tmp_path):
    """nginx writes `-` for a header that is not there."""
    lines = '10.0.0.9 "-"\n10.0.0.9 "192.0.2.1, 10.0.0.9"\n10.0.0.9 "-"\n10.0.0.9 "192.0.2.2"\n'
    tmp_path.joinpath("a.log").write_text(lines)
    words = ["run", "a.log", "--user", "xff", "--ip", "--format", "lines"]
    words += ["--pattern", r'"(?P<xff>[^"]*)"$', "--stat", "distinct,expected=100", "--epsilon", 1]
    refused = run_command(*words, cwd=tmp_path)
    assert refused.code == 2
    assert "row 1 (counting from 1): the user id is null" in refused.stderr
    told = run_command(*words, "--nulls", "skip", "--demo", cwd=tmp_path)
    assert told.code == 0, told.stderr
    assert told.stdout.splitlines()[1].split()[-1] == "2"  # the truth
