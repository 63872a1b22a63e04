"""The commands `panprivacy serve` and `panprivacy restore`."""

from __future__ import annotations

import pyrage
import pytest

from panprivacy.service import server
from panprivacy.service.kept import restoring
from panprivacy.statistics.checkpoint import Checkpoint
from tests.commands import run_command

IDENTITY = pyrage.x25519.Identity.generate()
STREAM = (
    '[streams.visits]\nepsilon = 1\nwindow = "1d"\n[[streams.visits.stat]]\nname = "distinct"\n'
)


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "service.toml"
    found.write_text(STREAM)
    return found


@pytest.mark.parametrize("fresh", [False, True])
def test_a_configuration_is_served(monkeypatch, file, fresh):
    found = []
    monkeypatch.setattr(server, "serve", lambda *args, **named: found.append((args, named)))
    result = run_command("serve", file.name, *["--fresh"] * fresh, cwd=file.parent)
    assert result.code == 0, result.stderr
    (((config, path), named),) = found
    assert list(config.streams) == ["visits"]
    assert path == file
    assert named == {"fresh": fresh}


def test_without_a_checkpoint_there_is_nothing_to_restore(file):
    result = run_command("restore", file, "--identity", file)
    assert result.code == 2
    assert "has no [checkpoint]: there is nothing to restore" in result.stderr


def test_states_are_unsealed_here_and_handed_over(monkeypatch, file):
    public = str(IDENTITY.to_public())
    file.write_text(f'[checkpoint]\nrecipient = "{public}"\npath = "sealed.age"\n{STREAM}')
    identity = file.with_name("identity")
    identity.write_text(str(IDENTITY))
    found = []
    monkeypatch.setattr(restoring, "hand_over", lambda *args: found.append(args))
    monkeypatch.setattr(Checkpoint, "unsealed", lambda _self, path: b"of " + path.name.encode())
    result = run_command("restore", file, "--identity", identity)
    assert result.code == 0, result.stderr
    assert found == [(file.parent / restoring.DESK, b"of identity")]
    assert result.stdout == "The service goes on: visits.\n"
