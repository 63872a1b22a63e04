"""The help of a command lists its options under their headings."""

from __future__ import annotations

import pytest

from tests.commands import run_command


@pytest.mark.parametrize("command", ["run", "plan"])
def test_options_stand_under_headings(command):
    said = run_command(command, "--help").stdout
    headings = [line for line in said.splitlines() if line.endswith(":") and line[:1] != " "]
    assert len(headings) == len(set(headings))
    assert "Arguments:" in headings
    assert "Options:" in headings


def test_each_option_is_listed_once_and_beside_its_like():
    said = run_command("run", "--help").stdout
    assert said.count("\n  --epsilon ") == 1
    lines = said.splitlines()
    heading = ""
    under = {}
    for line in lines:
        if line.endswith(":") and line[:1] not in {"", " "}:
            heading = line
        elif line.startswith("  --"):
            under[line.split()[0].rstrip(",")] = heading
    assert under["--user"] != under["--help"]
    assert under["--help"] == "Options:"
