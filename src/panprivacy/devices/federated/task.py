"""The public description of a task for devices, signed by its author."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Self, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.rows import CIPHERTEXT_BYTES, SHARED_BYTES
from panprivacy.devices.federated.two_servers import KEY_BYTES, TwoServers
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import hexadecimal, positive_fraction, positive_integer
from panprivacy.privacy.coins import Coins, SystemCoins

AnyKind = CountNonZero | DeviceHistogram | Mean
"""All kinds of statistics over devices: the only place that lists them."""

KINDS: Final[dict[str, type[AnyKind]]] = {
    str(kind.__struct_config__.tag): kind for kind in (CountNonZero, DeviceHistogram, Mean)
}
"""Kinds by the name that a task uses."""

VERSION: Final = 1
DIGEST_BYTES: Final = 32
_ID_BYTES: Final = 16
_SIGNATURE_BYTES: Final = 64
_MOST_TICKS: Final = 1 << 31
MOST_TASK: Final = 1 << 16


class Task(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True, eq=True
):
    """The work of each device, its duration, and the guarantee for the device; all public.

    >>> from panprivacy.devices.federated.promise import Promise
    >>> from panprivacy.devices.federated.count_nonzero import CountNonZero
    >>> promise = Promise(epsilon=Fraction(1))
    >>> task = Task.new(CountNonZero.planned(promise), promise, horizon=30, key=bytes(33))
    >>> task.horizon, str(task.promise)
    (30, 'epsilon 1 for all that one device observed, in its report by itself')

    Args:
        version: version of this format and of the protocol.
        id: 16 random bytes in hexadecimal digits, which no other task has.
        kind: the statistic, and the noise of each device.
        promise: the guarantee of a device; the noise of the kind keeps it.
        horizon: number of ticks that a device observes, 1 to 2**31.
        key: to which devices encrypt, 33 bytes in hexadecimal digits; or two servers, which share
            what devices report.

    Raises:
        PlanError: a value is out of range, the noise does not keep the promise, or two
            servers cannot count this.
    """

    version: int
    id: str
    kind: AnyKind
    promise: Promise
    horizon: int
    key: str | TwoServers

    def __post_init__(self) -> None:
        if self.version != VERSION:
            message = f"the task has version {self.version}, and this program knows {VERSION}"
            raise PlanError(message)
        hexadecimal(_ID_BYTES, id=self.id)
        if isinstance(self.key, TwoServers):
            self.key.check(self.kind, self.promise)
        else:
            hexadecimal(KEY_BYTES, key=self.key)
        positive_integer(_MOST_TICKS, horizon=self.horizon)
        if not self.kind.keeps(self.promise):
            message = f"the noise of the task does not keep its promise: {self.promise}"
            raise PlanError(message)

    @classmethod
    def new(
        cls,
        kind: AnyKind,
        promise: Promise,
        *,
        horizon: int,
        key: bytes | TwoServers,
        coins: Coins | None = None,
    ) -> Self:
        """Return a task with an id of its own.

        Args:
            kind: the statistic, such as `CountNonZero.planned(promise)`.
            promise: the guarantee of a device.
            horizon: number of ticks that it observes.
            key: to which it encrypts, `bytes(EncryptionKey)`, or two servers.
            coins: source of the id.
        """
        name = (coins or SystemCoins()).key(_ID_BYTES).hex()
        to = key if isinstance(key, TwoServers) else key.hex()
        return cls(version=VERSION, id=name, kind=kind, promise=promise, horizon=horizon, key=to)

    def canonical(self) -> bytes:
        """Return the task as JSON with sorted names and no spaces: the same bytes for each task."""
        return msgspec.json.encode(self, enc_hook=str, order="sorted")

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON, 32 bytes: states and reports name their task by it."""
        return sha256(self.canonical()).digest()

    @property
    def context(self) -> bytes:
        """Context that proofs of shares are bound to, as in draft-ietf-ppm-dap-17 for a task."""
        return b"dap-17" + self.digest

    @property
    def entry_bytes(self) -> int:
        """Number of bytes of one encrypted value in a row."""
        return SHARED_BYTES if isinstance(self.key, TwoServers) else CIPHERTEXT_BYTES

    def signed(self, key: Ed25519PrivateKey) -> bytes:
        """Return a file with the task and the author's signature; `read` reads it."""
        signature = key.sign(_DOMAIN + self.canonical()).hex()
        document = _Signed(
            task=msgspec.Raw(msgspec.json.encode(self, enc_hook=str)), signature=signature
        )
        return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"

    @classmethod
    def read(cls, data: bytes, signer: bytes) -> Task:
        """Return a task from its file.

        Args:
            data: the file.
            signer: the public key of whom the device takes tasks from: Ed25519, 32 bytes. It
                comes with the program, not with the task.

        Raises:
            InputError: the file is no task, has unknown fields or values out of range, breaks its
                promise, or somebody else signed it. The message shows nothing of it.
        """
        document = _decoded(data, _Signed)
        plain = msgspec.json.encode(_decoded(document.task, Any), order="sorted")
        try:  # before the promise is looked at, which takes time
            key = Ed25519PublicKey.from_public_bytes(signer)
            key.verify(bytes.fromhex(document.signature), _DOMAIN + plain)
        except (InvalidSignature, ValueError):
            message = "the task is not signed by the one whom this program trusts"
        else:
            return _decoded(plain, Task)
        raise InputError(message)

    @classmethod
    def unverified(cls, data: bytes) -> Task:
        """Return a task from its file without a check of the signer: for the author of the file.

        Raises:
            InputError: as for `read`.
        """
        return _decoded(_decoded(data, _Signed).task, Task)


_DOMAIN: Final = b"panprivacy task\n"
"""Stands before what is signed, so that no other file of the same key can pass for a task."""


class _Signed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: msgspec.Raw
    signature: str

    def __post_init__(self) -> None:
        hexadecimal(_SIGNATURE_BYTES, signature=self.signature)


_EXACT: Final = re.compile(r"[0-9]{1,400}([./][0-9]{1,400})?")
"""What a device in any language reads in the same way."""

T = TypeVar("T")


def _decoded(data: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode JSON; raise an error of one line if it is invalid."""
    if len(bytes(data)) > MOST_TASK:
        message = f"this is no task: it has more than {MOST_TASK:,} bytes"
        raise InputError(message)
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=_fraction)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = "".join(each if each.isprintable() else " " for each in str(error))[:200]
    message = f"this is no task: {reason}"
    raise InputError(message)


def _fraction(_: type, value: Any) -> Fraction:
    """Return an exact number from its text; 0 is one too."""
    if not isinstance(value, str) or not _EXACT.fullmatch(value):
        message = 'write exact numbers as texts, such as "1/2" or "0.5"'
        raise PlanError(message)
    return Fraction(0) if value == "0" else positive_fraction(number=value)
