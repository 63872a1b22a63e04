"""States within a state: taken apart, checked all together, and resumed all or none."""

from __future__ import annotations

import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.statistics.containers import Container, check_all, parted, resume_all
from panprivacy.testing import SeededCoins


def statistics(seed=1, count=3):
    return [
        pp.Density(universe=50 + place, epsilon=1, coins=SeededCoins(seed + place)).internals.memory
        for place in range(count)
    ]


def holding(held, own=4, **public):
    return Container("made", {"as": "one", **public}, own, held)


def test_what_is_packed_is_taken_apart():
    held = statistics()
    container = holding(held)
    state = container.packed(b"mine")
    assert container.parts(state) == (b"mine", [one.state() for one in held])
    assert len(state) == container.state_bytes


@pytest.mark.parametrize("cut", [-1, 1])
def test_a_state_of_another_length_is_refused(cut):
    container = holding(statistics())
    state = container.packed(b"mine")
    with pytest.raises(InputError):
        container.parts(state[:cut] if cut < 0 else state + b"x")


def test_another_container_is_refused():
    held = statistics()
    state = holding(held).packed(b"mine")
    with pytest.raises(InputError):
        holding(held, epoch=7).parts(state)


def test_parts_are_told_apart_by_what_they_say_of_their_lengths():
    held = statistics()
    states = [one.state() for one in held]
    assert parted(b"".join(states), held) == states
    assert parted(states[0], held[:1]) == states[:1]
    assert parted(b"".join(states) + b"rest", held)[-1] == states[-1] + b"rest"


def test_all_go_on_or_none_does():
    states = [one.state() for one in statistics()]
    others = statistics(seed=9)
    resume_all(others, states)
    assert [one.state() for one in others] == states
    fresh = statistics(seed=20)
    before = [one.state() for one in fresh]
    damaged = [*states[:2], states[2][:-1]]
    with pytest.raises(InputError):
        resume_all(fresh, damaged)
    with pytest.raises(InputError):
        check_all(fresh, damaged)
    assert [one.state() for one in fresh] == before


def test_where_one_fails_at_the_last_moment_all_are_forgotten(monkeypatch):
    states = [one.state() for one in statistics()]
    fresh = statistics(seed=20)

    def failing(self, state, **counts):
        raise KeyboardInterrupt

    forgotten = []
    kind = type(fresh[0])
    monkeypatch.setattr(kind, "forget", lambda self: forgotten.append(self))  # noqa: PLW0108 - a method
    monkeypatch.setattr(kind, "check_state", lambda *_, **__: None)
    monkeypatch.setattr(kind, "resume", failing)
    with pytest.raises(KeyboardInterrupt):
        resume_all(fresh, states)
    assert forgotten == fresh


def test_counts_are_those_of_each_or_of_all():
    states = [one.state() for one in statistics()]
    fresh = [pp.Density(universe=50 + place, epsilon=1).internals.memory for place in range(3)]
    resume_all(fresh, states, released=[0, 1, 0])
    assert [one.now.releases for one in fresh] == [0, 1, 0]
    with pytest.raises(ValueError, match="zip"):
        check_all(statistics(), states, released=[0, 1])
