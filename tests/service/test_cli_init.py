"""`panprivacy init`: what it writes, what it shows, and that every key is in it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import stat
import sys
from unittest import mock

import pyrage
import pytest

from panprivacy.cli.init import init
from panprivacy.errors import PlanError
from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import Role, Tokens


def run(path, **options):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        init(path, **options)
    return printed.getvalue()


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "config.toml"
    return path, run(path)


# The command


def test_the_file_can_be_loaded_and_is_its_owners_alone(tmp_path):
    path, before = tmp_path / "a.toml", os.umask(0)
    try:
        run(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(load(path).streams) == ["visits"]


def test_it_says_what_the_configuration_promises_for_a_year(written):
    path, printed = written
    promise = load(path).streams["visits"].guarantee
    assert f"a user of one window loses {promise.loss} at most" in printed
    assert f"In a year of 365 windows, one of them seen, it is {promise.over(365)}." in printed


def test_the_private_key_is_shown_once_and_not_written(written):
    path, printed = written
    identities = re.findall(r"AGE-SECRET-KEY-\w+", printed)
    assert len(identities) == 1
    identity = pyrage.x25519.Identity.from_str(identities[0])
    assert load(path).checkpoint.recipient == str(identity.to_public())
    assert "SECRET-KEY" not in path.read_text()
    assert "never on\nthis one" in printed


def test_each_token_is_shown_once_and_only_its_hash_is_written(written):
    path, printed = written
    shown = dict(re.findall(r"^    (\w+) +(pp_\S+)  ", printed, re.MULTILINE))
    assert list(shown) == list(Role)
    assert printed.count("pp_") == 4
    assert "pp_" not in path.read_text()
    tokens = Tokens(load(path).tokens)
    for role, token in shown.items():
        tokens.check(f"Bearer {token}".encode(), Role(role), "visits")


def test_nothing_is_drawn_twice(tmp_path):
    first, second = run(tmp_path / "a.toml"), run(tmp_path / "b.toml")
    drawn = [set(re.findall(r"(?:pp_|AGE-SECRET-KEY-)\S+", text)) for text in (first, second)]
    assert list(map(len, drawn)) == [5, 5]
    assert not drawn[0] & drawn[1]


def test_memory_only_has_no_key(tmp_path):
    printed = run(tmp_path / "a.toml", memory_only=True, stream="calls")
    config = load(tmp_path / "a.toml")
    assert config.checkpoint is None
    assert list(config.streams) == ["calls"]
    assert "SECRET" not in printed
    assert printed.count("pp_") == 4


def test_a_file_that_is_there_is_left_alone(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("mine")
    with pytest.raises(PlanError, match=r"a\.toml is there already"):
        run(path)
    assert path.read_text() == "mine"


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "a.toml").symlink_to(tmp_path / "target")
    with pytest.raises(PlanError, match="there already"):
        run(tmp_path / "a.toml")
    assert not (tmp_path / "target").exists()


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(PlanError, match=r"cannot write .*: there is no folder"):
        run(tmp_path / "gone" / "a.toml")


def test_a_stream_that_cannot_be_called_so(tmp_path):
    with pytest.raises(PlanError, match="the name of a stream must be"):
        run(tmp_path / "a.toml", stream="a]b")
    assert not (tmp_path / "a.toml").exists()


def test_nobody_would_see_the_keys(tmp_path):
    with mock.patch.object(sys, "stdout", None), pytest.raises(PlanError, match="would be lost"):
        init(tmp_path / "a.toml")
    assert not (tmp_path / "a.toml").exists()


# The text
