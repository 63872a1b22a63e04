"""`panprivacy run` of a running count: an answer a step, without a column of users."""

from __future__ import annotations

import json
import signal
import time
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.cli.output import Printed
from tests.commands import run_command
from tests.service.running import shared

COUNT = ("--stat", "running-count,horizon=1000", "--epsilon", "20")
PATIENCE = 60


@pytest.fixture
def log(tmp_path):
    """A log of 900 requests for two pages."""
    line = '10.0.0.{} - - [10/Oct/2000:13:55:36 -0700] "GET /{} HTTP/1.1" 200 {}\n'
    path = tmp_path / "access.log"
    path.write_text("".join(line.format(n % 9, "ab"[n % 3 == 0], n) for n in range(900)))
    return path


def test_a_file_has_one_answer_and_needs_no_users(log):
    found = run_command("run", log, "--format", "combined", *COUNT)
    assert (found.code, found.stderr) == (0, "")
    row = next(line for line in found.stdout.splitlines() if line.startswith("running count"))
    assert abs(int(row.split()[2]) - 900) < 20
    assert "adding or removing one event" in found.stdout
    assert "what is hidden is one event, not all events of a user" in found.stdout


@pytest.mark.parametrize("extension", ["csv", "tsv", "parquet", "arrow"])
def test_rows_of_every_format_are_counted_by_whichever_column_comes_first(tmp_path, extension):
    table = pa.table({"any": ["", None, "x"] * 100, "amount": np.arange(300)})
    path = tmp_path / f"events.{extension}"
    if extension == "parquet":
        pq.write_table(table, path)
    elif extension == "arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    else:
        lines = [",".join([str(row["any"] or ""), str(row["amount"])]) for row in table.to_pylist()]
        text = "\n".join(["any,amount", *lines]) + "\n"
        path.write_text(text.replace(",", "\t") if extension == "tsv" else text)
    found = run_command("run", path, *COUNT, "--json")
    assert found.code == 0, found.stderr
    (answer,) = json.loads(found.stdout)["answers"]
    assert answer["low"] - 5 <= 300 <= answer["high"] + 5
    assert (answer["question"], answer["epsilon"]) == ("running_count", 0)


def test_lines_and_amounts(tmp_path, log):
    lines = run_command("run", log, "--format", "lines", "--pattern", r"^(?P<ip>\S+)", *COUNT)
    assert lines.code == 0, lines.stderr
    amounts = run_command(
        "run", log, "--format", "combined", "--delta", "body_bytes_sent", "--json",
        "--stat", "running-count,horizon=1,bound=900", "--epsilon", "20",
    )  # fmt: skip
    (answer,) = json.loads(amounts.stdout)["answers"]
    assert abs(answer["value"] - 899 * 900 / 2) < 2_000
    beyond = run_command("run", log, "--format", "combined", "--delta", "body_bytes_sent", *COUNT)
    assert (beyond.code, beyond.stdout) == (2, "")
    assert "delta must be 0 to 1, as the bound says: for more, plan with bound=" in beyond.stderr


def test_by_group(log):
    words = ("--by", "path", "--groups", "/a,/b", *COUNT, "--json")
    found = run_command("run", log, "--format", "combined", *words)
    answers = json.loads(found.stdout)["answers"]
    assert {one["group"]: round(one["value"] / 100) for one in answers} == {"/a": 6, "/b": 3}
    several = run_command("run", log, "--format", "combined", *words, "--per-user", "2")
    assert "an event is in one group, so per_user must be 1" in several.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--stat", "distinct"), "distinct needs --user: the column that says whose an event is"),
        (("--stat", "distinct", *COUNT, "--user", "remote_addr"), "one event and one user"),
        ((*COUNT, "--releases", "3"), "leave out --releases"),
        ((*COUNT, "--window", "1d"), "a running count goes on"),
        ((*COUNT, "--stat", "running-count,horizon=7"), "need the same horizon="),
        (("--stat", "running-count,horizon=1", "--every", "1"), "a horizon= of at least 2"),
        ((*COUNT, "--every", "3"), "--every is for a pipe"),
        (("--stat", "running-distinct", "--user", "user"), "running-distinct needs horizon="),
    ],
)  # fmt: skip
def test_what_does_not_go_together(log, words, message):
    epsilon = () if "--epsilon" in words else ("--epsilon", "1")
    found = run_command("run", log, "--format", "combined", *words, *epsilon)
    assert (found.code, found.stdout) == (2, "")
    (line,) = found.stderr.splitlines()
    assert message in line


