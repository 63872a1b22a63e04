"""What local randomisers lose, on the code that ships, for every two values and every report."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.audit import EnumeratedCoins
from panprivacy.errors import BudgetError, PlanError
from panprivacy.papers import local
from panprivacy.privacy.guarantee import exp_bounds

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(5, 2)]
MATRIX = [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["3/8", "3/8", "1/4"]]


def law(draw):
    """The exact law of what a function draws, by its bytes."""
    coins, found = EnumeratedCoins(), defaultdict(Fraction)
    for _ in coins:
        drawn = draw(coins)
        key = drawn.tobytes() if isinstance(drawn, np.ndarray) else drawn
        found[key] += coins.probability
    assert sum(found.values()) == 1
    return found


def worst(laws):
    """The largest ratio of one outcome's probabilities; None if some laws have it and some not."""
    outcomes = {outcome for each in laws for outcome in each}
    if any(outcome not in each for each in laws for outcome in outcomes):
        return None
    return max(
        max(each[one] for each in laws) / min(each[one] for each in laws) for one in outcomes
    )


def laws_of(randomiser):
    """The law of the report of each value."""
    return [
        law(lambda coins, value=value: randomiser.randomise([value], coins))
        for value in range(randomiser.values)
    ]


KINDS = {
    "two values": lambda epsilon: local.RandomisedResponse(2, epsilon),
    "five values": lambda epsilon: local.RandomisedResponse(5, epsilon),
    "two bits": lambda epsilon: local.UnaryEncoding(2, epsilon),
    "four bits": lambda epsilon: local.UnaryEncoding(4, epsilon),
    "one block": lambda epsilon: local.HadamardResponse(3, epsilon),
    "more values": lambda epsilon: local.HadamardResponse(7, epsilon),
}


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_each_randomiser_loses_what_it_says_and_all_of_epsilon(kind, epsilon):
    randomiser = KINDS[kind](epsilon)
    found = worst(laws_of(randomiser))
    below, above = exp_bounds(epsilon)
    assert found == randomiser.ratio <= below
    assert found >= above * (1 - Fraction(1, 1 << 50))


def test_hadamard_response_has_several_blocks_where_epsilon_is_large():
    randomiser = local.HadamardResponse(6, 3)
    assert randomiser.blocks == 2
    assert worst(laws_of(randomiser)) == randomiser.ratio <= exp_bounds(Fraction(3))[0]


def test_a_matrix_is_drawn_as_it_stands():
    randomiser = local.MatrixRandomiser(MATRIX, "0.7")
    for row, found in zip(MATRIX, laws_of(randomiser), strict=True):
        drawn = [found[np.array([report], np.uint32).tobytes()] for report in range(3)]
        assert drawn == [Fraction(entry) for entry in row]
    assert worst(laws_of(randomiser)) == randomiser.ratio == 2 <= exp_bounds(Fraction(7, 10))[0]


def test_users_of_one_batch_draw_apart():
    randomiser = local.MatrixRandomiser(MATRIX, "0.7")
    singles = [[Fraction(entry) for entry in row] for row in MATRIX]
    found = law(lambda coins: randomiser.randomise([2, 0], coins))
    for reports in itertools.product(range(3), repeat=2):
        together = singles[2][reports[0]] * singles[0][reports[1]]
        assert found[np.array(reports, np.uint32).tobytes()] == together


# What has to be caught


