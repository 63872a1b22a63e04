"""Room above the bound: counters have more values than states need, where that is nearly free.

A state beyond the last value of its counter is taken for another one, and nobody notices. So of
all plans that err hardly more than the best one, the one whose counters have most values is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.tables.cells.difference_sets import DifferenceSet, point, with_modulus
from panprivacy.tables.cells.law import MOST_MODULUS
from panprivacy.tables.cells.modular import counter_type

_MOST_ROOM = 8
"""Maximum number of values of a counter, in multiples of the values that states need."""

_MOST_VALUES = 1 << 16
"""Room ends here: a law of more values takes long to make and to draw from."""

MOST_COST = 1.05
"""Largest factor by which room may raise the predicted error."""

T = TypeVar("T")


def sets_of(least: int, block: int = 1) -> list[DifferenceSet]:
    """Return the difference sets to choose from, for at least this many blocks of values."""
    sets = [*with_modulus(max(least, 3)), point(max(least, 2))]
    return [one for one in sets if one.modulus * block <= MOST_MODULUS]


def wider_sets(least: int, best: DifferenceSet, block: int = 1) -> list[DifferenceSet]:
    """Return sets for several times as many blocks, with no more memory than the best."""
    most, width = min(_MOST_ROOM * least * block, _MOST_VALUES), counter_type(best.modulus * block)
    sets = (one for times in range(2, _MOST_ROOM + 1) for one in sets_of(times * least, block))
    return [
        one
        for one in dict.fromkeys(sets)
        if one.modulus * block <= most and counter_type(one.modulus * block) == width
    ]


def roomiest(
    best: T,
    wider: Iterable[T],
    chosen: Callable[[T], DifferenceSet],
    errors: Callable[[T], ArrayLike],
) -> T:
    """Return the plan with most room of those that err hardly more than the best one.

    Args:
        best: the plan with the smallest error.
        wider: others.
        chosen: the difference set of a plan.
        errors: the predicted errors of a plan, the one that counts most first.
    """
    most = MOST_COST * np.asarray(errors(best))
    near = [one for one in wider if (np.asarray(errors(one)) <= most).all()]
    return max([best, *near], key=lambda one: (chosen(one).modulus, -np.ravel(errors(one))[0]))
