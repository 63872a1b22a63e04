"""The group of secp256k1, a batch at a time: the only file that touches the curve library.

libsecp256k1 does the arithmetic, through coincurve's binding to it. These run for the same time
whatever the scalar is, and look up no memory by it:

* `base_multiples` (`secp256k1_ec_pubkey_create`);
* `shared`, `shared_hashes` (`secp256k1_ecdh`);
* `scaled_secret` (`secp256k1_ec_seckey_tweak_mul`).

Everything else takes a time that depends on its input, as the library's functions of public keys
do (`pubkey_parse`, `pubkey_combine`, `pubkey_tweak_add`, `pubkey_tweak_mul`). A long-term secret
enters the constant-time functions only, so there is nothing to blind; what is done with a product
by it depends on that point, and not on the digits of the secret.

`Multiples` looks up tables at places that depend on the scalar, a nonce. Each nonce is used once,
so no two runs can be averaged; and a process that can watch the caches of a device while it ticks
can watch the event itself.

The neutral element has no encoding, in SEC 1's compressed form or in the library. A sum that is
neutral raises `NeutralError`.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError, install
from panprivacy.ground.kernels import wipe_stack
from panprivacy.privacy.coins import SecretCoins
from panprivacy.privacy.noise import wipe

try:
    from coincurve._libsecp256k1 import ffi, lib
    from coincurve.context import GLOBAL_CONTEXT
except ImportError as error:
    message = f"statistics over devices need coincurve: {install('federated')}"
    raise ImportError(message) from error

ORDER: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
"""Number of elements of the group: a prime."""

POINT_BYTES: Final = 33
"""An element in SEC 1's compressed form: 2 or 3 for the parity of y, then x."""

SCALAR_BYTES: Final = 32

GroupPoints = NDArray[np.uint8]
"""Elements other than the neutral one, of shape (n, 64), in the library's own form."""

Scalars = NDArray[np.uint8]
"""Numbers below `ORDER`, big endian, of shape (n, 32)."""

_PARSED_BYTES: Final = 64
_COMPRESSED: Final = lib.SECP256K1_EC_COMPRESSED
_WINDOWS: Final = SCALAR_BYTES
_DIGITS: Final = 256
_ORDER_BYTES: Final = ORDER.to_bytes(SCALAR_BYTES, "big")
_context: Final = GLOBAL_CONTEXT.ctx
"""Its tables for multiples of the base are blinded when coincurve is imported."""


class NeutralError(ArithmeticError):
    """A sum is the neutral element, which has no encoding.

    Args:
        row: position of the sum, counting from 0.
    """

    def __init__(self, row: int) -> None:
        super().__init__("a sum is the neutral element, which has no encoding")
        self.row = row


# Scalars


def scalar(value: int) -> bytes:
    """Return a whole number, taken modulo `ORDER`, in the form of one scalar."""
    return (value % ORDER).to_bytes(SCALAR_BYTES, "big")


def scalars(*encoded: bytes) -> Scalars:
    """Return scalars of 32 bytes each as rows."""
    return np.frombuffer(b"".join(encoded), np.uint8).reshape(-1, SCALAR_BYTES)


def draw(coins: SecretCoins, size: int) -> Scalars:
    """Return `size` secret scalars, independent and exactly uniform on 0 .. ORDER - 1.

    Draws all again if one is `ORDER` or more, which has probability below `size / 2**127`.
    """
    while True:
        drawn = scalars(coins.secret(size * SCALAR_BYTES))
        if all(row.tobytes() < _ORDER_BYTES for row in drawn):
            return drawn


# Points and their encodings


def parse(encoded: NDArray[np.uint8]) -> GroupPoints:
    """Return the points of encodings, of shape (n, 33).

    Raises:
        InputError: a row encodes no point: its first byte is neither 2 nor 3, or no point of the
            curve has that x.
    """
    parsed = np.empty((len(encoded), _PARSED_BYTES), np.uint8)
    out, rows = _points(parsed), np.ascontiguousarray(encoded)
    given = ffi.from_buffer("unsigned char[]", rows)
    for i in range(len(rows)):
        place = given + i * POINT_BYTES
        if not lib.secp256k1_ec_pubkey_parse(_context, out + i, place, POINT_BYTES):
            message = "this is no point of secp256k1: the data is damaged"
            raise InputError(message, row=i + 1)
    return parsed


