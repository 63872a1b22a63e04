"""The law of the state depends on who appeared, not on how the stream was cut into batches.

Laws are exact: every outcome of every coin of a tiny table is walked, given the table's birth.
"""

from __future__ import annotations

from itertools import combinations, cycle, islice, pairwise

import pytest

from panprivacy.tables.ids import read_ids

from .cases import LIFE
from .doubles import ScriptedCoins, exact_law

ANNOUNCE = None
COME, GO = (0, 1), (0, -1)
OTHER = (1, 1)


def splits(rows):
    """Every way to cut rows into batches, as lists of batches."""
    for count in range(len(rows)):
        for cuts in combinations(range(1, len(rows)), count):
            yield [rows[start:end] for start, end in pairwise([0, *cuts, len(rows)])]


def births(case, **overrides):
    """Two tables to start from; each cell is born 0 in one and 1 in the other."""
    cells = case.make_tiny(**overrides).plan.cells
    return [tuple(islice(cycle(bits), cells)) for bits in ((0, 1), (1, 0))]


def after(case, batches, coins, **overrides):
    """A statistic after some batches of `(user, delta)` and announcements."""
    statistic = case.make_tiny(coins=coins, **overrides)
    for batch in batches:
        if batch is ANNOUNCE:
            statistic.announce_intrusion()
        else:
            statistic.update([user for user, _ in batch], [delta for _, delta in batch])
    return statistic


def law(case, birth, *batches, **overrides):
    """The exact law of the state after some batches, given the birth of the table."""
    return exact_law(lambda coins: after(case, batches, coins, **overrides).state(), given=birth)


def laws(case, *batches):
    """The exact laws of the state after some batches, one for each birth."""
    return [law(case, birth, *batches) for birth in births(case)]


def test_batches_split_anywhere_give_the_same_law(tiny_case):
    whole, *others = (laws(tiny_case, *batches) for batches in splits([COME, OTHER, COME]))
    assert len(others) == 3
    assert all(other == whole for other in others)
    assert [sum(given_birth.values()) for given_birth in whole] == [1, 1]


def test_batches_split_anywhere_give_the_same_law_when_users_leave(tiny_deletions_case):
    whole, *others = (laws(tiny_deletions_case, *batches) for batches in splits([COME, OTHER, GO]))
    assert all(other == whole for other in others)
    assert whole != laws(tiny_deletions_case, [COME, OTHER])


@pytest.mark.long
def test_batches_split_after_an_announced_intrusion_give_the_same_law(seen_tiny_case):
    birth, _ = births(seen_tiny_case, **LIFE)
    whole = law(seen_tiny_case, birth, ANNOUNCE, [COME, COME], **LIFE)
    assert whole == law(seen_tiny_case, birth, ANNOUNCE, [COME], [COME], **LIFE)
    once = law(seen_tiny_case, birth, ANNOUNCE, [COME], **LIFE)
    assert once != law(seen_tiny_case, birth, ANNOUNCE, [], **LIFE)


def test_who_came_before_an_announced_intrusion_is_as_present_as_who_comes_later(seen_tiny_case):
    birth, _ = births(seen_tiny_case, **LIFE)
    before = law(seen_tiny_case, birth, [COME], ANNOUNCE, **LIFE)
    assert before == law(seen_tiny_case, birth, ANNOUNCE, [COME], **LIFE)


def test_an_empty_batch_does_not_change_the_law(tiny_case):
    assert laws(tiny_case, [], [COME, OTHER], []) == laws(tiny_case, [COME, OTHER])
    assert laws(tiny_case, []) != laws(tiny_case, [COME])


def test_who_comes_back_leaves_the_law_as_it_is(tiny_bits_case):
    assert laws(tiny_bits_case, [COME], [COME], [COME]) == laws(tiny_bits_case, [COME])


def test_who_comes_is_present_in_his_cell_and_in_no_other(tiny_bits_case):
    table = tiny_bits_case.make_tiny().plan.table
    laws = getattr(table, "laws", None)
    check_redraw(
        tiny_bits_case,
        delta=1,
        probability=laws.probabilities()[1][1] if laws else table.presence(0),
    )


def test_who_leaves_is_as_absent_as_at_birth(bits_deletions_case):
    bits = bits_deletions_case.make_tiny().plan.table
    check_redraw(bits_deletions_case, delta=-1, probability=1 - bits.presence(0))


def check_redraw(case, delta, probability):
    """A user's event gives his cell, if he has one, `probability`, and leaves the others alone."""
    for user in (0, 1, 2):
        for birth in births(case):
            expected = list(birth)
            for cell in cells_of(case, user):
                expected[cell] = probability
            assert means_of_bits(case, [(user, delta)], birth) == expected


def cells_of(case, user):
    """The cell of a user under the scripted key, if he has one."""
    addressing = case.make_tiny(coins=ScriptedCoins()).internals.memory.addressing
    return [int(cell) for cell in next(addressing.slots(read_ids([user]))) if cell >= 0]


def means_of_bits(case, batch, birth):
    """The exact probability of each bit to be 1 after one batch."""

    def table(coins):
        statistic = after(case, [batch], coins)
        return tuple(statistic.plan.table.ones(statistic.internals.memory.now.table).tolist())

    outcomes = exact_law(table, given=birth).items()
    return [
        sum(probability * bits[cell] for bits, probability in outcomes)
        for cell in range(len(birth))
    ]
