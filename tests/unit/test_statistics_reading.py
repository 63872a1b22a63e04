"""The reading of every statistic: as many sums as it says, each with its noise, and an answer."""

from __future__ import annotations

import pytest

from tests.contract.cases import CASES

READ = [case for case in CASES if case.plan.hides != "event"]


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_a_reading_has_as_many_sums_as_it_says(case):
    made = case.make()
    reading, memory = made.internals.releasing.reading(), made.internals.memory
    sums = reading.sums(memory.cells, memory.now.table)
    assert len(sums) == reading.size
    assert len(reading.scales) in {1, reading.size}
    assert all(scale > 0 for scale in reading.scales)
