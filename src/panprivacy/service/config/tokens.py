"""Permissions: bearer tokens, of which only a SHA-256 is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from panprivacy.errors import PanPrivacyError, PlanError
from panprivacy.privacy.coins import SystemCoins

_PREFIX: Final = "pp_"
_KEY_BYTES: Final = 32
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_BEARER: Final = re.compile(rb" *bearer +([\x21-\x7e]+) *", re.IGNORECASE)
_HASH: Final = re.compile(r"[0-9a-fA-F]{64}")


class Role(StrEnum):
    """Permission of a token."""

    ingest = "ingest"
    """Send events."""
    read = "read"
    """Get what was released."""
    release = "release"
    """Have an answer made, which spends budget."""
    announce = "announce"
    """Say that somebody has seen the memory, which spends one of a few such looks."""


class AccessError(PanPrivacyError):
    """A request that is refused.

    Args:
        reason: what to do.
        status: HTTP status: 401 for an unknown or missing token, 403 for one of other roles or
            streams.
    """

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[[tokens]]` table.

    Args:
        name: for people.
        may: what it is good for.
        sha256: of the token, in hexadecimal digits.
        streams: for which streams; None for all.
    """

    name: str
    may: tuple[Role, ...]
    sha256: str
    streams: tuple[str, ...] | None = None

    def check(self) -> None:
        """Raise `PlanError` if the entry of a token is invalid. No message shows its content."""
        if not self.name:
            message = "name must not be empty"
            raise PlanError(message)
        if not _NAME.fullmatch(self.name):
            message = "name must have no blank and no control character: join its words by -"
            raise PlanError(message)
        if not self.may:
            message = f"may must name at least one of {', '.join(Role)}"
            raise PlanError(message)
        if not _HASH.fullmatch(self.sha256):
            message = "sha256 must be the 64 hexadecimal digits of the SHA-256 of the token, "
            message += "as printf %s TOKEN | sha256sum prints them"
            raise PlanError(message)
        if self.streams is not None and not self.streams:
            message = "streams must name at least one stream; leave it out for all of them"
            raise PlanError(message)


class Tokens:
    """Checker of the `Authorization` of requests.

    It takes the same time for a wrong token as for a right one: each is hashed, and compared with
    all.

    Args:
        configured: tokens with different hashes.
    """

    __slots__ = ("_held",)

    def __init__(self, configured: Iterable[Token]) -> None:
        self.take_over(configured)

    def take_over(self, configured: Iterable[Token]) -> None:
        """Replace all tokens."""
        self._held = [(bytes.fromhex(token.sha256), token) for token in configured]

    @property
    def edition(self) -> object:
        """Object that stays the same while results of `check` stay valid."""
        return self._held

    def check(self, authorization: bytes | str | None, role: Role, stream: str | None) -> str:
        """Check that a request is permitted.

        Args:
            authorization: the header, `Bearer pp_...`; None if there is none.
            role: the required role.
            stream: the stream; None for all at once, for which a token of some is not enough.

        Returns:
            The name of the token.

        Raises:
            AccessError: the token is unknown or missing, or lacks the permission.
        """
        if isinstance(authorization, str):
            authorization = authorization.encode("latin-1", "replace")
        bearer = _BEARER.fullmatch(authorization or b"")
        digest = hashlib.sha256(bearer[1] if bearer else b"").digest()
        known = None
        for held, token in self._held:
            if hmac.compare_digest(held, digest):
                known = token
        if bearer is None or known is None:
            message = "send a known token: Authorization: Bearer pp_..."
            raise AccessError(message, 401)
        is_for_it = known.streams is None or stream in known.streams
        if role not in known.may or not is_for_it:
            scope = "all streams" if stream is None else "this stream"
            message = f"this token may not {role} {scope}"
            raise AccessError(message, 403)
        return known.name


def new_token() -> str:
    """Draw a token: 256 random bits as text."""
    bits = SystemCoins().key(_KEY_BYTES)
    return _PREFIX + urlsafe_b64encode(bits).rstrip(b"=").decode()


def is_bearer(token: str) -> bool:
    """Return whether HTTP can send a token: it has no blank and no control character."""
    return _VISIBLE.fullmatch(token) is not None


def hash_of(token: str) -> str:
    """Return the hash of a token, which is stored."""
    return hashlib.sha256(token.encode()).hexdigest()
