"""What everything that is private has: it cannot be copied, and says little of itself."""

from __future__ import annotations

import copy
import pickle

import pytest

import panprivacy as pp
from panprivacy.errors import PlanError
from panprivacy.statistics.private import check_maker
from panprivacy.testing import SeededCoins


def density(**given):
    return pp.Density(universe=50, epsilon="1/2", coins=SeededCoins(1), **given)


@pytest.mark.parametrize("call", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_is_a_second_intrusion(call):
    with pytest.raises(TypeError, match="a Density cannot be pickled or copied: a plain copy"):
        call(density())


def test_it_shows_its_sizes_and_what_is_left_and_nothing_of_the_stream():
    one = density(releases=2)
    assert repr(one) == "<Density universe=50 epsilon=0.5: 2 of 2 releases left>"
    one.update([1, 2])
    one.release()
    assert repr(one) == "<Density universe=50 epsilon=0.5: 1 of 2 releases left>"
    one.forget()
    assert repr(one) == "<Density universe=50 epsilon=0.5: wiped>"


def test_an_update_is_checked_and_then_counted():
    one, other = density(), density()
    one.update([1, 2, 3])
    other.internals.memory.apply(other.internals.memory.prepare([1, 2, 3]))
    assert one.state() == other.state()


def test_an_announcement_by_itself_is_one_with_nothing_in_it():
    one, other = density(intrusions=1), density(intrusions=1)
    one.announce_intrusion()
    with other.internals.memory.announcing():
        pass
    assert (one.internals.memory.announced, other.internals.memory.announced) == (1, 1)
    assert one.state() == other.state()


def test_the_front_of_a_state_is_public_and_its_length_is_known():
    made = density()
    assert made.internals.memory.front in made.state()
    assert len(made.state()) == made.internals.memory.state_bytes


def test_what_makes_a_statistic_is_given_and_not_one_itself():
    check_maker(density, "such")
    with pytest.raises(
        PlanError, match="give what makes the statistic, as lambda: x, not one itself"
    ):
        check_maker(density(), "lambda: x")
