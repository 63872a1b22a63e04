"""The command `panprivacy audit`."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest
import typer

import panprivacy as pp
from panprivacy.audit.subject import ADJACENCIES
from tests.commands import run_command
from tests.exact.test_products import audited, subjects
from tests.service.running import PLAIN


def audit_command(*arguments):
    return run_command("audit", *arguments)


@pytest.mark.long
def test_the_command_prints_rows_that_machines_read(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # other processes import all that is here
    result = audit_command("net-count", "d2", "row-counter", "--epsilon", "0.5", "--json")
    assert result.code == 0, result.stderr
    product, control, leak = json.loads(result.stdout)
    keys = ["name", "kind", "adjacency", "claimed", "delta", "limits", *ADJACENCIES]
    assert list(product) == list(control) == [*keys, "set_aside", "verdict"]
    assert 0 < product["set_aside"] < 0.1
    assert product["limits"] == {"add_remove": 0.5, "replace": 1, "event": 0.5}
    assert product["kind"] == "product"
    assert product["claimed"] == 0.5
    assert 0 < product["add_remove"] <= 0.5
    assert product["verdict"] == "holds"
    assert control["add_remove"] == pytest.approx(4.58, rel=1e-3)
    assert control["verdict"] == "caught"
    assert leak["add_remove"] == "inf"
    assert leak["kind"] == "control"


def test_a_row_says_what_its_claim_is_about(monkeypatch, capsys):
    """Else the loss of a user of several events looks as if it exceeded a claim for one event."""
    events = dataclasses.replace(subjects(1)["density-sample"], adjacency="event")
    command = sys.modules["panprivacy.cli.audit"]
    monkeypatch.setattr(command, "known_names", lambda: [events.name])
    monkeypatch.setattr(command, "rows", lambda *_: [audited(events)])
    with pytest.raises(typer.Exit):
        command.audit([events.name], epsilon="1", json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["adjacency"], row["claimed"], row["delta"]) == ("event", 1, 0)
    assert row["limits"] == {"add_remove": "inf", "replace": 2, "event": 1}


def test_the_command_says_in_words_what_attains_the_loss():
    result = audit_command("r1")
    assert result.code == 0
    assert "caught" in result.stdout
    assert "reads the state" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 of 1 controls caught."


OWN = """
from fractions import Fraction
import panprivacy as pp
from panprivacy.audit import Subject

SEEN = []

class Remembers(pp.Density):
    def update(self, users, deltas=None):
        super().update(users)
        SEEN.extend(users)

def subject(make):
    return Subject("mine", "product", "a class of my own", make, Fraction(1), [[[0]]])

good = subject(lambda coins: pp.Density(universe=2, epsilon=1, coins=coins))
bad = subject(lambda coins: Remembers(universe=2, epsilon=1, coins=coins))
"""


@pytest.mark.long
@pytest.mark.traces
def test_a_program_of_ones_own_is_audited_as_module_and_variable(tmp_path):
    (tmp_path / "my_audit.py").write_text(OWN)
    good = run_command("audit", "my_audit:good", cwd=tmp_path)
    assert good.code == 0, good.stderr
    assert good.stdout.splitlines()[-1] == "1 of 1 products hold."
    bad = run_command("audit", "my_audit:bad", "--json", cwd=tmp_path)
    assert bad.code == 1
    assert json.loads(bad.stdout)[0]["verdict"] == "refused"
    assert json.loads(bad.stdout)[0]["replace"] is None
    words = run_command("audit", "my_audit:bad", cwd=tmp_path).stdout
    assert "the variable my_audit.SEEN" in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["densty"], "there is nothing of this name"),
        (["--epsilon", "0"], "--epsilon"),
        (["no_such_module:thing"], "write it as module:variable"),
        (["json:dumps"], "write it as module:variable"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, message):
    result = audit_command(*arguments)
    assert result.code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


def test_the_command_fails_when_a_product_leaks(monkeypatch, capsys):
    product = subjects(1)["density-sample"]
    twice = lambda coins: pp.Density(universe=3, cells=2, epsilon=2, coins=coins)  # noqa: E731
    leaky = dataclasses.replace(product, make=twice)
    command = sys.modules["panprivacy.cli.audit"]
    monkeypatch.setattr(command, "known_names", lambda: [leaky.name])
    monkeypatch.setattr(command, "rows", lambda *_: [audited(leaky)])
    with pytest.raises(typer.Exit) as stopped:
        command.audit([leaky.name], epsilon="1", json=False)
    assert stopped.value.exit_code == 1
    assert "0 of 1 products hold: not density-sample." in capsys.readouterr().out


@pytest.mark.long
def test_a_reader_who_leaves_is_not_taken_for_a_leak():
    """With exit 1 a closed pipe would look like a product that exceeds its claim.

    What the command started ends with it: the pipe of errors closes, or this would wait for ever.
    """
    command = '"$0" -c "$1" audit r1 d2 | head -1; echo ${PIPESTATUS[0]}'
    words = ["bash", "-c", command, sys.executable, PLAIN[-1]]
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    assert run.stdout.splitlines()[-1] == "141"
    assert run.stderr == ""
