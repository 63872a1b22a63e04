"""Notes on set operations that are noise."""

from __future__ import annotations

import math

import numpy as np

from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.patterns import CellLayout, PatternCounts
from panprivacy.statistics.overlaps.remarks import note_of
from panprivacy.tables.decoders.intervals import Measured
from tests.unit.overlap_cases import EQUAL, without_noise


def test_noise_is_noted():
    hardly = (0.49, 0.49), (0.51, 0.51)
    layout = CellLayout(100, universe=100)
    nothing = PatternCounts(layout, np.array([[25, 25, 25, 25]]), *hardly)
    assert "covers all that is possible" in operations.return_rate(nothing).note
    few = PatternCounts(CellLayout(1_000), np.array([[560, 190, 190, 60]]), *EQUAL)
    answer = operations.intersection(few)
    assert answer.estimate < 2 * answer.standard_error
    assert "two standard errors of 0" in answer.note
    assert operations.union(without_noise([5, 3, 1, 2])).note is None


def test_notes_are_functions_of_the_answer():
    assert note_of(Measured(5, 1), 3, 7, math.inf) is None
    assert "covers all" in note_of(Measured(0.5, 9), 0, 1, 1)
    assert "no end" in note_of(Measured(50, 9), 3, math.inf, math.inf)
    assert "within two" in note_of(Measured(1.9, 1), 0, 4, math.inf)


def test_levels_that_contradict_each_other_are_noted():
    alike = np.array([[5_000, 5_000, 5_000, 5_000]] * 6)
    observed = PatternCounts(CellLayout(20_000, levels=6), alike, *EQUAL)
    assert "contradict" in operations.union(observed).note
    assert "contradict" in note_of(Measured(5, 1), 3, 7, math.inf, contradicted=True)
