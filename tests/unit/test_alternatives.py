"""Plans of the same problem: the smallest memory and epsilon that reach a target."""

from fractions import Fraction

import pytest

from panprivacy.statistics.alternatives import Alternatives, Target
from panprivacy.statistics.catalogue import kind_of


@pytest.fixture
def search():
    kind = kind_of("density").entry
    return Alternatives(kind.sizes.read(kind.name, {"universe": 100_000}), 1, 0)


reaches = Target(lambda plan: plan.relative_error(), 0.01)


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
    ways = search.ways_to(Fraction(1), None, Target(lambda _: 1.0, 0.5))
    assert ways.field is None
    assert str(ways) == "only a larger problem would do"


def counting(search, monkeypatch):
    """Count the plans of a search, by epsilon and memory."""
    made, plan = [], search.plan
    monkeypatch.setattr(search, "plan", lambda *asked: made.append(asked) or plan(*asked))
    return made


@pytest.mark.parametrize("most", [1.0, 0.3, 0.05, 0.02])
def test_the_smallest_memory_is_the_first_power_that_reaches_it(most, monkeypatch):
    kind = kind_of("distinct").entry
    search = Alternatives(kind.sizes.read(kind.name, {"expected": 100_000}), 1, 0)
    target = Target(lambda plan: plan.relative_error(), most)
    first = search._first(Fraction(1), search.plan(Fraction(1), 1 << 30), target)
    made = counting(search, monkeypatch)
    found = search.smallest_memory(Fraction(1), 1 << 30, target)
    assert found == search.plan(Fraction(1), first)
    assert len(made) <= 8


@pytest.mark.parametrize("most", [0.2, 0.03, 0.002])
def test_few_plans_find_the_smallest_epsilon(search, most, monkeypatch):
    target = Target(lambda plan: plan.relative_error(), most)
    made = counting(search, monkeypatch)
    found = search.smallest_epsilon(None, target)
    assert len(made) <= 10
    less = Fraction(f"{float(found.request.epsilon) * 0.99:.3g}")
    assert target(found)
    assert not target(search.plan(less, None))


def test_a_target_that_no_plan_reaches_takes_three(search, monkeypatch):
    made = counting(search, monkeypatch)
    assert search.smallest_epsilon(None, Target(lambda _: 1.0, 0.5)) is None
    assert len(made) <= 3
