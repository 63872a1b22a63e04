"""Estimates of set operations, and their intervals."""

from __future__ import annotations

import math

import numpy as np

from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.patterns import CellLayout, PatternCounts
from tests.unit.overlap_cases import EQUAL


def test_an_answer_is_a_function_of_its_counts():
    observed = PatternCounts(
        CellLayout(1_000), np.array([[400, 220, 200, 180]]), (0.27, 0.25), (0.73, 0.8)
    )
    answer = operations.return_rate(observed)
    again = PatternCounts(
        observed.layout, np.array([answer.counts]), observed.absent, observed.present
    )
    assert operations.return_rate(again) == answer
    assert answer.low <= answer.value <= answer.high
    assert 0 <= answer.low < answer.high <= 1


def test_a_full_table_has_no_upper_end():
    full = PatternCounts(
        CellLayout(1_000), np.array([[60, 190, 190, 560]]), (0.25,) * 2, (0.75,) * 2
    )
    answer = operations.union(full)
    assert math.isinf(answer.high)
    assert "has no end" in answer.note
    assert answer.low > 2_000


def test_no_answer_is_not_a_number():
    for counts in ([1_000, 0, 0, 0], [0, 1_000, 0, 0], [0, 0, 0, 1_000]):
        for layout in (CellLayout(1_000), CellLayout(1_000, universe=1_000)):
            observed = PatternCounts(layout, np.array([counts]), *EQUAL)
            for operation in (operations.union, operations.intersection, operations.jaccard):
                answer = operation(observed)
                numbers = answer.low, answer.value, answer.high, answer.standard_error
                assert not any(map(math.isnan, numbers))
                assert answer.low <= answer.value <= answer.high
