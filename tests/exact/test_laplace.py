"""Plain Laplace noise on the numbers of a sketch loses what it claims, at any size.

Small ones are walked on every outcome of every coin. Large ones only add, so the noise that makes a
neighbour look the same is known: the proof is carried out on the shipping class, to the last byte.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss
from panprivacy.audit.exact.shifts import ShiftedCoins
from panprivacy.papers.published import CalibratedTotal, LaplaceNorm
from panprivacy.tables.planning.additive import Reach

SOME = [[(0, 1)], [(0, -1), (0, 1), (0, -1)], RELEASE], [[], [(0, 1)], RELEASE]
"""The user is in state 1, then 0; without some updates in state 0, then 1."""

SEEN_TWICE = [[*one[:1], ANNOUNCE, one[1]] for one in SOME]

KINDS = {
    "total": (CalibratedTotal, {"total": 2, "bound": 1}),
    "norm": (LaplaceNorm, {"columns": [[1]], "bound": 1}),
    "two numbers": (LaplaceNorm, {"columns": [[1, -1], [0, 1]], "bound": 1}),
}
EACH = pytest.mark.parametrize("name", KINDS)


def made(name, budget, intrusions=0, **others):
    """Makes a statistic that is walked."""
    kind, sizes = KINDS[name]
    covers = {"intrusions": intrusions, "budget": budget}
    epsilon = budget.total(releases=1, intrusions=intrusions)
    return lambda coins: kind(coins=coins, epsilon=epsilon, **covers, **sizes, **others)


def coins(tail, state_tail=None):
    return EnumeratedCoins(tail=tail, state_tail=state_tail)


@EACH
def test_a_look_costs_what_the_state_is_given(name):
    make = made(name, pp.Budget(1, 1))
    loss = exact_loss(make, [[0]], [[]], coins=coins(4))
    assert loss.within(1)
    assert float(loss) == pytest.approx(1)


@pytest.mark.long
@EACH
def test_a_release_after_a_look_spends_what_the_way_between_two_moments_costs(name):
    two = name == "two numbers"
    budget = pp.Budget(2, 2) if two else pp.Budget(1, 1)
    loss = exact_loss(made(name, budget), *SOME, coins=coins(12, 1))
    total = budget.state + budget.release
    assert loss.within(total)
    assert float(loss) == pytest.approx(float(total))


@pytest.mark.parametrize("name", ["total", "norm"])
def test_an_announced_look_costs_as_much_as_the_first_where_a_user_comes_between(name):
    make = made(name, pp.Budget(2, 2), intrusions=1)
    loss = exact_loss(make, *SEEN_TWICE, coins=coins(4))
    assert loss.within(4)
    assert float(loss) == pytest.approx(4)


@pytest.mark.long
@pytest.mark.parametrize(("streams", "claimed", "lost"), [(SOME, 2, 3), (SEEN_TWICE, 2, 3)])
def test_the_audit_catches_noise_for_the_bound_alone_after_a_look(
    monkeypatch, streams, claimed, lost
):
    """States lie at most the bound apart, but from one moment to the next twice that is made up."""
    make = made("total", pp.Budget(1, 1), intrusions=int(streams is SEEN_TWICE))
    walked = coins(10, 1) if streams is SOME else coins(6)
    assert exact_loss(make, *streams, coins=walked).within(claimed)
    monkeypatch.setattr(Reach, "path", Reach.cell)
    assert float(exact_loss(make, *streams, coins=walked)) == pytest.approx(lost)


@pytest.mark.parametrize("name", ["total", "norm"])
def test_a_user_of_twice_the_bound_loses_twice_as_much_which_is_told(name):
    make = made(name, pp.Budget(1, 1))
    loss = exact_loss(make, [[0], [0]], [[], []], coins=coins(6))
    assert float(loss) == pytest.approx(2)
    assert any("add up to 0 to 1" in one for one in make(None).guarantee.conditions)


def test_states_below_0_have_twice_the_noise():
    make = made("norm", pp.Budget(1, 1), signed=True)
    loss = exact_loss(make, [[(0, 1), (0, -1), (0, -1)]], [[(0, 1)]], coins=coins(8))
    assert loss.within(1)
    assert float(loss) == pytest.approx(1)


@pytest.mark.long
def test_to_replace_a_user_costs_twice_as_much_and_no_more():
    """Definition 4 changes two states (M8): one user's number falls, and another's rises."""
    columns = {"columns": [[1, 0], [0, 1]], "bound": 1}
    make = lambda walked: LaplaceNorm(  # noqa: E731
        coins=walked, epsilon=6, budget=pp.Budget(3, 3), **columns
    )
    loss = exact_loss(make, [[0]], [[1]], coins=coins(3))
    assert loss.within(6)
    assert float(loss) == pytest.approx(6)


class Unseen:
    """A statistic whose state nobody sees."""

    def __init__(self, statistic):
        self._statistic = statistic
        self.update, self.release = statistic.update, statistic.release

    def state(self):
        return b""


def test_what_nobody_saw_loses_more_than_an_unseen_cell_and_no_more_than_is_claimed():
    """A number has no largest value, so what holds of other tables does not hold here."""
    make = made("total", pp.Budget(2, 4))
    stream, neighbour = [[0], RELEASE], [[], RELEASE]
    loss = exact_loss(lambda walked: Unseen(make(walked)), stream, neighbour, coins=coins(10, 2))
    statistic = make(None)
    assert loss.within(statistic.guarantee.unseen_loss.epsilon)
    assert statistic.guarantee.unseen_loss.epsilon == 2
    assert float(loss) > float(pp.Budget(2, 2).unseen(releases=1, intrusions=0))


class Recorded(ShiftedCoins):
    """Shows noise, and keeps where in it each draw began."""

    def __init__(self, shown):
        super().__init__(shown, [])
        self.draws = []

    def _next(self, cost, size):
        self.draws.append(len(self.costs))
        return super()._next(cost, size)


COLUMNS = np.random.default_rng(8).integers(-9, 10, (40, 100)).tolist()
"""The lattice of so many numbers could not be enumerated modulo any M."""

ACTIONS = ["", "release", "", "announce", "release", "", "announce", "", "look", "release"]
"""Each after an update of the user, which the neighbour has or lacks."""


def lives(rng, bound, low):
    """A user's deltas, and those of a neighbour who lacks some; no state leaves the range."""
    deltas, states = [], np.zeros(2, int)
    for _ in ACTIONS:
        pair = []
        while not pair or not all(low <= states[of] + sum(pair[of]) <= bound for of in (0, 1)):
            every = rng.integers(-bound, bound + 1, 3).tolist()
            pair = [every, [one for one in every if rng.random() < 0.5]]
        states += [sum(pair[0]), sum(pair[1])]
        deltas.append(pair)
    return deltas


