"""What is sealed to a shard opens there, as HPKE, and nowhere else."""

from __future__ import annotations

import os

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from panprivacy.cluster.envelopes import ENVELOPE_BYTES, PACKED_BYTES, Opener, seal
from panprivacy.errors import InputError

SUBJECT = "panprivacy.visits.2.0"
SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
"""Another implementation."""


def test_only_the_shard_opens_an_envelope_and_what_was_sealed_is_overwritten():
    shard, other, plain = Opener(), Opener(), bytearray(b"ada" * 10)
    sealed = seal(plain, shard.public, SUBJECT)
    assert plain == bytes(30)
    assert len(sealed) == 30 + ENVELOPE_BYTES
    assert shard.open(sealed, SUBJECT) == b"ada" * 10
    with pytest.raises(InputError, match="none of the keys"):
        other.open(sealed, SUBJECT)
    with pytest.raises(InputError, match="another queue"):
        shard.open(sealed, "panprivacy.visits.2.1")


def test_every_bit_counts():
    shard = Opener()
    sealed = seal(bytearray(b"ada"), shard.public, SUBJECT)
    for at in range(8 * len(sealed)):
        wrong = bytearray(sealed)
        wrong[at // 8] ^= 1 << at % 8
        with pytest.raises(InputError):
            shard.open(bytes(wrong), SUBJECT)
    for length in range(len(sealed)):
        with pytest.raises(InputError):
            shard.open(sealed[:length], SUBJECT)


def test_it_is_the_hpke_of_others():
    shard = Opener()
    key = X25519PrivateKey.from_private_bytes(shard.packed()[:32])
    sealed = seal(bytearray(b"ada"), shard.public, SUBJECT)
    assert SUITE.decrypt(sealed[8:], key, SUBJECT.encode()) == b"ada"
    public = X25519PublicKey.from_public_bytes(shard.public)
    theirs = SUITE.encrypt(b"grace", public, SUBJECT.encode())
    assert shard.open(shard.public[:8] + theirs, SUBJECT) == b"grace"


def test_two_envelopes_of_one_text_share_no_key():
    shard = Opener()
    first, second = (seal(bytearray(b"ada"), shard.public, SUBJECT) for _ in range(2))
    assert first[:8] == second[:8]
    assert first[8:40] != second[8:40]


def test_keys_open_until_they_are_rotated_out_twice():
    shard = Opener()
    sealed = seal(bytearray(b"ada"), shard.public, SUBJECT)
    before = shard.packed()
    shard.rotate()
    assert shard.open(sealed, SUBJECT) == b"ada"
    again = Opener.unpack(shard.packed())
    assert again.public == shard.public != Opener.unpack(before).public
    assert again.open(sealed, SUBJECT) == b"ada"
    shard.rotate()
    with pytest.raises(InputError, match="none of the keys"):
        shard.open(sealed, SUBJECT)
    assert before[:32] not in shard.packed()


def test_packed_keys_have_one_length():
    shard = Opener()
    assert len(shard.packed()) == PACKED_BYTES
    shard.rotate()
    assert len(shard.packed()) == PACKED_BYTES
    for wrong in (b"", bytes(64), shard.packed()[:-1]):
        with pytest.raises(InputError, match="damaged"):
            Opener.unpack(wrong)


@pytest.mark.parametrize("public", [b"", bytes(32), b"\1" + bytes(31)])
def test_nothing_is_sealed_to_what_is_no_key(public):
    plain = bytearray(b"ada")
    with pytest.raises(InputError, match="no public key"):
        seal(plain, public, SUBJECT)
    assert plain == b"ada"


def test_bytes_of_a_liar_are_refused():
    shard = Opener()
    for length in (0, 7, 40, 56, 57, 1000):
        for front in (b"", shard.public[:8], shard.public[:8] + bytes(32)):
            with pytest.raises(InputError):
                shard.open(front + os.urandom(length), SUBJECT)
