"""The command `panprivacy advise`."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from unittest import mock

import pytest

import panprivacy as pp
from panprivacy.cli.advise import designs, ranked
from tests.commands import run_command
from tests.unit.test_cli_run import refused

DAY = 86_400


def advised(people, every, error):
    result = run_command("advise", "--people", people, "--every", every, "--error", error)
    assert result.code == 0, result.stderr
    return result.stdout


def test_three_designs_are_shown_with_error_memory_and_what_they_hide():
    said = advised(300, "1d", "10%")
    assert [line[0] for line in said.splitlines() if re.match(r"\d\. ", line)] == ["1", "2", "3"]
    for label in ("error:", "hides:", "a year:", "memory:"):
        assert said.count(label) == 3
    assert max(map(len, said.splitlines())) <= 80


def test_the_years_loss_is_that_of_the_guarantee():
    plan = pp.plan("distinct", expected=10_000, epsilon=1)
    said = " ".join(advised(10_000, "1d", "0.05").split())
    assert plan.guarantee.says_of_year(DAY) in said


def test_the_first_design_is_the_one_that_was_asked_for_if_it_is_exact_enough():
    first, *_ = ranked(designs(10_000, DAY, 0.05), 0.05)
    assert (first.stat, first.window, first.epsilon) == ("distinct,expected=10000", DAY, 1)
    assert first.errors == (pp.plan("distinct", expected=10_000, epsilon=1).relative_margin(0.95),)


def test_few_people_are_advised_to_count_events():
    first, *rest = ranked(designs(60, DAY, 0.1), 0.1)
    assert first.guarantee.adjacency == "event"
    assert first.error <= 0.1
    assert rest
    assert all(one.error > 0.1 for one in rest)


def test_designs_that_miss_say_so_and_the_text_names_what_is_left():
    said = " ".join(advised(100, "1d", "1%").split())
    assert said.count("misses 1 %") == said.count("error:") == 3
    assert "Small pages can be read together" in said


def test_a_design_that_misses_at_one_end_says_when():
    said = " ".join(advised(300, "1d", "10%").split())
    assert "; misses 10 % if the same people come in all of it" in said
    assert "misses" not in " ".join(advised(10_000, "1d", "50%").split())


def test_the_lines_to_copy_run(tmp_path):
    log = tmp_path / "access.log"
    line = '10.0.0.{} - - [21/Nov/2026:08:00:00 +0000] "GET / HTTP/1.1" 200 512\n'
    log.write_text("".join(line.format(host) for host in range(200)))
    commands = [one.command.replace("\\\n", " ") for one in designs(300, DAY, 0.1)]
    assert len(commands) == 4
    for command in commands:
        with (
            subprocess.Popen(["cat", log], stdout=subprocess.PIPE) as feed,
            mock.patch.object(sys, "stdin", feed.stdout),
        ):
            result = run_command(*shlex.split(command)[1:])
        assert result.code == 0, result.stderr
        assert "95 % interval" in result.stdout


def test_what_is_missing_is_asked_for_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    with mock.patch.object(sys, "stdin", Terminal("300\n1d\n10%\n")):
        result = run_command("advise")
    assert result.code == 0, result.stderr
    assert "How many people come between two answers [300]:" in result.stdout
    assert "1. " in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "say --people, such as: panprivacy advise --people 300 --every 1d --error 10%"),
        (["--people", "300"], "say --every"),
        (["--people", "0", "--every", "1d", "--error", "0.1"], "people must be"),
        (["--people", "300", "--every", "daily", "--error", "0.1"], "is not a length of time"),
        (["--people", "300", "--every", "1d", "--error", "exact"], "such as 10% or 0.1"),
        (["--people", "300", "--every", "1d", "--error", "10"], "less than 100 %"),
    ],
)
def test_wrong_answers_are_refused_in_one_line(arguments, says):
    with mock.patch.object(sys, "stdin", io.StringIO()):
        assert says in refused("advise", *arguments)
