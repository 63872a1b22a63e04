"""A release that nobody can see yet, and the place for it in the state of its stream.

The place has one size, with or without a release: numbers of a fixed size for each answer of a
release, a table of notes, and room for a contribution and for tables that are published. So the
size of a checkpoint shows neither whether a release waits nor its content.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError, PanPrivacyError
from panprivacy.intake.programs.counting import Counting
from panprivacy.service.outgoing.payment import PAYER_BYTES, entries
from panprivacy.service.outgoing.records import Entry, Moment, Published, SketchRow
from panprivacy.service.outgoing.results import published
from panprivacy.service.outgoing.sketches import SketchRoom

NUMBERS: Final = ("value", "low", "high", "estimate", "standard_error", "bias")
"""Fields of a row that depend on the counted data, except its note."""
_FRONT: Final = struct.Struct(f"<Bqqqqq{PAYER_BYTES}s?Q")
"""Layout: whether a release waits; its start, end, end of the window, number, number among those
of its table; payer; whether it is complete; size of its contribution.
"""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_NOTES: Final = 16
"""Maximum number of notes of the answers of one release to one question: `notes` has three notes
about the range, one of which is empty, and five about the noise.
"""
_NOTE_BYTES: Final = 384
"""Maximum size of a note."""
_END: Final = b"\n"
_ABSENT: Final = 0xFFFF
"""Placeholder for the number of a note: there is no such row."""
_DAMAGED: Final = "the state is damaged: no release waits like this"


@dataclass(slots=True)
class Pending:
    """A release that was made and is not published.

    Args:
        lines: its lines of the ledger, its own one last.
        rows: its answers, or the rows in their place.
        place: its number among the releases of its table, which determines its price.
        sealed: its contribution; None if answers are published.
        tables: the tables that it publishes.
        kept: whether a checkpoint on the disk contains it.
        outcome: whether it was published; None while it waits.
    """

    lines: Sequence[Entry]
    rows: Sequence[Published]
    place: int
    sealed: bytes | None = None
    tables: Sequence[SketchRow] = ()
    kept: bool = False
    outcome: bool | None = None

    @property
    def line(self) -> Entry:
        """Its own line of the ledger."""
        return self.lines[-1]


def costs(counting: Counting, place: int) -> tuple[Fraction, Fraction]:
    """Return the privacy loss of the state of a table, and of the release of that number.

    Args:
        counting: a table of the same plan.
        place: number of the release among those of its table, from 1.
    """
    return counting.internals.releasing.state_epsilon, counting.internals.releasing.of_release(
        place
    )


class PendingSlot:
    """Place in a state for one waiting release of a stream.

    Args:
        stream: name of the stream.
        counting: the statistics, or similar ones.
        confidence: confidence level of all intervals.
        sealed_bytes: maximum size of a contribution; 0 if answers are published.
    """

    def __init__(
        self, stream: str, counting: Counting, confidence: float, sealed_bytes: int
    ) -> None:
        self._stream, self._confidence, self._sealed_bytes = stream, confidence, sealed_bytes
        rows = self._blank(
            counting, Moment(stream, _EPOCH, _EPOCH, 1, complete=False, released=_EPOCH)
        )
        self._places = {_name(row): place for place, row in enumerate(rows)}
        self._sketches = SketchRoom(counting, rows)
        questions = {(row.statistic, row.question) for row in rows}
        self._notes_bytes = len(questions) * _MOST_NOTES * (_NOTE_BYTES + len(_END))

    @property
    def size(self) -> int:
        """Size of the place in bytes."""
        each = len(NUMBERS) * 8 + 2
        return _FRONT.size + each * len(self._places) + self._notes_bytes + self._own_bytes

    @property
    def _own_bytes(self) -> int:
        """Size of the end of the place: a contribution, and published tables."""
        return self._sealed_bytes + self._sketches.size

    def check(self, one: Pending) -> None:
        """Check that a release fits.

        Raises:
            PanPrivacyError: it has other answers than its plan, or longer ones.
        """
        if not one.rows or not self._places.keys() >= {_name(row) for row in one.rows}:
            message = "a release has other answers than its plan says; please report it"
            raise PanPrivacyError(message)
        notes = sum(len(note) + len(_END) for note in _notes(one.rows))
        if notes > self._notes_bytes or len(one.sealed or b"") > self._sealed_bytes:
            message = "a release is longer than its plan says; please report it"
            raise PanPrivacyError(message)
        self._sketches.check(one.tables)

    def packed(self, one: Pending | None) -> bytes:
        """Return a release that fits, or the absence of one, encoded in one size."""
        if one is None:
            return bytes(self.size)
        notes, row = _notes(one.rows), one.rows[0]
        numbers = np.zeros((len(self._places), len(NUMBERS)))
        noted = np.full(len(self._places), _ABSENT)
        for each in one.rows:
            place = self._places[_name(each)]
            numbers[place] = [_number(getattr(each, name)) for name in NUMBERS]
            noted[place] = notes.get(_encoded(each.note), 0)
        sealed = one.sealed or b""
        front = _FRONT.pack(
            1, *map(_since, (row.start, row.end, one.line.end)), row.number, one.place,
            bytes.fromhex(one.line.payer), row.complete, len(sealed),
        )  # fmt: skip
        text = b"".join(note + _END for note in notes).ljust(self._notes_bytes, b"\0")
        body = numbers.astype("<f8").tobytes() + noted.astype("<u2").tobytes()
        own = sealed.ljust(self._sealed_bytes, b"\0") + self._sketches.packed(one.tables)
        return front + body + text + own

    def unpacked(self, packed: bytes, counting: Counting) -> Pending | None:
        """Return the release that `packed` encoded.

        Args:
            packed: bytes of the right size.
            counting: a table of the same plan.

        Raises:
            InputError: it is damaged.
        """
        if not packed[0]:
            return None
        try:
            return self._unpacked(packed, counting)
        except (ValueError, OverflowError, IndexError):
            raise InputError(_DAMAGED) from None

    def _unpacked(self, packed: bytes, counting: Counting) -> Pending:
        _, start, end, ends, number, place, payer, complete, sealed = _FRONT.unpack_from(packed)
        if (
            not 1 <= place <= number <= counting.internals.releasing.planned
            or sealed > self._sealed_bytes
        ):
            raise ValueError
        began, until, closes = map(_moment, (start, end, ends))
        moment = Moment(self._stream, began, until, number, complete, until)
        rows = list(self._filled(packed[_FRONT.size :], self._blank(counting, moment)))
        named = self._stream, began, closes, number, payer.hex()
        own = packed[self.size - self._own_bytes :]
        lines, contribution = entries(*named, costs(counting, place)), own[:sealed] or None
        tables = self._sketches.unpacked(own[self._sealed_bytes :], moment)
        return Pending(lines, rows, place, contribution, tables, kept=True)

    def _filled(self, body: bytes, rows: Sequence[Published]) -> Iterator[Published]:
        """Yield rows with the numbers and notes of a body."""
        count = len(rows)
        numbers = np.frombuffer(body, "<f8", count * len(NUMBERS)).reshape(count, len(NUMBERS))
        at = numbers.nbytes
        noted: NDArray[np.uint16] = np.frombuffer(body, "<u2", count, at)
        at += noted.nbytes
        text = body[at : at + self._notes_bytes].rstrip(b"\0").decode()
        notes = [None, *text.split(_END.decode())]
        for row, values, note in zip(rows, numbers.tolist(), noted.tolist(), strict=True):
            if note == _ABSENT:
                continue
            found: dict[str, Any] = {
                name: None if math.isnan(value) else value
                for name, value in zip(NUMBERS, values, strict=True)
            }
            yield replace(row, **found, note=notes[note])

    def _blank(self, counting: Counting, moment: Moment) -> list[Published]:
        """Return all rows that a release may have, without numbers, lost or not."""
        rows = [
            row
            for answers in (
                counting.internals.releasing.unread(),
                counting.internals.releasing.lost(),
            )
            for row in published(answers, counting, self._confidence, moment)
        ]
        return list({_name(row): row for row in rows}.values())


def _name(row: Published) -> tuple[str, str, str, str | None]:
    """Return an identifier of the row that is unique within its release."""
    return row.statistic, row.question, row.arguments, row.group


def _notes(rows: Sequence[Published]) -> Mapping[bytes, int]:
    """Return the distinct notes of rows, with the place of each from 1."""
    found = dict.fromkeys(_encoded(row.note) for row in rows if row.note is not None)
    return {note: place for place, note in enumerate(found, 1)}


def _encoded(note: str | None) -> bytes:
    return (note or "").encode()


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _since(moment: datetime | None) -> int:
    return ((moment or _EPOCH) - _EPOCH) // timedelta(microseconds=1)


def _moment(since: int) -> datetime:
    return _EPOCH + timedelta(microseconds=since)
