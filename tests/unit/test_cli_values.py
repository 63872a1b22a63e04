"""`panprivacy run --value`: a column of numbers, in every format, counted by a histogram."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.commands import run_command

VALUES = np.array([0.5, 1.5, 1.25, 7, 1e3, -3, 2.5e0])
COUNT = ("--stat", "histogram,low=0,high=8,bins=4", "--epsilon", "100000")
TRUTH = [1, 3, 1, 0, 1, 1]


def written(kind, path, values=VALUES):
    if kind == "csv":
        path.write_text("id,ms\n" + "".join(f"x,{one}\n" for one in values))
    elif kind == "lines":
        path.write_text("".join(f"took {one}\n" for one in values))
    elif kind == "ndjson":
        path.write_text("".join(json.dumps({"ms": one, "id": 3}) + "\n" for one in values))
    elif kind == "texts":
        path.write_text("".join(json.dumps({"ms": str(one)}) + "\n" for one in values))
    elif kind == "parquet":
        pq.write_table(pa.table({"ms": values}), path)
    return path


def counted(*arguments):
    found = run_command("run", *arguments, "--value", "ms", "--json")
    assert (found.code, found.stderr) == (0, "")
    answers = json.loads(found.stdout)["answers"]
    assert {one["question"] for one in answers} == {"count"}
    return [one["value"] for one in answers]


@pytest.mark.parametrize("kind", ["csv", "ndjson", "texts", "parquet"])
def test_numbers_of_every_format_are_counted(kind, tmp_path):
    path = written(kind, tmp_path / "events")
    assert counted(path, "--format", "ndjson" if kind == "texts" else kind, *COUNT) == TRUTH


def test_numbers_in_lines_are_counted(tmp_path):
    path = written("lines", tmp_path / "events")
    pattern = r"took (?P<ms>\S+)"
    assert counted(path, "--format", "lines", "--pattern", pattern, *COUNT) == TRUTH


def test_a_row_without_a_value_may_be_left_out(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("id,ms\nx,1\nx,\nx,1.5\n")
    assert counted(path, "--nulls", "skip", *COUNT)[1] == 2
    refused = run_command("run", path, "--value", "ms", *COUNT)
    assert "row 2" in refused.stderr
    assert "value is null" in refused.stderr


def test_questions_are_answered(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("ms\n" + "".join(f"{one / 100}\n" for one in range(800)))
    stat = "histogram,low=0,high=8,bins=800,quantile=0.25,0.5,mean"
    found = run_command("run", path, "--value", "ms", "--stat", stat, "--epsilon", "100000")
    lines = [line.split() for line in found.stdout.splitlines()[1:4]]
    assert [" ".join(words[:-4]) for words in lines] == ["quantile 0.25", "quantile 0.5", "mean"]
    assert [float(words[-4]) for words in lines] == pytest.approx([2, 4, 4], abs=0.02)


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
@pytest.mark.parametrize("bad", ["x7x", "nan"])
def test_a_value_that_is_no_number_is_refused_by_row(kind, bad, tmp_path):
    path = written(kind, tmp_path / "events", ["1", "2", bad])
    found = run_command("run", path, "--format", kind, "--value", "ms", *COUNT)
    assert found.code != 0
    assert "row 3" in found.stderr
    assert "x7x" not in found.stderr


def test_true_is_no_number(tmp_path):
    path = written("ndjson", tmp_path / "events", [1, True])
    found = run_command("run", path, "--format", "ndjson", "--value", "ms", *COUNT)
    assert "row 2" in found.stderr
    assert "'ms' must hold numbers" in found.stderr


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((*COUNT,), "histogram needs --value"),
        ((*COUNT, "--value", "ms", "--user", "id"), "users or values"),
        (("--stat", "distinct", "--epsilon", "1", "--value", "ms"), "--value is for"),
        (
            ("--stat", "running-distinct,horizon=1", *COUNT[:2], "--epsilon", "9", "--value", "ms"),
            "users or values",
        ),
    ],
)
def test_a_stream_has_users_or_values(given, reason, tmp_path):
    path = written("csv", tmp_path / "events.csv")
    found = run_command("run", path, *given)
    assert found.code != 0
    assert reason in found.stderr


def stays(path):
    """Users 0 to 1,999 of two visits each: 30 and 90 seconds, or 60 and 240."""
    users = np.repeat(np.arange(2_000), 2)
    seconds = np.where(users < 1_000, [30, 90] * 2_000, [60, 240] * 2_000)
    pq.write_table(pa.table({"visitor": users, "seconds": seconds * 1.0}), path)
    return path


def test_amounts_of_users_are_counted_beside_the_truth(tmp_path):
    path = stays(tmp_path / "stays.parquet")
    stat = "incidence,universe=3_000,bound=60,unit=60,mean,histogram=1,4,quantile=0.9"
    columns = "--user", "visitor", "--value", "seconds"
    found = run_command("run", path, *columns, "--stat", stat, "--epsilon", "100000", "--demo")
    rows = [line.rsplit(maxsplit=1) for line in found.stdout.splitlines()]
    truth = {row[0].split("  ")[0].strip(): row[1] for row in rows if len(row) == 2}
    assert truth["between 1 to 3"] == "1,000"
    assert truth["at least 4"] == "1,000"
    assert truth["quantile 0.9"] == "5"
    assert truth["mean"] == "3.5000"


@pytest.mark.parametrize(
    ("columns", "stat", "reason"),
    [
        ((), "cropped-sum,tau=9,universe=9_000,unit=60", "needs --value"),
        (("--value", "seconds"), "distinct", "--value is for"),
        (("--value", "seconds"), "cropped-sum,tau=9,universe=9_000,unit=0", "above 0"),
    ],
)
def test_what_amounts_do_not_go_with_is_refused(columns, stat, reason, tmp_path):
    path = stays(tmp_path / "stays.parquet")
    options = "--user", "visitor", *columns, "--stat", stat, "--epsilon", "9"
    found = run_command("run", path, *options)
    assert found.code == 2
    assert reason in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_histogram_shows_the_truth(tmp_path):
    path = tmp_path / "ms.csv"
    path.write_text("ms\n" + "".join(f"{one / 10}\n" for one in range(1_000)))
    stat = "histogram,low=0,high=50,bins=5,quantile=0.5,0.9,mean,cumulative,counts"
    found = run_command("run", path, "--value", "ms", "--stat", stat, "--epsilon", "1", "--demo")
    rows = [line.rsplit(maxsplit=1) for line in found.stdout.splitlines()]
    truth = {row[0].split("  ")[0].strip(): row[1] for row in rows if len(row) == 2}
    assert truth["quantile 0.5"] == "49.90"
    assert truth["quantile 0.9"] == "89.90"
    assert truth["mean"] == "37.48"  # values above 50 count as 50
    assert truth["share below 20"] == "0.2000"
    assert truth["count 10 to 20"] == "100"
    assert truth["count 50 to inf"] == "500"
