"""The help of a command lists its options under their headings."""

from __future__ import annotations

import pytest
from typer.main import get_command

from panprivacy.cli import _COMMANDS, app
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


def every_option():
    """Each option of each command that is no argument, with a value if it takes one."""
    group = get_command(app)
    context = group.make_context("panprivacy", ["run"], resilient_parsing=True)
    found = []
    for name in _COMMANDS:
        command = group.get_command(context, name)
        inner = getattr(command, "commands", {"": command})
        for within, one in inner.items():
            words = [name, within] if within else [name]
            found += [
                (words, option)
                for option in one.params
                if option.param_type_name == "option" and option.name != "help"
            ]
    return found


OPTIONS = every_option()


def test_there_are_options_of_each_command():
    assert {words[0] for words, _ in OPTIONS} >= {*_COMMANDS} - {"stats"}
    assert len(OPTIONS) > 80


@pytest.mark.parametrize(
    ("words", "option"), OPTIONS, ids=lambda one: getattr(one, "name", None) or " ".join(one)
)
def test_an_option_with_one_value_is_refused_if_it_is_there_twice(words, option):
    given = [option.opts[0]] if option.is_flag else [option.opts[0], "1"]
    said = run_command(*words, *given, *given)
    assert said.stdout == ""
    assert said.code == 2
    assert said.stderr.count("\n") == 1
    refused = f"panprivacy: {option.opts[0]} is there 2 times: give it once"
    assert said.stderr.startswith(refused) is not option.multiple


def test_commas_are_shown_where_a_list_is_one_value():
    said = run_command("run", "--groups", "a", "--groups", "b").stderr
    assert said.endswith("give it once, as --groups a,b,c\n")
    assert run_command("--version", "--version").stderr.startswith("panprivacy: --version is there")
