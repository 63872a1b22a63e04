"""What is lost by a look at a release that a crash throws away, and that is made again.

A release waits for the checkpoint that has it, and nothing is counted meanwhile. Whoever looks sees
it, and what is kept beside it. All coins are walked, at each step at which the process may end.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.audit import EnumeratedCoins

BUDGET = pp.Budget(Fraction(1, 2), Fraction(1, 2))
ROWS = ([], []), ([0], []), ([], [0]), ([0], [0])
"""What the user does before the release, and between the crash and the next one."""


def density(coins):
    return pp.Density(universe=1, epsilon=1, budget=BUDGET, coins=coins)


def incidence(coins):
    return pp.Incidence(universe=1, bound=1, epsilon=1, budget=BUDGET, coins=coins)


def counts_of(answer):
    return tuple(answer.counts)


def life(make, coins, rows, step):
    """What is seen of a window that ends, of a process that ends, and of the next one.

    Args:
        make: makes the statistic.
        coins: of all its lives.
        rows: of the user, before the release and after the crash.
        step: where somebody looks and the process ends.
    """
    before, after = rows
    window = make(coins)
    checkpoint = window.state()
    window.update(before)
    if step == "before it is made":
        seen = window.state()
    elif step == "a row after it":
        made = counts_of(window.release())
        window.update([0] if before else [])
        seen = made, window.state()
    else:
        made = counts_of(window.release())
        # at the end of a window its state is wiped; within one it goes on
        seen = made if step == "at the end of a window" else (made, window.state())
    if step == "when it is kept":
        return seen, made  # whoever goes on publishes the same
    window = make(coins)
    window.resume(checkpoint)
    window.update(after)
    return seen, counts_of(window.release())


def law(make, rows, step):
    """The probability of all that is seen, and which outcomes lie within the tail of the noise."""
    coins, seen, near = EnumeratedCoins(tail=1), Counter(), set()
    for _ in coins:
        view = life(make, coins, rows, step)
        seen[view] += coins.probability
        if not coins.far:
            near.add(view)
    return seen, near


@functools.cache
def loss(make, step):
    """The worst over what the user may do, both ways."""
    laws = [law(make, rows, step) for rows in ROWS]
    worst = Fraction(1)
    for larger, near in laws:
        for smaller, _ in laws:
            for view in near:
                if not smaller[view]:
                    return math.inf
                worst = max(worst, larger[view] / smaller[view])
    return math.log(worst)


def test_a_release_that_is_kept_costs_what_it_costs():
    """Nothing of its window is left, and whoever goes on publishes the same."""
    assert loss(density, "when it is kept") == pytest.approx(0.5)


@pytest.mark.long
@pytest.mark.parametrize("make", [density, incidence])
def test_who_sees_a_release_that_is_made_again_has_looked_once(make):
    """It tells no more than the state of which it was made, wherever the process ends."""
    before = loss(make, "before it is made")
    assert before <= 1 + 1e-12, "a look and a release"
    assert loss(make, "within a window") == pytest.approx(before)
    assert loss(make, "at the end of a window") <= before + 1e-12


@pytest.mark.long
def test_rows_that_are_counted_while_a_release_waits_would_cost_more():
    """So batches wait: else the release and the look are of two states."""
    assert loss(density, "a row after it") > 1.05 * loss(density, "before it is made")
