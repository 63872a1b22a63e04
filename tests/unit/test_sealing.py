"""Sealing: to whom, by whom it is opened, and what is said of what cannot be."""

from __future__ import annotations

import base64
import time

import pyrage
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.sealing import (
    FRONT_BYTES,
    check_recipient,
    has_identity,
    is_sealed,
    seal,
    unseal,
    unseal_with,
)

OWNER, OTHER = (pyrage.x25519.Identity.generate() for _ in range(2))
PUBLIC = str(OWNER.to_public())


def test_what_is_sealed_is_opened_by_its_owner_alone(tmp_path):
    sealed = seal(b"state", PUBLIC)
    assert b"state" not in sealed
    assert unseal_with(sealed, str(OWNER)) == b"state"
    file = tmp_path / "identity"
    file.write_text(f"# created: today\n# public key: {PUBLIC}\n  {OWNER}  \n")
    assert unseal(sealed, file) == b"state"
    with pytest.raises(InputError, match="damaged, or sealed to another identity"):
        unseal_with(sealed, str(OTHER))


def test_any_of_several_identities_opens_it():
    assert unseal_with(seal(b"state", PUBLIC), f"{OTHER}\n{OWNER}\n") == b"state"


def test_an_identity_is_known_by_its_recipient():
    assert has_identity(f"# created: today\n{OTHER}\n{OWNER}\n", PUBLIC)
    assert not has_identity(str(OTHER), PUBLIC)
    with pytest.raises(InputError, match="there is no age identity"):
        has_identity(PUBLIC, PUBLIC)


def test_two_seals_of_one_state_differ():
    assert seal(b"state", PUBLIC) != seal(b"state", PUBLIC)


@pytest.mark.parametrize("place", [0, 40, -1])
def test_a_changed_byte_is_noticed(place):
    sealed = bytearray(seal(b"state", PUBLIC))
    sealed[place] ^= 1
    with pytest.raises(InputError, match="damaged"):
        unseal_with(bytes(sealed), str(OWNER))


@pytest.mark.parametrize(
    "text",
    ["", "age1", PUBLIC, f"x{OWNER}", "AGE-SECRET-KEY-1QQ", str(OWNER)[:-1]],
    ids=["nothing", "its beginning", "public", "after an x", "too short", "cut"],
)
def test_what_is_no_identity_opens_nothing(text):
    with pytest.raises(InputError, match="there is no age identity"):
        unseal_with(seal(b"state", PUBLIC), text)


@pytest.mark.parametrize(
    "recipient",
    ["", "age1", str(OWNER), PUBLIC[:-1], PUBLIC + "q", None],
    ids=["nothing", "its beginning", "secret", "cut", "too long", "none"],
)
def test_what_is_no_recipient_is_refused_before_anything_is_sealed(recipient):
    for call in (check_recipient, lambda to: seal(b"state", to)):
        with pytest.raises(PlanError, match="must be a public key of age") as refused:
            call(recipient)
        assert refused.value.__context__ is None
    check_recipient(PUBLIC)


def test_a_seal_is_known_by_its_first_bytes():
    sealed = seal(b"state", PUBLIC)
    assert is_sealed(sealed[:FRONT_BYTES])
    assert is_sealed(b"-----BEGIN AGE ENCRYPTED FILE-----\n"[:FRONT_BYTES])
    assert not is_sealed(sealed[1:])
    assert not is_sealed(b"panprivacy")
    assert not is_sealed(b"")


def hostile(stanzas=1, line=43, mac=43, front=b"age-encryption.org/v1\n"):
    """A sealed file with a long header."""
    stanza = b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * line + b"\n"
    return front + stanza * stanzas + b"--- " + b"A" * mac + b"\n" + bytes(100)


@pytest.mark.parametrize(
    "sealed",
    [
        hostile(stanzas=9),
        hostile(stanzas=1_000),
        hostile(stanzas=100_000),
        hostile(line=50_000_000),
        hostile(mac=50_000_000),
        hostile(front=b"age-encryption.org/v1" + b"A" * 50_000_000 + b"\n"),
        b"age-encryption.org/v1",
        b"age-encryption.org/v1\n" + b"\n" * 10_000_000,
        b"-----BEGIN AGE ENCRYPTED FILE-----\n" + b"A" * 50_000_000,
        b"-----BEGIN AGE ENCRYPTED FILE-----\n" + b"\n" * 10_000_000,
    ],
    ids=["nine", "thousand", "many", "line", "mac", "front", "cut", "lines", "armour", "empty"],
)
def test_a_long_header_is_refused_at_once(sealed):
    began = time.thread_time()
    with pytest.raises(InputError, match="the file is damaged"):
        unseal_with(sealed, str(OWNER))
    assert time.thread_time() - began < 1


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60), st.binary(max_size=80))))
@settings(max_examples=200)
def test_a_changed_header_is_opened_or_refused(steps):
    """In no time, and in one line, whatever is left out, put in or repeated."""
    changed = bytearray(seal(b"state", PUBLIC))
    for start, length, piece in steps:
        changed[start : start + length] = piece or changed[start : start + length] * 5
    began = time.thread_time()
    try:
        assert unseal_with(bytes(changed), str(OWNER)) == b"state"
    except InputError as refused:
        error = refused.reason
    else:
        error = ""
    assert "\n" not in error
    assert time.thread_time() - began < 1


def test_what_others_seal_with_age_is_opened_too():
    keys = [pyrage.x25519.Identity.generate().to_public() for _ in range(6)]
    sealed = pyrage.encrypt(b"state", [*keys, OWNER.to_public()])
    assert unseal_with(sealed, str(OWNER)) == b"state"
    text = base64.b64encode(sealed).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    for end in ("\n", "\r\n"):
        armoured = end.join(
            ["-----BEGIN AGE ENCRYPTED FILE-----", *lines, "-----END AGE ENCRYPTED FILE-----", ""]
        )
        assert unseal_with(armoured.encode(), str(OWNER)) == b"state"


def test_our_own_headers_are_short():
    for _ in range(100):
        assert unseal_with(seal(b"", PUBLIC), str(OWNER)) == b""


def test_a_long_file_of_identities_is_refused(tmp_path):
    file = tmp_path / "identity"
    file.write_text("#" * (1 << 20) + f"\n{OWNER}\n")
    with pytest.raises(InputError, match="identity is too long: it may have 1,048,576 bytes"):
        unseal(seal(b"state", PUBLIC), file)
