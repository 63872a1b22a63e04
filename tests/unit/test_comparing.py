"""Comparisons of a number with the answer that stands: who pays, and what they refuse."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import BudgetError, PanPrivacyError, PlanError
from panprivacy.statistics.comparing import compare
from panprivacy.tables.slices import Slice
from tests import refusals

DELTA = Fraction(1, 10**6)
COST = Fraction(1, 2)


def density(**more):
    return pp.Density(universe=4_000, ledger=pp.Ledger(1), epsilon=COST, **more)


def compared(statistic, cost=COST, *, updates=1, **asked):
    return compare(statistic, cost, delta=DELTA, updates=updates, asked=asked)


def test_all_comparisons_are_paid_for_before_the_first():
    share = density()
    compared(share)
    assert share.ledger.spent == share.internals.releasing.state_epsilon + COST
    with pytest.raises(BudgetError):
        compared(density(), 2 * COST)


def test_of_one_statistic_there_is_one_chain_of_comparisons():
    """Two chains would see each other's comparisons, and what they cost together is not proved."""
    share = pp.Density(universe=4_000, ledger=pp.Ledger(600), epsilon=300, releases=2)
    with pytest.raises(PlanError):
        compared(share, updates=0)  # what is refused is no chain
    compared(share, Fraction(100), updates=2)
    spent = share.ledger.spent
    for updates in (1, 2):
        with pytest.raises(PanPrivacyError, match="compared already"):
            compared(share, Fraction(100), updates=updates)
    assert share.ledger.spent == spent


def test_what_has_moved_is_published_before_anything_is_compared_again():
    """A second True before the release would be one more answer than is paid for."""
    share = pp.Density(universe=4_000, ledger=pp.Ledger(600), epsilon=300, releases=2)
    found = compare(share, Fraction(300), delta=DELTA, updates=2, asked={})
    share.update(range(2_000))
    assert found.moved(0, Fraction(1, 10))
    assert all(found.moved(0.5, Fraction(1, 10)) for _ in range(100))  # nothing is compared
    share.release()
    assert not any(found.moved(0.5, Fraction(1, 10)) for _ in range(10))
    assert found.moved(0, Fraction(1, 10))
    share.release()
    assert found.left == 0
    assert not found.moved(0, Fraction(1, 10))


def test_a_statistic_that_has_told_something_is_not_compared():
    share = pp.Density(universe=4_000, ledger=pp.Ledger(1), epsilon=COST)
    share.release()
    with refusals.begun():
        compared(share)


@pytest.mark.parametrize(
    ("statistic", "asked", "message"),
    [
        (partial(pp.RunningCount, horizon=3), {}, "one statistic of users"),
        (partial(pp.Incidence, universe=9, bound=2), {}, "several answers"),
        (partial(pp.Incidence, universe=9, bound=2), {"exactly": (0, 1)}, "several answers"),
        (
            partial(pp.Density, universe=9, slice_=Slice(0, 2, bytes(16))),
            {},
            "a slice has no answer",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_and_costs_nothing(statistic, asked, message):
    ledger = pp.Ledger(2)
    made = statistic(epsilon=1, ledger=ledger)
    spent = ledger.spent
    with pytest.raises(PlanError, match=message):
        compared(made, Fraction(1), **asked)
    assert (ledger.spent, ledger.available) == (spent, 1)


HASHED = [
    (partial(pp.Incidence, bound=5), {"at_least": 1}, 10_000, 8),
    (partial(pp.CroppedSum, tau=5), {}, 300_000, 1),
]


@pytest.mark.parametrize(("kind", "asked", "users", "updates"), HASHED)
def test_what_no_comparison_can_read_is_refused_with_what_would_do(kind, asked, users, updates):
    def made(epsilon, expected):
        factory = partial(kind, expected=expected)
        return pp.ChangeTriggered(
            factory, threshold=users // 2, updates=updates, epsilon=epsilon, asked=asked
        )

    with pytest.raises(PlanError, match="cannot be read in a comparison") as refused:
        made(2, users)
    told = str(refused.value).split("make it with ")[1].replace(",", "")
    epsilon, expected = (int(one.split("=")[1]) for one in told.split(" or "))
    made(epsilon, users)
    made(2, expected)
    with pytest.raises(PlanError):
        made(epsilon / 2, users)


def test_a_hashed_histogram_is_compared():
    """The noise of a comparison is 48 times that of a release, and its answer is read as such.

    It is Laplace noise, with a deviation of 1,700: a false alarm has a probability of `exp(-16)`.
    """
    hashed = partial(pp.Incidence, expected=100_000, bound=5)
    visits = pp.ChangeTriggered(
        hashed, threshold=40_000, updates=8, epsilon=2, asked={"at_least": 1}
    )
    visits.update(np.arange(90_000))
    answer = visits.check()
    assert answer is not None
    assert answer.only().value == pytest.approx(90_000, abs=20_000)
    assert visits.check() is None
    assert visits.absolute_margin(1 - 1e-6) < 60_000
