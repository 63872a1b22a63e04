"""Envelopes: each published message is encrypted to a key of the shard that counts it.

This is HPKE (RFC 9180) in base mode, one message for each key: DHKEM(X25519, HKDF-SHA256),
HKDF-SHA256, AES-256-GCM. The subject of the queue is the `info` of HPKE, so a message that was
moved to another queue cannot be opened there. `cryptography` has HPKE as well, but draws keys from
a generator that stays in memory, and returns plaintexts that cannot be overwritten.

An envelope is `recipient (8) | encapsulated key (32) | ciphertext | tag (16)`: the first bytes of
the shard's public key identify the key that opens it.
"""

from __future__ import annotations

from hmac import digest
from typing import Final, Self

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from panprivacy.errors import InputError
from panprivacy.privacy.coins import SystemCoins
from panprivacy.privacy.noise import wipe

KEY_BYTES: Final = 32
"""Size of a public key, and of a private key."""
PACKED_BYTES: Final = 2 * KEY_BYTES
"""Size of a packed `Opener`."""

_RECIPIENT_BYTES: Final = 8
_FRONT: Final = _RECIPIENT_BYTES + KEY_BYTES
_TAG_BYTES: Final = 16
ENVELOPE_BYTES: Final = _FRONT + _TAG_BYTES
"""Size of an envelope beyond its content."""

Sealed = bytes | memoryview
"""An envelope."""


class ForgottenKeyError(InputError):
    """An envelope is sealed to a key that its shard has forgotten: what it holds is lost."""


_KEM: Final = b"KEM\x00\x20"
_SUITE: Final = b"HPKE\x00\x20\x00\x01\x00\x02"
_LABEL: Final = b"HPKE-v1"
_FORGOTTEN: Final = 24
"""Number of public keys that are recognised after they have been rotated out."""
_BASE: Final = b"\0"
_NONE: Final = bytes(KEY_BYTES)


def seal(plain: bytearray, public: bytes, subject: str) -> bytes:
    """Encrypt to a shard, and overwrite the plaintext.

    Guarantee: the key is drawn for this message alone and not stored: not even the sender can open
    the envelope. Anybody who has neither private key learns only its length, if the
    gap-Diffie-Hellman problem of X25519 is hard and AES-256-GCM is an AEAD (RFC 9180, 9.1).

    Args:
        plain: the plaintext, which is overwritten.
        public: the public key of the shard, 32 bytes.
        subject: the subject of the queue; the envelope opens for no other queue.

    Raises:
        InputError: the public key is invalid; then nothing is overwritten.

    Reference: R. Barnes, K. Bhargavan, B. Lipp, C. Wood, "Hybrid Public Key Encryption", RFC 9180,
    2022, sections 4.1, 5.1 and 6.1.
    """
    ephemeral = _drawn()
    encapsulated = ephemeral.public_key().public_bytes_raw()
    try:
        shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        message = "this is no public key of a shard: it has 32 bytes, and is in the directory"
        raise InputError(message) from None
    key, nonce = _schedule(shared, encapsulated + public, subject)
    sealed = bytearray(ENVELOPE_BYTES + len(plain))
    sealed[:_FRONT] = public[:_RECIPIENT_BYTES] + encapsulated
    AESGCM(key).encrypt_into(nonce, plain, None, memoryview(sealed)[_FRONT:])
    wipe(np.frombuffer(plain, np.uint8))
    return bytes(sealed)


