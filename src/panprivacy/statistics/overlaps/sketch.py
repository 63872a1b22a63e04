"""A published table: what it is, and its bytes, which anybody may read.

The format, which docs/sketch-format.md specifies with vectors:

* 8 bytes `PPSKETCH`, and the length of the text as an unsigned 32-bit number, lowest byte first;
* the text, JSON in UTF-8: the fields of `SketchFront`;
* the table, cell `c` in bit `c % 8` of byte `c // 8`; of several shards, that of each;
* the SHA-256 digest of all bytes before it.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from panprivacy._version import VERSION
from panprivacy.errors import InputError
from panprivacy.ground.files import read_at_most, write_new_file
from panprivacy.privacy.guarantee import Guarantee
from panprivacy.statistics.frames import Framed
from panprivacy.statistics.overlaps.patterns import CellLayout, ShardTable
from panprivacy.statistics.overlaps.sets import SketchSet
from panprivacy.statistics.release import Label
from panprivacy.tables.addressing import MAX_LEVELS, MAX_UNIVERSE
from panprivacy.tables.cells.published import BitLaw
from panprivacy.tables.planning.request import MOST_EPSILON

FORMAT: Final = 1
"""The version of the format; a reader refuses others."""
MAGIC: Final = b"PPSKETCH"
"""The first bytes of a sketch."""

_ONE_SHARD: Final = "it holds for a user of one shard; one of several loses that in each of them"
_LENGTH: Final = struct.Struct("<I")
_DIGEST_BYTES: Final = 32
_MOST_TEXT: Final = 1 << 16
_MOST_KEY: Final = 64
_MOST_NAME: Final = 1_000
_MOST_SHARD_NAME: Final = 64
MOST_SHARDS: Final = 256
"""Maximum number of shards of a sketch."""
_LEAST_CONTRAST: Final = Fraction(1, 1 << 24)
"""Of bits that tell less, no number of cells that can be stored has an answer."""
_MOST_CELLS: Final = 1 << 33
MOST_SKETCH: Final = _MOST_CELLS // 8 + _MOST_TEXT + 64
"""Bytes of the longest sketch."""

_COLUMNS = {
    "stream": pa.string(),
    "statistic": pa.string(),
    "group": pa.string(),
    "start": pa.timestamp("us", tz="UTC"),
    "end": pa.timestamp("us", tz="UTC"),
    "epsilon": pa.float64(),
    "covers": pa.string(),
    "cells": pa.int64(),
    "sketch": pa.large_binary(),
}


class PublishedPlan(Protocol):
    """The part of a plan that a sketch repeats."""

    covers: Literal["seizure", "publication"]

    @property
    def layout(self) -> CellLayout:
        """Layout of the cells that users have."""

    @property
    def law(self) -> BitLaw:
        """The law of a bit, and of what is published of it."""

    @property
    def window_guarantee(self) -> Guarantee:
        """The privacy guarantee of one window."""


class SketchShard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the shards whose tables a sketch holds, each of other users.

    Args:
        name: of the shard.
        cells_per_level: cells of each level of its table.
        universe: number of its possible users with a cell of their own; null where ids are hashed.
    """

    name: str
    cells_per_level: int
    universe: int | None


