"""Linear queries on the states of users: vectors of what each state counts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.validation import whole_number
from panprivacy.statistics.notes import BELOW, ROOM
from panprivacy.statistics.release import Name

Scores = NDArray[np.int64]

_FAR = 1 << 62
_TOLD = "exactly", "distinct"
"""Questions whose answers are right where a state below 0 is taken for one far above the bound."""

_MOST_POWER = 8
_MOST_SCORE = 1 << 36
"""Of a cell: the sum of as many as there are by default fits in 64 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearQuery:
    """The score of each user, as a function of the user's state.

    Args:
        name: of the answer.
        scores: int64[M], for the states 0, 1, ... and, from the end, -1, -2, ...
    """

    name: Name
    scores: Scores

    @classmethod
    def of(cls, question: str, scores: Scores, **arguments: int) -> LinearQuery:
        """A query with the name of its question and of what belongs to it."""
        return cls(Name("", question, tuple(arguments.items())), scores)


@dataclass(frozen=True, slots=True)
class States:
    """The states that users can be in, as residues modulo M.

    Args:
        modulus: M, at least the number of states up to the bound.
        bound: the largest distance of a state from 0 that is planned for.
        signed: whether states below 0 occur, down to minus the bound.
        below: the distance of the lowest state from 0 where they do not go so far; None where
            nobody says how far.
    """

    modulus: int
    bound: int
    signed: bool
    below: int | None = None

    @property
    def lowest(self) -> int:
        """The lowest state that a residue stands for."""
        return self.highest - self.modulus + 1

    @property
    def highest(self) -> int:
        """The highest one: each residue stands for a state, beyond the bound too."""
        return self.modulus // 2 if self.signed else self.modulus - 1 - (self.below or 0)

    def values(self) -> Scores:
        """The state that each residue stands for."""
        residues = np.arange(self.modulus)
        return np.where(residues <= self.highest, residues, residues - self.modulus)

    def listed(self) -> range:
        """The states of a histogram: those within the bound."""
        return range(-self.bound if self.signed else -(self.below or 0), self.bound + 1)

    def caveat(self, question: str) -> str | None:
        """Return the caveat of answers about users below 0; None where these are counted right."""
        told = self.signed or self.below is not None or question in _TOLD
        return None if told else f"{BELOW} count as if far above the bound: {ROOM}"

    def within(self) -> NDArray[np.bool_]:
        """Return the mask of residues that represent a state within the bound."""
        return np.isin(self.values(), self.listed())

    def above(self) -> LinearQuery | None:
        """Users above the bound; None where no residue stands for them."""
        if self.highest == self.bound:
            return None
        scores = (self.values() > self.bound).astype(np.int64)
        return LinearQuery.of("at_least", scores, state=self.bound + 1)

    def _state(self, least: int, **named: object) -> int:
        """A state that can be asked for."""
        name = next(iter(named))
        try:
            chosen = whole_number(-_FAR, _FAR, **named)
        except PlanError:
            message = f"{name} must be a whole number from {least} to {self.bound:,}, the bound"
            raise PlanError(message) from None
        if least <= chosen <= self.bound:
            return chosen
        words = "raise the bound" if chosen > 0 else "ask for another"
        if least <= -chosen <= self.bound:
            words = "states below 0 need below= or signed=True"
        message = f"{name} must lie within {least} to {self.bound:,}, the bound: {words}"
        raise PlanError(message)

    def exactly(self, state: object) -> LinearQuery:
        """Users in this state."""
        chosen = self._state(self.listed()[0], exactly=state)
        scores = np.zeros(self.modulus, np.int64)
        scores[chosen % self.modulus] = 1
        return LinearQuery.of("exactly", scores, state=chosen)

    def at_least(self, least: object) -> LinearQuery:
        """Users in this state or a higher one."""
        chosen = self._state(1, at_least=least)
        scores = (self.values() >= chosen).astype(np.int64)
        return LinearQuery.of("at_least", scores, state=chosen)

    def cropped_sum(self, tau: object) -> LinearQuery:
        """The sum of states, each cut to 0 .. tau."""
        chosen = self._state(1, cropped_sum=tau)
        return LinearQuery.of("cropped_sum", np.clip(self.values(), 0, chosen), tau=chosen)

    def cropped_moment(self, tau: object, power: object) -> LinearQuery:
        """The sum of powers of states, each state cut to 0 .. tau before."""
        chosen = self._state(1, cropped_moment=tau)
        exponent = whole_number(1, _MOST_POWER, power=power)
        if self.modulus * chosen**exponent > _MOST_SCORE:
            message = f"tau**power must be at most {_MOST_SCORE // self.modulus:,} with this bound"
            raise PlanError(message)
        scores = np.clip(self.values(), 0, chosen) ** exponent
        return LinearQuery.of("cropped_moment", scores, tau=chosen, power=exponent)

    def distinct(self) -> LinearQuery:
        """Users in any state but 0."""
        return LinearQuery.of("distinct", (self.values() != 0).astype(np.int64))

    def ranges(self, edges: Sequence[object]) -> list[LinearQuery]:
        """Users from each state to below the next one, and from the last one on.

        Raises:
            PlanError: one is no state from 1 to the bound, or they do not rise.
        """
        chosen = [self._state(1, histogram=edge) for edge in edges]
        if any(low >= high for low, high in itertools.pairwise(chosen)):
            message = "histogram must be rising states, such as 1,5,10"
            raise PlanError(message)
        values, found = self.values(), []
        for low, high in itertools.pairwise(chosen):
            scores = ((values >= low) & (values < high)).astype(np.int64)
            found.append(LinearQuery.of("between", scores, first=low, last=high - 1))
        return found + [self.at_least(last) for last in chosen[-1:]]

    def above_mean(self, mean: float) -> LinearQuery:
        """Above 0 if the mean state of all users not in state 0 is above this.

        The scores are 2**20 times what counts; states count as far as the bound.
        """
        values = self.values()
        cut = np.clip(values, self.listed()[0], self.bound)
        scores = np.rint((cut - mean) * (values != 0) * 2**20).astype(np.int64)
        return LinearQuery.of("mean", scores)

    def at_most_share(self, most: int, share: float) -> LinearQuery:
        """Above 0 if more than a share of all users not in state 0 are in state `most` or lower.

        The scores are 2**30 times what counts.
        """
        values = self.values()
        low = ((values != 0) & (values <= most)).astype(float)
        scores = np.rint((low - share * (values != 0)) * 2**30).astype(np.int64)
        return LinearQuery.of("share", scores, state=most)