class Opener:
    """The private keys of a shard: the current one and the previous one.

    Guarantee: an envelope sealed to a key that has been rotated out twice cannot be opened by an
    intruder who sees this afterwards.
    """

    __slots__ = ("_forgotten", "_keys")

    def __init__(self) -> None:
        self._keys = [_drawn()]
        self._forgotten: list[bytes] = []

    @property
    def public(self) -> bytes:
        """The current public key, 32 bytes."""
        return self._keys[0].public_key().public_bytes_raw()

    def open(self, sealed: Sealed, subject: str, into: memoryview | None = None) -> memoryview:
        """Return the content of an envelope, which the caller overwrites after reading it.

        Args:
            sealed: an envelope.
            subject: the subject of the queue that it came from.
            into: memory for the plaintext, at least as long; None to allocate new memory.

        Raises:
            ForgottenKeyError: it is sealed to a key that this has forgotten.
            InputError: it is no envelope, is damaged, or is for another shard or queue. All
                messages are public.
        """
        view = memoryview(sealed)
        if len(view) < ENVELOPE_BYTES:
            message = "this is no envelope: it is too short"
            raise InputError(message)
        front = bytes(view[:_FRONT])
        recipient, encapsulated = front[:_RECIPIENT_BYTES], front[_RECIPIENT_BYTES:]
        for key in self._keys:
            public = key.public_key().public_bytes_raw()
            if public.startswith(recipient):
                break
        else:
            message = "this is sealed to none of the keys of this shard: read the directory again"
            raise (ForgottenKeyError if recipient in self._forgotten else InputError)(message)
        length = len(view) - ENVELOPE_BYTES
        plain = memoryview(bytearray(length)) if into is None else into[:length]
        try:
            shared = key.exchange(X25519PublicKey.from_public_bytes(encapsulated))
            secret, nonce = _schedule(shared, encapsulated + public, subject)
            AESGCM(secret).decrypt_into(nonce, view[_FRONT:], None, plain)
        except (InvalidTag, ValueError):
            wipe(np.frombuffer(plain, np.uint8))  # a forged message was decrypted into it
            message = "this envelope is damaged, or was sealed for another queue"
            raise InputError(message) from None
        return plain

    def rotate(self) -> None:
        """Draw a new key and forget the previous one, whose messages must have been counted.

        A state with the new key must be on disk before its public key is published.
        """
        current, *dropped = self._keys
        self._forgotten += [
            key.public_key().public_bytes_raw()[:_RECIPIENT_BYTES] for key in dropped
        ]
        del self._forgotten[:-_FORGOTTEN]
        self._keys = [_drawn(), current]

    def packed(self) -> bytes:
        """Return both keys, 64 bytes; zeros if there is no previous key. They open envelopes."""
        return b"".join(key.private_bytes_raw() for key in self._keys).ljust(PACKED_BYTES, b"\0")

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return the opener whose `packed` keys these are.

        Raises:
            InputError: the keys are damaged.
        """
        parts = packed[:KEY_BYTES], packed[KEY_BYTES:]
        if len(packed) != PACKED_BYTES or parts[0] == _NONE:
            message = "the keys of envelopes are damaged: they take 64 bytes"
            raise InputError(message)
        opener = cls()
        opener._keys = [X25519PrivateKey.from_private_bytes(key) for key in parts if key != _NONE]
        return opener


def _drawn() -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(SystemCoins().secret(KEY_BYTES))


def _schedule(shared: bytes, kem_context: bytes, subject: str) -> tuple[bytes, bytes]:
    """Return key and nonce of the only message, from the shared point (RFC 9180, 4.1 and 5.1)."""
    prk = _extract(_KEM, b"", b"eae_prk", shared)
    shared_secret = _expand(_KEM, prk, b"shared_secret", kem_context, KEY_BYTES)
    no_psk = _extract(_SUITE, b"", b"psk_id_hash", b"")
    context = _BASE + no_psk + _extract(_SUITE, b"", b"info_hash", subject.encode())
    secret = _extract(_SUITE, shared_secret, b"secret", b"")
    key = _expand(_SUITE, secret, b"key", context, KEY_BYTES)
    return key, _expand(_SUITE, secret, b"base_nonce", context, 12)


def _extract(suite: bytes, salt: bytes, label: bytes, material: bytes) -> bytes:
    """Return the HPKE `LabeledExtract`."""
    return digest(salt, _LABEL + suite + label + material, "sha256")


def _expand(suite: bytes, key: bytes, label: bytes, context: bytes, length: int) -> bytes:
    """Return the HPKE `LabeledExpand`, at most one block."""
    labelled = length.to_bytes(2, "big") + _LABEL + suite + label + context
    return digest(key, labelled + b"\1", "sha256")[:length]
