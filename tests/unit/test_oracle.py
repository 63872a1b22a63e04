"""Whom a local oracle asks, and who pays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers import local
from panprivacy.privacy.coins import SystemCoins
from tests.unit.test_randomiser import EACH


@pytest.fixture
def oracle():
    return local.LROracle([0, 1, 0, 1], 1, domain=2)


def test_nobody_is_asked_where_one_cannot_pay(oracle):
    oracle.ask(local.RandomisedResponse(2, "2/3"), users=[2])
    with pytest.raises(pp.BudgetError, match="nobody was asked"):
        oracle.ask(local.RandomisedResponse(2, "1/2"))
    assert oracle.spent(range(4)) == [0, 0, Fraction(2, 3), 0]
    oracle.ask(local.RandomisedResponse(2, "1/3"))
    assert oracle.spent(range(4)) == [Fraction(1, 3)] * 2 + [1, Fraction(1, 3)]


def test_all_of_epsilon_can_be_spent_exactly(oracle):
    third = local.RandomisedResponse(2, "1/3")
    for _ in range(3):
        oracle.ask(third)
    assert oracle.spent([0]) == [1]
    with pytest.raises(pp.BudgetError):
        oracle.ask(local.RandomisedResponse(2, "1e-6"), users=[3])


@pytest.mark.parametrize("users", [[4], [-1], [0.5], [[0]], [1, 1]])
def test_users_that_do_not_exist_or_are_named_twice_are_refused(oracle, users):
    with pytest.raises(pp.InputError, match="user"):
        oracle.ask(EACH[0], users=users)
    assert oracle.spent(range(4)) == [0] * 4


def test_what_fails_after_it_was_paid_is_lost():
    class NoEntropy(SystemCoins):
        def bernoulli(self, probability, size):
            raise OSError

    oracle = local.LROracle([0, 1], 1, domain=2, coins=NoEntropy())
    with pytest.raises(OSError):
        oracle.ask(local.RandomisedResponse(2, 1))
    assert oracle.spent([0]) == [1]


def answered(oracle, ask):
    """What comes of a question beside the reports: an error, or how many there are."""
    try:
        return len(ask(oracle))
    except pp.PanPrivacyError as error:
        return type(error), str(error), oracle.spent(range(len(oracle)))


QUESTIONS = {
    "too few values": lambda oracle: oracle.ask(local.RandomisedResponse(2, "1/4")),
    "as many": lambda oracle: oracle.ask(local.RandomisedResponse(5, "1/4")),
    "more": lambda oracle: oracle.ask(local.UnaryEncoding(9, "1/4")),
    "few after all": lambda oracle: oracle.ask(
        local.RandomisedResponse(2, "1/4"), of=lambda held: held > 2
    ),
    "not a number for all": lambda oracle: oracle.ask(
        local.RandomisedResponse(2, "1/4"), of=lambda held: np.array([0, 1, 0.5])[held % 3]
    ),
    "fewer": lambda oracle: oracle.ask(
        local.RandomisedResponse(2, "1/4"), of=lambda held: held[held > 2] > 3
    ),
    "too dear": lambda oracle: oracle.ask(local.RandomisedResponse(5, 2)),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_refusal_depends_on_what_users_hold(question):
    """A question that is refused for one record would find it at no price."""
    ask = QUESTIONS[question]
    lives = [answered(local.LROracle([held], 1, domain=5), ask) for held in range(5)]
    assert all(life == lives[0] for life in lives)


def test_a_record_cannot_be_found_by_what_is_refused():
    """Fewer and fewer values, until one is refused, cost 4e-5 and told the record."""
    found = set()
    for record in (7, 900):
        oracle = local.LROracle([record], 1, domain=1_000)
        ways = range(2, 1_001)
        found.add(tuple(k for k in ways if type(answered(oracle, asking(k))) is int))
    assert found == {(1_000,)}


def asking(values):
    return lambda oracle: oracle.ask(local.RandomisedResponse(values, "1e-6"))


def test_what_is_asked_for_sees_the_domain_and_nobody(oracle):
    seen = []

    def of(held):
        seen.append(held.copy())
        with pytest.raises(ValueError, match="read-only"):
            held[0] = 1
        return held

    oracle.ask(local.RandomisedResponse(2, "1/2"), of=of, users=[1])
    assert [one.tolist() for one in seen] == [[0, 1]]


def test_warnings_are_those_of_the_domain():
    """A record of 0 used to warn, and others not."""

    def of(held):
        return (1 / held > 0.5).astype(int)

    for record in (0, 3):
        oracle = local.LROracle([record], 1, domain=4)
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            oracle.ask(local.RandomisedResponse(2, "1/2"), of=of)


class Liar(local.RandomisedResponse):
    """Tells the truth, at the price of a noise."""

    def _draw(self, values, coins):
        return values


def test_a_randomiser_whose_law_nobody_checks_is_refused(oracle):
    with pytest.raises(pp.PlanError, match="MatrixRandomiser"):
        oracle.ask(Liar(2, "1/1000"))
    assert oracle.spent([0]) == [0]


@pytest.mark.parametrize(
    ("records", "domain", "row"),
    [([0, 5], 5, 2), ([-1], 5, 1), ([0.5], 2, 1), ([(1, 1), (0, 1)], [(1, 0), (1, 1)], 2)],
)
def test_a_record_outside_of_its_domain_is_refused_when_it_comes(records, domain, row):
    with pytest.raises(pp.InputError, match="not in the domain") as refused:
        local.LROracle(records, 1, domain=domain)
    assert refused.value.row == row


def test_records_of_any_kind_are_found_in_their_domain():
    for domain in (["a", "b", "c"], [0.5, 2.5, 1.5], [(1, 2), (3, 4), (0, 0)]):
        held = [domain[2], domain[0], domain[2]]
        oracle = local.LROracle(held, 100, domain=domain)
        assert oracle.ask(local.RandomisedResponse(3, 100)).tolist() == [2, 0, 2]


@pytest.mark.parametrize("domain", [0, 1 << 21, [], [1, 1], [(1, 2), (1, 2)]])
def test_what_is_no_domain_is_refused(domain):
    with pytest.raises(pp.PlanError, match="domain"):
        local.LROracle([1], 1, domain=domain)


def test_records_need_users():
    with pytest.raises(pp.InputError, match="axis"):
        local.LROracle(3, 1, domain=4)


def test_many_users_of_many_histories_are_counted_in_few_numbers():
    oracle = local.LROracle(np.zeros(100_000, int), 1, domain=2)
    for part in range(8):
        oracle.ask(local.RandomisedResponse(2, "1/8"), users=np.arange(part * 10_000))
    assert len(oracle._sums) == 8
    assert oracle.spent([0, 10_000, 99_999]) == [Fraction(7, 8), Fraction(6, 8), 0]
