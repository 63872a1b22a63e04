"""Secrets of one of two servers, in one file; both have the verification key."""

from __future__ import annotations

from typing import Self

from panprivacy.devices.collector.secrets import Secrets
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.vdaf import Prio3Count
from panprivacy.errors import InputError
from panprivacy.service.config.tokens import Role, hash_of, is_bearer


class LeaderSecrets(Secrets, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The leader's half of a task.

    Args:
        verify_key: key that both servers have, in hexadecimal digits.
        peer: the token by which the helper knows the leader.
    """

    verify_key: str
    peer: str

    @property
    def peer_token(self) -> str:
        """The token by which the helper knows the leader.

        Raises:
            InputError: HTTP cannot send it. The message does not show it.
        """
        if not is_bearer(self.peer):
            message = "the token of the peer must be one word of visible ASCII characters: the "
            message += "file of secrets is damaged"
            raise InputError(message)
        return self.peer

    @classmethod
    def made(
        cls, key: DecryptionKey, tokens: dict[Role, str], verify_key: bytes, peer: str
    ) -> Self:
        """Return the secrets of a key, with the tokens of devices and of the collector."""
        hashes = {role: hash_of(token) for role, token in tokens.items()}
        secret = bytes(key).hex()
        return cls(secret=secret, tokens=hashes, verify_key=verify_key.hex(), peer=peer)


class HelperSecrets(Secrets, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The helper's half of a task: only the leader has a token for it.

    Args:
        verify_key: key that both servers have, in hexadecimal digits.
    """

    verify_key: str

    @classmethod
    def made(cls, key: DecryptionKey, verify_key: bytes, peer: str) -> Self:
        """Return the secrets of a key, with the token that the leader has."""
        tokens = dict.fromkeys((Role.ingest, Role.release), hash_of(peer))
        return cls(secret=bytes(key).hex(), tokens=tokens, verify_key=verify_key.hex())


def verify_key_of(secrets: LeaderSecrets | HelperSecrets) -> bytes:
    """Return the verification key.

    Raises:
        InputError: it is none.
    """
    try:
        key = bytes.fromhex(secrets.verify_key)
    except ValueError:
        key = b""
    if len(key) != Prio3Count.VERIFY_KEY_BYTES:
        message = f"the verification key has {Prio3Count.VERIFY_KEY_BYTES} bytes: the file of "
        message += "secrets is damaged"
        raise InputError(message)
    return key
