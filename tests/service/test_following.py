"""Tokens of a file that is read again where it was changed."""

from __future__ import annotations

import os
from itertools import count

import pytest

from panprivacy.service.config.following import FollowedTokens
from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import hash_of

STREAM = (
    '[streams.visits]\nepsilon = 1\nwindow = "1d"\n[[streams.visits.stat]]\nname = "distinct"\n'
)


def token(word):
    return f'[[tokens]]\nname = "board"\nmay = ["read"]\nsha256 = "{hash_of(word)}"\n{STREAM}'


@pytest.fixture
def followed(tmp_path):
    file = tmp_path / "service.toml"
    file.write_text(token("pp_one"))
    tokens = FollowedTokens(file, load(file).tokens)
    tokens.look()
    return tokens, file


TICKS = count(1)


def change(file, text):
    """Each change is at a time of its own."""
    file.write_text(text)
    os.utime(file, ns=(next(TICKS),) * 2)


def configured(tokens):
    return [one.sha256 for one in tokens._configured]


def test_a_changed_file_has_the_say_at_once(followed, caplog):
    tokens, file = followed
    assert not caplog.records
    change(file, token("pp_other"))
    tokens.look()
    assert configured(tokens) == [hash_of("pp_other")]
    assert len(caplog.records) == 1
    tokens.look()
    assert len(caplog.records) == 1


def test_a_spoilt_or_missing_file_is_told_once_and_changes_nothing(followed, caplog):
    tokens, file = followed
    change(file, "spoilt")
    tokens.look()
    tokens.look()
    assert configured(tokens) == [hash_of("pp_one")]
    assert len(caplog.records) == 1
    file.unlink()
    tokens.look()
    tokens.look()
    assert configured(tokens) == [hash_of("pp_one")]
    assert len(caplog.records) == 2


def test_other_changes_of_the_file_are_none_of_its_tokens(followed, caplog):
    tokens, file = followed
    change(file, token("pp_one") + "# more\n")
    tokens.look()
    assert not caplog.records
