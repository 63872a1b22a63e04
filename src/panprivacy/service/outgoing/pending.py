"""A release that nobody can see yet, and the place for it in the state of its stream.

The place has one size, whether a release waits in it or not: numbers of a fixed size for each
answer that a release has, a table of notes, and room for a contribution. So neither whether one
waits nor what it says shows in the size of a checkpoint.
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
from panprivacy.programs.counting import Counting
from panprivacy.service.outgoing.payment import PAYER_BYTES, entries
from panprivacy.service.outgoing.records import Entry, Moment, Published
from panprivacy.service.outgoing.results import published
from panprivacy.statistics.private import release_cost

NUMBERS: Final = ("value", "low", "high", "estimate", "standard_error", "bias")
"""Of a row: all that depends on what was counted, but for its note."""
_FRONT: Final = struct.Struct(f"<Bqqqqq{PAYER_BYTES}s?Q")
"""Whether one waits; its start, end, end of the window, number, number among those of its table;
payer; whether it is complete; bytes of its contribution."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_NOTES: Final = 16
"""Notes that the answers of one release to one question have, at most: `notes` knows three things
to say of the range, one of which is nothing, and five of the noise."""
_NOTE_BYTES: Final = 384
"""Of a note, at most."""
_END: Final = b"\n"
_ABSENT: Final = 0xFFFF
"""In place of the number of a note: there is no such row."""
_DAMAGED: Final = "the state is damaged: no release waits like this"


@dataclass(slots=True)
class Pending:
    """A release that was made and is not published.

    Args:
        lines: its lines of the ledger, its own the last.
        rows: its answers, or what stands in their place.
        place: its number among the releases of its table, by which its price is known.
        sealed: its contribution; None where answers leave.
        kept: whether a checkpoint on the disk has it.
        outcome: whether it was published; None as long as it waits.
    """

    lines: Sequence[Entry]
    rows: Sequence[Published]
    place: int
    sealed: bytes | None = None
    kept: bool = False
    outcome: bool | None = None

    @property
    def line(self) -> Entry:
        """Its own line of the ledger."""
        return self.lines[-1]


def costs(counting: Counting, place: int) -> tuple[Fraction, Fraction]:
    """What the state of a table and the release of that place cost.

    Args:
        counting: a table of the same plan.
        place: of the release among those of its table, from 1.
    """
    return counting.state_epsilon, release_cost(counting, place)


class Room:
    """The place in a state for one release of a stream that waits.

    Args:
        stream: name of the stream.
        counting: what is counted, or its like.
        confidence: of all intervals.
        sealed_bytes: of a contribution, at most; 0 where answers leave.
    """

    def __init__(
        self, stream: str, counting: Counting, confidence: float, sealed_bytes: int
    ) -> None:
        self._stream, self._confidence, self._sealed_bytes = stream, confidence, sealed_bytes
        rows = self._blank(
            counting, Moment(stream, _EPOCH, _EPOCH, 1, complete=False, released=_EPOCH)
        )
        self._places = {_name(row): place for place, row in enumerate(rows)}
        questions = {(row.statistic, row.question) for row in rows}
        self._notes_bytes = len(questions) * _MOST_NOTES * (_NOTE_BYTES + len(_END))

    @property
    def size(self) -> int:
        """Bytes of the place."""
        each = len(NUMBERS) * 8 + 2
        return _FRONT.size + each * len(self._places) + self._notes_bytes + self._sealed_bytes

    def check(self, one: Pending) -> None:
        """Refuse a release that does not fit.

        Raises:
            PanPrivacyError: it has other answers than those of its plan, or they are longer.
        """
        if not one.rows or not self._places.keys() >= {_name(row) for row in one.rows}:
            message = "a release has other answers than its plan says; please report it"
            raise PanPrivacyError(message)
        notes = sum(len(note) + len(_END) for note in _notes(one.rows))
        if notes > self._notes_bytes or len(one.sealed or b"") > self._sealed_bytes:
            message = "a release is longer than its plan says; please report it"
            raise PanPrivacyError(message)

    def packed(self, one: Pending | None) -> bytes:
        """A release that fits, or that none waits: of one size."""
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
        return front + body + text + sealed.ljust(self._sealed_bytes, b"\0")

    def unpacked(self, packed: bytes, counting: Counting) -> Pending | None:
        """What `packed` was given.

        Args:
            packed: of the right size.
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
        if not 1 <= place <= number <= counting.planned or sealed > self._sealed_bytes:
            raise ValueError
        began, until, closes = map(_moment, (start, end, ends))
        moment = Moment(self._stream, began, until, number, complete, until)
        rows = list(self._filled(packed[_FRONT.size :], self._blank(counting, moment)))
        named = self._stream, began, closes, number, payer.hex()
        contribution = packed[self.size - self._sealed_bytes :][:sealed]
        return Pending(
            entries(*named, costs(counting, place)), rows, place, contribution or None, kept=True
        )

    def _filled(self, body: bytes, rows: Sequence[Published]) -> Iterator[Published]:
        """Rows with the numbers and notes of a body."""
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
        """All rows that a release may have, without numbers: where it is lost, and where not."""
        rows = [
            row
            for answers in (counting.unread(), counting.lost())
            for row in published(answers, counting, self._confidence, moment)
        ]
        return list({_name(row): row for row in rows}.values())


def _name(row: Published) -> tuple[str, str, str, str | None]:
    """What no other row of its release is called."""
    return row.statistic, row.question, row.arguments, row.group


def _notes(rows: Sequence[Published]) -> Mapping[bytes, int]:
    """The notes of rows, each once, and the place of each from 1."""
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
