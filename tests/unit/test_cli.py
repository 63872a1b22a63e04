"""The command line: answers on standard output, or one line on standard error."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import sys
import threading
import weakref
from fractions import Fraction
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.cli.publishing import Schedule, Timed, publish
from panprivacy.cli.run import run
from panprivacy.planning.request import Request
from panprivacy.programs.counting import make_counting
from panprivacy.programs.intake import Columns, Intake, Nulls
from panprivacy.sources import Column
from panprivacy.statistics.catalogue import kinds
from panprivacy.statistics.release import COLUMNS
from panprivacy.statistics.specification import Specification
from tests.commands import run_command
from tests.service.running import PLAIN, shared

SECRET = "patient-4711"


@pytest.fixture
def visits(tmp_path):
    """A file of 3,000 users, each four times, as texts and as numbers."""
    numbers = np.tile(np.arange(3_000), 4)
    table = pa.table({"name": [f"user {n}" for n in numbers], "number": numbers})
    path = tmp_path / "visits.parquet"
    pq.write_table(table, path)
    return path


def refused(*arguments):
    """Run a command that must fail, and return its one line."""
    result = run_command(*arguments)
    assert result.code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("panprivacy: ")
    assert result.stderr.count("\n") == 1
    assert SECRET not in result.stderr
    return result.stderr


def answers(*arguments):
    result = run_command(*arguments, "--json")
    assert result.code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_distinct_and_density_share_epsilon(visits):
    (document,) = answers(
        "run", visits, "--user", "number", "--epsilon", "8",
        "--stat", "distinct,expected=1000:10000", "--stat", "density,universe=6000",
    )  # fmt: skip
    assert document["epsilon"] == 8
    assert set(document) == {"answers", "epsilon", "state_bytes"}
    distinct, density = document["answers"]
    assert [distinct["statistic"], density["statistic"]] == ["distinct", "density"]
    assert list(distinct) == list(COLUMNS)
    assert distinct["value"] == pytest.approx(3_000, rel=0.1)
    assert density["value"] == pytest.approx(0.5, abs=0.05)
    assert distinct["low"] < distinct["value"] < distinct["high"]


@pytest.mark.parametrize("confidence", ["0.5", "0.99"])
def test_confidence_is_passed_on(visits, confidence):
    (document,) = answers(
        "run", visits, "--user", "name", "--epsilon", "1", "--stat", "distinct",
        "--confidence", confidence,
    )  # fmt: skip
    assert document["answers"][0]["confidence"] == float(confidence)


def test_the_state_size_does_not_depend_on_the_stream(visits, tmp_path):
    pq.write_table(pa.table({"name": ["one"]}), tmp_path / "one.parquet")
    sizes = {
        answers("run", path, "--user", "name", "--epsilon", "1", "--stat", "distinct")[0][
            "state_bytes"
        ]
        for path in (visits, tmp_path / "one.parquet")
    }
    assert len(sizes) == 1


def test_no_count_of_rows_and_no_seconds_unless_in_a_demonstration(visits):
    arguments = ("run", visits, "--user", "name", "--epsilon", "1", "--stat", "distinct")
    assert "12,000" not in run_command(*arguments).stdout
    assert "rows" not in run_command(*arguments).stdout
    shown = run_command(*arguments, "--demo").stdout
    assert "12,000 rows" in shown
    assert "3,000" in shown


def test_a_demonstration_adds_the_truth_to_json(visits):
    arguments = ("run", visits, "--user", "name", "--epsilon", "1", "--stat", "distinct", "--demo")
    (document,) = answers(*arguments)
    assert [row["truth"] for row in document["answers"]] == [3_000]
    assert document["demonstration"]["rows"] == 12_000


def test_a_release_costs_its_share_of_what_all_releases_may(visits):
    arguments = ("run", visits, "--user", "name", "--epsilon", "1", "--stat", "distinct")
    (one,), (few,) = answers(*arguments), answers(*arguments, "--releases", "10")
    assert few["epsilon"] == one["epsilon"] == 1
    assert 10 * few["answers"][0]["epsilon"] < 1


def test_null_ids_name_their_row_or_are_skipped(tmp_path):
    path = tmp_path / "visits.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["id"], ["a"], [SECRET], [""], ["b"]])
    arguments = ("run", path, "--user", "id", "--epsilon", "1", "--stat", "distinct")
    assert "row 3 " in refused(*arguments)
    assert run_command(*arguments, "--nulls", "skip").code == 0


def test_an_id_outside_the_universe_names_its_row(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("id\n5\n4711\n")
    line = refused("run", path, "--user", "id", "--epsilon", "9", "--stat", "density,universe=100")
    assert "row 2 " in line
    assert "4711" not in line


def test_a_file_that_turns_bad_midway_leaves_nothing_on_standard_output(tmp_path):
    path = tmp_path / "visits.ndjson"
    path.write_text(f'{{"id": "a"}}\n{{"id": "{SECRET}"\n')
    assert "row 2 " in refused("run", path, "--user", "id", "--epsilon", "1", "--stat", "distinct")


def test_a_truncated_parquet_file_is_refused(visits):
    visits.write_bytes(visits.read_bytes()[:-100])
    refused("run", visits, "--user", "name", "--epsilon", "1", "--stat", "distinct")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "abc", ""])
def test_epsilon_is_a_positive_finite_number(visits, epsilon):
    line = refused("run", visits, "--user", "name", "--stat", "distinct", f"--epsilon={epsilon}")
    assert line == "panprivacy: --epsilon must be a positive finite number\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--user", "name", "--stat", "distinct,memory=1"], "would do"),
        (["--user", "name", "--stat", "distinct,expected=2:1"], "low to high"),
        (["--user", "name", "--stat", "distinct,expected=few"], "LOW:HIGH"),
        (["--user", "name", "--stat", "distinct", "--every", "1"], "--releases"),
        (["--user", "name", "--stat", "distinct", "--releases", "2", "--every", "0"], "above 0"),
        (["--user", "name", "--stat", "distinct", "--releases", "0"], "at least 1"),
        (["--user", "name", "--stat", "distinct", "--confidence", "1"], "between 0 and 1"),
        (["--user", "name", "--stat", "distinct", "--plot", "a.pdf"], ".png"),
        (
            ["--user", "name", "--stat", "distinct", "--stat", "distinct"],
            "two statistics are called distinct: give one another name with as=",
        ),
        (["--user", "name", "--stat", "density"], "density needs universe="),
        (["--user", "name", "--stat", "density,universe=9000"], "whole"),
        (["--user", "name"], " --epsilon 1 --stat distinct,expected=1000:1e6"),
        (["--user", "name", "--tau", "10"], "a part of --stat, such as --stat cropped-sum,tau=N"),
        (["--user", "name", "--at-least=3"], "such as --stat incidence,at_least=2,5"),
        (["--user", "name", "--distinct"], "--distinct is written --stat distinct"),
        (["--user", "name", "--stat", "incidence,bound=3,universe=9,atleast=2"], "at_least=?"),
        (["--user", "other", "--stat", "distinct"], "'name', 'number'"),
        (
            ["--user", "name", "--stat", "median"],
            "distinct, density, incidence, cropped-sum, threshold, heavy",
        ),
        (["--stat", "distinct"], "--user"),
        (["--user", "name", "--stat", "distinct", "--colour"], "--colour"),
    ],
)
def test_wrong_arguments_say_what_is_wrong(visits, arguments, says):
    assert says in refused("run", visits, "--epsilon", "1", *arguments)


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "none.csv"
    assert "none.csv" in refused("run", path, "--user", "a", "--epsilon", "1", "--stat", "distinct")


def test_standard_input_needs_a_format():
    assert "format" in refused("run", "-", "--user", "a", "--epsilon", "1", "--stat", "distinct")


def test_a_pipe_is_counted_as_it_arrives_and_released_on_the_clock():
    command = [
        *PLAIN, "run", "-", "--format", "csv", "--user", "id",
        "--stat", "distinct,expected=100:1000", "--epsilon", "40", "--releases", "3",
        "--every", "1", "--json",
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        watchdog = threading.Timer(60, run.kill)
        watchdog.start()
        run.stdin.write("id\n" + "".join(f"user {n}\n" for n in range(300)))
        run.stdin.flush()
        first = json.loads(run.stdout.readline())
        run.stdin.write("".join(f"user {n}\n" for n in range(900)))
        run.stdin.close()
        rest = [json.loads(line) for line in run.stdout]
        watchdog.cancel()
    assert first["answers"][0]["value"] == pytest.approx(300, rel=0.4)
    assert rest[-1]["answers"][0]["value"] == pytest.approx(900, rel=0.4)
    assert run.returncode == 0


def test_a_picture_is_drawn_for_every_statistic(visits, tmp_path):
    path = tmp_path / "folder" / "picture.png"
    result = run_command(
        "run", visits, "--user", "number", "--epsilon", "4", "--stat", "distinct", "--stat",
        "density,universe=6000", "--plot", path,
    )  # fmt: skip
    assert result.code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_matplotlib_is_refused_with_the_cure(visits, tmp_path, monkeypatch):
    monkeypatch.setattr("panprivacy.cli.options.find_spec", lambda name: None)
    plot = ("--plot", tmp_path / "picture.png")
    result = run_command(
        "run", visits, "--user", "number", "--stat", "distinct", "--epsilon", 1, *plot
    )
    assert (result.code, result.stdout) == (2, "")
    assert "pip install 'panprivacy[plot]'" in result.stderr
    assert not plot[1].exists()


@pytest.mark.parametrize(
    "sizes",
    [
        "distinct,expected=300",
        "cropped-sum,tau=5,universe=999",
        "threshold,threshold=5,universe=9999",
        "incidence,bound=5,universe=9999",
    ],
)
def test_a_plan_shows_errors_that_fall_with_epsilon(sizes):
    lines = run_command("plan", sizes, "--epsilon", "1").stdout.splitlines()
    rows = [line for line in lines if "±" in line]
    column = [float(line.split("±")[-1].split()[0].replace(",", "")) for line in rows]
    assert column == sorted(column, reverse=True)
    assert len(column) == 5


@pytest.mark.long
@pytest.mark.parametrize(
    ("sizes", "reach"),
    [
        ("incidence,bound=30,universe=10_000_000", "0 to 100"),
        ("incidence,bound=2,signed,universe=10_000", "-2 to 2"),
        ("threshold,threshold=10,universe=9999,below=0", "0 to 980"),
        ("threshold,threshold=10,universe=9999,below=5", "-5 to 660"),
        ("cropped-sum,tau=10,bound=30,universe=9999", "-30 to 30"),
        ("distinct,expected=3000,deletions,bound=6", "-6 to 6"),
        ("distinct,expected=3000", None),
    ],
)
def test_a_plan_says_which_states_count_right(sizes, reach):
    said = run_command("plan", sizes, "--epsilon", "1").stdout
    found = re.findall(r"count right from (.*)", said)
    assert found == ([] if reach is None else [reach])


@pytest.mark.long
@pytest.mark.parametrize(
    ("stat", "ends"),
    [
        ("distinct,expected=1000:100000", "1,000 / 10,000 / 100,000"),
        ("cropped-sum,tau=10,expected=1000:100000", "10,000 / 100,000 / 1,000,000"),
    ],
)
def test_a_plan_for_a_range_shows_the_errors_at_its_low_middle_and_high_end(stat, ends):
    lines = run_command("plan", stat, "--epsilon", "1").stdout.splitlines()
    said, where, heads, *rows = lines[-8:]
    assert said.endswith("at the low, middle and high end of its range:")
    assert where == ends
    assert heads.count("bytes") == 4
    row = next(row for row in rows if row.split()[0] == "1")
    shown = [float(one) for one in re.findall(r"±([0-9.]+) %", row)]
    memory = int(re.findall(r"([0-9,]+) bytes", heads)[2].replace(",", ""))
    sizes = Specification.from_text(stat).sizes.within(memory)
    plan = sizes.planned(Request(Fraction(1)))
    told = [100 * plan.relative_margin(0.95, truth) for truth in plan.told_at]
    assert len(shown) == 12
    assert shown[6:9] == pytest.approx(told, rel=0.06)


@pytest.mark.parametrize(
    "arguments",
    [
        ["distinct,expected=1000:100000", "--error", "0.2"],
        ["density,universe=100000", "--error", "0.02"],
        ["cropped-sum,tau=10,universe=1e4", "--error", "0.1"],
        pytest.param(
            ["threshold,threshold=10,universe=1e4", "--error", "0.1"], marks=pytest.mark.long
        ),
        ["heavy-hitters,k=500,total=1e4", "--error", "0.7"],
        ["incidence,bound=3,universe=1e4", "--error", "0.1"],
    ],
)
def test_a_plan_finds_the_memory_for_an_error(arguments):
    result = run_command("plan", *arguments, "--epsilon", "2")
    assert result.code == 0
    assert "bytes of table reach" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["density", "--epsilon", "1"], "density needs universe=: how many users"),
        (["distinct,expected=300", "--epsilon", "0.1", "--error", "0.01"], "would"),
        (["distinct,expected=300", "--epsilon", "zero"], "positive finite"),
        (["density,universe=9,k=2", "--epsilon", "1"], "density has no k="),
        (["cropped-sum,universe=9", "--epsilon", "1"], "cropped-sum needs tau="),
        (["cropped-sum,tau=9", "--epsilon", "1"], "universe= (how many"),
        (["heavy-hitters,k=9", "--epsilon", "1"], "heavy-hitters needs total="),
        (["threshold,universe=9", "--epsilon", "1"], "threshold needs threshold="),
        (["threshold,threshold=9", "--epsilon", "1"], "threshold needs universe="),
        (["threshold,universe=9,threshold=3,tau=2", "--epsilon", "1"], "threshold has no tau="),
        (["incidence", "--epsilon", "1"], "incidence needs bound="),
        (["median", "--epsilon", "1"], "there are distinct, density"),
        (["distinct", "--epsilon", "1", "--releases", "0"], "--releases must be"),
        (["distinct", "--epsilon", "1", "--memory", "0"], "memory must be"),
        (["--epsilon", "1"], "such as: panprivacy plan distinct,expected=3000 --epsilon 1"),
    ],
)
def test_a_plan_that_cannot_be_met_says_what_would(arguments, says):
    assert says in refused("plan", *arguments)


def test_a_plan_says_for_what_it_is_where_nobody_did():
    planned = "planned for expected=1000:1000000000, as nothing else was said"
    assert planned in run_command("plan", "distinct", "--epsilon", "1").stdout
    assert "planned for" not in run_command("plan", "distinct,expected=99", "--epsilon", "4").stdout


def test_the_example_for_a_forgotten_statistic_can_be_copied(visits):
    said = refused("run", visits, "--user", "name", "--epsilon", "1")
    program, *words = shlex.split(said.partition("such as: ")[2])
    assert program == "panprivacy"
    assert run_command(*words).code == 0


@pytest.mark.parametrize("text", ['["patient-4711"]', '[{"id": "patient-4711"}]'])
def test_a_list_in_json_is_told_how_to_become_lines(tmp_path, text):
    path = tmp_path / "visits.json"
    path.write_text(text)
    words = ("run", path, "--user", "id", "--epsilon", "1", "--stat", "distinct")
    assert "name the format ndjson, which is one JSON object a line; jq" in refused(*words)
    assert "NDJSON is no list; jq -c '.[]'" in refused(*words, "--format", "ndjson")


def test_the_bare_program_says_what_it_does_and_how_to_begin(visits):
    result = run_command()
    assert result.code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("panprivacy counts people")
    plan, run = (
        shlex.split(line)[1:] for line in result.stderr.splitlines() if line.startswith("    ")
    )
    assert run_command(*plan).code == 0
    assert run[:3] == ["run", "visits.csv", "--user"]
    assert run_command("run", visits, "--user", "name", *run[4:]).code == 0


def test_commands_describe_themselves():
    for command in ([], ["run"], ["plan"], ["stats"]):
        result = run_command(*command, "--help")
        assert result.code == 0
        assert "Usage" in result.stdout


class TestStats:
    def test_what_statistics_are_is_in_one_column(self):
        lines = run_command("stats").stdout.splitlines()
        rows = [line.partition(" ") for line in lines[: len(kinds())]]
        assert len({len(name) + len(rest) - len(rest.lstrip()) for name, _, rest in rows}) == 1
        assert [name for name, _, _ in rows] == list(kinds())

    @pytest.mark.parametrize("name", kinds())
    def test_every_statistic_is_listed_and_says_how_it_is_written(self, name):
        listed = run_command("stats")
        assert listed.code == 0
        assert name in {line.split()[0] for line in listed.stdout.splitlines() if line}
        told = run_command("stats", name).stdout
        kind = kinds()[name]
        written = re.findall(r"^  (\w+)(?:=| )", told, re.MULTILINE)
        assert written == [*kind.sizes_type.fields(), *kind.query_type.fields()]
        assert told.count("(needed)") == sum(
            entry.required for entry in kind.sizes_type.fields().values()
        )
        assert max(map(len, told.splitlines())) <= 100

    @pytest.mark.parametrize("name", kinds())
    def test_its_example_lacks_nothing(self, name):
        told = run_command("stats", name).stdout
        (example,) = re.findall(r"^  --stat (\S+)$", told, re.MULTILINE)
        text = example.replace("=N", "=2")
        assert Specification.from_text(text).kind.name == name

    def test_another_name_is_refused_with_the_nearest(self):
        assert "did you mean density?" in refused("stats", "densty")
        assert "there are distinct, density" in refused("stats", SECRET)


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["run", "visits.csv", "--stat", "distinct"], "such as --epsilon 1"),
        (["plan", "distinct"], "such as --epsilon 1"),
        (["task", "task.json", "--kind", "mean", "--horizon", "1", "--epsilon", "1"], "it is made"),
        (["ruin"], "there are run, merge, stats, plan,"),
        (["attack"], "'NAME': type, for example, panprivacy attack dictionary"),
        (["token"], "'NAME': type, for example, panprivacy token beacons --may ingest"),
        (["federated"], "Missing command: type, for example, panprivacy federated simulate"),
        (["explain"], "panprivacy explain seized.state"),
        (["aggregator"], "panprivacy aggregator --role helper --task visits.json"),
    ],
)
def test_what_is_missing_or_misspelt_comes_with_a_cure(words, cure):
    assert cure in refused(*words)


def test_the_rows_of_a_pipe_are_not_counted_on():
    """A running count of rows would be state: a row is named within its block."""
    words = [
        "run", "-", "--format", "csv", "--user", "id",
        "--stat", "distinct", "--epsilon", "1", "--releases", "2", "--every", "0.1", "--json",
    ]  # fmt: skip
    with shared().piped(words) as run:
        run.stdin.write(b"id,x\n" + b"a,1\n" * 100)
        run.stdin.flush()
        run.stdout.readline()
        run.stdin.write(b"a,1\n,2\n")
        _, message = run.communicate()
    assert run.returncode == 2
    assert b"row 2 (counting from 1)" in message
    assert b"in each block" in message


def test_a_silent_pipe_leaves_no_batch_behind():
    """Between two blocks the command holds no ids."""

    class Pipe:
        size, stopped = None, False

        def batches_or_ticks(self, _deadline):
            batch = pa.record_batch({"id": ["patient-4711"]})
            held.append(weakref.ref(batch))
            yield batch
            del batch
            alive.append(held[0]() is not None)

    held, alive = [], []
    counting = make_counting(
        [Specification.from_text("distinct,expected=100")], epsilon=Fraction(1)
    )
    publisher = Timed(counting, Schedule(1, None, None), 0.95, None)
    intake = Intake(Columns(Column("id")), Nulls.error)
    for _ in publish(Pipe(), intake, publisher):
        pass
    assert alive == [False]


def test_a_file_has_one_answer(visits):
    arguments = ("--user", "name", "--stat", "distinct", "--epsilon", "1", "--releases", "2")
    assert "pipe" in refused("run", visits, *arguments, "--every", "1")


def test_a_closed_standard_output_is_refused():
    with mock.patch.object(sys, "stdout", None), pytest.raises(pp.PlanError, match="closed"):
        run(file="-", user="id", epsilon="1")
