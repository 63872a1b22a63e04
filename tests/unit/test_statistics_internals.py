"""The parts of every program: which there are, what each must have, and that none is copied."""

from __future__ import annotations

import copy
import pickle

import pytest

import panprivacy as pp
from panprivacy.statistics.internals import (
    Contributions,
    Internals,
    LearningWindows,
    Memory,
    Releasing,
)
from panprivacy.testing import SeededCoins


def density(**given):
    return pp.Density(**{"universe": 50, "epsilon": 1, "coins": SeededCoins(1), **given})


PROGRAMS = {
    "statistic": density,
    "running": lambda: pp.RunningCount(horizon=9, epsilon=1),
    "together": lambda: pp.Together({"a": density()}),
    "grouped": lambda: pp.Grouped(lambda share: density(epsilon=share), ["a", "b"], epsilon=1),
}
PARTS = {
    "memory": Memory,
    "windows": LearningWindows,
    "contributions": Contributions,
    "releasing": Releasing,
}


@pytest.fixture(params=PROGRAMS)
def program(request):
    return PROGRAMS[request.param]()


def test_a_program_has_the_four_parts(program):
    assert isinstance(program.internals, Internals)
    for name, kind in PARTS.items():
        assert isinstance(getattr(program.internals, name), kind)


def test_parts_that_are_put_together_are_those_that_were_given():
    given = density().internals
    made = Internals(given.memory, given.windows, given.contributions, given.releasing)
    for name in PARTS:
        assert getattr(made, name) is getattr(given, name)


@pytest.mark.parametrize("kind", PARTS.values(), ids=PARTS)
def test_a_part_without_one_of_its_methods_cannot_be_made(kind):
    own = getattr(density().internals, {one: name for name, one in PARTS.items()}[kind])
    optional = {"front", "state_bytes", "of_release", "release_epsilon"}
    told = {
        name
        for base in kind.__mro__[:-1]
        for name, one in vars(base).items()
        if not name.startswith("__") and (callable(one) or isinstance(one, property))
    }
    needed = (told | {"_layout"} if kind is Memory else told) - optional
    assert needed <= {name for name in dir(own) if not name.startswith("__")}
    for name in needed:
        others = {other: getattr(type(own), other) for other in needed - {name}}
        with pytest.raises(TypeError, match=name):
            type("Part", (kind,), others)()
    type("Part", (kind,), {name: getattr(type(own), name) for name in needed})()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_neither_a_program_nor_its_memory_is_copied(program, duplicate):
    for one in (program, program.internals.memory):
        with pytest.raises(TypeError, match=rf"a {type(one).__name__} cannot .* second intrusion"):
            duplicate(one)


def test_the_front_and_the_size_of_a_state_are_the_same_whatever_is_counted(program):
    memory = program.internals.memory
    front, size = memory.front, memory.state_bytes
    assert len(memory.state()) == size > len(front)
    columns = ([3, 4], ["a", "b"]) if isinstance(program, pp.Grouped) else ([3, 4],)
    program.update(*columns)
    assert (memory.front, memory.state_bytes) == (front, size)


def test_the_front_of_a_statistic_is_in_its_state_and_another_plan_has_another():
    assert density().internals.memory.front in density().state()
    assert density().internals.memory.front != density(universe=51).internals.memory.front
    small, large = (density(universe=size).internals.memory.state_bytes for size in (50, 999))
    assert small < large


def test_a_release_costs_what_it_adds_to_those_before():
    """Bits cost less with each release, so the number matters."""
    made = density(releases=3)
    releasing = made.internals.releasing
    costs = [releasing.of_release(number) for number in (1, 2, 3)]
    assert len(set(costs)) == 3
    assert releasing.of_releases(0) == 0
    assert sum(costs) == releasing.of_releases(3)
    for cost in costs:
        before = made.ledger.spent
        assert releasing.release_epsilon == cost
        made.release()
        assert made.ledger.spent == before + cost
