"""Released answers of one stream, followed in the release store while the service runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np

from panprivacy.service.dashboard.series import POINT, ChartPoint, ChartPoints, SeriesName
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import Published

MOST_ANSWERS: Final = 100_000
"""Maximum number of answers of a stream: the newest ones."""
_PAGE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Known:
    """Data about a stream at one moment.

    Args:
        points: the answers to each question, oldest first.
        newest: the rows of the newest release.
        answers: number of answers.
        oldest: time of publication of the oldest one; None if there are none before it.
    """

    points: Mapping[SeriesName, ChartPoints] = field(default_factory=dict)
    newest: tuple[Published, ...] = ()
    answers: int = 0
    oldest: datetime | None = None


class History:
    """The answers of a stream, by question.

    Args:
        reader: reads the release store.
        stream: name of the stream.

    Attributes:
        known: the data; `follow` replaces and never changes it, so that other threads may read.
    """

    def __init__(self, reader: ReleaseReader, stream: str) -> None:
        self._reader, self._stream = reader, stream
        self.known = Known()

    def follow(self) -> bool:
        """Read the answers published since the last call, and one page of earlier ones.

        Returns:
            Whether anything was new.

        Raises:
            StoreError: the store cannot be read now. Nothing was changed.
        """
        known, seen = self.known, set(map(_identity, self.known.newest))
        since = known.newest[0].released if seen else None
        rows = self._reader.answers(stream=self._stream, since=since, limit=_PAGE)
        added = [row for row in rows if _identity(row) not in seen]
        if len(rows) - len(added) < len(seen) or known.answers > 2 * MOST_ANSWERS:
            # the store was replaced, or there are more new rows than a page, or more than are
            # stored
            known = Known()
            rows = added = self._reader.answers(stream=self._stream, limit=_PAGE)
        before, oldest = self._before(known)
        if known.answers == 0 and added:
            oldest = added[0].released
        if known is self.known and not added and not before:
            self.known = replace(known, oldest=oldest)
            return False
        self.known = Known(
            _concatenated(_by_question(before), known.points, _by_question(added)),
            tuple(row for row in rows if row.released == rows[-1].released),
            known.answers + len(before) + len(added),
            oldest,
        )
        return True

    def _before(self, known: Known) -> tuple[list[Published], datetime | None]:
        """Return the page before the known answers, if there is room, and its oldest time."""
        if known.oldest is None or known.answers >= MOST_ANSWERS:
            return [], known.oldest
        page = self._reader.answers(stream=self._stream, before=known.oldest, limit=_PAGE)
        return page, page[0].released if page else None


def _identity(row: Published) -> tuple[object, ...]:
    """Return a unique identifier of a row; without numbers, as NaN equals nothing."""
    return row.released, row.start, row.number, SeriesName.of(row)


def _by_question(rows: Iterable[Published]) -> dict[SeriesName, ChartPoints]:
    found: dict[SeriesName, list[ChartPoint]] = {}
    for row in rows:
        found.setdefault(SeriesName.of(row), []).append(ChartPoint.from_row(row))
    return {asked: np.array(points, POINT) for asked, points in found.items()}


def _concatenated(*parts: Mapping[SeriesName, ChartPoints]) -> dict[SeriesName, ChartPoints]:
    """Return the points of all parts, one after another."""
    asked = dict.fromkeys(one for part in parts for one in part)
    return {one: np.concatenate([part[one] for part in parts if one in part]) for one in asked}
