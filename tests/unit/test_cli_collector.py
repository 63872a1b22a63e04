"""The command `panprivacy collector`."""

from __future__ import annotations

import pytest

from panprivacy.devices.collector import secrets, server
from tests.commands import run_command


@pytest.mark.parametrize(
    ("given", "store", "more"),
    [
        ((), None, {}),
        (("--store", "sqlite:////x", "--fresh"), "sqlite:////x", {"fresh": True}),
        (("--origin", "https://app.example"), None, {"origins": ["https://app.example"]}),
    ],
)
def test_it_collects_with_what_lies_beside_its_task(monkeypatch, tmp_path, given, store, more):
    found = []
    monkeypatch.setattr(server, "collect", lambda *args, **named: found.append((args, named)))
    monkeypatch.setattr(
        secrets.Secrets, "load", classmethod(lambda _cls, file, identity: (file, identity))
    )
    task = tmp_path / "task.json"
    result = run_command("collector", task, "--identity", "id.txt", *given)
    assert result.code == 0, result.stderr
    (((file, loaded, url, _listen), named),) = found
    assert file == task
    assert (loaded[0], str(loaded[1])) == (tmp_path / "task.secret", "id.txt")
    assert url == (store or f"sqlite:///{tmp_path / 'task.sqlite'}")
    assert named == {"fresh": False, "origins": (), **more}


def test_without_secrets_nothing_is_collected(tmp_path):
    result = run_command("collector", tmp_path / "task.json")
    assert result.code != 0
    assert "task.secret" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
