"""The command `panprivacy doctor`."""

from __future__ import annotations

import json

import pytest

from panprivacy.cli import doctor
from panprivacy.ground.hygiene.doctor import Measure
from tests.commands import run_command

GOOD = Measure(name="swap", ok=True, says="there is none", fix="turn it off")
BAD = Measure(name="dumps", ok=False, says="a crash writes memory", fix="set the limit to 0")


@pytest.fixture
def found(monkeypatch):
    measures = [GOOD, BAD]
    monkeypatch.setattr(doctor, "findings", lambda: measures)
    return measures


def test_what_is_not_right_is_told_with_its_cure_and_the_command_fails(found):
    result = run_command("doctor")
    assert result.code == 1
    first, second, *cures = result.stdout.splitlines()
    assert first.split()[:2] == ["ok", "swap"]
    assert second.split()[:2] == ["NO", "dumps"]
    assert cures == ["To mend dumps: set the limit to 0."]


def test_json_has_a_cure_for_what_is_wrong_alone(found):
    result = run_command("doctor", "--json")
    document = json.loads(result.stdout)
    assert (result.code, document["ok"]) == (1, False)
    assert [one["fix"] for one in document["findings"]] == [None, "set the limit to 0"]
    assert [one["name"] for one in document["findings"]] == ["swap", "dumps"]


def test_where_all_is_right_the_command_succeeds(found):
    found.remove(BAD)
    assert run_command("doctor").code == 0
    assert json.loads(run_command("doctor", "--json").stdout)["ok"]
