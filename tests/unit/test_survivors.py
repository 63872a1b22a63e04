"""The fingerprint of what survives: no two different memories have the same one."""

from __future__ import annotations

import copy
import functools
import hashlib
import itertools
import re
import threading
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from coincurve._libsecp256k1 import lib

import panprivacy as pp
from panprivacy.audit.exact.survivors import Survivors, _hides


def fingerprints(*things):
    walker = Survivors(None)
    return [walker.fingerprint(thing) for thing in things]


class Plain:
    def __init__(self, **held):
        vars(self).update(held)


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Whole(int):
    pass


class Listed(list):
    pass


class Chosen(set):
    pass


class Named(dict):
    pass


class Watched(np.ndarray):
    pass


@dataclass(frozen=True, slots=True)
class Frozen:
    held: object


def marked(thing, mark):
    thing.mark = mark
    return thing


def closing_over(value):
    return lambda: value


def after(function, *arguments):
    function(*arguments)
    return function.__self__


def advanced(steps):
    iterator = iter([1, 2, 3])
    list(itertools.islice(iterator, steps))
    return iterator


def lock(*, taken):
    found = threading.Lock()
    if taken:
        found.acquire()
    return found


def ring(length):
    first = node = Plain()
    for _ in range(length - 1):
        node.next = Plain()
        node = node.next
    node.next = first
    return first


def viewed(array):
    return [array, array[:]]


def locked(arrays):
    copies = [array.copy() for array in arrays]
    if arrays[0] is arrays[1]:
        copies[1] = copies[0]
    for array in copies:
        array.setflags(write=False)
    return copies


def filled(value):
    cache = functools.lru_cache(lambda _: value)
    cache(0)
    return cache


def after_calls(cache):
    cache(0)
    return cache


ARRAY = np.arange(4, dtype=np.int32)
SHARED = [1, 2]

