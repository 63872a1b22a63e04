"""Sets of users, made of published tables: unions, intersections and differences, and how large.

A set is a function of which tables a user is in, so sets of any depth are counted exactly as the
tables are, by one estimator.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.many import MOST_UNITED, union_of_many
from panprivacy.statistics.overlaps.patterns import (
    MOST_TABLES,
    BitTables,
    PatternCounts,
    PatternSet,
    ShardTable,
    check_number,
)
from panprivacy.statistics.release import Answers, Release

_EQUAL_BY_CHANCE: Final = 0.01, 1e-6
"""Probabilities below which equal tables are copies: with the same text, and with another one."""


class PublishedTable(Protocol):
    """The part of a sketch that set operations read."""

    @property
    def key(self) -> str:
        """Addressing key in hexadecimal digits."""

    @property
    def addressing(self) -> tuple[object, ...]:
        """How users are divided among shards; equal in tables that can be combined."""

    @property
    def tables(self) -> list[ShardTable]:
        """The table of each shard; one where there are no shards."""

    @property
    def probabilities(self) -> tuple[float, float]:
        """Probabilities of a 1 in a cell without users, and in one with users."""


@dataclass(frozen=True, slots=True, eq=False)
class SketchSet:
    """The users of some of the windows of which tables were published.

    `|`, `&`, `-` and `^` combine it with others; `count` says how many users it has.

    Args:
        sketches: the tables, each once.
        chosen: whether users with a pattern of tables are in the set; bool[2**k].
    """

    sketches: tuple[PublishedTable, ...]
    chosen: PatternSet

    @classmethod
    def of(cls, one: PublishedTable | SketchSet) -> SketchSet:
        """Return the users of one table."""
        return one if isinstance(one, SketchSet) else cls((one,), np.array([False, True]))

    def __or__(self, other: PublishedTable | SketchSet) -> SketchSet:
        return self._with(other, np.logical_or)

    def __and__(self, other: PublishedTable | SketchSet) -> SketchSet:
        return self._with(other, np.logical_and)

    def __sub__(self, other: PublishedTable | SketchSet) -> SketchSet:
        return self._with(other, lambda mine, theirs: mine & ~theirs)

    def __xor__(self, other: PublishedTable | SketchSet) -> SketchSet:
        return self._with(other, np.logical_xor)

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__

    def __rsub__(self, other: PublishedTable | SketchSet) -> SketchSet:
        return SketchSet.of(other) - self

    def count(self, *, confidence: float = 0.95) -> Release:
        """Return the number of users of the set.

        Args:
            confidence: probability that the interval covers the truth.

        Raises:
            InputError: the tables cannot be combined.
        """
        observed = patterns_of(self.sketches)
        return operations.count(observed, self.chosen, confidence=confidence)

    def share_of(self, whole: PublishedTable | SketchSet, *, confidence: float = 0.95) -> Release:
        """Return the share of the users of another set who are in this one.

        Args:
            whole: the other set.
            confidence: probability that the interval covers the truth.

        Raises:
            InputError: the tables cannot be combined.
        """
        other = SketchSet.of(whole)
        both = _all_tables(self.sketches, other.sketches)
        observed = patterns_of(both)
        part, all_ = self.among(both), other.among(both)
        return operations.share(observed, part, all_, confidence=confidence)

    def _with(
        self,
        other: PublishedTable | SketchSet,
        combine: Callable[[PatternSet, PatternSet], PatternSet],
    ) -> SketchSet:
        theirs = SketchSet.of(other)
        both = _all_tables(self.sketches, theirs.sketches)
        return SketchSet(both, combine(self.among(both), theirs.among(both)))

    def among(self, sketches: Sequence[PublishedTable]) -> PatternSet:
        """Return whether users with each pattern of more tables are in the set; bool[2**k]."""
        places = [
            next(i for i, one in enumerate(sketches) if one is mine) for mine in self.sketches
        ]
        patterns = np.arange(1 << len(sketches))
        own = np.zeros(len(patterns), int)
        for bit, place in enumerate(places):
            own |= (patterns >> place & 1) << bit
        return np.asarray(self.chosen[own])


class Overlap:
    """Published tables that are compared: what they have in common, with intervals.

    Of more than 12 tables the union alone is known, of 64 at most.

    Args:
        sketches: two or more tables of one key, in the order of time.

    Raises:
        InputError: they cannot be combined: another key, another layout, one is there twice.
    """

    def __init__(self, sketches: Sequence[PublishedTable]) -> None:
        self._number, self._tables = len(sketches), tables_of(sketches)

    @functools.cached_property
    def _observed(self) -> list[PatternCounts]:
        """The number of cells of each pattern, by shard, once for all questions."""
        return [one.patterns() for one in self._tables]

    def union(self, *, confidence: float = 0.95) -> Release:
        """Return the number of users of any window."""
        if self._number > MOST_TABLES:
            if len(self._tables) > 1:
                message = f"compare {MOST_TABLES} sketches of several shards at most"
                raise InputError(message)
            return union_of_many(self._tables[0], confidence=confidence)
        return operations.union(self._observed, confidence=confidence)

    def intersection(self, *, confidence: float = 0.95) -> Release:
        """Return the number of users of all windows."""
        return operations.intersection(self._observed, confidence=confidence)

    def difference(self, *, confidence: float = 0.95) -> Release:
        """Return the number of users of the first window, and of no other one."""
        return operations.difference(self._observed, confidence=confidence)

    def symmetric_difference(self, *, confidence: float = 0.95) -> Release:
        """Return the number of users of one of two windows; of more, of an odd number of them."""
        return operations.symmetric_difference(self._observed, confidence=confidence)

    def jaccard(self, *, confidence: float = 0.95) -> Release:
        """Return the users of all windows, as a share of those of any."""
        return operations.jaccard(self._observed, confidence=confidence)

    def return_rate(self, *, confidence: float = 0.95) -> Release:
        """Return the share of the users of the first window who are in all others too."""
        return operations.return_rate(self._observed, confidence=confidence)

    def exactly(self, windows: int, *, confidence: float = 0.95) -> Release:
        """Return the number of users of just so many windows."""
        return operations.exactly(self._observed, windows, confidence=confidence)

    def at_least(self, windows: int, *, confidence: float = 0.95) -> Release:
        """Return the number of users of so many windows or more."""
        return operations.at_least(self._observed, windows, confidence=confidence)

    def answers(self, *, confidence: float = 0.95) -> Answers:
        """Return union, intersection, difference, Jaccard index and return rate, by name."""
        asked = self.union, self.intersection, self.difference, self.jaccard, self.return_rate
        return Answers([one(confidence=confidence) for one in asked])

    def __repr__(self) -> str:
        return f"<Overlap of {self._number} tables>"


def overlap(*sketches: PublishedTable) -> Overlap:
    """Compare published tables of one key: who is in both, who came back.

    Guarantee: a function of public tables; it costs nothing.

    Args:
        sketches: two or more tables, in the order of time.

    Raises:
        InputError: they cannot be combined: another key, another layout, one is there twice.
    """
    if len(sketches) < 2:
        message = "compare two sketches or more"
        raise InputError(message)
    return Overlap(sketches)


def patterns_of(sketches: Sequence[PublishedTable]) -> list[PatternCounts]:
    """Count the cells of each pattern of bits, of each shard.

    Raises:
        InputError: the tables cannot be combined, or there are more than 12.
    """
    check_number(len(sketches))
    return [one.patterns() for one in tables_of(sketches)]


def tables_of(sketches: Sequence[PublishedTable]) -> list[BitTables]:
    """Return the tables of sketches that can be combined, by shard.

    Raises:
        InputError: they have another key or other cells, or one is there twice.
    """
    if len(sketches) > MOST_UNITED:
        message = f"{len(sketches):,} sketches are too many: compare {MOST_UNITED} at most"
        raise InputError(message)
    first, layouts = sketches[0], [table.layout for table in sketches[0].tables]
    known = KnownTables()
    for place, one in enumerate(sketches, start=1):
        if one.addressing != first.addressing:
            message = (
                f"sketch {place} is of other shards than sketch 1, so its cells are of other "
                "users: compare sketches of the same shards"
            )
            raise InputError(message)
        if [table.layout for table in one.tables] != layouts:
            message = (
                f"sketch {place} has other cells than sketch 1: make all windows with the same "
                "expected=, memory= and universe="
            )
            raise InputError(message)
        if one.key != first.key:
            message = (
                f"sketch {place} has another addressing key than sketch 1, so its cells are of "
                "other users: make all windows with the same key="
            )
            raise InputError(message)
        copied = known.add(place, one)
        if copied is not None:
            what = "is" if len(layouts) == 1 else "has a table of"
            message = (
                f"sketch {place} {what} sketch {copied} once more: its noise would count as "
                "users; leave it out"
            )
            raise InputError(message)
    absent, present = zip(*(one.probabilities for one in sketches), strict=True)
    by_shard = zip(*(one.tables for one in sketches), strict=True)
    return [
        BitTables(tables[0].layout, np.stack([one.packed for one in tables]), absent, present)
        for tables in by_shard
    ]


class KnownTables:
    """Published tables that were met: one whose noise is that of another one is a copy of it.

    Where tables of two windows of the same users are rarely equal by chance, equal tables are
    copies, whatever names they have. Tables of few cells, or of nearly no noise, are compared.
    """

    def __init__(self) -> None:
        self._places: dict[tuple[int, bytes], int] = {}
        self._sketches: list[tuple[int, PublishedTable]] = []

    def add(self, place: int, one: PublishedTable) -> int | None:
        """Add the tables of a sketch; return the place of the one that it is a copy of.

        Args:
            place: number of the sketch.
            one: the sketch.
        """
        same, another = _EQUAL_BY_CHANCE
        cells = [table.layout.cells for table in one.tables]
        for other, known in self._sketches:
            if one is known or (one == known and _alike(one, sum(cells)) <= same):
                return other
        self._sketches.append((place, one))
        for number, table in enumerate(one.tables):
            if _alike(one, cells[number]) <= another:
                digest = hashlib.blake2b(table.packed.data).digest()
                found = self._places.setdefault((number, digest), place)
                if found != place:
                    return found
        return None


def _alike(one: PublishedTable, cells: int) -> float:
    """Return how often so many cells of tables of the same users are equal by chance, at most."""
    alike = max(ones**2 + (1 - ones) ** 2 for ones in one.probabilities)
    return float(alike**cells)


def _all_tables(
    some: tuple[PublishedTable, ...], others: tuple[PublishedTable, ...]
) -> tuple[PublishedTable, ...]:
    """Return the tables of both, each once."""
    new = [one for one in others if not any(one is known for known in some)]
    return (*some, *new)
