"""Users who came before an announced intrusion count as much as those who come after it."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.catalogue import KINDS
from panprivacy.testing import SeededCoins

from .cases import CASES

UNREADABLE = {pp.HeavyHitterCount, pp.InnerProduct}
"""After an announcement answers of the first are noise; of one stream the second says 0. That users
then count alike is shown exactly."""
SQUARED = {"second moment"}
"""Each cell adds with signs, so only its square tells of users: the answer is measured."""
SLOW = {"cropped sum of very many users", "incidence of hashed users"}
NOISY = {
    "cropped sum of hashed users",
    "cropped sum of a sample",
    "threshold count of a sample",
}
"""Of so few users in a sample, or so few cells, a third is not found; their cells are those of the
others."""
SEEN = [
    pytest.param(case, id=case.name, marks=pytest.mark.slow if case.name in SLOW else ())
    for case in CASES
    if case.kind in {*KINDS} - UNREADABLE
    and case.trial.intrusions
    and case.counts_users
    and case.name not in NOISY
]
EPSILON = 60
"""So much that noise hides nobody; who counts less than others is found."""
LIVES = 16
FAR = 6.5
"""Student's t of 30 degrees is farther from 0 with a probability of 4e-7, which is the false alarm;
what is measured is normal nearly enough, as a sum over many cells."""
FEWER = 0.7
"""Of the users: so many in place of all have to be found. They are, by more than twice `FAR`."""


def measured(case, before, after, seed):
    """What a release would noise, in a life with users before and after an announced intrusion."""
    statistic = case.make(SeededCoins(seed), epsilon=EPSILON, intrusions=1)
    squared, plan = case.name in SQUARED, statistic.plan
    others = plan.bound if squared else 1
    _, state = getattr(plan, "synthetic_users", lambda answer: (answer, others))(1.0)
    statistic.update(before, np.full(len(before), state))
    statistic.announce_intrusion()
    statistic.update(after, np.full(len(after), state))
    if squared:
        return np.array([statistic.release().value])
    return (
        statistic.internals.releasing.reading()
        .sums(statistic.plan.table, statistic.internals.memory.now.table)
        .astype(float)
    )


@pytest.mark.long
@pytest.mark.parametrize("case", SEEN)
def test_users_before_and_after_an_announced_intrusion_count_alike(case):
    seeds = count(1)
    ids = np.arange(20_000 if case.universe else 2_000)
    fewer, nobody = ids[: round(FEWER * len(ids))], ids[:0]

    def lives(before, after):
        return np.array([measured(case, before, after, next(seeds)) for _ in range(LIVES)])

    with_all, without = lives(ids, nobody).mean(0), lives(nobody, nobody).mean(0)
    direction = with_all - without
    assert np.abs(direction).max() > 0

    def distance(one, other):
        """Student's t of what both say along the direction in which users change it."""
        first, second = one @ direction, other @ direction
        spread = first.var(ddof=1) / LIVES + second.var(ddof=1) / LIVES
        apart = first.mean() - second.mean()
        return apart / np.sqrt(spread) if spread else apart * np.inf if apart else 0.0

    earlier, later = lives(ids, nobody), lives(nobody, ids)
    assert abs(distance(earlier, later)) < FAR
    assert distance(earlier, lives(nobody, fewer)) > 2 * FAR
