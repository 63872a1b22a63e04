"""Sealing: to whom, by whom it is opened, and what is said of what cannot be."""

from __future__ import annotations

import pyrage
import pytest

from panprivacy.errors import InputError, PlanError
from panprivacy.sealing import FRONT_BYTES, check_recipient, is_sealed, seal, unseal, unseal_with

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
