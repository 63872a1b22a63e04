"""An answer that stands until it has moved: what it takes, publishes, keeps, and refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import BudgetError, InputError, PlanError
from panprivacy.papers.published.mir_exponential import StableDistinctCount
from panprivacy.statistics.composites.members import JoinedReleasing
from panprivacy.statistics.explain.reading import read_states
from panprivacy.statistics.release import Answers
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.tables.decoders.intervals import discrete_laplace_variance
from panprivacy.tables.planning.comparisons import MOST_UPDATES, comparison_epsilon
from panprivacy.testing import SeededCoins

UNIVERSE = 4_000
density = partial(pp.Density, universe=UNIVERSE)


def moving(statistic=density, *, threshold=0.1, updates=3, epsilon=300, **more):
    """So much privacy loss that a share is exact to 0.01, but once in 1e12."""
    return pp.ChangeTriggered(
        statistic, threshold=threshold, updates=updates, epsilon=epsilon, **more
    )


def shown(answers):
    return None if answers is None else round(answers.only().value, 1)


def test_it_publishes_when_it_has_moved_and_stops_when_its_updates_are_used_up():
    share = moving()
    found = []
    for place in range(6):
        found.append(shown(share.check()))
        share.update(range(500 * place, 500 * (place + 1)))
        found.append(shown(share.check()))
    assert found == [None, 0.1, None, 0.2, None, 0.4, None, None, None, None, None, None]
    assert (share.left, round(share.stands, 1)) == (0, 0.4)
    with pytest.raises(BudgetError, match="all 3 planned releases"):
        share.release()


def test_the_last_update_says_that_it_is_the_last():
    share = moving(updates=1)
    share.update(range(2_000))
    note = "the last of 1 updates: it stays, however the number moves"
    assert share.check().only().note == note


def test_a_release_for_the_end_is_kept():
    share = moving(updates=1, at_end=1)
    share.update(range(2_000))
    share.check()
    share.update(range(4_000))
    assert share.check() is None
    assert shown(share.release()) == 1.0


def test_it_falls_as_it_rises():
    share = moving(
        partial(pp.Incidence, universe=UNIVERSE, bound=1),
        threshold=400,
        updates=2,
        asked={"distinct": True},
    )
    share.update(range(2_000))
    assert share.check().only().value == pytest.approx(2_000, abs=100)
    share.update(range(1_000), [-1] * 1_000)
    assert share.check().only().value == pytest.approx(1_000, abs=100)
    assert share.check() is None


@pytest.mark.parametrize(
    ("statistic", "threshold", "asked"),
    [
        (partial(pp.DistinctCount, expected=(100, 100_000)), 800, None),
        (partial(pp.DistinctCount, expected=(100, 10_000), deletions=True, bound=1), 800, None),
        (partial(pp.CroppedSum, tau=5, universe=UNIVERSE), 800, None),
        (partial(pp.ThresholdCount, threshold=4, universe=UNIVERSE), 800, None),
        (partial(pp.Incidence, universe=UNIVERSE, bound=5), 800, {"at_least": 1}),
        (partial(pp.FrequencyMoment, order=1, bound=5), 800, None),
        (partial(pp.HeavyHitterCount, k=2_500, total=10_000), 800, None),
    ],
)
def test_it_asks_no_statistic_what_it_is(statistic, threshold, asked):
    running = moving(statistic, threshold=threshold, asked=asked)
    deltas = [5] * 2_000 if statistic.func is not pp.DistinctCount else None
    running.update(range(2_000), deltas)
    answers = running.check()
    (one,) = answers.values()
    assert one.low <= one.value <= one.high
    assert one.value > threshold
    assert running.stands == one.value


def test_squares_are_read_with_the_noise_of_a_comparison():
    """Which is no part of what moves: its squares alone would be twice the threshold.

    Nobody moves it once in 1e7, at 6.6 deviations; 60,000 users do, at 8.
    """
    squares = partial(pp.FrequencyMoment, order=2, bound=5, cells=1_024)
    running = moving(squares, threshold=600_000)
    assert running.check() is None
    running.update(range(60_000), [5] * 60_000)
    assert running.check() is not None


class Noted(SeededCoins):
    """Coins that note the scales of their noise."""

    def __init__(self):
        super().__init__(1)
        self.scales = []

    def discrete_laplace(self, scale, size):
        self.scales.append(scale)
        return super().discrete_laplace(scale, size)


@pytest.mark.parametrize("comparisons", [None, "1/4"])
def test_each_comparison_has_noise_of_its_own_epsilon(comparisons):
    """An answer that stands costs no less than the proof takes from the ledger."""
    coins, delta = Noted(), Fraction(1, 10**6)
    more = {"epsilon": 1, "updates": 7, "delta": delta, "comparisons": comparisons}
    share = moving(partial(density, coins=coins), threshold=1_000, **more)
    assert share.check() is None
    assert share.check() is None
    cost = Fraction(comparisons or "1/2")
    assert coins.scales == [1 / comparison_epsilon(cost, 7, delta, Fraction(1))] * 2
    (made,) = share.statistics.values()
    assert made.plan.request.epsilon == 1 - cost
    assert share.guarantee.epsilon == 1
    assert share.guarantee.delta == delta
    assert (
        share.ledger.spent
        == share.internals.releasing.state_epsilon
        == made.internals.releasing.state_epsilon + cost
    )
    assert share.guarantee.unseen_loss.epsilon == made.guarantee.unseen_loss.epsilon + cost


def test_all_of_it_costs_epsilon_and_no_more():
    share = moving(epsilon=2, updates=5)
    while share.left:
        share.release()
    assert 2 - Fraction(1, 10**5) < share.ledger.spent <= 2


@pytest.mark.parametrize(
    ("statistic", "threshold", "largest"),
    [(density, "0.1", 1), (partial(pp.CroppedSum, tau=5, universe=UNIVERSE), 1_000, 20_000)],
)
def test_what_errs_alike_everywhere_strays_as_far_from_small_numbers(statistic, threshold, largest):
    made = moving(statistic, threshold=threshold, epsilon=4)
    strays = [
        made.absolute_margin(truth=share * largest) - float(threshold) for share in (0, 0.01, 1)
    ]
    farthest = made.absolute_margin() - float(threshold)
    assert all(0.9 * farthest < one <= farthest for one in strays)


def test_it_goes_on_from_a_state():
    share = moving()
    share.update(range(1_000))
    share.check()
    after = moving()
    after.resume(share.state())
    assert (after.stands, after.left) == (share.stands, 2)
    assert after.check() is None
    behind = moving()
    behind.resume(moving().state(), released=3)
    assert behind.left == 0
    behind.go_on_from(0.25)
    assert behind.stands == 0.25


def test_a_state_of_another_threshold_or_of_no_number_is_refused():
    state = moving().state()
    for other in ({"threshold": 0.2}, {"delta": "1e-6"}, {"comparisons": 100}, {"at_end": 1}):
        with pytest.raises(InputError):
            moving(**other).resume(state)
    share = moving()
    place = len(state) - share.internals.memory.members.first.internals.memory.state_bytes - 8
    damaged = state[:place] + np.float64(math.nan).tobytes() + state[place + 8 :]
    before = share.state()
    with pytest.raises(InputError, match="no such answer can stand"):
        share.internals.memory.check_state(damaged)
    assert share.state() == before
    with pytest.raises(InputError, match="finite"):
        share.go_on_from(math.inf)


def test_a_comparison_that_cannot_be_read_publishes_nothing():
    coins = SeededCoins(1)  # one table in some 1,000 can be read by luck
    hashed = partial(pp.Incidence, expected=200, bound=5, coins=coins)
    share = moving(hashed, threshold=50, asked={"at_least": 1})
    share.update(range(2_000))
    spent = share.ledger.spent
    assert share.check() is None
    assert (share.left, share.ledger.spent) == (3, spent)
    few = moving(hashed, threshold=50, asked={"at_least": 1})
    few.update(range(150))
    assert few.check() is not None


def test_an_answer_without_end_does_not_stand(monkeypatch):
    share = moving()
    share.update(range(2_000))
    assert share.check() is not None
    before, release = share.stands, JoinedReleasing.release

    def endless(several, **asked):
        each = release(several, **asked).values()
        return Answers(replace(one, value=math.inf, high=math.inf) for one in each)

    monkeypatch.setattr(JoinedReleasing, "release", endless)
    assert math.isinf(share.release().only().value)
    assert share.stands == before


def test_no_noise_of_a_comparison_is_kept():
    share = moving(partial(pp.Density, universe=1_000_000), epsilon=1, threshold=0.9)
    share.update(range(100))
    before = share.state()
    for _ in range(20):
        assert share.check() is None
    assert share.state() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": 0}, "threshold"),
        ({"threshold": "nan"}, "threshold"),
        ({"updates": 0}, "updates"),
        ({"updates": 10**6}, "updates"),
        ({"delta": 0}, "delta"),
        ({"delta": 0.5}, "delta must be from"),
        ({"comparisons": 300}, "leave some of epsilon"),
        ({"at_end": -1}, "at_end"),
        ({"statistic": partial(pp.RunningCount, horizon=3)}, "one statistic of users"),
        ({"statistic": density(epsilon=1)}, "give what makes the statistic"),
        ({"statistic": partial(pp.Incidence, universe=9, bound=2)}, "several answers"),
        ({"statistic": partial(StableDistinctCount, universe=9, rows=1, modulus=11)}, "its own"),
    ],
)
def test_what_cannot_move_is_refused(given, message):
    with pytest.raises(PlanError, match=message):
        moving(**given)


@pytest.mark.parametrize("asked", [{"at_least": 3}, {"distinct": True}, {"exactly": (0, 1)}])
def test_no_other_question_is_answered_than_the_one_that_is_compared(asked):
    share = moving(
        partial(pp.Incidence, universe=UNIVERSE, bound=5), threshold=800, asked={"at_least": 1}
    )
    share.update(range(2_000))
    assert share.check() is not None
    before, spent, stands = share.state(), share.ledger.spent, share.stands
    for refused in (share.release, share.internals.releasing.check_release):
        with pytest.raises(PlanError, match="publishes what it compares"):
            refused(**asked)
    assert (share.state(), share.ledger.spent, share.stands) == (before, spent, stands)
    assert share.release(confidence=0.9).only().confidence == 0.9


@pytest.mark.parametrize("contribute", ["contribute", "contribute_cells"])
def test_it_contributes_nothing_as_a_merged_answer_would_not_tell_what_comparisons_cost(contribute):
    share = moving()
    share.update(np.arange(1_000))
    assert share.check() is not None
    before, spent = share.state(), share.ledger.spent
    with pytest.raises(PlanError, match="a running answer is not merged"):
        getattr(share, contribute)()
    assert (share.state(), share.ledger.spent) == (before, spent)


def test_what_two_readings_of_one_state_differ_by_is_the_noise_of_both():
    share = moving(epsilon=4)
    (one,) = share.members.values()
    split, (scale,) = one.plan.split, one.internals.releasing.reading().scales
    scales = (
        scale,
        scale * split.budget.release / share.internals.memory.members.comparisons.epsilon,
    )
    both = math.sqrt(sum(discrete_laplace_variance(float(one)) for one in scales))
    assert share.internals.releasing.noise() == pytest.approx(
        both / (UNIVERSE * split.contrast), rel=1e-3
    )


def test_each_announced_look_is_paid_for_by_comparisons():
    """Each look may see the noised numbers of a comparison."""
    coins, delta = Noted(), Fraction(1, 10**6)
    more = {"epsilon": 1, "updates": 7, "delta": delta}
    share = moving(partial(density, coins=coins, intrusions=2), threshold=1_000, **more)
    assert share.check() is None
    (scale,) = coins.scales
    told = Fraction(1, 2), 7, delta, Fraction(1)
    assert scale == 1 / comparison_epsilon(*told, looks=3) > 1 / comparison_epsilon(*told)


def test_a_threshold_within_the_noise_is_refused_with_what_would_do():
    large = partial(pp.Density, universe=1_000_000)
    share = moving(large, epsilon=1, updates=50, threshold="1/1000")
    with pytest.raises(PlanError, match="would be reached by noise, whose deviation is"):
        share.internals.releasing.check_threshold()
    moving(large, epsilon=1, updates=50, threshold="1/2").internals.releasing.check_threshold()


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 1_000), Fraction(1), Fraction(1_000)])
@pytest.mark.parametrize("updates", [1, MOST_UPDATES])
def test_there_is_an_epsilon_for_as_many_updates_as_there_may_be(updates, epsilon):
    for delta in (Fraction(1, 10**30), Fraction(1, 10)):
        each = comparison_epsilon(epsilon, updates, delta, 2 * epsilon)
        assert 0 < each < epsilon / 2


def test_states_have_the_name_of_before():
    before, after = moving(), moving()
    state = before.state()
    assert b'"statistic": "Continual"' in state
    after.resume(state)
    assert after.state() == state


def test_what_is_explained_of_a_state_has_the_comparisons_in_it(tmp_path):
    share = moving(epsilon=2, updates=4)
    path = tmp_path / "state"
    path.write_bytes(share.state())
    (alike,) = read_states(path)
    assert alike.within == ("ChangeTriggered",)
    assert alike.description.guarantee.epsilon == 2
    assert alike.description.so_far.epsilon == share.ledger.spent
    assert "docs/guarantees/moves.md" in alike.description.proofs


LEDGER = pp.Ledger(1_000)
USED = pp.Density(universe=UNIVERSE, epsilon=150, ledger=LEDGER)


def released(**given):
    made = density(**given)
    made.release()
    return made


def looked_at(**given):
    made = density(**given, intrusions=1)
    made.announce_intrusion()
    return made


def twice(*, epsilon, **given):
    half = epsilon / 2
    density(epsilon=half, **given)
    return density(epsilon=half, **given)


DISHONEST = {
    "epsilon": (lambda epsilon, **given: density(epsilon=1, **given), "its epsilon="),
    "more epsilon": (lambda epsilon, **more: density(epsilon=epsilon * 2, **more), "its epsilon="),
    "releases": (lambda releases, **given: density(releases=300, **given), "its releases="),
    "no releases": (lambda releases, **given: density(**given), "its releases="),
    "ledger": (lambda ledger, **given: density(**given), "the ledger= that it is given"),
    "a larger ledger": (
        lambda ledger, **given: density(ledger=pp.Ledger(900), **given),
        "the ledger= that it is given",
    ),
    "the same object": (lambda **given: USED, "the ledger= that it is given"),
    "two on one ledger": (twice, "one new statistic"),
    "one that has released": (released, "make a new one"),
    "one that was seen": (looked_at, "make a new one"),
    "no statistic": (lambda **given: given, "only statistics"),
    "groups": (
        lambda epsilon, releases, ledger: pp.Grouped(
            lambda share: density(epsilon=share, releases=releases), [1], epsilon=epsilon,
            ledger=ledger,
        ),
        "groups have many",
    ),
}  # fmt: skip
"""Factories that do not make what they were told to."""


@pytest.mark.parametrize("case", DISHONEST)
def test_a_factory_that_ignores_what_it_is_given_is_refused(case):
    factory, message = DISHONEST[case]
    with pytest.raises((PlanError, BudgetError), match=message):
        moving(factory)


def test_the_guarantee_is_that_of_the_object_that_was_made():
    share = moving(partial(density, intrusions=2), epsilon=3)
    (made,) = share.statistics.values()
    assert share.guarantee.intrusions == made.guarantee.intrusions == 2
    assert share.guarantee.epsilon == made.guarantee.epsilon + Fraction(3, 2) == 3
    assert (share.internals.releasing.planned, share.left) == (made.internals.releasing.planned, 3)


def test_noise_of_its_own_is_known_by_what_is_drawn():
    """A class need not say so itself."""

    class Exact(TableReleasing):
        __slots__ = ()

        def _add_noise(self, reading, sums):
            return sums.copy()

    class Other(pp.Density):
        __slots__ = ()
        _releasing = Exact

    with pytest.raises(PlanError, match="its own"):
        moving(partial(Other, universe=UNIVERSE))