DIFFERENT = {
    "numbers": (1, 2),
    "a number and a truth": (1, True),
    "a number and its float": (1, 1.0),
    "zeros": (0.0, -0.0),
    "fractions": (Fraction(1, 2), Fraction(1, 3)),
    "texts": ("1", b"1"),
    "attributes": (Plain(a=1), Plain(a=2)),
    "slots": (Slotted([1]), Slotted([2])),
    "names of attributes": (Plain(a=1), Plain(b=1)),
    "classes": (Slotted(1), Frozen(1)),
    "lists": ([1, [2]], [1, [3]]),
    "a list and a tuple": ([1], (1,)),
    "sets": ({1, 2}, {1, 3}),
    "keys": ({1: 2}, {2: 2}),
    "values": ({1: 2}, {1: 3}),
    "the order of keys": (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
    "counters": (Counter("a"), Counter("aa")),
    "queues": (deque([1]), deque([2])),
    "attributes of a list": (marked(Listed([1]), 1), marked(Listed([1]), 2)),
    "attributes of a set": (marked(Chosen({1}), 1), marked(Chosen({1}), 2)),
    "attributes of a dict": (marked(Named(a=1), 1), marked(Named(a=1), 2)),
    "attributes of an array": (
        marked(np.zeros(2).view(Watched), 1),
        marked(np.zeros(2).view(Watched), 2),
    ),
    "attributes of a function": (marked(closing_over(1), 1), marked(closing_over(1), 2)),
    "arrays": (ARRAY, ARRAY + 1),
    "types of arrays": (ARRAY, ARRAY.astype(np.uint32)),
    "shapes of arrays": (ARRAY, ARRAY.reshape(2, 2)),
    "arrays of objects": (np.array([1, None], object), np.array([2, None], object)),
    "buffers": (bytearray(b"1"), bytearray(b"2")),
    "views of buffers": (memoryview(b"1"), memoryview(b"2")),
    "columns": (pa.array([1, 2]), pa.array([1, 3])),
    "what a function has closed over": (closing_over(1), closing_over(2)),
    "what a function has by default": (lambda a=1: a, lambda a=2: a),
    "what a method is bound to": (Plain(a=1).__eq__, Plain(a=2).__eq__),
    "what a method written in C is bound to": ([1].append, [2].append),
    "calls of a cache": (filled(1), after_calls(filled(1))),
    "locks": (lock(taken=False), lock(taken=True)),
    "iterators": (advanced(1), advanced(2)),
    "chains": (itertools.chain([1]), itertools.chain([2])),
    "digests": (hashlib.sha256(b"1"), hashlib.sha256(b"2")),
    "days": (date(2026, 1, 1), date(2026, 1, 2)),
    "times": (timedelta(1), timedelta(2)),
    "patterns": (re.compile("a"), re.compile("b")),
    "numbers of a class": (Whole(1), Whole(2)),
    "generators": (np.random.default_rng(1), np.random.default_rng(2)),
    "frozen": (Frozen(1), Frozen(2)),
    "what is frozen around a list": (Frozen([1]), Frozen([2])),
    "rings": (ring(2), ring(3)),
    "an alias and a copy": ([SHARED, SHARED], [SHARED, list(SHARED)]),
    "decimals": (Decimal("1.0"), Decimal("1.00")),
    "a view and a copy": (viewed(np.arange(4)), [np.arange(4), np.arange(4)]),
    "views of other places": (ARRAY[:2], ARRAY[1:3] - 1),
    "what is beyond a view": (np.array([1, 2])[:1], np.array([1, 3])[:1]),
    "what is beyond a view of a buffer": (memoryview(b"12")[:1], memoryview(b"13")[:1]),
    "aliases of locked arrays": (locked([ARRAY] * 2), locked([ARRAY, ARRAY.copy()])),
    "caches": (filled(1), filled(2)),
    "an alias and a copy in attributes": (
        Plain(a=ARRAY, b=ARRAY),
        Plain(a=ARRAY, b=ARRAY.copy()),
    ),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_differs_has_another_fingerprint(case):
    one, other = fingerprints(*DIFFERENT[case])
    assert one != other
    hash(one), hash(other)


SAME = [
    Plain(a=1, b=[{"c": (1.5, None)}]),
    Slotted({1, 2}),
    Frozen((1, "a")),
    [SHARED, SHARED],
    ring(3),
    np.arange(3),
    pa.array(["a", None]),
    re.compile("a"),
    np.random.default_rng(1),
]


@pytest.mark.parametrize("thing", SAME, ids=lambda thing: type(thing).__name__)
def test_equal_copies_have_the_same_fingerprint(thing):
    one, other = fingerprints(thing, copy.deepcopy(thing))
    assert one == other


def test_functions_made_alike_have_the_same_fingerprint():
    one, other = fingerprints(closing_over([1]), closing_over([1]))
    assert one == other


def test_a_closure_that_is_not_yet_filled_is_walked():
    def outer():
        def inner():
            return later

        found = fingerprints(inner)
        later = 1
        return found + fingerprints(inner)

    empty, filled = outer()
    assert empty != filled


def test_a_statistic_is_known_again():
    """Statistics of the package hide nothing, or nothing would ever be merged."""
    made = [pp.Incidence(universe=3, bound=2, epsilon=1) for _ in range(2)]
    for statistic in made:
        statistic.internals.memory.now.table[:] = 0
    one, other = fingerprints(*made)
    assert one == other
    made[1].internals.memory.now.table[0] = 1
    assert fingerprints(made[1])[0] != one


@pytest.mark.parametrize("kind", [Plain, Slotted, Frozen, pp.Density, pp.Ledger, pp.Grouped])
def test_classes_written_in_python_hide_nothing(kind):
    assert not _hides(kind)


def test_a_frozen_record_of_something_that_changes_is_walked_again():
    held = [1]
    record, walker = Frozen(held), Survivors(None)
    before = walker.fingerprint(record)
    held.append(2)
    assert walker.fingerprint(record) != before


def test_a_view_of_an_array_that_changes_is_walked_again():
    base = np.zeros(3)
    view, walker = base.view(), Survivors(None)
    view.flags.writeable = False
    before = walker.fingerprint(view)
    base[0] = 1
    assert walker.fingerprint(view) != before


def test_the_coins_are_not_looked_into():
    coins = Plain(seed=1)
    walker = Survivors(coins)
    before = walker.fingerprint([coins])
    coins.seed = 2
    assert walker.fingerprint([coins]) == before


def test_what_answers_for_no_attribute_is_like_nothing_else():
    """A library that cffi has loaded has its functions alone, and `__reduce_ex__` is none."""
    one, again = fingerprints([lib], [lib])
    assert one != again


@dataclass(frozen=True)
class Open:
    """Frozen, with room for more."""

    number: int


def test_a_frozen_object_with_room_for_more_is_walked_each_time():
    walk, held = Survivors(None), Open(1)
    before = walk.fingerprint(held)
    object.__setattr__(held, "more", 2)
    assert walk.fingerprint(held) != before


def test_the_variables_of_a_class_and_of_its_bases_survive_but_not_what_acts():
    class Base:
        seen: ClassVar[list[int]] = []

    class Kept(Base):
        count = 0
        shown = property(id)

        def add(self):
            pass

    one = Kept()
    before = fingerprints(one)
    Kept.add, Kept.shown = len, property(hash)
    assert fingerprints(one) == before
    Kept.count = 1
    counted = fingerprints(one)
    Base.seen.append(3)
    assert len({*before, *counted, *fingerprints(one)}) == 3


class Holder:
    __slots__ = ("held",)


def test_variables_of_the_classes_of_what_is_held_are_watched():
    """A counter that the class of a part keeps would outlive every statistic."""

    class Part:
        __slots__ = ()
        counted: ClassVar[list[int]] = []

    @dataclass(frozen=True, slots=True)
    class Record:
        counted: ClassVar[list[int]] = []

    holder, walker = Holder(), Survivors(None)
    holder.held = [Part(), Record()]
    before = walker.fingerprint(holder)
    assert walker.fingerprint(holder) == before
    for kind in (Part, Record):
        kind.counted.append(1)
        assert walker.fingerprint(holder) != before
        kind.counted.clear()
        assert walker.fingerprint(holder) == before


def test_the_classes_of_the_parts_of_a_statistic_are_watched(monkeypatch):
    statistic, walker = pp.Density(universe=9, epsilon=1), Survivors(None)
    before = walker.fingerprint(statistic)
    internals = statistic.internals
    for part in (internals.memory, internals.releasing, internals.windows, internals.contributions):
        monkeypatch.setattr(type(part), "seen", [3], raising=False)
        assert walker.fingerprint(statistic) != before
        monkeypatch.undo()
        assert walker.fingerprint(statistic) == before
