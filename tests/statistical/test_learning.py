"""Windows that learn err less, and hold the truth also on a day that nobody expected.

False alarm 1e-6 an assertion. Power: 150 days find intervals that hold 70 % of them 99 times in
100; 800 days miss errors whose root mean square is off by 30 % less than once in a million.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp

from .checks import OFF, accepted, happens, rejected, spreads

DAY, DAYS, SLOW_DAYS = 86_400, 150, 800
LEAST = 0.94
USERS = 5_000


def days(users, learned):
    """The answer of a day of so many users after one of 5,000, with what it was planned for."""
    now = [0.0]
    windowed = pp.Windowed(
        lambda: pp.DistinctCount(epsilon=1, expected="learn:100:1000000", memory=4_096),
        every=DAY,
        clock=lambda: now[0],
    )
    windowed.update(np.arange(USERS))
    learned.append(windowed.current.plan)
    now[0] += DAY
    windowed.update(np.arange(users))
    learned.append(windowed.current.plan)
    return windowed.current.release()  # no third day is planned


@pytest.mark.slow
def test_a_day_like_the_last_one_errs_as_its_plan_says_and_less_than_the_first():
    plans = []
    answers = [days(USERS, plans) for _ in range(SLOW_DAYS)]
    wide, learned = plans[0], plans[1::2]
    errors = np.array([answer.value - USERS for answer in answers])
    deviations = np.array([USERS * plan.relative_error(USERS) for plan in learned])
    assert accepted(spreads(errors / deviations, 1.0, 1.05))
    assert rejected(spreads(errors / deviations, OFF, 1.05))
    # An answer that is seven deviations off makes it 0.88 of what it was.
    assert deviations.max() < 0.95 * USERS * wide.relative_error(USERS)
    held = sum(answer.low <= USERS <= answer.high for answer in answers)
    assert accepted(happens(held, len(answers), LEAST, 1.0))


@pytest.mark.long
def test_intervals_hold_the_truth_on_a_day_of_ten_times_as_many():
    users = 10 * USERS
    answers = [days(users, []) for _ in range(DAYS)]
    held = sum(answer.low <= users <= answer.high for answer in answers)
    assert accepted(happens(held, DAYS, LEAST, 1.0))


OFTEN, UNIVERSE = 5, 100_000
LATER = 10 * OFTEN
ASKED = 1, LATER // 2, LATER


def histograms():
    """That of a day on which users come ten times as often as on the day that its bound follows."""
    now = [0.0]
    windowed = pp.Windowed(
        lambda: pp.Incidence(epsilon=4, universe=UNIVERSE, bound="learn:1:1000"),
        every=DAY,
        clock=lambda: now[0],
    )
    ids = np.arange(UNIVERSE // 2)
    windowed.update(ids, ids % OFTEN + 1)
    now[0] += DAY
    windowed.update(ids, ids % LATER + 1)
    return windowed.current.plan.bound, windowed.current.release()


@pytest.mark.long
def test_intervals_hold_the_truth_on_a_day_on_which_users_come_ten_times_as_often():
    learned = [histograms() for _ in range(DAYS)]
    bounds = sorted(bound for bound, _ in learned)
    assert LATER <= bounds[0] <= bounds[DAYS // 2] <= 2 * LATER  # now and then noise hides it
    for state in ASKED:
        exactly, more = UNIVERSE // 2 // LATER, UNIVERSE // 2 * (LATER - state + 1) // LATER
        for truth, answers in (
            (exactly, [released.exactly(state) for _, released in learned]),
            (more, [released.at_least(state) for _, released in learned]),
        ):
            held = sum(answer.low <= truth <= answer.high for answer in answers)
            assert accepted(happens(held, DAYS, LEAST, 1.0))
