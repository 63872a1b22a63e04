"""The map from users to cells.

An addressing is a public design and a random key. Given the key it is a fixed function of the
id, so two rows of one user always meet the same cell; the key is part of the state.

Slots tell who came: their arrays are a word longer than they, so that freed ones are overwritten
whole (see `allocator`).

| addressing | cell of a user | used when |
|---|---|---|
| `Direct` | the id itself | the universe fits in memory |
| `Sampled` | the image under a keyed permutation, if below `cells` | it does not |
| `Dealt` | one of these two, by the id's number within its shard | a shard has a slice of it |
| `Hashed` | a keyed hash | ids are open-ended |
| `Levelled` | a keyed hash within a level, levels halving in popularity | so is their number |
| `Independent` | a random polynomial | the answer rests on how users meet in cells |
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy import uint8, uint64
from numpy.typing import NDArray

from panprivacy.errors import InputError
from panprivacy.ground.hygiene.threads import cores, side_by_side
from panprivacy.ground.kernels import inlined, kernel, read_only
from panprivacy.privacy.noise import wipe
from panprivacy.tables.hashing import (
    ABREAST,
    fetch_ahead,
    fold,
    hash_abreast,
    hash_byte_strings,
    hash_bytes,
    hash_word,
    key_words,
    multiply_high,
    scalar,
    trailing_zeros,
)
from panprivacy.tables.ids import ByteIds, CodedIds, Ids, IntegerIds
from panprivacy.tables.polynomial import slots_of_byte_strings, slots_of_integers, words_of

Slots = NDArray[np.int64]
"""The cell of each row; -1 where the user has none."""

Bitmap = NDArray[np.uint64]
"""A bit for each cell, that of cell `c` in bit `c % 64` of word `c // 64`."""

Bits = NDArray[np.uint8]
"""Bits, one a byte or eight."""

THREAD_ROWS = 1 << 18
"""The fewest rows for which a thread is started: that takes as long as some thousands of them."""

_LINE = 64
"""Bytes that a processor fetches at a time."""

MAX_LEVELS = 48
MAX_UNIVERSE = 1 << 62
FEISTEL_ROUNDS = 8
FEISTEL_BITS = 8
"""The narrowest network: halves of fewer than four bits do not mix well."""


class Addressing(ABC):
    """A map from users to cells 0 .. cells-1.

    Args:
        cells: the number of cells.
        key: 16 random bytes, or none.
    """

    slots_are_ids: ClassVar[bool] = False
    """Whether slots are the caller's own array of ids, which must not be changed."""

    def __init__(self, cells: int, key: bytes) -> None:
        self.cells = cells
        self._key = key_words(key) if key else (np.uint64(0), np.uint64(0))

    @abstractmethod
    def check(self, batch: Sequence[Ids]) -> None:
        """Raise `InputError` if an id of the batch has no place."""

    def slots(self, batch: Sequence[Ids]) -> Iterator[Slots]:
        """Yield the cells of a checked batch, in order, one cache-sized piece at a time."""
        for ids in batch:
            yield from self._slots(ids)

    def _slots(self, ids: Ids) -> Iterator[Slots]:
        if isinstance(ids, CodedIds):
            pieces = list(self._slots(ids.values))
            table = np.concatenate([*pieces, np.zeros(1, np.int64)])
            wipe(*pieces)
            try:
                yield from (table[piece.values] for piece in IntegerIds(ids.codes).pieces())
            finally:
                wipe(table)
        else:
            yield from (self._piece(piece) for piece in ids.pieces())

    def mark(self, batch: Sequence[Ids], touched: Bitmap) -> None:
        """Set the bits of the cells of a checked batch, in this thread."""
        for slots in CellBatch(self, batch):
            mark_slots(slots, touched)

    def write(self, batch: Sequence[Ids], bits: Bits, table: Bits) -> None:
        """Write the bit of each row of a checked batch into its cell, row by row.

        Args:
            batch: the rows.
            bits: 0 or 1 for each row.
            table: the cells, bits of bytes: cell `c` in bit `c % 8` of byte `c // 8`.
        """
        row = 0
        for slots in CellBatch(self, batch):
            _write_slots(slots, bits[row:], table)
            row += len(slots)

    @abstractmethod
    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        """Return the cells of one piece."""