def encode(points: GroupPoints) -> NDArray[np.uint8]:
    """Return the encodings of points, of shape (n, 33)."""
    encoded = np.empty((len(points), POINT_BYTES), np.uint8)
    out, given = ffi.from_buffer("unsigned char[]", encoded), _points(points)
    length = ffi.new("size_t *", POINT_BYTES)
    for i in range(len(points)):
        place = out + i * POINT_BYTES
        lib.secp256k1_ec_pubkey_serialize(_context, place, length, given + i, _COMPRESSED)
    return encoded


def hashes(points: GroupPoints) -> NDArray[np.uint8]:
    """Return SHA-256 of the encoding of each point, of shape (n, 32)."""
    digests = [hashlib.sha256(row.data).digest() for row in encode(points)]
    return scalars(*digests).copy()


# Arithmetic


def base_multiples(factors: Scalars) -> GroupPoints:
    """Return multiples of the base point, in constant time.

    Raises:
        NeutralError: a factor is 0.
    """
    found = np.empty((len(factors), _PARSED_BYTES), np.uint8)
    out, given = _points(found), ffi.from_buffer("unsigned char[]", factors)
    for i in range(len(factors)):
        if not lib.secp256k1_ec_pubkey_create(_context, out + i, given + i * SCALAR_BYTES):
            raise NeutralError(i)
    return found


def scaled(points: GroupPoints, factor: bytes) -> GroupPoints:
    """Return each point times one public factor, in variable time.

    Raises:
        NeutralError: the factor is 0.
    """
    found = points.copy()
    out = _points(found)
    for i in range(len(found)):
        if not lib.secp256k1_ec_pubkey_tweak_mul(_context, out + i, factor):
            raise NeutralError(i)
    return found


def negated(points: GroupPoints) -> GroupPoints:
    """Return the inverse of each point."""
    found = points.copy()
    out = _points(found)
    for i in range(len(found)):
        lib.secp256k1_ec_pubkey_negate(_context, out + i)
    return found


def add(first: GroupPoints, *others: GroupPoints) -> GroupPoints:
    """Return the sums of equally many points, row by row; what has one row is added to each row.

    Raises:
        NeutralError: a sum is neutral.
    """
    columns = [_addresses(column, len(first)) for column in (first, *others)]
    return _sums(np.hstack(columns))


def progression(start: GroupPoints, step: GroupPoints, size: int) -> GroupPoints:
    """Return `size` points: the start, and each other one a step after the one before.

    Raises:
        NeutralError: one of them is neutral.
    """
    found = start
    while len(found) < size:
        found = np.concatenate([found, add(found[: size - len(found)], step)])
        step = add(step, step)
    return found


class Multiples:
    """Secret multiples of one point, by a table: sums of 32 of its entries, one a digit.

    Entry (i, d) is `d * 256**i` times the point, plus an offset of row i that keeps a digit of 0
    from being the neutral element. The offsets sum to nothing. They are hashed from the point: who
    finds a point that has a neutral entry has found a fixed point of SHA-256.
    """

    __slots__ = ("_table",)

    def __init__(self, point: GroupPoints) -> None:
        self._table = np.empty((_WINDOWS, _DIGITS, _PARSED_BYTES), np.uint8)
        for row, offset in zip(self._table, _offsets(encode(point).tobytes()), strict=True):
            row[:] = progression(offset[np.newaxis], point, _DIGITS)
            point = scaled(point, scalar(_DIGITS))

    def added_to(self, *columns: GroupPoints, factors: Scalars) -> GroupPoints:
        """Return the sums of the columns' points and the multiple by the row's factor, by row.

        Raises:
            NeutralError: a sum is neutral.
        """
        entries = factors.astype(np.uint64)  # changed in place: what is freed keeps its digits
        entries += np.arange(_WINDOWS, dtype=np.uint64)[::-1] * np.uint64(_DIGITS)
        entries *= np.uint64(_PARSED_BYTES)
        entries += _address(self._table)
        addresses = np.hstack([entries, *[_addresses(column, len(factors)) for column in columns]])
        try:
            return _sums(addresses)
        finally:
            wipe(entries, addresses)
            wipe_stack()


