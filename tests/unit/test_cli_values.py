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
