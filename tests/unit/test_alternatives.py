"""Plans of the same problem: the smallest memory and epsilon that reach a target."""

from fractions import Fraction

import pytest

from panprivacy.statistics.alternatives import Alternatives
from panprivacy.statistics.catalogue import kind_of


@pytest.fixture
def search():
    kind = kind_of("density").entry
    return Alternatives(kind.sizes.read(kind.name, {"universe": 100_000}), 1, 0)


def reaches(plan):
    return plan.relative_error() < 0.01


def test_the_ways_reach_the_target_and_less_does_not(search):
    ways = search.ways_to(Fraction(1, 10), None, reaches)
    assert ways.field == ("epsilon" if ways.memory is None else "memory")
    assert reaches(search.plan(ways.epsilon, None))
    assert not reaches(search.plan(ways.epsilon * Fraction(98, 100), None))


def test_an_epsilon_of_which_there_are_parts_is_named_whole(search):
    one, both = (search.ways_to(Fraction(1, 10), None, reaches, Fraction(n)) for n in (1, 2))
    assert both.epsilon == 2 * one.epsilon
    assert str(both).endswith("would do")


def test_where_nothing_reaches_it_only_a_larger_problem_would_do(search):
    ways = search.ways_to(Fraction(1), None, lambda _: False)
    assert ways.field is None
    assert str(ways) == "only a larger problem would do"
