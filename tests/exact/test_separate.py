"""Views that come apart: what is added up is what a walk of all outcomes finds."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import CRASH, RELEASE, SAVE, EnumeratedCoins, LeakError, Restarted, exact_loss
from panprivacy.audit.exact.separate import SeparateProgram, ViewNumbers, separate_loss

SCALE = Fraction(2)
ONE_STEP = [[0], RELEASE]


class Sum:
    """A sum with initial noise, and an answer with noise of its own."""

    def __init__(self, coins):
        self.coins = coins
        self.sum = self.initial()

    def initial(self):
        return int(self.coins.discrete_laplace(SCALE, 1)[0])

    def update(self, users, _deltas=None):
        self.sum += len(users)

    def release(self):
        noise = int(self.coins.discrete_laplace(SCALE, 1)[0])
        answer, self.sum = SimpleNamespace(counts=(self.sum + noise,)), 0
        return answer

    def state(self):
        return self.sum.to_bytes(8, signed=True)

    save = crash = update


def read(program):
    return ViewNumbers([], [program.sum])


def separate(make, stream, neighbour):
    return separate_loss(SeparateProgram(make, read), [(stream, neighbour)])


def test_it_is_what_a_walk_of_all_outcomes_finds():
    found = separate(Sum, ONE_STEP, [[], RELEASE])
    walked = exact_loss(Sum, ONE_STEP, [[], RELEASE], coins=EnumeratedCoins(tail=12, state_tail=2))
    assert found.exact == 1 / SCALE
    assert found.epsilon == pytest.approx(walked.epsilon, rel=1e-9)
    assert found.set_aside == 0
    assert found.within(1 / SCALE)
    assert not found.within(Fraction(49, 100))


def test_a_sum_of_two_noises_loses_what_the_wider_one_does_far_out():
    """The law of the sum of two, of which nobody sees one alone, by convolution."""
    size = 400
    ks = np.arange(-size, size + 1)
    narrow, wide = (np.exp(-abs(ks) / scale) for scale in (1.0, 3.0))
    law = np.convolve(narrow, wide, mode="same")[size - 60 : size + 61]
    losses = abs(np.diff(np.log(law)))
    assert losses.max() <= 1 / 3 + 1e-9
    assert losses.max() == pytest.approx(1 / 3, rel=1e-6)

    class Wide(Sum):
        def initial(self):
            return int(self.coins.discrete_laplace(Fraction(3), 1)[0])

        def state(self):
            return b""

    found = separate_loss(
        SeparateProgram(Wide, lambda _: ViewNumbers([], [])), [(ONE_STEP, [[], RELEASE])]
    )
    assert found.exact == Fraction(1, 3)


def test_what_has_no_noise_is_lost_without_bound():
    class Plain(Sum):
        def initial(self):
            return 0

    assert math.isinf(separate(Plain, ONE_STEP, [[], RELEASE]).epsilon)


def test_a_program_that_tells_more_than_sums_is_refused():
    class Telling(Sum):
        users = 0

        def update(self, users, _deltas=None):
            super().update(users)
            self.users += len(users)

        def state(self):
            return super().state() + bytes([self.users])

    with pytest.raises(LeakError, match="more than its cells"):
        separate(Telling, ONE_STEP, [[], RELEASE])


def test_a_program_whose_noise_is_seen_in_two_sums_is_refused():
    class Twice(Sum):
        def release(self):
            self.first = getattr(self, "first", self.sum)
            self.sum = self.first
            return super().release()

        def state(self):
            return b""

    life = [[0], RELEASE, RELEASE]
    with pytest.raises(pp.PlanError, match="in one number alone"):
        separate_loss(
            SeparateProgram(Twice, lambda _: ViewNumbers([], [])), [(life, [[], RELEASE, RELEASE])]
        )


class Cell(Sum):
    """A cell of which it is published, with noise, whether it is above 0."""

    def release(self):
        noise = int(self.coins.discrete_laplace(SCALE, 1)[0])
        return SimpleNamespace(counts=(int(self.sum > 0) + noise,))


def test_a_cell_that_counts_in_no_linear_way_is_walked():
    program = SeparateProgram(Cell, lambda one: ViewNumbers([one.sum], []), cells=1, most=20)
    life, other = [RELEASE, [0], RELEASE], [RELEASE, [], RELEASE]
    found = separate_loss(program, [(life, other)])
    walked = exact_loss(Cell, life, other, coins=EnumeratedCoins(tail=12, state_tail=2))
    assert found.exact == 2 / SCALE
    assert found.cell == 0
    assert found.epsilon == pytest.approx(walked.epsilon, rel=1e-9)
    ratio = math.exp(-1 / SCALE)
    assert float(found.set_aside) == pytest.approx(2 * ratio**21 / (1 + ratio))


def test_rows_of_two_cells_are_refused():
    class Two(Sum):
        def __init__(self, coins):
            super().__init__(coins)
            self.other = self.initial()

        def update(self, users, _deltas=None):
            self.sum += len(users)
            self.other += len(users)

    program = SeparateProgram(
        Two, lambda one: ViewNumbers([one.sum, one.other], []), cells=2, most=3
    )
    with pytest.raises(pp.PlanError, match="one cell"):
        separate_loss(program, [(ONE_STEP, [[], RELEASE])])


def test_there_has_to_be_something_to_compare():
    with pytest.raises(pp.PlanError, match="no pairs"):
        separate_loss(SeparateProgram(partial(Sum), read), [])


def test_a_branch_that_a_crash_ends_may_be_seen():
    def count(coins):
        return pp.RunningCount(horizon=1, epsilon=1, coins=coins)

    def numbers(restarted):
        table = restarted.program.plan.table
        state = np.frombuffer(restarted.program.state()[-table.nbytes :], np.int64)
        return ViewNumbers([], state[: table.cells].tolist())

    program = SeparateProgram(partial(Restarted, count), numbers)
    for again, loss in (([], 2), ([0], 1)):
        other = [] if again else again
        pair = [SAVE, [0], CRASH, again, RELEASE], [SAVE, [], CRASH, other, RELEASE]
        found = separate_loss(program, [pair])
        assert found.epsilon == pytest.approx(loss, rel=1e-6)
        assert found.within(loss)
