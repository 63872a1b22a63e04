"""The command `panprivacy attack`."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from panprivacy.cli import attack
from tests.commands import run_command


@pytest.fixture
def tried(monkeypatch):
    """An attack whose outcome a test chooses."""
    made = SimpleNamespace(ok=True, asked=[])

    def attacked(epsilon):
        made.asked.append(epsilon)
        return SimpleNamespace(
            name="made", epsilon=float(epsilon), ok=made.ok, verdict="as stated", findings=[]
        )

    monkeypatch.setattr(attack, "ATTACKS", {"made": attacked})
    return made


@pytest.mark.parametrize("ok", [True, False])
def test_an_outcome_that_is_not_as_stated_fails(tried, ok):
    tried.ok = ok
    assert run_command("attack", "made").code == (0 if ok else 1)
    result = run_command("attack", "made", "--json", "--epsilon", "1/2")
    assert result.code == (0 if ok else 1)
    document = json.loads(result.stdout)
    assert (document["ok"], document["epsilon"], document["attack"]) == (ok, 0.5, "made")
    assert [str(one) for one in tried.asked][1] == "1/2"


def test_another_name_is_refused(tried):
    result = run_command("attack", "other")
    assert result.code == 2
    assert "there is no attack of this name" in result.stderr
    assert tried.asked == []


@pytest.mark.parametrize("given", [("--epsilon", "0"), ("--plot", "x.pdf")])
def test_wrong_arguments_are_refused_before_the_attack(tried, given):
    result = run_command("attack", "made", *given)
    assert result.code == 2
    assert tried.asked == []
