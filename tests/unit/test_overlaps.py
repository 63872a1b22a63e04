"""Set operations on tables of bits: small cases by enumeration, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from panprivacy.errors import InputError
from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.intervals import OverlapEstimator, SetQuery
from panprivacy.statistics.overlaps.occupancy import BitNoise, OccupancyModel
from panprivacy.statistics.overlaps.patterns import (
    MOST_TABLES,
    BitTables,
    CellLayout,
    PatternCounts,
    members,
)

ABSENT, PRESENT = (0.25, 0.1, 0.3), (0.75, 0.8, 0.9)
USERS = [0, 3, 1, 2]
"""Of two tables: of none, the first, the second and both."""


def noise(tables):
    return BitNoise(ABSENT[:tables], PRESENT[:tables])


def model(layout, tables=2):
    return OccupancyModel(layout, noise(tables))


def patterns_of(users):
    """The pattern of each user."""
    return np.repeat(np.arange(len(users)), users)


def placements(layout, users):
    """All cells that users may have, each with its probability; -1 for none."""
    number = len(patterns_of(users))
    if layout.universe is not None:
        every = itertools.permutations(range(layout.universe), layout.cells)
        for drawn in every:
            slots = np.full(layout.universe, -1)
            slots[list(drawn)] = np.arange(layout.cells)
            yield slots[:number], 1 / math.perm(layout.universe, layout.cells)
        return
    shares = [2.0**-level for level in range(1, layout.levels)]
    shares.append(shares[-1] if shares else 1)
    of_cell = np.repeat(shares, layout.cells_per_level) / layout.cells_per_level
    for cells in itertools.product(range(layout.cells), repeat=number):
        yield np.array(cells), math.prod(of_cell[list(cells)])


def occupied(layout, users, cells):
    """The patterns of all cells without noise."""
    found = np.zeros(layout.cells, int)
    for pattern, cell in zip(patterns_of(users), cells, strict=True):
        if cell >= 0:
            found[cell] |= pattern
    return found


EQUAL = (0.25,) * 2, (0.75,) * 2
LAYOUTS = {
    "hashed": CellLayout(3),
    "levelled": CellLayout(2, levels=2),
    "direct": CellLayout(6, universe=6),
    "sampled": CellLayout(3, universe=6),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_share_of_empty_cells_is_exact(layout):
    users = [0, 2, 1, 1]
    mean = np.zeros((layout.levels, 4))
    for cells, probability in placements(layout, users):
        found = occupied(layout, users, cells).reshape(layout.levels, -1)
        for tables in range(4):
            mean[:, tables] += probability * (found & tables == 0).mean(axis=-1)
    exact = model(layout)
    assert mean == pytest.approx(exact.empty(exact.unions(users)))


def test_the_law_of_a_cell_is_that_of_its_noise():
    one = noise(3)
    empty_in = np.array([1.0] + [0.0] * 7)  # in all of no table: it is full in every table
    assert one.law(empty_in) == pytest.approx(
        [
            math.prod(PRESENT[i] if bits >> i & 1 else 1 - PRESENT[i] for i in range(3))
            for bits in range(8)
        ]
    )
    assert one.law(np.ones(8)) == pytest.approx(
        [
            math.prod(ABSENT[i] if bits >> i & 1 else 1 - ABSENT[i] for i in range(3))
            for bits in range(8)
        ]
    )


def test_reading_is_the_inverse_of_noise_and_of_counting():
    values = np.random.default_rng(1).random((5, 8))
    one, exact = noise(3), model(CellLayout(9), 3)
    assert one.debias(one.law(values)) == pytest.approx(values)
    values[:, 0] = 0
    assert exact.users(exact.unions(values)) == pytest.approx(values)
    weights = np.append(0, np.random.default_rng(2).random(7))
    assert exact.unions(values) @ exact.weights(weights) == pytest.approx(
        values[:, 1:] @ weights[1:]
    )


def test_influence_and_squares_are_sums_over_products():
    one = noise(2)
    debiased = [[PRESENT[i], PRESENT[i] - 1] / np.subtract(PRESENT[i], ABSENT[i]) for i in range(2)]
    products = np.array(
        [
            [math.prod(debiased[i][bits >> i & 1] for i in range(2) if tables >> i & 1)
             for tables in range(4)]
            for bits in range(4)
        ]
    )  # fmt: skip
    weights = np.array([0.5, 2, -1, 3])
    assert one.influence(weights) == pytest.approx(products @ weights)
    assert one.debias(weights) == pytest.approx(weights @ products)
    assert one.squares(weights) == pytest.approx(weights @ products**2)


def outcomes(layout, users):
    """All pattern counts of one level, each with its probability."""
    for cells, probability in placements(layout, users):
        found = occupied(layout, users, cells)
        for shown in itertools.product(range(4), repeat=layout.cells):
            law = probability
            for true, bits in zip(found, shown, strict=True):
                for i in range(2):
                    one = PRESENT[i] if true >> i & 1 else ABSENT[i]
                    law *= one if bits >> i & 1 else 1 - one
            yield np.bincount(shown, minlength=4)[None], law


@pytest.mark.parametrize("layout", [CellLayout(4, universe=4), CellLayout(2, universe=4)])
def test_one_user_a_cell_is_unbiased_and_errs_as_predicted(layout):
    users, query = [0, 1, 1, 2], SetQuery(np.array([0, 0, 0.0, 1]))
    values, laws = [], []
    for counts, law in outcomes(layout, users):
        estimator = OverlapEstimator(PatternCounts(layout, counts, ABSENT[:2], PRESENT[:2]))
        values.append(estimator.model.weights(query.chosen) @ estimator.unions)
        laws.append(law)
    mean = np.average(values, weights=laws)
    assert mean == pytest.approx(2)
    exact = model(layout)
    steps = exact.weights(query.chosen) / exact.slopes(exact.empty(exact.unions(users)))
    influence = exact.noise.influence(steps)
    variance = exact.variances(np.array(users), influence)[0]
    variance -= exact.fixed(np.array(users), query.chosen)
    assert np.average((np.array(values) - mean) ** 2, weights=laws) == pytest.approx(variance)


def test_the_share_of_hashed_cells_errs_as_predicted_to_first_order():
    layout, users = CellLayout(3), np.array([0, 1, 1, 1])
    exact = model(layout)
    shares, laws = [], []
    for counts, law in outcomes(layout, users):
        shares.append(exact.noise.debias(counts[0] / 3)[3])
        laws.append(law)
    mean = np.average(shares, weights=laws)
    assert mean == pytest.approx((2 / 3) ** 3)
    variance = np.average((np.array(shares) - mean) ** 2, weights=laws)
    influence = exact.noise.influence(np.eye(4)[3])
    slope = exact.slopes(exact.empty(exact.unions(users)))[0, 3]
    predicted = exact.variances(users, influence)[0]
    predicted -= slope**2 * exact.fixed(users, np.array([0, 1.0, 1, 1]))
    assert variance == pytest.approx(predicted, rel=0.05)  # of three cells; it is O(1/m)


def test_moments_are_the_maximum_of_the_likelihood_of_one_level():
    layout = CellLayout(1_000)
    exact = model(layout)
    counts = np.round(1_000 * exact.noise.law(exact.empty(exact.unions([0, 150, 100, 200]))))
    counts[0, 0] += 1_000 - counts.sum()
    observed = PatternCounts(layout, counts.astype(np.int64), ABSENT[:2], PRESENT[:2])
    found = OverlapEstimator(observed).unions

    def likelihood(unions):
        return float((counts * np.log(exact.noise.law(exact.empty(unions)))).sum())

    best = likelihood(found)
    for step in np.random.default_rng(3).normal(size=(50, 4)):
        step[0] = 0
        assert likelihood(found + step) < best


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
        assert some.counts.tolist() == alone.counts.tolist()
        assert (some.absent, some.present) == (alone.absent, alone.present)


def without_noise(users, layout=None):
    """The counts of a table without noise, a user a cell."""
    layout = layout or CellLayout(sum(users), universe=sum(users))
    tables = len(users).bit_length() - 1
    return PatternCounts(layout, np.array([users]), (0.0,) * tables, (1.0,) * tables)


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


def test_a_full_table_has_no_upper_end():
    full = PatternCounts(
        CellLayout(1_000), np.array([[60, 190, 190, 560]]), (0.25,) * 2, (0.75,) * 2
    )
    answer = operations.union(full)
    assert math.isinf(answer.high)
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
