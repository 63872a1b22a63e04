"""Published tables of a release, and the place for them in the state of a stream."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final

import msgspec

from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.intake.programs.counting import Counting
from panprivacy.service.outgoing.records import Moment, Published, SketchRow
from panprivacy.statistics.abilities import TablePublishing
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.release import Answers
from panprivacy.statistics.sketch.released import SketchRelease

_SIZE: Final = struct.Struct("<Q")
_ROOM: Final = 256
"""Bytes for what the text of a sketch says of its window and of the package that wrote it."""

Place = tuple[str, str | None]
"""Statistic and group of a table."""


def sketch_rows(answers: Answers, moment: Moment) -> list[SketchRow]:
    """Return the tables that a release publishes, named by its stream and window.

    Args:
        answers: the answers of the release.
        moment: the release.
    """
    found = []
    for name, one in answers.answers().items():
        if isinstance(one, SketchRelease) and one.sketch is not None:
            window = {"start": moment.start, "end": moment.end}
            known = one.sketch.named(
                stream=moment.stream, statistic=name.statistic, group=name.group, **window
            )
            group = None if name.group is None else str(name.group)
            found.append(_row(known, (name.statistic, group), moment))
    return found


class SketchRoom:
    """Place of one size for the tables of a release.

    Args:
        counting: the statistics, or similar ones.
        rows: all rows that a release may have.
    """

    def __init__(self, counting: Counting, rows: Iterable[Published]) -> None:
        plans = {
            label: one.plan
            for label, one in counting.statistics.items()
            if isinstance(one.plan, TablePublishing)
        }
        self._rooms: dict[Place, int] = {
            (row.statistic, row.group): _most_bytes(plans[row.statistic], row)
            for row in rows
            if row.statistic in plans
        }

    @property
    def size(self) -> int:
        """Size of the place in bytes."""
        return sum(_SIZE.size + room for room in self._rooms.values())

    def check(self, tables: Sequence[SketchRow]) -> None:
        """Check that the tables fit.

        Raises:
            PanPrivacyError: they are others than planned, or longer.
        """
        if any(one.size > self._rooms.get(_place(one), -1) for one in tables):
            message = "a release has other tables than its plan says; please report it"
            raise PanPrivacyError(message)

    def packed(self, tables: Sequence[SketchRow]) -> bytes:
        """Return tables that fit, encoded in one size."""
        known = {_place(one): one.sketch for one in tables}
        found = []
        for place, room in self._rooms.items():
            sketch = known.get(place, b"")
            found.append(_SIZE.pack(len(sketch)) + sketch.ljust(room, b"\0"))
        return b"".join(found)

    def unpacked(self, packed: bytes, moment: Moment) -> list[SketchRow]:
        """Return the tables that `packed` encoded.

        Args:
            packed: bytes of the right size.
            moment: their release.

        Raises:
            ValueError: they are damaged.
        """
        found, at = [], 0
        for place, room in self._rooms.items():
            (size,) = _SIZE.unpack_from(packed, at)
            at += _SIZE.size
            if size > room:
                raise ValueError
            if size:
                found.append(_row(_read(packed[at : at + size]), place, moment))
            at += room
        return found


def _row(sketch: Sketch, place: Place, moment: Moment) -> SketchRow:
    """Return the row of a table in the release store."""
    statistic, group = place
    data, known = sketch.to_bytes(), asdict(moment)
    return SketchRow(**known, statistic=statistic, group=group, size=len(data), sketch=data)


def _read(data: bytes) -> Sketch:
    try:
        return Sketch.read(data)
    except InputError:
        raise ValueError from None


def _place(one: SketchRow) -> Place:
    return one.statistic, one.group


def _most_bytes(plan: TablePublishing, row: Published) -> int:
    """Return the maximum size of a published table."""
    named = plan.blank_sketch.named(stream=row.stream, statistic=row.statistic, group=row.group)
    text = msgspec.structs.replace(named.front, made_by="")
    return len(Sketch(text, named.table).to_bytes()) + _ROOM
