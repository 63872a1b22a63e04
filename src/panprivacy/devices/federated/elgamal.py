"""Exponential ElGamal over secp256k1: ciphertexts of small whole numbers that can be added.

With the base point G, a secret key x and the public key H = x G, a ciphertext of m is the pair
(r G, r H + m G) for a secret nonce r. Whoever has the public key can add ciphertexts, multiply them
by a public factor, and re-randomise them: add a ciphertext of 0 with a fresh nonce. Whoever has x
finds m G, and m by search.

A row of ciphertexts is plain `bytes`, `CIPHERTEXT_BYTES` for each: two points, each in SEC 1's
compressed form. Every row from outside is checked whole before anything is done with it.

Reference: T. ElGamal, IEEE Transactions on Information Theory 31 (1985); R. Cramer, R. Gennaro,
B. Schoenmakers, EUROCRYPT 1997. `docs/guarantees/elgamal.md` has what is proved.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cached_property, partial
from hashlib import sha256
from math import isqrt
from multiprocessing import get_context
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.devices.federated import group
from panprivacy.devices.federated.group import (
    ORDER,
    POINT_BYTES,
    SCALAR_BYTES,
    GroupPoints,
    NeutralError,
)
from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import positive_integer, whole_number
from panprivacy.privacy.coins import SecretCoins
from panprivacy.privacy.noise import wipe

CIPHERTEXT_BYTES: Final = 2 * POINT_BYTES
"""Two compressed points."""

_MOST: Final = 1 << 62
"""Maximum of a value or factor."""
_WIDEST: Final = 1 << 40
"""Number of values that can be searched in about a minute."""

_MOST_BABY_STEPS: Final = 1 << 20
"""They take some 200 MB; one ciphertext of the widest range needs no more."""

PlainValues = NDArray[Any]
"""Values of ciphertexts, one for each entry or row."""


class Encryption(Protocol):
    """The operations of a device on encrypted values, which it cannot decrypt."""

    @property
    def entry_bytes(self) -> int:
        """Number of bytes of one encrypted value in a row."""

    def encrypt(self, values: Sequence[int], coins: SecretCoins) -> bytes:
        """Return a row of fresh encryptions of the values."""

    def rerandomise(self, ciphertexts: bytes, coins: SecretCoins) -> bytes:
        """Return a row of the same values, as if each were fresh."""

    def check(self, ciphertexts: bytes) -> None:
        """Raise `InputError` if this is no row of ciphertexts."""


class SumEncryption(Encryption, Protocol):
    """An encryption whose ciphertexts can be added."""

    def add(self, *terms: bytes) -> bytes:
        """Return encryptions of the sums, entry by entry of equally long rows."""


class EncryptionKey:
    """The public key, which encrypts; a `SumEncryption`.

    Guarantee: without the secret key nobody can tell a ciphertext of one value from that of
    another, if the decisional Diffie-Hellman problem of secp256k1 is hard; and a re-randomised
    ciphertext has exactly the law of a fresh one of its value, whatever it was before.

    Args:
        encoded: a point in SEC 1's compressed form, 33 bytes; `bytes(key)` gives it back.

    Raises:
        InputError: they are no point.
    """

    entry_bytes: ClassVar = CIPHERTEXT_BYTES

    def __init__(self, encoded: bytes) -> None:
        if not isinstance(encoded, bytes) or len(encoded) != POINT_BYTES:
            message = f"a public key has {POINT_BYTES} bytes, the compressed form of a point"
            raise InputError(message)
        (self._point,) = _parsed(encoded, POINT_BYTES)
        self._encoded = encoded

    def __bytes__(self) -> bytes:
        return self._encoded

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncryptionKey) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        return hash((EncryptionKey, self._encoded))

    def __repr__(self) -> str:
        return f"EncryptionKey(bytes.fromhex({self._encoded.hex()!r}))"

    @cached_property
    def _multiples(self) -> group.Multiples:
        return group.Multiples(self._point)

    def encrypt(self, values: Sequence[int], coins: SecretCoins) -> bytes:
        """Return a fresh ciphertext of each value; the same steps are taken for all values.

        Args:
            values: whole numbers of at most 2**62 in size.
            coins: source of the nonces.

        Raises:
            PlanError: a value is out of range.
        """
        moved = group.base_multiples(group.scalars(*map(_moved, values)))
        try:
            return self._masked([], [moved, _multiple(-_SHIFT)], coins)
        finally:
            wipe(moved)

    def encrypt_points(self, points: bytes, coins: SecretCoins) -> bytes:
        """Return a fresh ciphertext of each point, such as `embedding.embed` gives.

        Raises:
            InputError: these are no points of 33 bytes each.
        """
        return self._masked([], [_parsed(points, POINT_BYTES)[0]], coins)

    def rerandomise(self, ciphertexts: bytes, coins: SecretCoins) -> bytes:
        """Return ciphertexts of the same values, with the law of fresh ones.

        Raises:
            InputError: this is no row of ciphertexts.
        """
        first, second = _parsed(ciphertexts)
        return self._masked([first], [second], coins)

    def _masked(
        self, first: Sequence[GroupPoints], second: Sequence[GroupPoints], coins: SecretCoins
    ) -> bytes:
        """Add up columns of points, and a fresh ciphertext of 0.

        A nonce that makes a sum neutral gives no ciphertext. Then all are drawn again, which has
        probability 2**-255 a ciphertext: the nonces stay independent, and uniform on the others.
        """
        while True:
            nonces = group.draw(coins, len(second[0]))
            with suppress(NeutralError):
                return _concatenated(
                    group.of_base().added_to(*first, factors=nonces),
                    self._multiples.added_to(*second, factors=nonces),
                )

    def add(self, *terms: bytes) -> bytes:
        """Return ciphertexts of the sums, entry by entry of equally long rows.

        Nothing fresh is in them: re-randomise what others may compare with the terms.

        Raises:
            InputError: a term is no row of ciphertexts, their lengths differ, or a sum has no
                encoding, as that of a ciphertext and its inverse.
        """
        rows = [_parsed(term) for term in terms]
        if len({len(term) for term in terms}) != 1:
            message = "add one row of ciphertexts or more, all of the same length"
            raise InputError(message)
        firsts, seconds = zip(*rows, strict=True)
        try:
            return _concatenated(group.add(*firsts), group.add(*seconds))
        except NeutralError as error:
            row = error.row + 1
        message = "the sum has no encoding: re-randomise a term before it is added"
        raise InputError(message, row=row)

    def scale(self, ciphertexts: bytes, factor: int) -> bytes:
        """Return ciphertexts of the values times a public factor; the time depends on the factor.

        Args:
            ciphertexts: a row of them.
            factor: a whole number other than 0, of at most 2**62 in size.

        Raises:
            InputError: this is no row of ciphertexts.
            PlanError: the factor is 0 or out of range.
        """
        if whole_number(-_MOST, _MOST, factor=factor) == 0:
            message = "factor must not be 0: encrypt 0 instead"
            raise PlanError(message)
        scalar = group.scalar(factor)
        return _concatenated(*(group.scaled(points, scalar) for points in _parsed(ciphertexts)))

    def check(self, ciphertexts: bytes) -> None:
        """Raise `InputError` if this is no row of ciphertexts; the message shows none of it."""
        _parsed(ciphertexts)

    def times(self, factor: int) -> EncryptionKey:
        """Return the public half of `DecryptionKey.times`."""
        point = group.scaled(self._point, group.scalar(factor))
        return EncryptionKey(group.encode(point).tobytes())

    def plus(self, other: EncryptionKey) -> EncryptionKey:
        """Return the key whose secret is the sum of both: only together can their holders decrypt.

        Raises:
            InputError: the sum is no key, as that of a key and its inverse.
        """
        try:
            return EncryptionKey(group.encode(group.add(self._point, other._point)).tobytes())
        except NeutralError:
            message = "the keys cancel each other out: make new ones"
        raise InputError(message)


class DecryptionKey:
    """The secret key, which decrypts; `generate` and `from_bytes` make one.

    No function of variable time sees the secret: it enters constant-time multiplications only.

    `bytes(key)` is the secret, to be kept sealed.
    """

    __slots__ = ("_secret", "public")

    public: EncryptionKey
    """The key that encrypts to this one."""

    def __init__(self, secret: bytes) -> None:
        self.public = EncryptionKey(
            group.encode(group.base_multiples(group.scalars(secret))).tobytes()
        )
        self._secret = secret

    @classmethod
    def generate(cls, coins: SecretCoins) -> DecryptionKey:
        """Return a fresh key, uniform on all of them."""
        while True:
            with suppress(NeutralError):
                return cls(group.draw(coins, 1).tobytes())

    @classmethod
    def from_bytes(cls, secret: bytes) -> DecryptionKey:
        """Return the key of a stored secret.

        Raises:
            InputError: these are not 32 bytes that hold a number from 1 to the order less 1.
        """
        is_secret = isinstance(secret, bytes) and len(secret) == SCALAR_BYTES
        if not is_secret or not 0 < int.from_bytes(secret, "big") < ORDER:
            message = f"a secret key has {SCALAR_BYTES} bytes: a number from 1 to the order less 1"
            raise InputError(message)
        return cls(secret)

    def __bytes__(self) -> bytes:
        return self._secret

    def __repr__(self) -> str:
        return f"DecryptionKey of {self.public!r}"

    def bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.uint8]:
        """Return the values of ciphertexts of 0 or 1, each in constant time.

        Args:
            ciphertexts: a row of them.
            processes: number of processes that share the work; others than one are started for it.

        Raises:
            InputError: this is no row of ciphertexts, or one is of neither 0 nor 1, as one for
                another key is.
        """
        found = self.marked_bits(ciphertexts, processes)
        _refuse_but(found >= 0, "its value is neither 0 nor 1, or it is for another key")
        return found.astype(np.uint8)

    def marked_bits(self, ciphertexts: bytes, processes: int = 1) -> NDArray[np.int8]:
        """Return the same, with -1 for ciphertexts of neither 0 nor 1, in the same steps for all.

        Args:
            ciphertexts: a row of them.
            processes: number of processes that share the work.

        Raises:
            InputError: this is no row of ciphertexts.
        """
        return _by_processes(partial(_marked_bits, self._secret), ciphertexts, processes)

    def small_sums(
        self, ciphertexts: bytes, low: int, high: int, processes: int = 1
    ) -> NDArray[np.int64]:
        """Return the values of ciphertexts, found by search from `low` to `high`.

        See `marked_sums`.

        Args:
            ciphertexts: a row of them.
            low: the least value that is looked for.
            high: the largest; at most 2**40 values are looked for.
            processes: number of processes that share the work; others than one are started for it.

        Raises:
            InputError: this is no row of ciphertexts, or one has no value from `low` to `high`.
            PlanError: the range is empty or too wide.
        """
        found = self.marked_sums(ciphertexts, low, high, processes)
        says = f"its value is not one of {low:,} to {high:,}, or it is for another key"
        _refuse_but(found <= high, says)
        return found

    def marked_sums(
        self, ciphertexts: bytes, low: int, high: int, processes: int = 1
    ) -> NDArray[np.int64]:
        """The same, with `high + 1` for other values: the same steps whatever they are.

        Baby steps, giant steps: about 2 sqrt(n (high - low)) additions for n ciphertexts, or more
        where that is above 2**21. Every giant step is made for every ciphertext.

        Args:
            ciphertexts: a row of them.
            low: the least value that is looked for.
            high: the largest; at most 2**40 values are looked for.
            processes: how many share the work; others than one are started for it.

        Raises:
            InputError: this is no row of ciphertexts.
            PlanError: the range is empty or too wide.
        """
        low, high = whole_number(-_MOST, _MOST, low=low), whole_number(-_MOST, _MOST, high=high)
        if not 0 <= high - low < _WIDEST:
            message = f"low to high must be 1 to {_WIDEST:,} values"
            raise PlanError(message)
        decrypt = partial(_marked_sums, self._secret, low, high)
        return _by_processes(decrypt, ciphertexts, processes)

    def times(self, factor: int) -> DecryptionKey:
        """Return the key with this secret times a public factor, not 0 modulo the order."""
        return DecryptionKey(group.scaled_secret(self._secret, group.scalar(factor)))

    def strip(self, ciphertexts: bytes) -> bytes:
        """Take this key's layer off ciphertexts for a sum of keys, of which it is one.

        What has no encoding without it becomes a ciphertext of something else: no device sends it.

        Raises:
            InputError: this is no row of ciphertexts.
        """
        first, second = _parsed(ciphertexts)
        layers = group.shared(first, self._secret)
        bare = (group.encode(layers) == group.encode(second)).all(axis=1)
        off = group.negated(layers)
        second[bare] = off[bare]
        return _concatenated(first, group.add(second, off))

    def points(self, ciphertexts: bytes) -> bytes:
        """Return the points that `encrypt_points` was given.

        Args:
            ciphertexts: a row of them.

        Raises:
            InputError: this is no row of ciphertexts, or one is of the value 0.
        """
        return _points(self._secret, ciphertexts).tobytes()


# Rows of points


def _parsed(encoded: bytes, size: int = CIPHERTEXT_BYTES) -> list[GroupPoints]:
    """Return the points of rows of `size` bytes: first all that come first, and so on.

    Raises:
        InputError: these are no such rows.
    """
    if not isinstance(encoded, bytes) or len(encoded) % size:
        message = f"expected bytes, {size} for each row: some are missing, or there are too many"
        raise InputError(message)
    rows = np.frombuffer(encoded, np.uint8).reshape(-1, size)
    return [group.parse(rows[:, i : i + POINT_BYTES]) for i in range(0, size, POINT_BYTES)]


def _concatenated(first: GroupPoints, second: GroupPoints) -> bytes:
    return np.hstack([group.encode(first), group.encode(second)]).tobytes()


# Shifts: a value is moved by a fixed number so that no value gives the neutral element

_SHIFT: Final = int.from_bytes(sha256(b"panprivacy: moves values").digest(), "big")


def _moved(value: int) -> bytes:
    """Return the value, moved, as a scalar."""
    return group.scalar(whole_number(-_MOST, _MOST, value=value) + _SHIFT)


def _multiple(factor: int) -> GroupPoints:
    """Return a public multiple of the base point."""
    return group.base_multiples(group.scalars(group.scalar(factor)))


# Decryption, as functions that other processes can be given


def _by_processes(
    decrypt: Callable[[bytes], PlainValues], ciphertexts: bytes, processes: int
) -> PlainValues:
    """Decrypt a row in as many pieces as there are processes."""
    if positive_integer(processes=processes) == 1:
        return decrypt(ciphertexts)
    _parsed(ciphertexts)
    size = -(-len(ciphertexts) // (CIPHERTEXT_BYTES * processes)) * CIPHERTEXT_BYTES or 1
    pieces = [ciphertexts[i : i + size] for i in range(0, len(ciphertexts), size)]
    found = [decrypt(b"")]
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for number, work in enumerate([pool.submit(decrypt, piece) for piece in pieces]):
            try:
                found.append(work.result())
            except InputError as error:
                raise error.after(number * size // CIPHERTEXT_BYTES) from None
    return np.concatenate(found)


def _marked_bits(secret: bytes, ciphertexts: bytes) -> NDArray[np.int8]:
    """Compare the hash of x times the first point with those of the second and of the second - G.

    All are compared with both, each in constant time; -1 is what equals none.
    """
    first, second = _parsed(ciphertexts)
    found = group.shared_hashes(first, secret)
    zeros = _are_equal(found, group.hashes(second))
    ones = _are_equal(found, _hashes_minus_base(second))
    return np.where(zeros | ones, ones, -1).astype(np.int8)


def _hashes_minus_base(points: GroupPoints) -> NDArray[np.uint8]:
    """Return the hashes of the points less G; zeros, which no point has, where that is neutral."""
    is_base = (group.encode(points) == group.encode(_multiple(1))).all(axis=1)
    points = np.where(is_base[:, np.newaxis], _multiple(2), points)
    found = group.hashes(group.add(points, _multiple(-1)))
    found[is_base] = 0
    return found


def _are_equal(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which rows are equal, each in constant time."""
    pairs = zip(one, other, strict=True)
    return np.fromiter((hmac.compare_digest(a.data, b.data) for a, b in pairs), bool, len(one))


