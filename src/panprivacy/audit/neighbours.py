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
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from panprivacy.audit.streams import ANNOUNCE, CRASH, RELEASE, SAVE, Step, Stream, user_and_rest

RowPlace = tuple[int, int]
"""Of a row: its step, and its place in the batch."""

Pair = tuple[Stream, Stream]
"""A stream and its neighbour."""

_MOST_CHOSEN: Final = 8
"""Of so many rows of a user every choice is tried."""


def add_remove(stream: Stream, user: object) -> Iterator[Stream]:
    """Every stream without some or all updates of one user, the adjacency of the guarantee."""
    for removed in _some(_places(stream, user)):
        yield _changed(stream, removed, lambda _: None)


def replace(stream: Stream, user: object, by: object) -> Iterator[Stream]:
    """Every stream in which some or all updates of one user are another's."""
    for moved in _some(_places(stream, user)):
        yield _changed(stream, moved, lambda row: (by, *row[1:]) if isinstance(row, tuple) else by)


def event(stream: Stream, user: object) -> Iterator[Stream]:
    """Every stream without one update, or without one that was sent again after a crash."""
    places = _places(stream, user)
    for removed in [*([place] for place in places), *_sent_again(stream, places)]:
        yield _changed(stream, removed, lambda _: None)


def short_streams(
    batches: Sequence[Step], length: int, *, releases: int = 0, announced: int = 0
) -> Iterator[Stream]:
    """Every stream of up to `length` such batches, with releases and announcements anywhere."""
    public = [RELEASE] * releases + [ANNOUNCE] * announced
    for count in range(1, length + 1):
        orders = sorted(set(itertools.permutations([""] * count + public)))
        for chosen in itertools.product(batches, repeat=count):
            for order in orders:
                rest = iter(chosen)
                yield [step or next(rest) for step in order]


def pairs(
    streams: Iterable[Stream], neighbours: Callable[[Stream], Iterable[Stream]]
) -> Iterator[Pair]:
    """Each stream with each of its neighbours."""
    return ((stream, other) for stream in streams for other in neighbours(stream))


def _places(stream: Stream, user: object) -> list[RowPlace]:
    """Where the rows of a user stand."""
    return [
        (number, place)
        for number, step in enumerate(stream)
        if not isinstance(step, str)
        for place, row in enumerate(step)
        if user_and_rest(row)[0] == user
    ]


def _sent_again(stream: Stream, places: Sequence[RowPlace]) -> Iterator[Sequence[RowPlace]]:
    """Each update that a crash lost, with each equal one after the crash."""
    for crash in (number for number, step in enumerate(stream) if step == CRASH):
        saved = max(number for number, step in enumerate(stream[:crash]) if step == SAVE)
        lost = [place for place in places if saved < place[0] < crash]
        later = [place for place in places if place[0] > crash]
        for one, other in itertools.product(lost, later):
            if _row(stream, one) == _row(stream, other):
                yield one, other


def _row(stream: Stream, place: RowPlace) -> object:
    step: Any = stream[place[0]]
    return step[place[1]]


def _some(places: Sequence[RowPlace]) -> Iterator[Sequence[RowPlace]]:
    """Every choice of at least one; of many, each one, the first and the last ones."""
    if len(places) <= _MOST_CHOSEN:
        for count in range(1, len(places) + 1):
            yield from itertools.combinations(places, count)
    else:
        yield from ([place] for place in places)
        yield from (places[:count] for count in range(2, len(places) + 1))
        yield from (places[-count:] for count in range(2, len(places)))


def _changed(
    stream: Stream, places: Sequence[RowPlace], change: Callable[[object], object]
) -> Stream:
    """The stream with some rows changed, and without those that change to None."""
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
