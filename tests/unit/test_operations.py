"""Set operations on published tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.patterns import BitTables, CellLayout, PatternCounts, members
from panprivacy.tables.addressing import CellBatch, Direct, Hashed, Levelled, Sampled
from panprivacy.tables.cells.bits import BitCells
from panprivacy.tables.ids import IntegerIds
from panprivacy.testing import SeededCoins
from tests.unit.overlap_cases import EQUAL, without_noise


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


def test_shards_answer_together():
    shards = [without_noise([50, 7, 5, 3]), without_noise([80, 2, 9, 4])]
    answer = operations.return_rate(shards)
    assert answer.estimate == pytest.approx(7 / 16)
    assert operations.union(shards).estimate == pytest.approx(30)
    assert len(answer.counts) == 8
    wrong = [shards[0], without_noise([50, 7, 5, 3, 1, 1, 1, 1])]
    for observed in (
        wrong,
        [],
        [shards[0], PatternCounts(CellLayout(9), shards[0].counts, *EQUAL)],
    ):
        with pytest.raises(InputError, match="as many tables each"):
            operations.union(observed)


def test_shards_err_as_independent_tables_do():
    rng = np.random.default_rng(2)
    counts = rng.multinomial(3_000, [0.4, 0.22, 0.2, 0.18], size=4)
    shards = [PatternCounts(CellLayout(3_000), one[None], *EQUAL) for one in counts]
    for operation in (operations.union, operations.intersection):
        alone = [operation(one) for one in shards]
        together = operation(shards)
        assert together.estimate == pytest.approx(sum(one.estimate for one in alone))
        errors = [one.standard_error for one in alone]
        assert together.standard_error == pytest.approx(np.hypot.reduce(errors))
        width = (together.high - together.low) / 2
        assert width == pytest.approx(1.96 * together.standard_error, rel=0.05)
    same = [shards[0]] * 4
    one, four = operations.return_rate(shards[0]), operations.return_rate(same)
    assert four.estimate == pytest.approx(one.estimate)
    assert four.standard_error == pytest.approx(one.standard_error / 2)
    assert four.high - four.low == pytest.approx((one.high - one.low) / 2, rel=0.05)


USERS = np.arange(6_000)
FIRST, SECOND = USERS[:4_000], USERS[2_500:]


@pytest.mark.parametrize(
    ("layout", "addressing"),
    [
        (CellLayout(12_000), Hashed(12_000, bytes(range(16)))),
        (CellLayout(2_500, levels=3), Levelled(3, 2_500, bytes(range(16)))),
        (CellLayout(6_000, universe=6_000), Direct(6_000)),
        (CellLayout(3_000, universe=6_000), Sampled(6_000, 3_000, bytes(range(16)))),
    ],
    ids=["hashed", "levelled", "direct", "sampled"],
)
def test_tables_of_the_package_are_read(layout, addressing):
    cells, coins = BitCells(layout.cells, Fraction(3)), SeededCoins(7)
    tables = []
    for users in (FIRST, SECOND):
        table = cells.initial(coins)
        cells.update(table, CellBatch(addressing, [IntegerIds(users)]), None, 0, coins)
        tables.append(table)
    present = float(cells.presence(0))
    observed = BitTables(layout, np.array(tables), (1 - present,) * 2, (present,) * 2).patterns()
    for operation, truth in (
        (operations.union, 6_000),
        (operations.intersection, 1_500),
        (operations.difference, 2_500),
        (operations.return_rate, 0.375),
        (operations.jaccard, 0.25),
    ):
        answer = operation(observed)
        assert abs(answer.estimate - truth) < 5 * answer.standard_error
        assert answer.standard_error < 0.2 * truth
