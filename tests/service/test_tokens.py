"""Tokens: who is let through, and what is kept of them."""

from __future__ import annotations

import hmac
import re
import subprocess
import time
from base64 import urlsafe_b64decode
from pathlib import Path
from unittest import mock

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.config.tokens import AccessError, Role, Token, Tokens, hash_of, new_token

from .running import PLAIN, Service, shared

WEB, READER = "pp_web", "pp_reader"  # drawn ones would give each worker other tests
TOKENS = Tokens(
    [
        Token(name="web", may=(Role.ingest,), sha256=hash_of(WEB), streams=("visits",)),
        Token(name="reader", may=(Role.read, Role.release), sha256=hash_of(READER).upper()),
    ]
)


def status(authorization, role=Role.ingest, stream="visits"):
    try:
        TOKENS.check(authorization, role, stream)
    except AccessError as error:
        return error.status
    return None


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER   "])
def test_a_token_is_let_through_to_what_it_may(scheme):
    assert status(f"{scheme}{WEB}".encode()) is None
    assert status(f"{scheme}{WEB}") is None
    assert status(f"{scheme}{READER}".encode(), Role.read, "other") is None
    assert status(f"{scheme}{READER}".encode(), Role.release, None) is None


@pytest.mark.parametrize(
    ("token", "role", "stream"),
    [
        (WEB, Role.read, "visits"),
        (WEB, Role.ingest, "other"),
        (WEB, Role.ingest, None),
        (READER, Role.ingest, "visits"),
    ],
)
def test_a_token_is_refused_what_it_may_not(token, role, stream):
    assert status(f"Bearer {token}".encode(), role, stream) == 403


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        WEB.encode(),
        f"Basic {WEB}".encode(),
        f"Bearer {WEB}x".encode(),
        f"Bearer {WEB[:-1]}".encode(),
        f"Bearer {WEB} {WEB}".encode(),
        f"Bearer {hash_of(WEB)}".encode(),
        b"Bearer pp_other",
        b"Bearer \xff\xfe",
        "Bearer \u20ac",
    ],
)
def test_an_unknown_or_missing_token_is_refused(authorization):
    assert status(authorization) == 401


def test_the_empty_text_is_no_token_even_if_its_hash_is_configured():
    tokens = Tokens([Token(name="none", may=tuple(Role), sha256=hash_of(""))])
    with pytest.raises(AccessError, match="send a known token"):
        tokens.check(None, Role.read, "visits")


@pytest.mark.parametrize("authorization", [f"Bearer {WEB}".encode(), b"Bearer pp_x", None])
def test_all_tokens_are_compared_whichever_it_is(authorization):
    with mock.patch.object(hmac, "compare_digest", wraps=hmac.compare_digest) as compared:
        status(authorization)
    assert compared.call_count == 2


def test_no_message_shows_a_token():
    with pytest.raises(AccessError) as refused:
        TOKENS.check(f"Bearer {WEB}".encode(), Role.read, "visits")
    assert str(refused.value) == "this token may not read this stream"


def test_nothing_of_a_token_is_kept_but_its_hash():
    held = repr([getattr(TOKENS, name) for name in Tokens.__slots__])
    assert hash_of(WEB) in held
    assert WEB not in held


def test_new_tokens_are_256_bits_and_differ():
    drawn = {new_token() for _ in range(200)}
    assert len(drawn) == 200
    assert all(re.fullmatch(r"pp_[A-Za-z0-9_-]{43}", token) for token in drawn)
    keys = [urlsafe_b64decode(token[3:] + "=") for token in drawn]
    assert all(len(key) == 32 for key in keys)
    assert all(len({key[at] for key in keys}) > 50 for at in range(32))


def least_time(work):
    """The processor time of the quickest of many runs."""
    taken = []
    for _ in range(200):
        began = time.thread_time()
        work()
        taken.append(time.thread_time() - began)
    return min(taken)


def test_a_check_takes_as_long_as_a_few_hashes():
    """It comes with every request: no slow hash, and nothing is read from a disk."""
    authorization = f"Bearer {WEB}".encode()
    check = least_time(lambda: TOKENS.check(authorization, Role.ingest, "visits"))
    assert check < 30 * least_time(lambda: hash_of(WEB))


def test_a_service_without_tokens_says_so(tmp_path):
    with Service(tmp_path) as service:
        text = service.config.read_text()
        tokens, streams = text.index("[[tokens]]"), text.index("[streams.")
        service.config.write_text(text[:tokens] + text[streams:])
        service.start()
        assert "there are no tokens: over HTTP nobody can send or read anything" in service.said
        assert service.send([1, 2, 3]).status_code == 401


# The command, and the service that follows it


@pytest.mark.long
def test_of_many_commands_at_once_each_has_its_token(tmp_path):
    service = Service(tmp_path)
    names = [f"web{number}" for number in range(3)]
    rest = ["--may", "ingest", "--config", service.config]
    running = [shared().piped(["token", name, *rest]) for name in names]
    printed = [one.communicate()[0].decode() for one in running]
    shown = [re.findall(r"pp_\S+$", one, re.MULTILINE) for one in printed]
    found = {one.name: one.sha256 for one in load(service.config).tokens}
    assert [[found[name]] for name in names] == [[hash_of(one) for one in each] for each in shown]
    assert list(tmp_path.glob("*.new")) == []
    service.client.close()


@pytest.mark.long
def test_a_token_that_nobody_can_read_does_not_replace_the_old_one(tmp_path):
    service = Service(tmp_path)
    before = service.config.read_bytes()
    with Path("/dev/full").open("w") as full:
        words = [*PLAIN, "token", "ingest", "--config", service.config]
        run = subprocess.run(words, stdout=full, stderr=full, check=False)
    assert run.returncode != 0
    assert service.config.read_bytes() == before
    assert list(tmp_path.glob("*.new")) == []
    service.client.close()
