"""Secrets of the owner of a task: the secret key, and the tokens that may send and release.

It is one file, plain for its owner alone, or sealed to an age key whose private half is elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

import msgspec

from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.errors import InputError
from panprivacy.ground.files import read_at_most
from panprivacy.ground.sealing import FRONT_BYTES, is_sealed, seal, unseal
from panprivacy.service.config.tokens import Role, Token, Tokens, hash_of

_MOST_BYTES: Final = 1 << 20
_MAY: Final = (Role.ingest, Role.release)


class Secrets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The secret half of a task.

    Args:
        secret: secret of the task's key, in hexadecimal digits.
        tokens: by what each is good for, the SHA-256 of a bearer token.
    """

    secret: str
    tokens: dict[Role, str]

    @classmethod
    def of(cls, key: DecryptionKey, tokens: dict[Role, str]) -> Self:
        """Return the secrets of a key, with tokens of which only hashes are stored."""
        return cls(secret=bytes(key).hex(), tokens={role: hash_of(tokens[role]) for role in _MAY})

    def to_bytes(self, recipient: str | None) -> bytes:
        """Return the file, sealed to a public key of age if one is given."""
        plain = msgspec.json.encode(self)
        return plain if recipient is None else seal(plain, recipient)

    @classmethod
    def load(cls, path: Path, identity: Path | None) -> Self:
        """Read the file.

        Args:
            path: path of the file.
            identity: a file with the private key of age, if it is sealed.

        Raises:
            InputError: it is not there, damaged, or sealed and there is no identity. No message
                shows it.
            OSError: a file cannot be read.
        """
        try:
            data = read_at_most(path, _MOST_BYTES)
        except FileNotFoundError:
            message = f"{path} is not there: panprivacy task writes it beside the task"
            raise InputError(message) from None
        if is_sealed(data[:FRONT_BYTES]):
            if identity is None:
                message = f"{path} is sealed: give the private key of age with --identity"
                raise InputError(message)
            data = unseal(data, identity)
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            message = f"{path} is no file of secrets, as panprivacy task writes it"
        raise InputError(message)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    @property
    def key(self) -> DecryptionKey:
        """The secret key.

        Raises:
            InputError: it is none.
        """
        try:
            secret = bytes.fromhex(self.secret)
        except ValueError:
            secret = b""
        return DecryptionKey.from_bytes(secret)

    @property
    def access(self) -> Tokens:
        """Tokens and their roles.

        Raises:
            PlanError: a hash is invalid. The message does not show it.
        """
        may = dict[str, tuple[Role, ...]]()
        for role, sha256 in self.tokens.items():
            may[sha256] = (*may.get(sha256, ()), role)
        tokens = [
            Token(name=str(roles[0]), may=roles, sha256=sha256) for sha256, roles in may.items()
        ]
        for token in tokens:
            token.check()
        return Tokens(tokens)
