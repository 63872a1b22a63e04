"""Unions of many tables."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.many import MOST_UNITED, union_of_many
from panprivacy.statistics.overlaps.patterns import BitTables, CellLayout


def test_a_union_of_many_is_that_of_few():
    rng = np.random.default_rng(8)
    for wide in (CellLayout(3_000), CellLayout(3_000, universe=6_000)):
        bits = (rng.random((3, wide.cells)) < 0.45).astype(np.uint8)
        tables = BitTables.of_bits(wide, bits, (0.25, 0.25, 0.3), (0.75, 0.75, 0.9))
        many, few = union_of_many(tables), operations.union(tables.patterns())
        assert many.estimate == pytest.approx(few.estimate, abs=0.05 * few.standard_error)
        assert many.standard_error >= few.standard_error
        assert many.low <= few.value <= many.high


def test_without_noise_a_union_of_many_is_exact():
    bits = np.eye(60, 100, dtype=np.uint8)
    tables = BitTables.of_bits(CellLayout(100, universe=100), bits, (0.0,) * 60, (1.0,) * 60)
    answer = union_of_many(tables)
    assert answer.estimate == pytest.approx(60)
    assert answer.low <= 60 <= answer.high
    with pytest.raises(InputError, match="65 tables cannot be united: take 1 to 64"):
        union_of_many(
            BitTables(CellLayout(8), np.zeros((65, 1), np.uint8), (0.1,) * 65, (0.9,) * 65)
        )
    assert MOST_UNITED == 64