def led(build, deltas, of, user, noise):
    """The looks and the counts of releases of a life, its coins, and its last table."""
    walked, looks, counts = Recorded(noise), [], []
    program = build(walked)
    for pair, action in zip(deltas, ACTIONS, strict=True):
        program.update([user] * len(pair[of]), np.array(pair[of], np.int64))
        if action == "release":
            counts.append(program.release().counts[0])
        elif action:
            looks.append((program.state(), program.internals.memory.now.table.copy()))
            if action == "announce":
                program.announce_intrusion()
    return looks, counts, walked


@pytest.mark.long
@pytest.mark.parametrize("signed", [False, True])
def test_the_noise_that_makes_a_neighbour_look_the_same_costs_at_most_epsilon(signed):
    """Any updates of a user, of which a neighbour lacks some; two announced looks, one more and
    three releases, of 100 numbers."""
    rng, budget, bound = np.random.default_rng(6), pp.Budget(Fraction(2, 3), Fraction(1, 2)), 5
    total = budget.total(releases=3, intrusions=2)

    def build(walked):
        sizes = {"columns": COLUMNS, "bound": bound, "signed": signed, "epsilon": total}
        return LaplaceNorm(coins=walked, budget=budget, releases=3, intrusions=2, **sizes)

    widest = int(np.argmax(np.abs(COLUMNS).sum(axis=1)))
    worst = Fraction(0)
    for _ in range(8):
        deltas = lives(rng, bound, -bound if signed else 0)
        coins_of_all = led(build, deltas, 0, widest, [])[2]
        noise = rng.integers(-500, 501, len(coins_of_all.costs))
        looks, counts, walked = led(build, deltas, 0, widest, noise)
        shifted = noise.copy()
        of_state = [start for start in walked.draws if start == 0 or is_wide(walked, start)]
        of_release = [start for start in walked.draws if start not in of_state]
        others = led(build, deltas, 1, widest, noise)[0]
        before = np.zeros(100, np.int64)
        for start, (_, table), (_, other) in zip(of_state, looks, others, strict=True):
            shifted[start : start + 100] += table - other - before
            before = table - other
        released = led(build, deltas, 1, widest, shifted)[1]
        for start, count, other in zip(of_release, counts, released, strict=True):
            shifted[start] += count - other
        again = led(build, deltas, 1, widest, shifted)
        assert [state for state, _ in again[0]] == [state for state, _ in looks]
        assert again[1] == counts
        moved = np.abs(shifted - noise).tolist()
        cost = sum((by * c for by, c in zip(moved, walked.costs, strict=True)), Fraction(0))
        assert cost <= total
        worst = max(worst, cost)
    assert worst > total / 8


def is_wide(walked, start):
    """Whether a draw is one for each number."""
    ends = [*walked.draws[1:], len(walked.costs)]
    return ends[walked.draws.index(start)] - start == 100


def test_large_numbers_are_added_and_measured_modulo_two_to_the_64():
    """Sums that do not fit wrap around, and so does the length: no error tells of them."""
    build = lambda noise: LaplaceNorm(  # noqa: E731
        columns=[[3]], bound=2**20, epsilon=1, releases=2, coins=ShiftedCoins([noise])
    )
    most = np.iinfo(np.int64)
    for noise in (int(most.max), int(most.min)):
        program = build(noise)
        program.update([0, 0], [2**20, -1])
        expected = (noise + 3 * (2**20 - 1) + 2**63) % 2**64 - 2**63
        assert int(program.internals.memory.now.table[0]) == expected
        assert program.release().counts[0] == abs(expected)
    assert math.isfinite(build(0).plan.absolute_error())
