"""The command `panprivacy announce`."""

from __future__ import annotations

import pytest

from panprivacy.cli import announce
from panprivacy.service.client import UnsureError
from tests.commands import run_command

URL = "http://127.0.0.1:1"
TOLD = {"number": 1_234, "window_began": "2026-01-05", "left": 5_678}


@pytest.fixture
def asked(monkeypatch):
    """What the service is asked."""
    found = []
    monkeypatch.setattr(announce, "announced", lambda *asked: (found.append(asked), TOLD)[1])
    return found


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text("pp_word\n")
    return file


def test_each_stream_is_announced_to_under_one_name(asked, token):
    result = run_command("announce", URL, "visits", "pages", "--token", token)
    assert result.code == 0, result.stderr
    first, second = asked
    assert first[:3] == (URL, "visits", "pp_word")
    assert second[1] == "pages"
    assert first[3] == second[3]
    assert result.stdout.splitlines()[0] == (
        "visits: announced, number 1,234 of the window that began 2026-01-05; 5,678 left."
    )


def test_a_name_can_be_given(asked, token):
    run_command("announce", URL, "visits", "--token", token, "--key", "break-in-7")
    assert asked[0][3] == "break-in-7"


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 257])
def test_other_names_are_refused_before_anything_is_asked(asked, token, key):
    result = run_command("announce", URL, "visits", "--token", token, "--key", key)
    assert result.code == 2
    assert "--key must be 1 to 256 visible ASCII characters" in result.stderr
    assert asked == []


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", "pp_ä".encode(), b"pp_a\x01"])
def test_a_file_without_a_token_is_refused(asked, token, content):
    token.write_bytes(content)
    result = run_command("announce", URL, "visits", "--token", token)
    assert result.code == 2
    assert "--token must name a file with a token, pp_..., and nothing else" in result.stderr
    assert asked == []


def test_who_does_not_know_is_told_how_to_repeat_it(monkeypatch, token):
    def unsure(*_):
        raise UnsureError("nobody knows")

    monkeypatch.setattr(announce, "announced", unsure)
    result = run_command("announce", URL, "visits", "--token", token, "--key", "k")
    assert result.code != 0
    assert "nobody knows; repeat this with --key k, which announces it once" in result.stderr
