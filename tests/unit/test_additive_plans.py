"""Plans of noisy sums."""

from __future__ import annotations

import numpy as np

import panprivacy as pp
from panprivacy.statistics.additive_plans import most_cells
from panprivacy.testing import SeededCoins


def test_a_table_has_a_cell_however_little_memory_there_is():
    assert [most_cells(memory, 2) for memory in (1, 15, 16, 32)] == [1, 1, 1, 2]


def test_a_table_of_sums_has_as_many_numbers_as_cells():
    cells = pp.FrequencyMoment(order=2, bound=5, epsilon=1).plan.table
    table = cells.initial(SeededCoins(1))
    assert [cells.is_table(one) for one in (table[:-1], table, np.append(table, 0))] == [
        False,
        True,
        False,
    ]


def test_users_alike_are_in_the_middle_of_what_a_state_may_be():
    plan = pp.FrequencyMoment(order=2, bound=5, epsilon=1).plan
    assert plan.synthetic_users(400.0) == (100.0, 2)