def test_events_of_ndjson_are_counted_by_the_line(tmp_path):
    path = tmp_path / "events.ndjson"
    path.write_text('{"id": 1}\n\n{"name": ["ann", null]}\n{}\n{"id": null}\n' * 1_000)
    found = run_command("run", path, *COUNT[:2], "--epsilon", "1000", "--json")
    assert json.loads(found.stdout)["answers"][0]["value"] == pytest.approx(4_000, abs=9)
    path.write_text('{"id": 1}\n[2]\n')
    assert "this is not one JSON object on one line" in run_command("run", path, *COUNT).stderr


def test_plan_and_stats_tell_it():
    planned = run_command("plan", "running-count,horizon=1e6", "--epsilon", "1")
    assert "how many events so far, at the end of each of up to 1,000,000 steps?" in planned.stdout
    assert "hides one event, not one user" in run_command("stats", "running-count").stdout


@pytest.mark.long
def test_an_answer_every_step_and_a_picture_of_them(tmp_path):
    picture = tmp_path / "steps.png"
    words = ("--every", "0.3", *COUNT, "--json", "--demo", "--plot", str(picture))
    with shared().piped(["run", "-", "--format", "csv", *words]) as process:
        process.stdin.write(b"what\n" + b"visit\n" * 500)
        process.stdin.flush()
        first = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert picture.read_bytes().startswith(b"\x89PNG"), "it is drawn as it runs"
        process.stdin.write(b"visit\n" * 700)
        process.stdin.flush()
        documents = first
        while documents[-1]["answers"][0]["truth"] < 1_200:
            documents.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        printed, said = process.communicate(timeout=PATIENCE)
    documents += map(json.loads, printed.splitlines())
    assert process.returncode == -signal.SIGTERM
    assert said.decode().startswith("panprivacy: ended by SIGTERM")
    answers = [one["answers"][0] for one in documents]
    assert [one["truth"] for one in answers] == sorted(one["truth"] for one in answers)
    assert answers[-1]["truth"] == 1_200
    assert all(one["low"] - 20 <= one["truth"] <= one["high"] + 20 for one in answers)
    assert [bool(one.get("interrupted")) for one in documents] == [False] * (len(answers) - 1) + [
        True
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_no_more_answers_than_the_horizon():
    words = ["--every", "0.1", "--json", "--epsilon", "9", "--stat", "running-count,horizon=3"]
    with shared().piped(["run", "-", "--format", "csv", *words]) as process:
        process.stdin.write(b"what\nvisit\n")
        process.stdin.flush()
        first = [process.stdout.readline() for _ in range(2)]
        time.sleep(0.5)
        printed, said = process.communicate(b"visit\n" * 300, timeout=PATIENCE)
    assert (process.returncode, said) == (0, b"")
    (last,) = printed.splitlines()
    assert all(first)
    assert abs(json.loads(last)["answers"][0]["value"] - 301) < 20, "it counts to the end"


def printed(*answers):
    """What a command prints, one moment after the other; None for one that is lost."""
    count = pp.DistinctCount(expected=100, epsilon=4)
    each = [
        count.internals.releasing.lost() if one is None else pp.Answers([one]) for one in answers
    ]
    return [Printed(one, count.guarantee, count.plan.table.nbytes, 0.95) for one in each]


def test_one_answer_that_is_lost_is_told_by_how_it_ends(log):
    answer = pp.DistinctCount(expected=100, epsilon=4).release()
    words = "run", log, "--format", "combined", "--epsilon", "1", "--stat", "distinct", "--user"
    codes = []
    for several in ((answer, answer), (None, answer), (answer, None)):
        with mock.patch("panprivacy.cli.run.publish", return_value=printed(*several)):
            codes.append(run_command(*words, "remote_addr").code)
    assert codes == [0, 1, 1]


def test_a_picture_has_the_last_steps_alone(log, tmp_path):
    answer = pp.DistinctCount(expected=100, epsilon=4).release()
    words = "run", log, "--format", "combined", *COUNT
    with (
        mock.patch("panprivacy.cli.run.publish", return_value=printed(*[answer] * 5)),
        mock.patch("panprivacy.cli.picture._MOST_DRAWN", 2),
        mock.patch("panprivacy.intake.programs.pictures.plot_steps") as draw,
    ):
        assert run_command(*words, "--plot", tmp_path / "steps.png").code == 0
    _, _, steps = draw.call_args.args
    assert len(steps) == 2
