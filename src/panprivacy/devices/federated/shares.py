"""Bits as shares for two servers, with proofs that they are bits; each server opens its own.

An encrypted value is four ciphertexts. Two hold the leader's share of the bit and of the proof, 48
bytes; two hold the seed of the helper's shares, 32 bytes. Two points hold 62 bytes (`embedding`):
the rest is the beginning of the SHA-256 of the payload, so that points of two payloads that
somebody puts together anew are none. The shares stay what they are while their ciphertexts are
re-randomised, and the proof stays true: it depends on neither the ciphertexts nor the nonce.

Reference: V. Feldman, A. McMillan, G. Rothblum, K. Talwar, "Local pan-privacy for federated
analytics", ICML 2025, section 5; `panprivacy.devices.vdaf` for the shares and proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.embedding import PAYLOAD_BYTES, embed, extract
from panprivacy.devices.federated.group import POINT_BYTES
from panprivacy.devices.federated.joint import own_key, payload_keys
from panprivacy.devices.federated.rows import CIPHERTEXT_BYTES, SHARED_BYTES, entries, row_of
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.devices.vdaf import Prio3Count
from panprivacy.devices.vdaf.field64 import add
from panprivacy.errors import InputError
from panprivacy.privacy.coins import SecretCoins, SystemCoins

SERVER_BYTES: Final = 2 * CIPHERTEXT_BYTES
"""Size of the part of an encrypted bit that one server opens."""
_ROOM: Final = 2 * PAYLOAD_BYTES
"""Capacity of its points, in bytes."""


class Sharing:
    """Encrypts bits to two servers, as shares; an `Encryption`.

    Guarantee: without either server's secret key nobody can tell a row from that of other bits, if
    the decisional Diffie-Hellman problem is hard. One server opens a share that is uniform,
    whatever the bit. [docs/guarantees/two-servers.md]

    Args:
        context: context of the proofs, `Task.context`.
        servers: their public keys.

    Raises:
        InputError: a key is no point.
    """

    entry_bytes: ClassVar = SHARED_BYTES

    def __init__(self, context: bytes, servers: TwoServers) -> None:
        self._prio = Prio3Count(context)
        self._leader, self._helper = payload_keys(servers)

    def encrypt(self, values: Sequence[int], coins: SecretCoins) -> bytes:
        """Return fresh shares and a proof of each bit, encrypted.

        Args:
            values: each 0 or 1.
            coins: source of shares, proofs and nonces.

        Raises:
            InputError: a value is neither 0 nor 1.
        """
        random = coins.secret(len(values) * Prio3Count.RANDOM_BYTES)
        leader, helper = self._prio.shard(values, random)
        return _woven(
            self._leader.encrypt_points(embedded(leader, Prio3Count.LEADER_BYTES), coins),
            self._helper.encrypt_points(embedded(helper, Prio3Count.HELPER_BYTES), coins),
        )

    def rerandomise(self, ciphertexts: bytes, coins: SecretCoins) -> bytes:
        """Return the same shares and proofs, in ciphertexts with the law of fresh ones.

        Raises:
            InputError: this is no row of shares.
        """
        leader, helper = split(ciphertexts)
        return _woven(
            self._leader.rerandomise(leader, coins), self._helper.rerandomise(helper, coins)
        )

    def check(self, ciphertexts: bytes) -> None:
        """Raise `InputError` if this is no row of shares; the message shows none of it."""
        for row in split(ciphertexts):
            self._leader.check(row)


def split(row: bytes) -> tuple[bytes, bytes]:
    """Return the halves of a row for the leader and for the helper: `SERVER_BYTES` for each bit.

    Raises:
        InputError: the row is no whole number of shares.
    """
    if not isinstance(row, bytes) or len(row) % SHARED_BYTES:
        message = f"expected bytes, {SHARED_BYTES} for each bit: some are missing, or too many"
        raise InputError(message)
    halves = entries(row, SERVER_BYTES)
    return row_of(halves[::2]), row_of(halves[1::2])


def _woven(leader: bytes, helper: bytes) -> bytes:
    """Return the row that `split` splits so."""
    pairs = zip(entries(leader, SERVER_BYTES), entries(helper, SERVER_BYTES), strict=True)
    return row_of(*pairs)


class OpenedShare(NamedTuple):
    """The content of a server's half of a row.

    Args:
        payloads: its shares, of n bits; zeros where there are none.
        readable: bool[n], where there are some.
    """

    payloads: bytes
    readable: NDArray[np.bool_]


def open_leader(row: bytes, key: DecryptionKey) -> OpenedShare:
    """Return the shares of the leader, `Prio3Count.LEADER_BYTES` for each bit.

    Args:
        row: its half, without the helper's layer if there was one.
        key: `joint.own_key` of the leader.

    Raises:
        InputError: the row has no whole number of `SERVER_BYTES`.
    """
    return _opened(row, key, Prio3Count.LEADER_BYTES)


def open_helper(row: bytes, key: DecryptionKey) -> OpenedShare:
    """Return the seeds of the helper, `Prio3Count.HELPER_BYTES` for each bit; as `open_leader`."""
    return _opened(row, key, Prio3Count.HELPER_BYTES)


def _opened(row: bytes, key: DecryptionKey, size: int) -> OpenedShare:
    if len(row) % SERVER_BYTES:
        message = f"expected bytes, {SERVER_BYTES} for each bit: some are missing, or too many"
        raise InputError(message)
    found = [_payload(entry, key, size) for entry in entries(row, SERVER_BYTES)]
    kept = [bytes(size) if payload is None else payload for payload in found]
    return OpenedShare(b"".join(kept), np.array([payload is not None for payload in found], bool))


def _payload(entry: bytes, key: DecryptionKey, size: int) -> bytes | None:
    """Return the payload of one encrypted share, or None if it is invalid."""
    try:
        held = b"".join(map(extract, entries(key.points(entry), POINT_BYTES)))
    except InputError:
        return None
    payload = held[:size]
    return payload if compare_digest(held, _marked(payload)) else None


def embedded(payloads: bytes, size: int) -> bytes:
    """Return two points for each payload, which end with the beginning of its hash.

    Args:
        payloads: payloads of one server.
        size: size of each.
    """
    held = b"".join(map(_marked, entries(payloads, size)))
    return b"".join(map(embed, entries(held, PAYLOAD_BYTES)))


def _marked(payload: bytes) -> bytes:
    """Return the payload, and as much of its hash as two points hold."""
    return (payload + sha256(payload).digest())[:_ROOM]


class BothServers:
    """The secret keys of both servers in one hand: a `Decryption` for simulations and tests.

    Args:
        context: context of the proofs.
        servers: their public keys.
        leader: the leader's secret key.
        helper: the helper's.

    Raises:
        PlanError: a key is not that of a server.
    """

    def __init__(
        self, context: bytes, servers: TwoServers, leader: DecryptionKey, helper: DecryptionKey
    ) -> None:
        self.public = Sharing(context, servers)
        self._prio, self._servers = Prio3Count(context), servers
        self._leader, self._helper = own_key(servers, leader), own_key(servers, helper)

    def bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.uint8]:  # noqa: ARG002
        """Return the bits of a row, each opened, proved and put together as two servers would.

        Raises:
            InputError: this is no row of shares, or the proof of a bit is wrong.
        """
        found = self.marked_bits(ciphertexts)
        if (found < 0).any():
            message = "its shares are not those of a bit, or they are for other keys"
            raise InputError(message, row=int(np.argmin(found)) + 1)
        return found.astype(np.uint8)

    def marked_bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.int8]:  # noqa: ARG002
        """Return the same, with -1 where the proof of a bit is wrong, in the same steps for all.

        Raises:
            InputError: this is no row of shares.
        """
        first, second = split(ciphertexts)
        if self._servers.joint:
            first, second = self._helper.strip(first), self._leader.strip(second)
        leader, helper = open_leader(first, self._leader), open_helper(second, self._helper)
        key = SystemCoins().key(Prio3Count.VERIFY_KEY_BYTES)
        nonces = bytes(len(leader.readable) * Prio3Count.NONCE_BYTES)
        one = self._prio.verify_leader(key, nonces, leader.payloads)
        other = self._prio.verify_helper(key, nonces, helper.payloads)
        accepted = self._prio.decide(one.verifiers, other.verifiers)
        proved = accepted & leader.readable & helper.readable
        return np.where(proved, add(one.outputs, other.outputs), -1).astype(np.int8)