def _offsets(seed: bytes) -> GroupPoints:
    """Return one point for each window; they sum to the neutral element."""
    hashed = [hashlib.sha256(seed + bytes([i])).digest() for i in range(_WINDOWS - 1)]
    numbers = [int.from_bytes(digest, "big") for digest in hashed]
    return base_multiples(scalars(*map(scalar, [*numbers, -sum(numbers)])))


@cache
def of_base() -> Multiples:
    """Return the table of the base point."""
    return Multiples(base_multiples(scalars(scalar(1))))


def scaled_secret(secret: bytes, factor: bytes) -> bytes:
    """Return a secret scalar times a public factor, in constant time.

    Raises:
        NeutralError: the factor is 0.
    """
    found = ffi.new("unsigned char[]", secret)
    if not lib.secp256k1_ec_seckey_tweak_mul(_context, found, factor):
        raise NeutralError(0)
    return bytes(ffi.buffer(found, SCALAR_BYTES))


def shared(points: GroupPoints, secret: bytes) -> GroupPoints:
    """Return each point times the secret, in constant time."""
    found = np.empty((len(points), _PARSED_BYTES), np.uint8)
    out, given = _points(found), _points(points)
    product = ffi.new("unsigned char[]", b"\x04" + bytes(_PARSED_BYTES))
    for i in range(len(points)):
        _product(product + 1, given + i, secret, _copier())
        lib.secp256k1_ec_pubkey_parse(_context, out + i, product, 1 + _PARSED_BYTES)
    return found


def shared_hashes(points: GroupPoints, secret: bytes) -> NDArray[np.uint8]:
    """Return SHA-256 of the encoding of each point times the secret; shape (n, 32).

    The time is constant.
    """
    found = np.empty((len(points), SCALAR_BYTES), np.uint8)
    out, given = ffi.from_buffer("unsigned char[]", found), _points(points)
    for i in range(len(points)):
        _product(out + i * SCALAR_BYTES, given + i, secret, ffi.NULL)
    return found


def _product(out: Any, point: Any, secret: bytes, form: Any) -> None:
    if not lib.secp256k1_ecdh(_context, out, point, secret, form, ffi.NULL):
        message = "the multiplication was interrupted"
        raise RuntimeError(message)


@cache
def _copier() -> Any:
    """Return the callback that outputs a product as x and y, where the library would hash it."""

    @ffi.callback("int(unsigned char *, const unsigned char *, const unsigned char *, void *)")
    def copy(out: Any, x: Any, y: Any, _: Any) -> int:
        ffi.memmove(out, x, SCALAR_BYTES)
        ffi.memmove(out + SCALAR_BYTES, y, SCALAR_BYTES)
        return 1

    return copy


# Addresses, by which the library takes the terms of a sum


def _points(points: GroupPoints) -> Any:
    return ffi.from_buffer("secp256k1_pubkey[]", points)


def _address(array: NDArray[np.uint8]) -> np.uint64:
    return np.uint64(array.ctypes.data)


def _addresses(points: GroupPoints, size: int) -> NDArray[np.uint64]:
    """Return the addresses of the rows, or `size` times that of the only one, as a column."""
    if len(points) not in {1, size}:
        message = "columns of points differ in length"
        raise ValueError(message)
    step = np.uint64(_PARSED_BYTES if len(points) == size else 0)
    return (_address(points) + np.arange(size, dtype=np.uint64) * step).reshape(-1, 1)


def _sums(addresses: NDArray[np.uint64]) -> GroupPoints:
    """Return the sum of the points at each row of addresses."""
    size, terms = addresses.shape
    found = np.empty((size, _PARSED_BYTES), np.uint8)
    out, given = _points(found), ffi.from_buffer("secp256k1_pubkey *[]", addresses)
    for i in range(size):
        if not lib.secp256k1_ec_pubkey_combine(_context, out + i, given + i * terms, terms):
            raise NeutralError(i)
    return found
