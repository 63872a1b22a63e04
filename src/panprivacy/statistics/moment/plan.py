"""The plan of a `FrequencyMoment`: how many cells, and which form a release has."""

from __future__ import annotations

from dataclasses import dataclass

from panprivacy.statistics.additive_plans import AdditivePlan
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.release import Name
from panprivacy.statistics.slicing import Slicing
from panprivacy.tables.addressing import Independent
from panprivacy.tables.cells.additive import AdditiveCells
from panprivacy.tables.decoders.quadratic import SquaresModel, SumModel
from panprivacy.tables.planning.request import Request, Split
from panprivacy.tables.slices import Slice


@dataclass(frozen=True, slots=True)
class MomentPlan(AdditivePlan):
    """The parameters of a `FrequencyMoment`.

    Args:
        order: 1 for the sum of the states, 2 for that of their squares.
        bound: the largest state of a user.
        signed: whether states reach down to `-bound`.
        expected: the lowest and the highest answer that it is planned for.
        cells: how many there are.
        clip: where they are cut before a release sums their squares; 0 if it publishes each.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    order: int
    bound: int
    signed: bool
    expected: tuple[int, int]
    cells: int
    clip: int
    request: Request
    split: Split

    measure = "the answer"

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        if self.order == 1:
            return "how much do the states of all users add up to?"
        return "how much do the squares of the states of all users add up to?"

    @property
    def unit(self) -> str:
        """The unit of answers."""
        return "added up over users" if self.order == 1 else "squares added up over users"

    @property
    def name(self) -> Name:
        """The name of the answer."""
        return Name("", "frequency_moment", (("order", self.order),))

    @property
    def table(self) -> AdditiveCells:
        """The table's cells."""
        budget = self.split.budget
        scales = self.moves.initial(budget), self.moves.later(budget)
        return AdditiveCells(self.cells, *scales, self.clip)

    def address(self, key: bytes) -> Independent:
        """Return the addressing of a user's cell and sign; one cell if nothing is squared."""
        return Independent(1, key) if self.order == 1 else AdditivePlan.address(self, key)

    @property
    def slicing(self) -> Slicing:
        """The slices of its cells; one cell cannot be divided, so each shard has one."""
        if self.order == 1:
            return SumSlicing(self, self.cells)
        return Slicing(self, self.cells, publishes_cells=not self.clip)

    def model(self, epoch: int) -> SumModel | SquaresModel:
        """Return the estimate model of numbers released after `epoch` announced intrusions."""
        noise = self.noise(epoch)
        if self.order == 1:
            return SumModel(noise)
        return SquaresModel(self.cells, noise, self.clip, **self.of_clip(epoch))

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The sum of the states, or of their squares."""
        return float((states.astype(float) ** self.order).sum())

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return the synthetic population of an answer: how many users, each in a middle state."""
        state = max(self.bound // 2, 1)
        return max(answer, 0.0) / state**self.order, state


@dataclass(frozen=True, slots=True)
class SumSlicing(Slicing):
    """The slices of one cell: each is as large as the table, and their numbers are added up."""

    plan: MomentPlan

    def share(self, slice_: Slice) -> int:  # noqa: ARG002
        """Return the number of cells of a slice: all there are."""
        return self.cells

    def reading(self, query: object, epoch: int, slices: int) -> Reading:
        """Return the reading of the sums of all slices: of several tables, each with its noise."""
        return self.plan.aggregation.of_sums(query, epoch, slices)
