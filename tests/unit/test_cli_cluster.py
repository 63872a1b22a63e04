"""The command `panprivacy cluster`."""

from __future__ import annotations

from panprivacy.cluster import server
from panprivacy.service.config import loading
from tests.commands import run_command


def test_a_configuration_is_served_by_so_many_shards(monkeypatch, tmp_path):
    found = []
    monkeypatch.setattr(loading, "load", lambda path: f"loaded {path}")
    monkeypatch.setattr(server, "serve_cluster", lambda *args, **named: found.append((args, named)))
    result = run_command("cluster", "c.toml", "--shards", 3, "--fresh", cwd=tmp_path)
    assert result.code == 0, result.stderr
    (((config, shards, file), named),) = found
    assert (config, shards, file) == ("loaded c.toml", 3, tmp_path / "c.toml")
    assert named == {"address": None, "fresh": True}


def test_a_configuration_that_is_not_there_starts_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(server, "serve_cluster", lambda *_, **__: 1 / 0)
    result = run_command("cluster", tmp_path / "none.toml", "--shards", 2)
    assert result.code == 2
    assert "none.toml" in result.stderr