class CellBatch:
    """A checked batch on its way to cells: its slots, or the set of the cells that it touches.

    Slots tell which cells were touched, so a piece is overwritten once it was used.

    Args:
        addressing: where they go.
        batch: ids that it has checked.
    """

    __slots__ = ("_addressing", "_batch")

    def __init__(self, addressing: Addressing, batch: Sequence[Ids]) -> None:
        self._addressing, self._batch = addressing, batch

    def __len__(self) -> int:
        return sum(map(len, self._batch))

    def __iter__(self) -> Iterator[Slots]:
        for piece in self._addressing.slots(self._batch):
            yield piece
            if not self._addressing.slots_are_ids:
                wipe(piece)

    def write(self, bits: Bits, table: Bits) -> None:
        """Write the bit of each row into its cell; see `Addressing.write`."""
        self._addressing.write(self._batch, bits, table)

    def mark(self, touched: Bitmap) -> None:
        """Set the bits of the cells of all rows.

        A large batch is shared out to as many threads as there are cores. Each has a bitmap of its
        own, so that none can undo what another one does; together these are no larger than the ids.
        """
        parts = self._parts(len(touched))
        if len(parts) == 1:
            self._addressing.mark(parts[0], touched)
            return
        own = [touched, *(np.zeros_like(touched) for _ in parts[1:])]
        try:
            side_by_side(
                [
                    partial(self._addressing.mark, part, bitmap)
                    for part, bitmap in zip(parts, own, strict=True)
                ]
            )
            for bitmap in own[1:]:
                touched |= bitmap
        finally:
            wipe(*own[1:])

    def _parts(self, words: int) -> list[Sequence[Ids]]:
        """Return the part of each thread: the batch, or runs of its rows of about equal length."""
        rows, least = len(self), max(words, THREAD_ROWS)
        threads = min(rows // least, cores()) if rows >= 2 * least else 1
        if threads < 2:
            return [self._batch]
        ends = [rows * thread // threads for thread in range(threads + 1)]
        return [self._run(start, stop) for start, stop in itertools.pairwise(ends)]

    def _run(self, start: int, stop: int) -> list[Ids]:
        """Return the ids of some rows."""
        found: list[Ids] = []
        for ids in self._batch:
            if start < len(ids) and stop > 0:
                found.append(ids.part(max(start, 0), min(stop, len(ids))))
            start, stop = start - len(ids), stop - len(ids)
        return found


class _Universe(Addressing):
    """Addressing of a declared universe: the ids are 0 .. universe-1."""

    def __init__(self, universe: int, cells: int, key: bytes) -> None:
        super().__init__(cells, key)
        self._universe = universe

    def check(self, batch: Sequence[Ids]) -> None:
        """Raise `InputError` naming the first row whose id is not in the universe."""
        rows = 0
        for ids in batch:
            if not isinstance(ids, IntegerIds):
                message = (
                    f"a declared universe takes whole-number ids from 0 to {self._universe - 1:,}; "
                    "number the users, or leave out universe= for DistinctCount or Incidence"
                )
                raise InputError(message)
            self._check_range(ids.values, rows)
            rows += len(ids)

    def _check_range(self, values: NDArray[np.int64], rows_before: int) -> None:
        if not len(values) or (values.min() >= 0 and values.max() < self._universe):
            return
        row = rows_before + int(np.argmax((values < 0) | (values >= self._universe))) + 1
        message = f"the user id lies outside the declared universe 0 to {self._universe - 1:,}"
        raise InputError(message, row=row)


class Direct(_Universe):
    """An addressing with one cell for every user of the universe: the slot is the id."""

    slots_are_ids = True

    def __init__(self, universe: int) -> None:
        super().__init__(universe, universe, b"")

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        return _integer_values(ids)


class Sampled(_Universe):
    """An addressing with one cell for each of `cells` users, a uniform sample that is not stored.

    A Feistel network permutes 0 .. universe-1 (walking on while an image falls outside), and the
    users whose image is below `cells` are the sample.
    """

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        values = _integer_values(ids)
        slots = np.empty(len(values) + 1, np.int64)[:-1]
        _permute(values, uint64(self._universe), uint64(self.cells), *self._key, slots)
        return slots


class Dealt(_Universe):
    """The slice of a shard: users have the cells of their numbers within the shard.

    Args:
        universe: number of possible users of all shards.
        shards: number of shards.
        within: which cell a number within the shard maps to.
    """

    def __init__(self, universe: int, shards: int, within: Addressing) -> None:
        super().__init__(universe, within.cells, b"")
        self._shards, self._within = shards, within

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        values = _integer_values(ids)
        numbers = np.empty(len(values) + 1, np.int64)[:-1]
        np.floor_divide(values, self._shards, out=numbers)
        (slots,) = self._within.slots([IntegerIds(numbers)])
        if not self._within.slots_are_ids:
            wipe(numbers)
        return slots


class Levelled(Addressing):
    """Levels that halve in popularity: a user is in exactly one, by the zeros of the hash.

    Level `l` of `levels` takes a user with probability `2**-(l+1)`, the last one the rest. Slots
    run level by level, `cells_per_level` each; there are up to 48 levels.
    """

    def __init__(self, levels: int, cells_per_level: int, key: bytes) -> None:
        super().__init__(levels * cells_per_level, key)
        self._last_level = uint64(1 << (levels - 1))
        self._cells_per_level = uint64(cells_per_level)
        self._starts = np.arange(levels, dtype=np.uint64) * self._cells_per_level

    def check(self, batch: Sequence[Ids]) -> None:
        """Accept the batch: every id has a cell."""

    def mark(self, batch: Sequence[Ids], touched: Bitmap) -> None:
        """Set the bits of the cells of a checked batch; a dictionary alone needs slots for that."""
        levels = self._last_level, self._cells_per_level, self._starts
        for ids in batch:
            if isinstance(ids, IntegerIds):
                hashes = np.zeros(2 * ABREAST, np.uint64)
                _hash_and_mark(ids.values, *self._key, *levels, hashes, touched)
            elif isinstance(ids, ByteIds):
                _hash_bytes_and_mark(ids.offsets, ids.data, *self._key, *levels, touched)
            else:
                super().mark([ids], touched)

    def write(self, batch: Sequence[Ids], bits: Bits, table: Bits) -> None:
        """Write the bit of each row into its cell; a dictionary alone needs slots for that."""
        levels, row = (self._last_level, self._cells_per_level, self._starts), 0
        for ids in batch:
            if isinstance(ids, ByteIds):
                _hash_bytes_and_write(ids.offsets, ids.data, *self._key, *levels, bits[row:], table)
            elif isinstance(ids, IntegerIds):
                _hash_and_write(ids.values, *self._key, *levels, bits[row:], table)
            else:
                super().write([ids], bits[row:], table)
            row += len(ids)

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        slots = np.empty(len(ids) + 1, np.int64)[:-1]
        levels = self._last_level, self._cells_per_level
        if isinstance(ids, ByteIds):
            hashes = slots.view(np.uint64)
            hash_byte_strings(ids.offsets, ids.data, *self._key, hashes)
            _level_slots(hashes, *levels, slots)
        else:
            _hash_to_levels(ids.values, *self._key, *levels, slots)
        return slots


class Hashed(Levelled):
    """A keyed hash to `cells` cells, several users a cell: one level."""

    def __init__(self, cells: int, key: bytes) -> None:
        super().__init__(1, cells, key)


class Independent(Addressing):
    """A random polynomial to `cells` cells: those of any r users are independent and uniform.

    Up to a probability of `2**-54` for each pair of ids of at most 448 bytes. The key is 8 random
    bytes for a point, and 8 for each of r coefficients.
    """

    def __init__(self, cells: int, key: bytes) -> None:
        super().__init__(cells, b"")
        self._words = tuple(words_of(key))

    def check(self, batch: Sequence[Ids]) -> None:
        """Accept the batch: every id has a cell."""

    def _piece(self, ids: IntegerIds | ByteIds) -> Slots:
        slots, cells = np.empty(len(ids) + 1, np.int64)[:-1], uint64(self.cells)
        words = np.array(self._words)
        if isinstance(ids, ByteIds):
            slots_of_byte_strings(ids.offsets, ids.data, words, cells, slots)
        else:
            slots_of_integers(ids.values, words, cells, slots)
        return slots


def _integer_values(ids: IntegerIds | ByteIds) -> NDArray[np.int64]:
    """Return the values of ids that `check` has let through."""
    if not isinstance(ids, IntegerIds):
        message = "these ids were not checked against the universe"
        raise TypeError(message)
    return ids.values


@inlined
def _level_slot(word: np.uint64, last_level: np.uint64, per_level: np.uint64) -> np.int64:
    """Return the slot: low bits choose the level, high bits the cell."""
    level = trailing_zeros(word | last_level)
    return np.int64(level * per_level + multiply_high(word, per_level))


@kernel("void(uint64[::1], uint64, uint64, int64[::1])")
def _level_slots(
    hashes: NDArray[np.uint64], last_level: np.uint64, per_level: np.uint64, slots: Slots
) -> None:
    """Write the slot of each hash; `slots` may share memory with `hashes`."""
    for row in range(hashes.size):
        slots[row] = _level_slot(scalar(hashes[row]), last_level, per_level)


@kernel(f"void({read_only('int64')}, uint64, uint64, uint64, uint64, int64[::1])")
def _hash_to_levels(
    values: NDArray[np.int64],
    key_0: np.uint64,
    key_1: np.uint64,
    last_level: np.uint64,
    per_level: np.uint64,
    slots: Slots,
) -> None:
    """Write the slot of each whole number, without storing the hashes."""
    for row in range(values.size):
        word = hash_word(uint64(values[row]), key_0, key_1)
        slots[row] = _level_slot(scalar(word), last_level, per_level)


@inlined
def _mark(touched: Bitmap, slot: np.int64) -> None:
    """Set the bit of one cell."""
    cell = uint64(slot)  # numba asks of signed places whether they count from the end
    touched[cell >> uint64(6)] |= uint64(1) << (cell & uint64(63))


@kernel(f"void({read_only('int64')}, uint64[::1])")
def mark_slots(slots: Slots, touched: Bitmap) -> None:
    """Set the bit of each row's cell."""
    for row in range(slots.size):
        if slots[row] >= 0:
            _mark(touched, slots[row])


@inlined
def _slot_of_hash(word, levels):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return what `_level_slot` of a hash is, with the start of the level looked up."""
    last_level, per_level, starts = levels
    return starts[trailing_zeros(word | last_level)] + multiply_high(word, per_level)


@inlined
def _mark_hash(word, levels, touched):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Set the bit of the cell of a hash."""
    _mark(touched, _slot_of_hash(word, levels))


@inlined
def _mark_turn(hashes, row, levels, touched):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Set the bits of the cells of `ABREAST` whole numbers from a row on."""
    first = uint64(row & ABREAST)
    for at in range(ABREAST):
        _mark_hash(hashes[first + uint64(at)], levels, touched)


_HASHED = ", ".join(4 * ["uint64"])
"""The key, the last level and the cells of a level."""


@kernel(f"void({read_only('int64')}, {_HASHED}, {', '.join(3 * ['uint64[::1]'])})")
def _hash_and_mark(
    values: NDArray[np.int64],
    key_0: np.uint64,
    key_1: np.uint64,
    last_level: np.uint64,
    per_level: np.uint64,
    starts: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    touched: Bitmap,
) -> None:
    """Set the bit of the cell of each whole number.

    Vector registers hash several of them at a time. Those of the turn before are marked meanwhile,
    so `hashes` has room for two turns; it is overwritten.
    """
    levels = last_level, per_level, starts
    source, target = uint64(values.ctypes.data), uint64(hashes.ctypes.data)
    whole = values.size - values.size % ABREAST
    if whole:
        hash_abreast(source, key_0, key_1, target)
    for row in range(ABREAST, whole, ABREAST):
        here = source + uint64(8 * row)
        for ahead in range(0, 8 * ABREAST, _LINE):
            fetch_ahead(here + uint64(ahead))
        hash_abreast(here, key_0, key_1, target + uint64(8 * (row & ABREAST)))
        _mark_turn(hashes, row - ABREAST, levels, touched)
    if whole:
        _mark_turn(hashes, whole - ABREAST, levels, touched)
    hashes[:] = uint64(0)
    for row in range(whole, values.size):
        _mark_hash(hash_word(uint64(values[row]), key_0, key_1), levels, touched)


@kernel(
    *(
        f"void({read_only(offset)}, {read_only('uint8')}, {_HASHED}, uint64[::1], uint64[::1])"
        for offset in ("int32", "int64")
    )
)
def _hash_bytes_and_mark(
    offsets: NDArray[Any],
    data: NDArray[np.uint8],
    key_0: np.uint64,
    key_1: np.uint64,
    last_level: np.uint64,
    per_level: np.uint64,
    starts: NDArray[np.uint64],
    touched: Bitmap,
) -> None:
    """Set the bit of the cell of each byte string, without storing the hashes."""
    levels, base = (last_level, per_level, starts), uint64(data.ctypes.data)
    end = base + uint64(data.size)
    start = base + uint64(offsets[0])
    for row in range(1, offsets.size):
        stop = base + uint64(offsets[row])
        word = scalar(hash_bytes(start, stop - start, end, key_0, key_1))
        start = stop
        _mark_hash(word, levels, touched)


@inlined
def _write(table: Bits, slot: np.int64, bit: np.uint8) -> None:
    """Write the bit of one cell; no branch and no place depends on the bit."""
    cell = uint64(slot)
    place = uint8(cell & uint64(7))
    byte = table[cell >> uint64(3)]
    table[cell >> uint64(3)] = (byte & ~(uint8(1) << place)) | (bit << place)


@kernel(f"void({read_only('int64')}, uint8[::1], uint8[::1])")
def _write_slots(slots: Slots, bits: Bits, table: Bits) -> None:
    """Write the bit of each row into its cell."""
    for row in range(slots.size):
        if slots[row] >= 0:
            _write(table, slots[row], bits[row])


@kernel(f"void({read_only('int64')}, {_HASHED}, uint64[::1], uint8[::1], uint8[::1])")
def _hash_and_write(
    values: NDArray[np.int64],
    key_0: np.uint64,
    key_1: np.uint64,
    last_level: np.uint64,
    per_level: np.uint64,
    starts: NDArray[np.uint64],
    bits: Bits,
    table: Bits,
) -> None:
    """Write the bit of each row into the cell of its whole number, row by row."""
    levels = last_level, per_level, starts
    for row in range(values.size):
        word = scalar(hash_word(uint64(values[row]), key_0, key_1))
        _write(table, _slot_of_hash(word, levels), bits[row])


@kernel(
    *(
        f"void({read_only(offset)}, {read_only('uint8')}, {_HASHED}, uint64[::1], uint8[::1], "
        "uint8[::1])"
        for offset in ("int32", "int64")
    )
)
def _hash_bytes_and_write(
    offsets: NDArray[Any],
    data: NDArray[np.uint8],
    key_0: np.uint64,
    key_1: np.uint64,
    last_level: np.uint64,
    per_level: np.uint64,
    starts: NDArray[np.uint64],
    bits: Bits,
    table: Bits,
) -> None:
    """Write the bit of each row into the cell of its byte string, row by row."""
    levels, base = (last_level, per_level, starts), uint64(data.ctypes.data)
    end = base + uint64(data.size)
    start = base + uint64(offsets[0])
    for row in range(offsets.size - 1):
        stop = base + uint64(offsets[row + 1])
        word = scalar(hash_bytes(start, stop - start, end, key_0, key_1))
        start = stop
        _write(table, _slot_of_hash(word, levels), bits[row])


@inlined
def _round(half: np.uint64, number: np.uint64, key_0: np.uint64, key_1: np.uint64) -> np.uint64:
    """Return the Feistel round function: a hash of one half under a key of the round."""
    whitened = half ^ key_0 ^ (number * uint64(0x9E3779B97F4A7C15))
    return fold(whitened, key_1 ^ (number * uint64(0xD1B54A32D192ED03)) | uint64(1))


@inlined
def _feistel(value, right_bits, left_mask, right_mask, key_0, key_1):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return one keyed permutation of `left_bits + right_bits` bits, halves of any two widths."""
    left, right = value >> right_bits, value & right_mask
    for number in range(0, FEISTEL_ROUNDS, 2):
        left ^= _round(right, uint64(number), key_0, key_1) & left_mask
        right ^= _round(left, uint64(number + 1), key_0, key_1) & right_mask
    return left << right_bits | right


@kernel(f"void({read_only('int64')}, uint64, uint64, uint64, uint64, int64[::1])")
def _permute(
    values: NDArray[np.int64],
    universe: np.uint64,
    cells: np.uint64,
    key_0: np.uint64,
    key_1: np.uint64,
    slots: Slots,
) -> None:
    """Write the image of each value under the keyed permutation, -1 from `cells` on."""
    bits = uint64(FEISTEL_BITS)
    while universe > uint64(1) << bits:
        bits += uint64(1)
    right_bits = bits >> uint64(1)
    right_mask = (uint64(1) << right_bits) - uint64(1)
    left_mask = (uint64(1) << (bits - right_bits)) - uint64(1)
    for row in range(values.size):
        image = uint64(values[row])
        while True:
            image = _feistel(image, right_bits, left_mask, right_mask, key_0, key_1)
            if image < universe:
                break
        slots[row] = np.int64(image) if image < cells else np.int64(-1)
