"""Return rates of pairs of windows, from their published tables: computed once, and cached.

All of it is a function of what is public, and costs no privacy.
"""

from __future__ import annotations

import json
import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from panprivacy.errors import InputError
from panprivacy.service.config.stream import StreamConfig
from panprivacy.service.outgoing.exports import Piece
from panprivacy.service.outgoing.reader import ReleaseReader
from panprivacy.service.outgoing.records import ListedSketch
from panprivacy.statistics.overlaps.sets import overlap
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.release import Release

MOST_WINDOWS: Final = 52
"""Maximum number of windows that are compared at once: 1,326 pairs."""
_MOST_PAIRS: Final = 1 << 14
"""Number of pairs whose answers are kept."""
_GONE: Final = "one of the tables was deleted"

Series = tuple[str, str | None]
"""Statistic and group of published tables."""


@dataclass(frozen=True, slots=True)
class WindowPair:
    """Who came in one window and in a later one.

    Args:
        return_rate: the share of the users of the first window who are in the second one, too;
            None if the tables cannot be compared.
        intersection: the number of users of both.
        note: what to beware of, or why they cannot be compared; None if nothing.
    """

    return_rate: Release | None
    intersection: Release | None
    note: str | None


class ReturnRates:
    """Compares published tables of a release store; safe for several threads.

    Args:
        reader: reads the release store.
    """

    def __init__(self, reader: ReleaseReader) -> None:
        self._reader, self._lock = reader, threading.Lock()
        self._known: OrderedDict[tuple[int, int], WindowPair] = OrderedDict()

    def known(self, first: ListedSketch, second: ListedSketch) -> WindowPair | None:
        """Return the answers about two windows, if they were computed before."""
        with self._lock:
            return self._known.get((first.id, second.id))

    def windows(self, stream: str, series: Series, most: int) -> list[ListedSketch]:
        """Return the newest windows of a series, oldest first.

        Raises:
            StoreError: the store cannot be read now.
        """
        return self._reader.sketches(stream=stream, of=series, limit=most)

    def of(self, first: ListedSketch, later: Sequence[ListedSketch]) -> list[WindowPair]:
        """Return the answers about one window and each of several later ones.

        Two tables are in memory at a time.

        Raises:
            StoreError: the store cannot be read now.
        """
        found = [self.known(first, one) for one in later]
        mine = None if None not in found else self._read(first)
        return [
            self._compared(first, mine, one) if pair is None else pair
            for one, pair in zip(later, found, strict=True)
        ]

    def newest(self, stream: str, series: Series) -> WindowPair | None:
        """Return the answers about the newest two windows; None if there are fewer.

        Raises:
            StoreError: the store cannot be read now.
        """
        listed = self.windows(stream, series, 2)
        return self.of(listed[0], listed[1:])[0] if len(listed) == 2 else None

    def as_json(self, listed: Sequence[ListedSketch]) -> Iterator[Piece]:
        """Yield windows and pairs of them as JSON, a piece for each window.

        Args:
            listed: windows of one series, oldest first.
        """
        windows = [
            {
                "id": one.id,
                "start": one.start.isoformat(),
                "end": one.end.isoformat(),
                "complete": one.complete,
            }
            for one in listed
        ]
        before = f'{{"windows": {json.dumps(windows)}, "pairs": ['
        for place, first in enumerate(listed[:-1]):
            later = listed[place + 1 :]
            pairs = zip(later, self.of(first, later), strict=True)
            rows = [_plain(first, second, pair) for second, pair in pairs]
            text = ", ".join(json.dumps(row, allow_nan=False) for row in rows)
            yield Piece(f"{before}{text}".encode(), is_last=False)
            before = ", "
        yield Piece(("]}" if len(listed) > 1 else f"{before}]}}").encode(), is_last=True)

    def _read(self, one: ListedSketch) -> Sketch | None:
        data = self._reader.sketch(one.stream, one.id)
        return None if data is None else Sketch.read(data)

    def _compared(
        self, first: ListedSketch, mine: Sketch | None, second: ListedSketch
    ) -> WindowPair:
        theirs = self._read(second)
        if mine is None or theirs is None:
            return WindowPair(None, None, _GONE)
        made = _pair(mine, theirs)
        with self._lock:
            self._known[first.id, second.id] = made
            while len(self._known) > _MOST_PAIRS:
                self._known.popitem(last=False)
        return made


def series_of(config: StreamConfig) -> list[Series]:
    """Return the series of tables that a stream publishes: each statistic of each group."""
    labels = [one.label for one in config.specifications() if one.sizes.published]
    return [(label, group) for label in labels for group in config.groups or (None,)]


def _pair(first: Sketch, second: Sketch) -> WindowPair:
    try:
        both = overlap(first, second)
    except InputError as error:
        return WindowPair(None, None, str(error))
    rate = both.return_rate()
    return WindowPair(rate, both.intersection(), rate.note)


def _plain(first: ListedSketch, second: ListedSketch, pair: WindowPair) -> dict[str, Any]:
    """Return a pair as JSON has it."""
    answers = {"return_rate": pair.return_rate, "intersection": pair.intersection}
    told = {name: None if one is None else _answer(one) for name, one in answers.items()}
    return {"first": first.id, "second": second.id, **told, "note": pair.note}


def _answer(one: Release) -> dict[str, Any]:
    names = "value", "low", "high", "estimate", "standard_error"
    numbers = {name: _number(getattr(one, name)) for name in names}
    return {**numbers, "confidence": one.confidence, "note": one.note}


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)
