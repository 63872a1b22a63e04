"""The plan of an `InnerProduct`: how many cells, and which form a release has."""

from __future__ import annotations

import math
from dataclasses import dataclass

from panprivacy.statistics.additive_plans import AdditivePlan
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.release import Name
from panprivacy.tables.cells.additive import PairedCells
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.decoders.quadratic import ProductsModel
from panprivacy.tables.planning.regret import grid
from panprivacy.tables.planning.request import Request, Split


@dataclass(frozen=True, slots=True)
class InnerPlan(AdditivePlan):
    """The parameters of an `InnerProduct`.

    Args:
        bound: the largest state of a user, in either stream.
        left: what the column of sides calls the first stream.
        right: what it calls the second.
        signed: whether states reach down to `-bound`.
        expected: the lowest and the highest sum of squares of either stream that is planned for.
        cells: how many there are, half of them for each stream.
        clip: where they are cut before a release sums their products; 0 if it publishes each.
        request: epsilon and what it covers.
        split: how epsilon is spent.
    """

    bound: int
    left: str
    right: str
    signed: bool
    expected: tuple[int, int]
    cells: int
    clip: int
    request: Request
    split: Split

    tables = 2
    measure = "the sum of squares of either stream"
    unit = "products added up over users"
    name = Name("", "inner_product")

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return (
            "how much do the products of users' states in two streams add up to? "
            f"({self.left} and {self.right}: the size of their join)"
        )

    @property
    def sides(self) -> tuple[str, str]:
        """The labels of the two streams in a column."""
        return self.left, self.right

    @property
    def table(self) -> PairedCells:
        """The cells of both tables."""
        budget = self.split.budget
        scales = self.moves.initial(budget), self.moves.later(budget)
        return PairedCells(self.cells, *scales, self.clip)

    @property
    def planned(self) -> tuple[float, float]:
        """The lowest and the highest answer: streams may have nobody in common."""
        return (-self.limit if self.signed else 0.0), self.limit

    @property
    def error_points(self) -> tuple[float, ...]:
        """The sums of squares at which errors are told: low, middle and high."""
        low, high = map(float, self.expected)
        return tuple(dict.fromkeys((low, math.sqrt(low * high), high)))

    @property
    def _truths(self) -> Floats:
        return grid(*map(float, self.expected))

    def model(self, epoch: int) -> ProductsModel:
        """Return the estimate model of numbers released after `epoch` announced intrusions."""
        noise = self.noise(epoch)
        return ProductsModel(self.table_cells, noise, self.signed, self.clip, **self.of_clip(epoch))

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The sum of the products.

        Args:
            name: of the answer.
            states: of the users that came, in either stream, (users, 2).
            last: not used.
        """
        left, right = states.astype(float).T
        return float(left @ right)

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return the synthetic population of an answer: how many users, each in a middle state."""
        state = max(self.bound // 2, 1)
        return abs(answer) / state**2, state
