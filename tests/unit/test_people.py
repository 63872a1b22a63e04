"""The error of a count of people, by how many come in a window."""

from __future__ import annotations

from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.cli.people import PEOPLE, errors_by_people
from panprivacy.statistics.alternatives import Alternatives
from panprivacy.statistics.notes import percent
from panprivacy.statistics.specification import Specification


def searched(text="distinct,expected=100", releases=1, intrusions=0):
    return Alternatives(Specification.from_text(text).sizes, releases, intrusions)


@pytest.mark.parametrize(
    ("epsilon", "releases", "intrusions"), [(Fraction(1, 2), 5, 0), (Fraction(2), 1, 1)]
)
def test_a_row_has_the_margin_of_a_plan_for_so_many(epsilon, releases, intrusions):
    covered = {"epsilon": epsilon, "releases": releases, "intrusions": intrusions}
    plans = [pp.plan("distinct", expected=people, **covered) for people in PEOPLE]
    wanted = [
        (people, plan.relative_margin(0.95)) for people, plan in zip(PEOPLE, plans, strict=True)
    ]
    assert errors_by_people(searched(releases=releases, intrusions=intrusions), epsilon) == wanted


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (Fraction(1, 2), ["±164 %", "±80 %", "±38 %", "±10 %"]),
        (Fraction(1), ["±69 %", "±35 %", "±18 %", "±5 %"]),
        (Fraction(2), ["±31 %", "±16 %", "±8.1 %", "±2.4 %"]),
    ],
)
def test_few_people_and_a_small_epsilon_have_wide_margins(epsilon, shown):
    rows = errors_by_people(searched(), epsilon)
    assert [people for people, _ in rows] == [100, 300, 1_000, 10_000]
    assert [percent(margin) for _, margin in rows] == shown


def test_the_number_that_the_search_expects_is_replaced_and_stays_in_it():
    search = searched("distinct,expected=5:700")
    sizes = search.sizes
    assert errors_by_people(search, Fraction(1)) == errors_by_people(searched(), Fraction(1))
    assert search.sizes is sizes
    assert sizes.expected == (5, 700)


def test_other_sizes_of_the_search_are_kept():
    small = errors_by_people(searched("distinct,expected=100,memory=64"), Fraction(1))
    plan = pp.plan("distinct", expected=10_000, memory=64, epsilon=1)
    assert small[-1] == (10_000, plan.relative_margin(0.95))
    assert small[-1] > errors_by_people(searched(), Fraction(1))[-1]


def test_an_answer_is_more_often_within_a_wider_margin():
    rows = [errors_by_people(searched(), Fraction(1), often) for often in (0.5, 0.95, 0.99)]
    for narrow, usual, wide in zip(*rows, strict=True):
        assert narrow < usual < wide
    assert rows[1] == errors_by_people(searched(), Fraction(1))


@pytest.mark.parametrize(
    ("percents", "shown"),
    [
        (0.1234, "±0.12 %"),
        (2, "±2 %"),
        (9.44, "±9.4 %"),
        (10, "±10 %"),
        (12.6, "±13 %"),
        (123.4, "±123 %"),
        (1_000, "±1000 %"),
        (1_000.1, "over 1,000 %"),
    ],
)
def test_a_margin_has_two_digits_or_no_fraction_or_is_too_large(percents, shown):
    assert percent(percents / 100) == shown
