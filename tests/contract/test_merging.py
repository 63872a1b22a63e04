"""Every statistic is merged from shards of different users, or refuses in one line.

False-alarm rate 1e-6: the truth lies in an interval of that confidence. Power: of all but four,
twice the truth does not, or half of it.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.abilities import Sided
from panprivacy.statistics.catalogue import KINDS
from panprivacy.statistics.count_plan import CountPlan
from panprivacy.testing import SeededCoins
from tests import refusals

from .cases import CASES, answers_of

OURS = [case for case in CASES if case.kind in KINDS]
MERGED = [case for case in OURS if case.plan.hides != "event" and not case.trial.publishes]
EACH = pytest.mark.parametrize("case", MERGED, ids=lambda case: case.name)

CONFIDENCE = 1 - 1e-6


def shards(case, **given):
    """Two shards, of seven eighths of the users and of the others, in a state that counts."""
    plan = case.make().plan
    most = plan.synthetic_users(plan.largest)[0] if isinstance(plan, CountPlan) else plan.largest
    users = np.array(case.ids(min(800, int(0.8 * most))))
    made = []
    for of in np.split(users, [7 * len(users) // 8]):
        statistic = case.make(**given)
        statistic.update(of, np.full(len(of), state_of(case)))
        made.append(statistic)
    return made, np.full(len(users), state_of(case))


def state_of(case):
    return case.plan.synthetic_users(1.0)[1] if isinstance(case.plan, CountPlan) else 1


def merged(case, made, states, parts):
    """Each answer, and its truth."""
    answer, plan = pp.merge(parts, confidence=CONFIDENCE), made[0].plan
    each = answers_of(answer.exactly(1) if hasattr(answer, "exactly") else answer)
    if isinstance(plan, Sided):  # all of them are in one of two streams
        states = np.column_stack([states, 0 * states])
    return [(one, plan.truth(one.name, states, np.ones(len(states)))) for one in each]


def of_sums(case):
    made, states = shards(case, epsilon=12)
    return merged(case, made, states, [one.contribute() for one in made])


@EACH
def test_the_answer_of_two_shards_is_that_of_all_users(case):
    assert all(answer.low <= truth <= answer.high for answer, truth in of_sums(case))


def test_most_answers_are_told_from_others():
    vague = [
        case.name
        for case in MERGED
        if all(one.low <= truth / 2 and 2 * truth <= one.high for one, truth in of_sums(case))
    ]
    assert len(vague) <= 4, vague


@EACH
def test_a_contribution_is_paid_for_and_is_the_last_thing_that_a_state_tells(case):
    statistic = case.make()
    cost = statistic.internals.releasing.state_epsilon + statistic.internals.releasing.of_releases(
        1
    )
    statistic.contribute()
    assert statistic.ledger.spent == cost
    for tells in (statistic.state, statistic.contribute, statistic.release):
        with refusals.wiped():
            tells()


@pytest.mark.parametrize(
    "case", [one for one in MERGED if one.trial.intrusions], ids=lambda case: case.name
)
def test_a_contribution_is_an_announced_look_where_one_is_left(case):
    coins = SeededCoins(1)  # of a moment's one cell, fresh noise may be the noise of before
    statistic = case.make(**{case.covers: 2}, intrusions=1, coins=coins)
    before = statistic.internals.memory.now.table.copy()
    statistic.contribute()
    assert (statistic.releases, statistic.internals.memory.announced) == (1, 1)
    assert not np.array_equal(statistic.internals.memory.now.table, before)
    statistic.contribute()
    with refusals.wiped():
        statistic.state()


def adds_cells(case):
    try:
        case.make().internals.contributions.check_parts("cells")
    except pp.PlanError:
        return False
    return True


ADDED = list(filter(adds_cells, MERGED))


@pytest.mark.parametrize("case", ADDED, ids=lambda case: case.name)
def test_tables_of_one_key_are_added_up(case):
    made, states = shards(case, key=b"the same in both shards", epsilon=30)
    each = merged(case, made, states, [one.contribute_cells() for one in made])
    assert all(answer.low <= truth <= answer.high for answer, truth in each)


@pytest.mark.parametrize(
    "case", [one for one in MERGED if one not in ADDED], ids=lambda case: case.name
)
def test_other_tables_are_not_added_up_and_lose_nothing(case):
    statistic = case.make()
    before = statistic.state()
    with pytest.raises(pp.PlanError, match=r"cannot be added up|clip=0") as refused:
        statistic.contribute_cells()
    assert "\n" not in str(refused.value)
    assert statistic.state() == before
    assert statistic.ledger.spent == statistic.internals.releasing.state_epsilon


@pytest.mark.parametrize(
    "case", [one for one in OURS if one not in MERGED], ids=lambda case: case.name
)
def test_running_counts_are_not_merged(case):
    statistic = case.make()
    before = statistic.state()
    with pytest.raises(pp.PlanError, match=r"let each shard release|as a whole|join the sketches"):
        statistic.contribute()
    assert statistic.state() == before


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind not in KINDS], ids=lambda case: case.name
)
def test_what_merge_does_not_know_contributes_nothing_and_goes_on(case):
    statistic = case.make()
    before, spent = statistic.state(), statistic.ledger.spent
    with pytest.raises(pp.PlanError, match="merge does not know"):
        statistic.contribute()
    assert (statistic.state(), statistic.ledger.spent) == (before, spent)
