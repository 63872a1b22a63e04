"""Sets of users, made of published tables."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.statistics.overlaps.remarks import FULL
from panprivacy.testing import SeededCoins
from tests.unit.test_sketch import published


@pytest.fixture(scope="module")
def windows():
    """Tables of three windows of 2,000 users each."""
    return [published(np.arange(start, start + 2_000), epsilon=12) for start in (0, 1_000, 1_500)]


class TestSets:
    def test_operators_say_what_sets_say(self, windows):
        monday, tuesday, wednesday = windows
        for chosen, truth in [
            (monday | tuesday, 3_000),
            (monday & tuesday, 1_000),
            (monday - tuesday, 1_000),
            (monday ^ tuesday, 2_000),
            (monday & tuesday & wednesday, 500),
            ((monday | wednesday) - tuesday, 1_500),
            (monday - (tuesday | wednesday), 1_000),
            (monday & (tuesday | monday), 2_000),
        ]:
            answer = chosen.count(confidence=1 - 1e-6)
            assert answer.low <= truth <= answer.high
            assert answer.high - answer.low < 1_000

    def test_shares_of_sets(self, windows):
        monday, tuesday, _ = windows
        answer = (monday & tuesday).share_of(monday, confidence=1 - 1e-6)
        assert answer.low < 0.5 < answer.high < 0.7

    def test_an_overlap_answers_all_questions(self, windows):
        found = pp.overlap(*windows)
        answers = found.answers()
        assert len(answers) == 5
        assert answers["return rate"].value == found.return_rate().value
        assert found.exactly(3).low < 500 < found.exactly(3).high
        assert found.at_least(2).low < 2_000 < found.at_least(2).high

    def test_a_copy_under_another_name_is_refused(self):
        monday, tuesday, wednesday = (published([1], epsilon=4) for _ in range(3))
        copy = pp.Sketch.read(monday.to_bytes()).named(stream="another")
        with pytest.raises(InputError, match="sketch 3 is sketch 1 once more"):
            pp.overlap(monday, tuesday, copy)
        with pytest.raises(InputError, match="sketch 2 is sketch 1 once more"):
            (monday & copy).count()
        joined = [pp.join({"eu": one, "us": monday}) for one in (tuesday, wednesday)]
        with pytest.raises(InputError, match="sketch 2 has a table of sketch 1 once more"):
            pp.overlap(*joined)

    def test_tables_of_few_cells_may_be_equal_by_chance(self):
        tables = [published([1], epsilon=16, expected=1) for _ in range(9)]
        assert len({one.table for one in tables}) < 9  # three bits have eight patterns
        assert pp.overlap(*tables).union(confidence=1 - 1e-9).low <= 1

    def test_what_cannot_be_compared_is_refused(self, windows):
        monday = windows[0]
        with pytest.raises(InputError, match="compare two sketches or more"):
            pp.overlap(monday)
        noisy = published(np.arange(2_000), epsilon=4)
        with pytest.raises(InputError, match="sketch 2 is sketch 1 once more"):
            pp.overlap(noisy, pp.Sketch.read(noisy.to_bytes()))
        with pytest.raises(InputError, match="another addressing key"):
            pp.overlap(monday, published([1], key=b"another key than that"))
        with pytest.raises(InputError, match="has other cells"):
            pp.overlap(monday, published([1], expected=3_000))


@pytest.mark.parametrize(
    ("users", "given"), [(40_000, {"expected": 1_000}), (3_000_000, {"expected": (10, 10_000)})]
)
def test_of_tables_that_are_too_full_nothing_is_said(users, given):
    """The number of users has no upper end then, and what two windows share has none either."""
    ids = np.arange(users)
    both = pp.overlap(*(published(ids, epsilon=2, **given) for _ in range(2)))
    level = 1 - 1e-6  # a full table may show fewer users by luck, as far as it shows any
    shared, rate = both.intersection(confidence=level), both.return_rate(confidence=level)
    assert (shared.low, shared.high, rate.low, rate.high) == (0, float("inf"), 0, 1)
    assert shared.note == rate.note == FULL


def test_two_windows_with_equal_bits_are_two_windows():
    ids = np.arange(10)
    same = [
        published(ids, expected=10, coins=SeededCoins(1)).named(start=when(day)) for day in (1, 2)
    ]
    assert same[0].table == same[1].table
    assert pp.overlap(*same).intersection().low > 0


def test_two_tables_without_noise_or_windows_may_be_equal():
    ids = np.arange(10)
    one, other = (published(ids, epsilon=60, expected=10) for _ in range(2))
    assert one == other
    assert pp.overlap(one, other).intersection().low > 0
    with pytest.raises(InputError, match="sketch 2 is sketch 1 once more"):
        pp.overlap(one, one)


def when(day):
    return datetime(2026, 1, day, tzinfo=UTC)


def test_of_many_windows_the_union_is_known():
    weeks = [published(np.arange(50 * week, 50 * week + 100), epsilon=12) for week in range(20)]
    found = pp.overlap(*weeks)
    answer = found.union(confidence=1 - 1e-6)
    assert answer.low < 1_050 < answer.high < 2_000
    with pytest.raises(InputError, match="ask for the union alone"):
        found.intersection()
    with pytest.raises(InputError, match="compare 64 at most"):
        pp.overlap(*(4 * weeks))
