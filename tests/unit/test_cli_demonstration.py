"""The truth beside answers, for demonstrations."""

from __future__ import annotations

from tests.commands import run_command
from tests.unit.test_cli_run import answers


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
