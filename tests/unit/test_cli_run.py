"""The command line: answers on standard output, or one line on standard error."""

from __future__ import annotations

import csv
import json
import shlex
import sys
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.cli.run import run
from panprivacy.statistics.frames import COLUMNS
from tests.commands import run_command

SECRET = "patient-4711"


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
    promised = {"epsilon", "delta", "adjacency", "conditions", "replace", "unseen", "crash"}
    promised |= {"crash_again"}
    assert set(document) == {"answers", "state_bytes", *promised}
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
            "distinct, density, overlap, both, incidence, cropped-sum, threshold,",
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


@pytest.mark.long
def test_a_picture_is_drawn_for_every_statistic(visits, tmp_path):
    path = tmp_path / "picture.png"
    result = run_command(
        "run", visits, "--user", "number", "--epsilon", "4", "--stat", "distinct", "--stat",
        "density,universe=6000", "--plot", path,
    )  # fmt: skip
    assert result.code == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_matplotlib_is_refused_with_the_cure(visits, tmp_path, monkeypatch):
    monkeypatch.setattr("panprivacy.statistics.plots.find_spec", lambda name: None)
    plot = ("--plot", tmp_path / "picture.png")
    result = run_command(
        "run", visits, "--user", "number", "--stat", "distinct", "--epsilon", 1, *plot
    )
    assert (result.code, result.stdout) == (2, "")
    assert "pip install '.[plot]' in a clone, or 'panprivacy[plot]'" in result.stderr
    assert not plot[1].exists()


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
    assert "say --format ndjson, which is one JSON object a line; jq" in refused(*words)
    assert "NDJSON is no list; jq -c '.[]'" in refused(*words, "--format", "ndjson")


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (["run", "visits.csv", "--stat", "distinct"], "such as --epsilon 1"),
        (["plan", "distinct"], "such as --epsilon 1"),
        (["task", "task.json", "--kind", "mean", "--horizon", "1", "--epsilon", "1"], "it is made"),
        (["ruin"], "there are run, merge, overlap, join, stats, plan,"),
        (["attack"], "'NAME': type, for example, panprivacy attack dictionary"),
        (["token"], "'NAME': type, for example, panprivacy token beacons --may ingest"),
        (["federated"], "Missing command: type, for example, panprivacy federated simulate"),
        (["explain"], "panprivacy explain seized.state"),
        (["aggregator"], "panprivacy aggregator --role helper --task visits.json"),
    ],
)
def test_what_is_missing_or_misspelt_comes_with_a_cure(words, cure):
    assert cure in refused(*words)


def test_a_file_has_one_answer(visits):
    arguments = ("--user", "name", "--stat", "distinct", "--epsilon", "1", "--releases", "2")
    assert "pipe" in refused("run", visits, *arguments, "--every", "1")


def test_a_closed_standard_output_is_refused():
    with mock.patch.object(sys, "stdout", None), pytest.raises(pp.PlanError, match="closed"):
        run(file="-", user="id", epsilon="1")