def _marked_sums(secret: bytes, low: int, high: int, ciphertexts: bytes) -> NDArray[np.int64]:
    """Search for m G = second - x first: giant steps down, all of them for each.

    A point to which a step cannot be added gives way to one that no step meets.
    """
    first, second = _parsed(ciphertexts)
    if not len(first):
        return np.empty(0, np.int64)
    products = group.shared(first, secret)
    steps = min(isqrt(len(first) * (high - low)) + 1, high - low + 1, _MOST_BABY_STEPS)
    baby = {row.tobytes(): step for step, row in enumerate(_moved_multiples(steps))}
    starts = range(low, high + 1, steps)
    aside, none = _multiple(_SHIFT + len(starts) * steps), high + 1
    points, beyond = _sums_or(aside, second, _multiple(_SHIFT - low))
    points, neutral = _sums_or(aside, points, group.negated(products))
    beyond |= neutral
    found = np.full(len(first), none, np.int64)
    for start in starts:
        places = [baby.get(row.tobytes(), none - start) for row in group.encode(points)]
        np.minimum(found, np.array(places, np.int64) + start, out=found)
        points, _ = _sums_or(aside, points, _multiple(-steps))
    found[beyond] = none
    return np.minimum(found, none)


def _sums_or(
    aside: GroupPoints, points: GroupPoints, more: GroupPoints
) -> tuple[GroupPoints, NDArray[np.bool_]]:
    """Sums of points; where one would be neutral, of another point, and which these are."""
    opposite = group.encode(group.negated(more))
    neutral = (group.encode(points) == opposite).all(axis=1)
    return group.add(np.where(neutral[:, np.newaxis], aside, points), more), neutral


def _points(secret: bytes, ciphertexts: bytes) -> NDArray[np.uint8]:
    """Return the encodings of second - x first."""
    first, second = _parsed(ciphertexts)
    try:
        return group.encode(group.add(second, group.negated(group.shared(first, secret))))
    except NeutralError as error:
        row = error.row + 1
    message = "its value is the number 0, and no point"
    raise InputError(message, row=row)


def _moved_multiples(size: int) -> NDArray[np.uint8]:
    """Return the encodings of 0, 1, 2 and so on times the base point, each moved."""
    return group.encode(group.progression(_multiple(_SHIFT), _multiple(1), size))


def _refuse_but(known: NDArray[np.bool_], reason: str) -> None:
    """Raise `InputError` for the first row that is not known."""
    if not known.all():
        raise InputError(reason, row=int(np.argmin(known)) + 1)