def test_a_matrix_with_one_entry_off_is_refused():
    off = [list(row) for row in MATRIX]
    off[1][1], off[1][0] = "9/16", "3/16"  # 1/2 over 3/16 is more than 2
    with pytest.raises(PlanError, match=r"2\.66667 times as likely .* allows 2\.01375"):
        local.MatrixRandomiser(off, "0.7")
    unchecked = local.MatrixRandomiser(off, 1)
    assert worst(laws_of(unchecked)) == Fraction(8, 3) > exp_bounds(Fraction(7, 10))[1]


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([["1/2", "1/2"], ["1/2", "1/3"]], "row 1 of the matrix"),
        ([["1/2", "1/2"], ["3/2", "-1/2"]], "row 1 of the matrix"),
        ([["1/2", "1/2", 0], ["1/2", 0, "1/2"]], "report 1 is possible for some values only"),
        ([[0.5, 0.5], [0.5, 0.5]], "fractions, whole numbers or texts"),
        ([["1/2", "1/2"], ["1/2", "1/4", "1/4"]], "of one length"),
        ([[1]], "2 rows or more"),
    ],
)
def test_what_is_no_matrix_of_laws_is_refused(matrix, says):
    with pytest.raises(PlanError, match=says):
        local.MatrixRandomiser(matrix, 1)


class EachBit(local.UnaryEncoding):
    """Unary encoding as printed: randomised response with all of epsilon on each bit (F2)."""

    def _fill(self, reports, values, coins):
        flips = coins.bernoulli(self.other, values.size * self.values).reshape(-1, self.values)
        flips[np.arange(values.size), values] ^= 1
        reports[:] = np.packbits(flips, axis=1, bitorder="little")


def test_a_bit_for_each_value_with_all_of_epsilon_loses_twice_as_much():
    epsilon = Fraction(1)
    printed = EachBit(3, epsilon)
    found = worst(laws_of(printed))
    assert found == printed.ratio**2 > exp_bounds(epsilon)[1]
    assert found >= exp_bounds(2 * epsilon)[1] * (1 - Fraction(1, 1 << 50))


# The oracle


def adaptive(record, *, greedy=False):
    """The transcript of a small survey of two users, whose second half follows from its first."""
    half = local.RandomisedResponse(3, "1/2")
    other = local.MatrixRandomiser([["2/5", "3/5"], ["3/5", "2/5"]], "1/2")

    def draw(coins):
        oracle = local.LROracle([record, 1], 1, domain=3, coins=coins)
        first = oracle.ask(half).tolist()
        if first[0] == first[1]:
            second = oracle.ask(half, users=[0]).tolist()
        else:
            second = oracle.ask(other, of=lambda held: held > 0, users=[1, 0]).tolist()
        with pytest.raises(BudgetError):
            oracle.ask(local.RandomisedResponse(3, "1/1000"), users=[0])
        return (*first, *second)

    return draw


def test_a_survey_that_adapts_costs_what_its_parts_cost_and_no_more():
    found = worst([law(adaptive(record)) for record in range(3)])
    assert found == local.RandomisedResponse(3, "1/2").ratio ** 2 <= exp_bounds(Fraction(1))[0]


class Forgetful(local.LROracle):
    """An oracle that does not count."""

    __slots__ = ()

    def _spend(self, asked, before, cost):
        pass


def test_an_oracle_that_does_not_count_is_caught():
    once = local.RandomisedResponse(2, 1)

    def survey(record):
        def draw(coins):
            oracle = Forgetful([record], 1, domain=2, coins=coins)
            return (*oracle.ask(once).tolist(), *oracle.ask(once).tolist())

        return law(draw)

    assert worst([survey(0), survey(1)]) == once.ratio**2 > exp_bounds(Fraction(1))[1]


def test_statistical_queries_and_what_is_learned_cost_a_user_his_epsilon(monkeypatch):
    """Two users and two cuts: whichever of them a user answers, through one noisy bit."""
    monkeypatch.setattr("panprivacy.papers.local.statistical.users_needed", lambda *_, **__: 1)

    records = list(itertools.product([0, 1, 2, 3], [0, 1]))

    def survey(record):
        def draw(coins):
            oracle = local.LROracle([record, (3, 1)], 1, domain=records, coins=coins)
            learned = local.learn_stump(oracle, [[1, 2]], 0.5)
            assert oracle.spent([0, 1]) == [1, 1]
            return learned.stump, learned.error.counts

        return law(draw)

    found = worst([survey(record) for record in records])
    assert found == local.RandomisedResponse(2, 1).ratio <= exp_bounds(Fraction(1))[0]
