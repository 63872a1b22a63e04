"""Counts of cells by the pattern of their bits."""

from __future__ import annotations

import numpy as np
import pytest

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.patterns import (
    MOST_TABLES,
    BitTables,
    CellLayout,
    Transform,
    members,
)
from tests.unit.overlap_cases import ABSENT, PRESENT, without_noise


@pytest.mark.parametrize("tables", [1, 2, 3, 5, 6, 8])
@pytest.mark.parametrize(
    "layout", [CellLayout(77), CellLayout(24, levels=3), CellLayout(7, levels=4)]
)
def test_patterns_are_counted(layout, tables):
    rng = np.random.default_rng(tables)
    bits = rng.integers(0, 2, (tables, layout.cells), np.uint8)
    observed = BitTables.of_bits(layout, bits, (0.1,) * tables, (0.9,) * tables).patterns()
    shown = (bits << np.arange(tables)[:, None]).sum(axis=0).reshape(layout.levels, -1)
    expected = [np.bincount(level, minlength=1 << tables) for level in shown]
    assert observed.counts.tolist() == np.array(expected).tolist()


def test_counts_of_some_tables_are_those_of_these_tables():
    layout, rng = CellLayout(50, levels=2), np.random.default_rng(5)
    bits = rng.integers(0, 2, (3, 100), np.uint8)
    everything = BitTables.of_bits(layout, bits, ABSENT, PRESENT).patterns()
    for numbers in [(0,), (2,), (2, 0), (1, 2), (0, 1, 2), (2, 0, 1)]:
        alone = BitTables.of_bits(
            layout,
            bits[list(numbers)],
            tuple(ABSENT[i] for i in numbers),
            tuple(PRESENT[i] for i in numbers),
        ).patterns()
        some = everything.of(*numbers)
        chosen = BitTables.of_bits(layout, bits, ABSENT, PRESENT).of(*numbers).patterns()
        assert chosen.counts.tolist() == alone.counts.tolist()
        assert some.counts.tolist() == alone.counts.tolist()
        assert (some.absent, some.present) == (alone.absent, alone.present)


def test_many_patterns_are_transformed_step_by_step():
    steps = np.random.default_rng(4).random((7, 2, 2))
    values = np.random.default_rng(5).random((2, 128))
    whole = np.ones((1, 1))
    for step in steps:
        whole = np.kron(step, whole)
    assert Transform(steps)(values) == pytest.approx(values @ whole.T)
    assert Transform(steps[:3])(values[:, :8]).shape == (2, 8)


def test_what_cannot_be_combined_is_refused():
    layout = CellLayout(16)
    bits = np.zeros((2, 16), np.uint8)
    with pytest.raises(InputError, match="2 tables of 16 cells are 2 bytes each"):
        BitTables(layout, bits, (0.1,) * 2, (0.9,) * 2)
    with pytest.raises(InputError, match="the second one larger"):
        BitTables.of_bits(layout, bits, (0.1, 0.9), (0.9, 0.9))
    many = np.zeros((MOST_TABLES + 1, 2), np.uint8)
    with pytest.raises(InputError, match="13 tables cannot be combined"):
        BitTables(layout, many, (0.1,) * 13, (0.9,) * 13).patterns()
    for numbers in ((0,), (4, 0), (4, 1, 3), (4, 2, 9)):
        with pytest.raises(InputError, match="a table needs a level"):
            CellLayout(*numbers)
    observed = without_noise([5, 3, 1, 2])
    with pytest.raises(InputError, match="has 4 entries"):
        operations.count(observed, members(3)[0])
    with pytest.raises(InputError, match="leave out pattern 0"):
        operations.count(observed, ~members(2)[0])
    with pytest.raises(ValueError, match="tables"):
        operations.exactly(observed, 3)
