"""Sealing with age: encrypted to a key whose private half is not on this machine.

A process on the machine cannot open what it has sealed; the holder of the identity can.
"""

from __future__ import annotations

import binascii
import os
from pathlib import Path
from typing import Final

import pyrage

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.files import read_at_most
from panprivacy.ground.kernels import wipe_stack

_SEALS: Final = b"age-encryption.org/v1", b"-----BEGIN AGE ENCRYPTED FILE-----"

_KEY: Final = "AGE-SECRET-KEY-"

_MOST_HEADER: Final = 4_096
_MOST_STANZAS: Final = 8
"""Ours have two, one of which means nothing (grease)."""
_STANZA: Final = b"\n-> "
_MAC: Final = b"\n--- "
_DAMAGED: Final = "the file is damaged, or sealed to another identity"
_MAC_BYTES: Final = 43
_ARMOR_END: Final = b"-----END AGE ENCRYPTED FILE-----"
_MOST_IDENTITIES: Final = 1 << 20
MOST_SEALED: Final = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
"""Bytes of a sealed file: it is opened in memory, where what it holds takes as many again."""

FRONT_BYTES: Final = max(map(len, _SEALS))
"""Number of bytes that show whether something is sealed."""


def seal(plain: bytes, recipient: str) -> bytes:
    """Encrypt to a public key of age, `age1...`; the length reveals only the length of `plain`.

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
    """Return whether a file that begins like this is sealed."""
    return front.startswith(_SEALS)


def unseal(sealed: bytes, identity: Path) -> bytes:
    """Return the content of a sealed file, by a file with identities, as age-keygen writes it.

    Raises:
        InputError: no identity opens it, or it is damaged. No message shows the content.
        OSError: the identity cannot be read.
    """
    lines = read_at_most(identity, _MOST_IDENTITIES)
    return unseal_with(sealed, lines.decode("utf-8", errors="replace"))


def unseal_with(sealed: bytes, identities: str) -> bytes:
    """Return the same by the lines of such a file.

    Raises:
        InputError: as for `unseal`.
    """
    found = _identities(identities)
    sealed = _with_short_header(sealed)
    try:
        return pyrage.decrypt(sealed, found)
    except pyrage.DecryptError:
        message = _DAMAGED
    raise InputError(message)


def has_identity(identities: str, recipient: str) -> bool:
    """Return whether one of the lines is the private key of a recipient.

    Raises:
        InputError: there is no identity.
    """
    wanted = str(_recipient(recipient))
    return any(str(one.to_public()) == wanted for one in _identities(identities))


def _identities(lines: str) -> list[pyrage.x25519.Identity]:
    stripped = map(str.strip, lines.splitlines())
    try:
        found = [pyrage.x25519.Identity.from_str(one) for one in stripped if one.startswith(_KEY)]
    except pyrage.IdentityError:
        found = []
    if not found:
        message = "there is no age identity: a line AGE-SECRET-KEY-1..."
        raise InputError(message)
    return found


def _with_short_header(sealed: bytes) -> bytes:
    """Return a sealed file without armour, if its header is short.

    The library takes time that grows with a power of the length of a header, and of a line.

    Raises:
        InputError: it is longer, or none.
    """
    if sealed.startswith(_SEALS[1]):
        sealed = _without_armour(sealed)
    end = sealed.find(_MAC, 0, _MOST_HEADER)
    after = end + len(_MAC) + _MAC_BYTES
    is_short = end >= 0 and sealed.count(_STANZA, 0, end + 1) <= _MOST_STANZAS
    if is_short and sealed[after : after + 1] == b"\n":
        return sealed
    raise InputError(_DAMAGED)


def _without_armour(sealed: bytes) -> bytes:
    """Return what a sealed file in Base 64 holds."""
    front, _, end = sealed.removeprefix(_SEALS[1]).rstrip().rpartition(_ARMOR_END)
    try:
        if not end:
            return binascii.a2b_base64(front)
    except binascii.Error:
        pass
    raise InputError(_DAMAGED)