class SketchFront(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The text before the table: all that is needed to read it.

    Args:
        format: version of the format.
        made_by: version of the package that wrote it.
        levels: levels that halve in popularity; 1 without levels.
        cells_per_level: cells of each.
        universe: number of possible users with a cell of their own; null where ids are hashed.
        key: addressing key in hexadecimal digits; it is public.
        absent: probability of a 1 in a cell without users, as a ratio of whole numbers.
        present: the same in a cell with users.
        epsilon: privacy loss of a user of the window, in nats, as a ratio of whole numbers.
        unseen: the same if nobody saw the state of the window.
        covers: what `epsilon` covers: one look at the state beside this table, or this table alone.
        stream: name of the stream; null if it has none.
        statistic: name of the statistic.
        group: the group of users; null if they are not counted by group.
        start: start of the window; null if no clock cuts the stream.
        end: end of the window.
        shards: the shards, sorted by name; left out of a sketch of one table. The numbers of cells
            and of users above are then those of all shards.
        routing: key by which users of a cluster are dealt to shards, in hexadecimal digits; left
            out where no cluster deals them.
    """

    format: int
    made_by: str
    levels: int
    cells_per_level: int
    universe: int | None
    key: str
    absent: str
    present: str
    epsilon: str
    unseen: str
    covers: Literal["seizure", "publication"]
    stream: str | None = None
    statistic: str = "overlap"
    group: str | int | None = None
    start: datetime | None = None
    end: datetime | None = None
    shards: tuple[SketchShard, ...] | msgspec.UnsetType = msgspec.UNSET
    routing: str | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True, slots=True, repr=False)
class Sketch(Framed):
    """A noisy table of bits that was published: who came in one window; it is public.

    Tables of one key are combined with `overlap`, or as sets: `(monday & tuesday).count()`.

    Guarantee: it is one outcome of a window whose guarantee is `guarantee`; what is computed from
    it costs nothing more. [docs/guarantees/sketches.md]

    Args:
        front: its text.
        table: its bits, eight in a byte.
    """

    front: SketchFront
    table: bytes

    @classmethod
    def of(
        cls,
        plan: PublishedPlan,
        key: bytes,
        table: NDArray[np.uint8],
        layout: CellLayout | None = None,
    ) -> Sketch:
        """Return the sketch of a published table; of a slice, with the layout of its cells."""
        promise, law = plan.window_guarantee, plan.law
        layout = plan.layout if layout is None else layout
        front = SketchFront(
            format=FORMAT,
            made_by=VERSION,
            levels=layout.levels,
            cells_per_level=layout.cells_per_level,
            universe=layout.universe,
            key=key.hex(),
            absent=str(law.published_absent),
            present=str(law.published_present),
            epsilon=str(promise.epsilon),
            unseen=str(promise.unseen_loss.epsilon),
            covers=plan.covers,
        )
        return cls(front, table.tobytes())

    @classmethod
    def read(cls, source: bytes | str | Path) -> Sketch:
        """Read the bytes of a sketch, or a file of them.

        Raises:
            InputError: it is none, of another format, or damaged.
            OSError: the file cannot be read.
        """
        data = source if isinstance(source, bytes) else read_at_most(Path(source), MOST_SKETCH)
        if not data.startswith(MAGIC):
            message = "there is no sketch of panprivacy here"
            raise InputError(message)
        body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        start = len(MAGIC) + _LENGTH.size
        if len(body) < start or hashlib.sha256(body).digest() != digest:
            message = "the sketch is damaged, or cut off: its digest is another"
            raise InputError(message)
        (size,) = _LENGTH.unpack_from(body, len(MAGIC))
        found = cls(_read_front(body[start : start + size]), body[start + size :])
        found._check()
        return found

    def to_bytes(self) -> bytes:
        """Return its bytes, which `read` takes."""
        text = msgspec.json.encode(self.front)
        body = b"".join((MAGIC, _LENGTH.pack(len(text)), text, self.table))
        return body + hashlib.sha256(body).digest()

    def write(self, path: str | Path) -> None:
        """Write its bytes to a new file.

        Raises:
            FileExistsError: it is there.
            OSError: it cannot be written.
        """
        write_new_file(Path(path), self.to_bytes(), mode=0o644)

    def named(
        self,
        *,
        stream: str | None = None,
        statistic: str | None = None,
        group: Label | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Sketch:
        """Return the same table with the names and the window by which people know it."""
        front = self.front
        changed = msgspec.structs.replace(
            front,
            stream=front.stream if stream is None else stream,
            statistic=front.statistic if statistic is None else statistic,
            group=front.group if group is None else group,
            start=front.start if start is None else start,
            end=front.end if end is None else end,
        )
        return replace(self, front=changed)

    @property
    def key(self) -> str:
        """The addressing key in hexadecimal digits; it is public."""
        return self.front.key

    @property
    def layout(self) -> CellLayout:
        """Layout of the cells that users have."""
        front = self.front
        return CellLayout(front.cells_per_level, front.levels, front.universe)

    @property
    def probabilities(self) -> tuple[float, float]:
        """Probabilities of a 1 in a cell without users, and in one with users."""
        return float(Fraction(self.front.absent)), float(Fraction(self.front.present))

    @property
    def packed(self) -> NDArray[np.uint8]:
        """Its bits, cell `c` in bit `c % 8` of byte `c // 8`; of shards, those of each in turn."""
        return np.frombuffer(self.table, np.uint8)

    @property
    def shards(self) -> tuple[SketchShard, ...]:
        """The shards; none of a sketch of one table."""
        return () if self.front.shards is msgspec.UNSET else self.front.shards

    @property
    def addressing(self) -> tuple[object, ...]:
        """How users are divided among shards: the key by which they are dealt, and the names."""
        return self.front.routing, *(one.name for one in self.shards)

    @property
    def tables(self) -> list[ShardTable]:
        """The table of each shard, in the order of their names; one where there are none."""
        levels, found, start = self.front.levels, [], 0
        parts = [(one.cells_per_level, one.universe) for one in self.shards]
        for cells, universe in parts or [(self.front.cells_per_level, self.front.universe)]:
            layout = CellLayout(cells, levels, universe)
            end = start + -(-layout.cells // 8)
            found.append(ShardTable(layout, self.packed[start:end]))
            start = end
        return found

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of its window, to each user.

        The law of the state is not in a sketch. So what crashes add is a bound that needs none: no
        more than a table of a window whose state nobody saw. [docs/guarantees/sketches.md]
        """
        front, looks = self.front, self.front.covers == "seizure"
        unseen = Fraction(front.unseen)
        joined = self.shards and front.routing is msgspec.UNSET  # a cluster gives each user one
        return Guarantee(
            Fraction(front.epsilon),
            conditions=(_ONE_SHARD,) if joined else (),
            looks=looks,
            unseen=unseen,
            crash=unseen if looks else Fraction(0),
            crash_again=Fraction(0),
        )

    def __or__(self, other: Sketch | SketchSet) -> SketchSet:
        return SketchSet.of(self) | other

    def __and__(self, other: Sketch | SketchSet) -> SketchSet:
        return SketchSet.of(self) & other

    def __sub__(self, other: Sketch | SketchSet) -> SketchSet:
        return SketchSet.of(self) - other

    def __xor__(self, other: Sketch | SketchSet) -> SketchSet:
        return SketchSet.of(self) ^ other

    def known(self) -> dict[str, object]:
        """Return names, window, price and size, as values of JSON."""
        front = self.front
        moments = {"start": front.start, "end": front.end}
        return {
            "stream": front.stream,
            "statistic": front.statistic,
            "group": None if front.group is None else str(front.group),
            **{name: None if one is None else one.isoformat() for name, one in moments.items()},
            "epsilon": self.guarantee.document()["epsilon"],
            "covers": front.covers,
            "cells": self.layout.cells,
        }

    def to_arrow(self) -> pa.Table:
        """Return one row: names, window, price, and the bytes of the sketch."""
        front = self.front
        row = {**self.known(), "start": front.start, "end": front.end, "sketch": self.to_bytes()}
        return pa.Table.from_pylist([row], pa.schema(list(_COLUMNS.items())))

    def __repr__(self) -> str:
        """Return its size, its price and its window."""
        front = self.front
        named = [one for one in (front.stream, front.group) if one is not None]
        when = [f"{front.start:%Y-%m-%d %H:%M}"] if front.start is not None else []
        known = " ".join(map(str, [*named, *when]))
        return f"<Sketch {known + ' ' if known else ''}{len(self.table):,} bytes>"

    def _check(self) -> None:
        """Refuse a table that is not what the text says."""
        front = self.front
        if front.format != FORMAT:
            message = f"the sketch is of format {front.format}, and this package reads {FORMAT}"
            raise InputError(message)
        tables = self.tables
        expected = sum(-(-one.layout.cells // 8) for one in tables)
        if len(self.table) != expected or not all(one.is_packed for one in tables):
            message = "the sketch is damaged: its table is not as long as its text says"
            raise InputError(message)


def _read_front(text: bytes) -> SketchFront:
    """Return the text before a table, with every field checked.

    Raises:
        InputError: a field is none of a sketch.
    """
    try:
        front = msgspec.json.decode(text, type=SketchFront)
    except (msgspec.DecodeError, ValueError):
        message = "the sketch is damaged: its text cannot be read"
        raise InputError(message) from None
    if not (_has_cells(front) and _has_losses(front) and _has_names(front)):
        message = "the sketch is damaged: a number or a name of its text is out of range"
        raise InputError(message)
    return front


def _has_cells(front: SketchFront) -> bool:
    """Return whether there is such a table, whose bits tell something."""
    cells, universe = front.levels * front.cells_per_level, front.universe
    if not (1 <= front.levels <= MAX_LEVELS and 1 <= front.cells_per_level <= _MOST_CELLS // 48):
        return False
    if universe is not None and not (front.levels == 1 and cells <= universe <= MAX_UNIVERSE):
        return False
    if front.shards is not msgspec.UNSET and not _has_shards(front, front.shards):
        return False
    if not (_is_ratio(front.absent) and _is_ratio(front.present)):
        return False
    absent, present = Fraction(front.absent), Fraction(front.present)
    return 0 <= absent < present <= 1 and present - absent >= _LEAST_CONTRAST


def _has_shards(front: SketchFront, shards: tuple[SketchShard, ...]) -> bool:
    """Return whether tables of these shards are together what the text says."""
    names = [one.name for one in shards]
    if not 1 <= len(names) <= MOST_SHARDS or names != sorted(set(names)):
        return False
    if not all(is_shard_name(name) for name in names):
        return False
    each = [one.universe for one in shards]
    universe = None if None in each else sum(one for one in each if one is not None)
    if universe != front.universe or (universe is None and any(one is not None for one in each)):
        return False
    fit = all(one.universe is None or one.cells_per_level <= one.universe for one in shards)
    least = min(one.cells_per_level for one in shards)
    return (
        fit and least >= 1 and sum(one.cells_per_level for one in shards) == front.cells_per_level
    )


def is_shard_name(name: str) -> bool:
    """Return whether a shard of a sketch can be called so."""
    return name.isprintable() and 1 <= len(name.encode()) <= _MOST_SHARD_NAME


def _has_losses(front: SketchFront) -> bool:
    """Return whether there is such a guarantee."""
    if not (_is_ratio(front.epsilon) and _is_ratio(front.unseen)):
        return False
    return 0 < Fraction(front.unseen) <= Fraction(front.epsilon) <= MOST_EPSILON


def _has_names(front: SketchFront) -> bool:
    """Return whether key, names and window can be those of a sketch."""
    names = [str(one) for one in (front.stream, front.statistic, front.group, front.made_by) if one]
    shown = all(name.isprintable() and len(name) <= _MOST_NAME for name in names)
    moments = [one for one in (front.start, front.end) if one is not None]
    routed = front.routing is msgspec.UNSET or re.fullmatch("[0-9a-f]{32}", front.routing)
    zoned = all(one.tzinfo is not None for one in moments)
    return (
        shown
        and zoned
        and bool(routed)
        and moments == sorted(moments)
        and re.fullmatch(f"([0-9a-f]{{2}}){{0,{_MOST_KEY}}}", front.key) is not None
    )


def _is_ratio(text: str) -> bool:
    parts = text.split("/")
    digits = all(part.isascii() and part.isdigit() and len(part) <= 100 for part in parts)
    return digits and len(parts) <= 2 and (len(parts) == 1 or int(parts[1]) > 0)
