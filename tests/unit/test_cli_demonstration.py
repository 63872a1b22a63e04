"""The truth beside answers, for demonstrations."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import panprivacy as pp
from panprivacy.cli.demonstration import Demonstration
from panprivacy.intake.programs.intake import ReadRows
from panprivacy.tables.ids import read_ids
from tests.commands import run_command
from tests.unit.test_arrow_types import IDS
from tests.unit.test_cli_run import answers

PLAN = pp.DistinctCount(epsilon=1).plan


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


@pytest.mark.parametrize("case", IDS)
def test_users_of_every_type_that_is_counted_are_told_apart(case):
    """Each column has three rows of two users, the first of whom comes twice."""
    users, expected = IDS[case]
    column = users if isinstance(users, pa.Array) else pa.array(expected)
    demonstration = Demonstration()
    for _ in range(2):
        demonstration.observe(ReadRows(column, None, None, None), 3)
    assert sum(map(len, read_ids(column))) == 3
    states, _ = demonstration._states(PLAN)
    assert sorted(states.tolist()) == [2, 4]


def test_equal_users_of_different_types_are_one():
    """As counting has it: 7, "7" and b"7", and numbers of the same 64 bits."""
    demonstration = Demonstration()
    for users in (
        pa.array([7, -1]),
        pa.array(["7", "18446744073709551615"]),
        pa.array([7, 2**64 - 1], pa.uint64()),
        pa.array([b"7", b"-1"], pa.binary_view()),
        pa.array(["7", "-1"]).dictionary_encode(),
    ):
        demonstration.observe(ReadRows(users, np.array([1, 2]), None, None), 2)
    states, last = demonstration._states(PLAN)
    assert sorted(states.tolist()) == [5, 10]
    assert sorted(last.tolist()) == [1, 2]
    demonstration.observe(ReadRows(pa.array(["18446744073709551616", "07"]), None, None, None), 2)
    assert len(demonstration._states(PLAN)[0]) == 4


def test_where_events_are_counted_any_column_may_come_first():
    demonstration = Demonstration()
    demonstration.observe(ReadRows(pa.array([[1.5], []]), None, None, None), 2)
    demonstration.observe(ReadRows(pa.nulls(3), None, None, None), 3)
    assert demonstration._states(PLAN)[0].sum() == 5


def test_a_parquet_column_of_uuids(tmp_path):
    path = tmp_path / "visits.parquet"
    users = pa.array([(n % 300).to_bytes(16, "big") for n in range(900)])
    pq.write_table(pa.table({"user": users.cast(pa.binary(16)).cast(pa.uuid())}), path)
    words = ("--user", "user", "--epsilon", "1", "--stat", "distinct", "--demo")
    (document,) = answers("run", path, *words)
    assert [row["truth"] for row in document["answers"]] == [300]
