"""What a picture of a plan's tables shows: users that are made up, and the values of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from panprivacy.statistics.release import Name, Release

UserStates = NDArray[np.int64]
"""The sums of the deltas of users."""

MOST_MADE_UP = 10_000_000
"""Users of a throw-away state."""


class Drawing:
    """The picture of a plan that tells of no user: nobody is made up, and cells are as they are."""

    __slots__ = ()

    @property
    def groups(self) -> int:
        """The number of runs of cells."""
        return 1

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:  # noqa: ARG002
        """Return the states of made-up users, as many as released answers say."""
        return np.zeros(0, np.int64)

    def values(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the values of cells."""
        return cells


class OneAnswer(Protocol):
    """What the picture of one answer needs of a plan."""

    @property
    def numbered(self) -> int | None:
        """The number of possible users; None for any ids."""

    @property
    def groups(self) -> int:
        """The number of runs of cells that a release counts."""

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return the synthetic population of an answer: the number of users, and their state."""


class CountDrawing(Drawing):
    """The picture of one answer: its users are all in one state.

    Args:
        plan: of the statistic.
    """

    __slots__ = ("_plan",)

    def __init__(self, plan: OneAnswer) -> None:
        self._plan = plan

    @property
    def groups(self) -> int:
        """The levels, if there are any."""
        return self._plan.groups

    def made_up(self, answers: Mapping[Name, Release | None]) -> UserStates:
        """Users in one state, as many as the answer says; none if it is lost."""
        answer = sum(one.value for one in answers.values() if one is not None)
        users, state = self._plan.synthetic_users(answer)
        return np.full(min(round(users), most_made_up(self._plan.numbered)), state)


def most_made_up(numbered: int | None) -> int:
    """Return the largest number of made-up users, of so many possible ones."""
    return MOST_MADE_UP if numbered is None else min(numbered, MOST_MADE_UP)
