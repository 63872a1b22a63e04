"""Set operations on published tables."""

from __future__ import annotations

import pytest

from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.patterns import members
from tests.unit.overlap_cases import without_noise


def test_without_noise_all_operations_are_exact():
    observed = without_noise([50, 7, 5, 3, 11, 2, 1, 4])  # 1, 2, 12, 3, 13, 23, 123
    expected = {
        operations.union: 33,
        operations.intersection: 4,
        operations.difference: 7,
        operations.symmetric_difference: 7 + 5 + 11 + 4,
        operations.jaccard: 4 / 33,
        operations.return_rate: 4 / 16,
    }
    for operation, truth in expected.items():
        answer = operation(observed)
        assert answer.estimate == pytest.approx(truth)
        assert answer.low <= truth + 1e-9
        assert answer.high >= truth - 1e-9
        assert answer.standard_error < 1e-6
        assert answer.epsilon == 0
        assert answer.name.question == operation.__name__
    assert operations.exactly(observed, 2).estimate == pytest.approx(6)
    assert operations.at_least(observed, 2).estimate == pytest.approx(10)
    assert operations.at_least(observed, 2).name.arguments == (("tables", 2),)
    assert operations.difference(observed.of(1)).estimate == pytest.approx(13)


def test_sets_combine():
    observed = without_noise([50, 7, 5, 3, 11, 2, 1, 4])
    first, second, third = members(3)
    assert operations.count(observed, (first | second) & third).estimate == pytest.approx(7)
    answer = operations.share(observed, third, first)
    assert answer.estimate == pytest.approx(6 / 16)
    assert answer.counts == tuple(observed.of(0, 2).counts.ravel())  # the second does not matter
