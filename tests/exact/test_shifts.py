"""The cheapest shift of noise that hides an event, of programs that are sums by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from panprivacy.audit.exact.shifts import ANNOUNCED, LOOK, AddingProgram, ShiftedCoins, shifted_loss
from panprivacy.audit.exact.traces import LeakError

COUNT, TELL = "count", "tell"


class Sums:
    """A cell with noise of scale 2 that is told with noise of scale 4."""

    def __init__(self, coins):
        self.coins = coins
        self.cell = int(coins.discrete_laplace(Fraction(2), 1)[0])

    def announce_intrusion(self):
        self.cell += int(self.coins.discrete_laplace(Fraction(2), 1)[0])


def act(program, action, amount):
    program.cell += amount
    if action == TELL:
        return program.cell + int(program.coins.discrete_laplace(Fraction(4), 1)[0])
    return None


SUBJECT = AddingProgram(
    Sums,
    act,
    lambda told: [told],
    lambda program: [program.cell],
    lambda program: b"%d" % program.cell,
)


@pytest.mark.parametrize(
    ("actions", "loss"),
    [
        ([COUNT, LOOK], Fraction(1, 2)),  # the noise of birth hides it
        ([COUNT, TELL], Fraction(1, 4)),  # that of the answer is cheaper
        ([COUNT, TELL, LOOK], Fraction(1, 2)),
        ([COUNT, ANNOUNCED, COUNT, LOOK], Fraction(1, 2)),
        ([LOOK, COUNT, LOOK], Fraction(1, 2)),
        ([LOOK, COUNT, TELL, TELL], Fraction(1, 2)),  # an answer each, of which one sees both
    ],
)
@pytest.mark.parametrize("bound", [1, 3])
def test_the_loss_is_that_of_the_cheapest_shift(actions, loss, bound):
    assert shifted_loss(SUBJECT, actions, bound).loss == bound * loss


def test_the_worst_event_and_look_are_told():
    found = shifted_loss(SUBJECT, [COUNT, LOOK, TELL])
    assert (found.loss, found.event, found.look) == (Fraction(1, 2), 0, 1)
    assert shifted_loss(SUBJECT, [COUNT, TELL]).look is None


def test_what_has_no_noise_cannot_be_hidden():
    bare = replace(SUBJECT, act=lambda _program, _action, amount: amount)
    assert shifted_loss(bare, [COUNT, LOOK]).loss == math.inf


def test_gaussian_noise_costs_the_square_of_a_shift():
    class Gaussian(Sums):
        def __init__(self, coins):
            self.coins = coins
            self.cell = int(coins.discrete_gaussian(Fraction(8), 1)[0])

    gaussian = replace(SUBJECT, make=Gaussian)
    assert shifted_loss(gaussian, [COUNT, LOOK]).loss == Fraction(1, 16)
    assert shifted_loss(gaussian, [COUNT, LOOK], 3).loss == Fraction(9, 16)


def test_a_program_that_tells_more_than_sums_is_refused():
    class Remembering(Sums):
        seen = 0

    def remember(program, action, amount):
        program.seen = max(program.seen, amount)
        return act(program, action, amount)

    leaky = replace(
        SUBJECT, make=Remembering, act=remember, state=lambda program: b"%d" % program.seen
    )
    with pytest.raises(LeakError, match="more than sums of its amounts and its noise"):
        shifted_loss(leaky, [COUNT, LOOK])


def test_coins_show_what_they_are_given_and_then_nothing():
    coins = ShiftedCoins([7, -1])
    assert coins.discrete_laplace(Fraction(3), 1).tolist() == [7]
    assert coins.discrete_gaussian(Fraction(2), 2).tolist() == [-1, 0]
    assert coins.costs == [Fraction(1, 3), Fraction(1, 4), Fraction(1, 4)]
    assert coins.gaussian
    assert len(coins.key(5)) == 5
