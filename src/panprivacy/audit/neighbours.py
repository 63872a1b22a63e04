"""Short streams and their neighbours: what an adversary would try.

>>> stream = [[0], [1], [0]]
>>> for neighbour in add_remove(stream, 0):
...     print(neighbour)
[[], [1], [0]]
[[0], [1], []]
[[], [1], []]
>>> for neighbour in event(stream, 0):
...     print(neighbour)
[[], [1], [0]]
[[0], [1], []]
>>> for neighbour in event([SAVE, [0], CRASH, [0]], 0):
...     print(neighbour)
['save', [], 'crash', [0]]
['save', [0], 'crash', []]
['save', [], 'crash', []]
>>> for neighbour in replace(stream, 0, by=1):
...     print(neighbour)
[[1], [1], [0]]
[[0], [1], [1]]
[[1], [1], [1]]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from panprivacy.audit.streams import (
    ANNOUNCE,
    CRASH,
    RELEASE,
    SAVE,
    EventStream,
    Step,
    user_and_rest,
)

RowPlace = tuple[int, int]
"""Place of a row: its step, and its index in the batch."""

StreamPair = tuple[EventStream, EventStream]
"""A stream and its neighbour."""

_MOST_CHOSEN: Final = 8
"""Maximum number of rows of a user for which every choice is tried."""


def add_remove(stream: EventStream, user: object) -> Iterator[EventStream]:
    """Yield every stream without some or all updates of one user: the guarantee's adjacency."""
    for removed in _some(_places(stream, user)):
        yield _changed(stream, removed, lambda _: None)


def replace(stream: EventStream, user: object, by: object) -> Iterator[EventStream]:
    """Yield every stream in which some or all updates of one user are another's."""
    for moved in _some(_places(stream, user)):
        yield _changed(stream, moved, lambda row: (by, *row[1:]) if isinstance(row, tuple) else by)


def event(stream: EventStream, user: object) -> Iterator[EventStream]:
    """Yield every stream without one update, or without one that was sent again after crashes."""
    places = _places(stream, user)
    for removed in [*([place] for place in places), *_repeated_updates(stream, places)]:
        yield _changed(stream, removed, lambda _: None)


def short_streams(
    batches: Sequence[Step], length: int, *, releases: int = 0, announced: int = 0
) -> Iterator[EventStream]:
    """Yield every stream of up to `length` batches, with releases and announcements anywhere."""
    public = [RELEASE] * releases + [ANNOUNCE] * announced
    for count in range(1, length + 1):
        orders = sorted(set(itertools.permutations([""] * count + public)))
        for chosen in itertools.product(batches, repeat=count):
            for order in orders:
                rest = iter(chosen)
                yield [step or next(rest) for step in order]


def pairs(
    streams: Iterable[EventStream], neighbours: Callable[[EventStream], Iterable[EventStream]]
) -> Iterator[StreamPair]:
    """Return each stream with each of its neighbours."""
    return ((stream, other) for stream in streams for other in neighbours(stream))


def _places(stream: EventStream, user: object) -> list[RowPlace]:
    """Return the places of the rows of a user."""
    return [
        (number, place)
        for number, step in enumerate(stream)
        if not isinstance(step, str)
        for place, row in enumerate(step)
        if user_and_rest(row)[0] == user
    ]


def _repeated_updates(
    stream: EventStream, places: Sequence[RowPlace]
) -> Iterator[Sequence[RowPlace]]:
    """Yield each update that a crash lost, with equal ones that were sent again after crashes."""
    later: dict[RowPlace, list[RowPlace]] = {place: [] for place in places}
    for crash in (number for number, step in enumerate(stream) if step == CRASH):
        saved = max(number for number, step in enumerate(stream[:crash]) if step == SAVE)
        lost = [place for place in places if saved < place[0] < crash]
        after = [place for place in places if place[0] > crash]
        for one, other in itertools.product(lost, after):
            if _row(stream, one) == _row(stream, other) and other not in later[one]:
                later[one].append(other)
    return (chain for place in places for chain in _chains(later, place) if len(chain) > 1)


def _chains(
    later: Mapping[RowPlace, Sequence[RowPlace]], place: RowPlace
) -> Iterator[Sequence[RowPlace]]:
    """Yield an update alone, and with every chain of those that were sent again."""
    yield [place]
    for other in later[place]:
        yield from ([place, *chain] for chain in _chains(later, other))


def _row(stream: EventStream, place: RowPlace) -> object:
    step: Any = stream[place[0]]
    return step[place[1]]


def _some(places: Sequence[RowPlace]) -> Iterator[Sequence[RowPlace]]:
    """Yield every nonempty choice; of many places, each single one, the first and the last ones."""
    if len(places) <= _MOST_CHOSEN:
        for count in range(1, len(places) + 1):
            yield from itertools.combinations(places, count)
    else:
        yield from ([place] for place in places)
        yield from (places[:count] for count in range(2, len(places) + 1))
        yield from (places[-count:] for count in range(2, len(places)))


def _changed(
    stream: EventStream, places: Sequence[RowPlace], change: Callable[[object], object]
) -> EventStream:
    """Return the stream with some rows changed, and without those that change to None."""
    return [
        step
        if isinstance(step, str)
        else [
            row
            for row in (
                change(row) if (number, place) in places else row for place, row in enumerate(step)
            )
            if row is not None
        ]
        for number, step in enumerate(stream)
    ]
