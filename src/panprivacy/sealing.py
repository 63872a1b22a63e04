"""Sealing with age: encrypted to a key whose private half is not on this machine.

Whoever has the machine cannot open what it has sealed; who has the identity can.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyrage

from panprivacy._kernels import wipe_stack
from panprivacy.errors import InputError, PlanError

_SEALS: Final = b"age-encryption.org/v1", b"-----BEGIN AGE ENCRYPTED FILE-----"

_KEY: Final = "AGE-SECRET-KEY-"

FRONT_BYTES: Final = max(map(len, _SEALS))
"""So many bytes tell whether something is sealed."""


def seal(plain: bytes, recipient: str) -> bytes:
    """Encrypt to a public key of age, `age1...`; the length tells no more than that of `plain`.

    Raises:
        PlanError: the recipient is none.
    """
    try:
        return pyrage.encrypt(plain, [_recipient(recipient)])
    finally:
        wipe_stack()  # age leaves the key of the file on the stack


def check_recipient(recipient: str) -> None:
    """Raise `PlanError` if this is no public key of age."""
    _recipient(recipient)


def _recipient(recipient: str) -> pyrage.x25519.Recipient:
    try:
        return pyrage.x25519.Recipient.from_str(recipient)
    except (pyrage.RecipientError, TypeError):
        message = "recipient must be a public key of age, age1..., as age-keygen prints it"
    raise PlanError(message)


def is_sealed(front: bytes) -> bool:
    """Whether a file that begins like this is sealed."""
    return front.startswith(_SEALS)


def unseal(sealed: bytes, identity: Path) -> bytes:
    """What a sealed file holds, by a file with identities, as age-keygen writes it.

    Raises:
        InputError: none of them opens it, or it is damaged. No message shows what is in it.
        OSError: the identity cannot be read.
    """
    return unseal_with(sealed, identity.read_text(encoding="utf-8", errors="replace"))


def unseal_with(sealed: bytes, identities: str) -> bytes:
    """The same by the lines of such a file.

    Raises:
        InputError: as for `unseal`.
    """
    lines = map(str.strip, identities.splitlines())
    try:
        found = [pyrage.x25519.Identity.from_str(line) for line in lines if line.startswith(_KEY)]
    except pyrage.IdentityError:
        found = []
    if not found:
        message = "there is no age identity: a line AGE-SECRET-KEY-1..."
        raise InputError(message)
    try:
        return pyrage.decrypt(sealed, found)
    except pyrage.DecryptError:
        message = "the file is damaged, or sealed to another identity"
    raise InputError(message)
