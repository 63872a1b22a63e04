"""Set operations on published tables of one addressing key, as releases.

All of them cost no privacy: they are functions of public tables. `union`, `intersection`,
`difference`, `symmetric_difference`, `exactly` and `at_least` count users; `jaccard` and
`return_rate` are ratios. Everything else is a `count` or a `share` of sets of patterns:

>>> import numpy as np
>>> layout = CellLayout(cells_per_level=8, universe=8)
>>> bits = np.array([[1, 0, 1, 0, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1, 0, 0]], np.uint8)
>>> tables = BitTables.of_bits(layout, bits, absent=(0.0, 0.0), present=(1.0, 1.0))
>>> observed = tables.patterns()  # once for all questions
>>> union(observed).value, intersection(observed).value, return_rate(observed).value
(6.0, 2.0, 0.5)
>>> monday, tuesday = members(2)
>>> count(observed, monday & ~tuesday).value
2.0

The order of tables is that of `BitTables`. A question about some of several tables is asked of
`observed.of(0, 2)`, or of sets that do not depend on the others, which are left out then.

Shards that counted other users each have tables of their own. All functions take a list of the
pattern counts of each shard as well, and answer for the users of all shards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from panprivacy.errors import InputError
from panprivacy.ground.validation import proportion, whole_number
from panprivacy.statistics.overlaps.intervals import OverlapEstimator, SetQuery
from panprivacy.statistics.overlaps.patterns import (
    BitTables,
    CellLayout,
    Floats,
    PatternCounts,
    PatternSet,
    check_number,
    members,
)
from panprivacy.statistics.overlaps.remarks import FULL, note_of
from panprivacy.statistics.release import Name, Release

__all__ = (
    "BitTables", "CellLayout", "PatternCounts", "PatternSet", "at_least", "count", "difference",
    "exactly", "intersection", "jaccard", "members", "return_rate", "share",
    "symmetric_difference", "union",
)  # fmt: skip

STATISTIC = "overlap"
Observed = PatternCounts | Sequence[PatternCounts]
"""The counts of k tables; of several shards, of other users each, those of each shard."""


def union(observed: Observed, *, confidence: float = 0.95) -> Release:
    """Return the number of users of any table."""
    sets = members(_tables(observed))
    return count(observed, _any(sets), confidence=confidence, name=_name("union"))


def intersection(observed: Observed, *, confidence: float = 0.95) -> Release:
    """Return the number of users of all tables."""
    sets = members(_tables(observed))
    return count(observed, _all(sets), confidence=confidence, name=_name("intersection"))


def difference(observed: Observed, *, confidence: float = 0.95) -> Release:
    """Return the number of users of the first table, and of no other one."""
    first, *others = members(_tables(observed))
    chosen = first & ~_any(np.array(others)) if others else first
    return count(observed, chosen, confidence=confidence, name=_name("difference"))


def symmetric_difference(observed: Observed, *, confidence: float = 0.95) -> Release:
    """Return the number of users of one of two tables; of more, of an odd number of tables."""
    chosen = members(_tables(observed)).sum(axis=0) % 2 == 1
    return count(observed, chosen, confidence=confidence, name=_name("symmetric_difference"))


def exactly(observed: Observed, tables: int, *, confidence: float = 0.95) -> Release:
    """Return the number of users of just so many tables, such as windows.

    Args:
        observed: the counts of k tables.
        tables: 1 .. k.
        confidence: probability that the interval covers the truth.
    """
    number = whole_number(1, _tables(observed), tables=tables)
    chosen = members(_tables(observed)).sum(axis=0) == number
    return count(observed, chosen, confidence=confidence, name=_name("exactly", number))


def at_least(observed: Observed, tables: int, *, confidence: float = 0.95) -> Release:
    """Return the number of users of so many tables or more.

    Args:
        observed: the counts of k tables.
        tables: 1 .. k.
        confidence: probability that the interval covers the truth.
    """
    number = whole_number(1, _tables(observed), tables=tables)
    chosen = members(_tables(observed)).sum(axis=0) >= number
    return count(observed, chosen, confidence=confidence, name=_name("at_least", number))


def jaccard(observed: Observed, *, confidence: float = 0.95) -> Release:
    """Return the Jaccard index: the users of all tables, as a share of those of any."""
    sets = members(_tables(observed))
    part, whole = _all(sets), _any(sets)
    return share(observed, part, whole, confidence=confidence, name=_name("jaccard"))


def return_rate(observed: Observed, *, confidence: float = 0.95) -> Release:
    """Return the share of the users of the first table who are in all others too."""
    sets = members(_tables(observed))
    return share(observed, _all(sets), sets[0], confidence=confidence, name=_name("return_rate"))


def count(
    observed: Observed,
    chosen: PatternSet,
    *,
    confidence: float = 0.95,
    name: Name | None = None,
) -> Release:
    """Return the number of users of a set of patterns.

    Accuracy: unbiased for direct and sampled cells; for one level of hashed cells up to third
    order. The interval is inverted over the hypothesis. [tests/statistical/test_overlaps.py]

    Args:
        observed: the counts of k tables.
        chosen: which patterns users may have; bool[2**k]. Those of no table are not counted.
        confidence: probability that the interval covers the truth.
        name: of the answer.

    Raises:
        InputError: the set is of another number of tables, or holds the users of no table.
    """
    return _answer(observed, chosen, None, confidence, name or _name("count"), "users")


def share(
    observed: Observed,
    part: PatternSet,
    whole: PatternSet,
    *,
    confidence: float = 0.95,
    name: Name | None = None,
) -> Release:
    """Return the share of the users of a set of patterns who are in another set too.

    Accuracy: the ratio of two estimates; its interval is that of Fieller, with the variance of each
    hypothesis. [tests/statistical/test_overlaps.py]

    Args:
        observed: the counts of k tables.
        part: the other set; bool[2**k].
        whole: the set; bool[2**k].
        confidence: probability that the interval covers the truth.
        name: of the answer.

    Raises:
        InputError: a set is of another number of tables, or the whole holds users of no table.
    """
    unit = "share of the users"
    return _answer(observed, part & whole, whole, confidence, name or _name("share"), unit)


def _any(sets: PatternSet) -> PatternSet:
    """Return the union of sets of patterns; bool[sets, 2**k]."""
    return np.asarray(sets.any(axis=0))


def _all(sets: PatternSet) -> PatternSet:
    """Return their intersection."""
    return np.asarray(sets.all(axis=0))


def _name(question: str, tables: int | None = None) -> Name:
    return Name(STATISTIC, question, () if tables is None else (("tables", tables),))


def _answer(
    observed: Observed,
    chosen: PatternSet,
    whole: PatternSet | None,
    confidence: float,
    name: Name,
    unit: str,
) -> Release:
    level = proportion(confidence=confidence)
    sets = [chosen] if whole is None else [chosen, whole]
    tables = _tables(observed)
    _check(tables, sets)
    needed = _needed(sets, tables)
    counted = [one.of(*needed) for one in _shards(observed)]
    estimator, query = OverlapEstimator(counted), SetQuery(*_projected(sets, needed))
    measured = estimator.measure(query)
    low, high = estimator.interval(query, measured, level)
    contradicted = estimator.contradicted(query, measured)
    full = not math.isinf(high) and estimator.is_full(level)
    if full:
        low, high = 0.0, estimator.most(query)
    return Release(
        measured.estimate,
        low,
        high,
        level,
        0.0,
        tuple(int(number) for one in counted for number in np.rint(one.counts).ravel()),
        name,
        unit,
        FULL
        if full
        else note_of(measured, low, high, estimator.most(query), contradicted=contradicted),
        measured.estimate,
        measured.standard_error,
    )


def _shards(observed: Observed) -> Sequence[PatternCounts]:
    return [observed] if isinstance(observed, PatternCounts) else observed


def _tables(observed: Observed) -> int:
    """Return the number of tables, which has to be the same in all shards."""
    shards = _shards(observed)
    numbers = {one.tables for one in shards}
    universes = {one.layout.universe is None for one in shards}
    if len(numbers) != 1 or len(universes) != 1:
        message = "shards need as many tables each, all of hashed cells or all of one user a cell"
        raise InputError(message)
    (tables,) = numbers
    check_number(tables)
    return tables


def _check(tables: int, sets: Sequence[PatternSet]) -> None:
    if any(one.shape != (1 << tables,) for one in sets):
        message = f"a set of users of {tables} tables has {1 << tables:,} entries"
        raise InputError(message)
    if any(one[0] for one in sets):
        message = "users of no table are in no table, and cannot be counted: leave out pattern 0"
        raise InputError(message)


def _needed(sets: Sequence[PatternSet], tables: int) -> list[int]:
    """Return the tables on which the sets depend; the first one if they depend on none."""
    patterns = np.arange(1 << tables)
    needed = [
        number
        for number in range(tables)
        if any((one != one[patterns ^ (1 << number)]).any() for one in sets)
    ]
    return needed or [0]


def _projected(sets: Sequence[PatternSet], needed: Sequence[int]) -> list[Floats]:
    """Return the weights of patterns of the needed tables alone."""
    patterns = np.zeros(1 << len(needed), int)
    for place, number in enumerate(needed):
        patterns += (np.arange(1 << len(needed)) >> place & 1) << number
    return [one[patterns].astype(float) for one in sets]
