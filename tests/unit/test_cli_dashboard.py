"""The command `panprivacy dashboard`."""

from __future__ import annotations

import sys

from panprivacy.service.config import loading
from panprivacy.service.dashboard import server
from tests.commands import run_command


def test_pages_are_served_of_a_configuration(monkeypatch, tmp_path):
    found = []
    monkeypatch.setattr(loading, "load", lambda path: f"loaded {path}")
    monkeypatch.setattr(server, "serve", lambda *args: found.append(args))
    assert run_command("dashboard", "c.toml", cwd=tmp_path).code == 0
    (first,) = found
    assert first[:3] == ("loaded c.toml", tmp_path / "c.toml", "127.0.0.1:8643")
    assert run_command("dashboard", "c.toml", "--listen", "unix:/s", cwd=tmp_path).code == 0
    assert found[1][2] == "unix:/s"


def test_a_bad_configuration_is_told_before_the_pages_are_missed(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "panprivacy.service.dashboard.server", None)
    result = run_command("dashboard", tmp_path / "none.toml")
    assert result.code == 2
    assert "none.toml" in result.stderr
