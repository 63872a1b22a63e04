"""What one user of several groups loses, on every outcome of every coin."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain

import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss


class Groups:
    """Rows are pairs of a user and a group."""

    def __init__(self, coins, per_user):
        self._grouped = grouped(coins, per_user)

    def update(self, users, groups=()):
        self._grouped.update(users, groups)

    def release(self):
        return Counts(tuple(chain(*(one.counts for one in self._grouped.release().values()))))

    def state(self):
        return self._grouped.state()


class Counts:
    def __init__(self, counts):
        self.counts = counts


def grouped(coins, per_user):
    return pp.Grouped(
        lambda epsilon: pp.Density(universe=1, epsilon=epsilon, coins=coins),
        [7, 8],
        epsilon=1,
        per_user=per_user,
    )


@pytest.mark.long
@pytest.mark.parametrize("groups", [[7], [8], [7, 7], [7, 8], [8, 7, 8]])
@pytest.mark.parametrize("released", [[], [RELEASE]])
def test_a_user_loses_by_how_many_groups_he_is_in(groups, released):
    stream = [[(0, group)] for group in groups]
    for per_user in (1, 2):
        loss = exact_loss(
            lambda coins, per_user=per_user: Groups(coins, per_user),
            [*stream, *released],
            [*([] for _ in groups), *released],
            coins=EnumeratedCoins(tail=2),
        )
        share = Fraction(1, per_user)
        assert loss.within(len(set(groups)) * share)
        if not released:
            state = grouped(None, per_user).members[7].plan.split.budget.state
            assert loss.epsilon == pytest.approx(float(len(set(groups)) * state), abs=1e-6)
