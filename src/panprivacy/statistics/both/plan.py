"""The plan of a `BothCount`: how many cells, and the law of their pairs of bits."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.privacy.guarantee import float_above
from panprivacy.statistics.both.decoder import BOTH, LEFT, RIGHT, BothModel
from panprivacy.statistics.both.laws import SENSITIVITY, PairSplit, pair_splits
from panprivacy.statistics.count_plan import CountReading
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.distinct.plan import LevelledPlan
from panprivacy.statistics.drawing import Drawing, UserStates
from panprivacy.statistics.overlaps import operations
from panprivacy.statistics.overlaps.pairs import PairNoise
from panprivacy.statistics.overlaps.patterns import CellLayout
from panprivacy.statistics.release import Answers, Name
from panprivacy.tables.cells.pairs import PAIRS, PairedBits, PairLaw
from panprivacy.tables.cells.protocol import Deltas, Table
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.planning.regret import WORST_ERROR, Designs, grid
from panprivacy.tables.planning.request import Request, Split

CELLS_PER_USER = 3
"""Cells for each expected user: more of them add more noise than they avoid collisions."""

QUESTIONS = "left", "right", "intersection", "union", "share"


@dataclass(frozen=True, slots=True)
class BothPlan(LevelledPlan):
    """The parameters of a `BothCount`.

    Args:
        expected: lowest and highest number of users of either stream that the plan is good for.
        levels: number of levels.
        cells_per_level: cells of each, of two bits.
        request: epsilon and what it covers.
        split: how epsilon is spent.
        left: what the column of sides calls the first stream.
        right: what it calls the second.
        share: of the users of a stream who are in the other one, for the predicted error.
        pair: the law of the two bits of a cell.
    """

    left: str
    right: str
    share: float
    pair: PairLaw

    proofs: ClassVar[tuple[str, ...]] = ("both",)
    checks: ClassVar[tuple[str, ...]] = ("exact/test_both", "statistical/test_both")
    measure = "the users of either stream"
    name = Name("", "intersection")

    @property
    def question(self) -> str:
        """The question that it answers, in words."""
        return f"how many users appeared in both streams? ({self.left} and {self.right})"

    @property
    def sides(self) -> tuple[str, str]:
        """The labels of the two streams in a column."""
        return self.left, self.right

    @property
    def table(self) -> PairedBits:
        """The cells of both tables."""
        return PairedBits(self.cells, self.pair)

    @property
    def searched_law(self) -> str:
        """The law of the bits, which was found by a search."""
        return self.pair.text

    @property
    def groups(self) -> int:
        """A release publishes four counts a level: one for each pair of bits."""
        return PAIRS * self.levels

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002 - no intrusion is announced
        """Return the L1 sensitivity of the counts: a user moves one cell between two pairs."""
        return SENSITIVITY

    def check_deltas(self, deltas: Deltas) -> None:
        """Nobody leaves."""
        refuse_deltas(deltas < 1, "delta must be at least 1: nobody leaves a table of who came")

    def model(self, epoch: int) -> BothModel:  # type: ignore[override]  # noqa: ARG002
        """Return the estimate model of released counts."""
        layout = CellLayout(self.cells_per_level, self.levels)
        rows = tuple(tuple(map(float, law)) for law in self.pair.laws)
        noise = PairNoise(rows)  # type: ignore[arg-type]
        return BothModel(layout, noise, self.split.noise_variance, self.share)

    def joint_model(self, epoch: int, tables: int) -> BothModel:  # type: ignore[override]
        """Return the estimate model of counts of several tables of disjoint users."""
        return replace(self.model(epoch), tables=tables)

    def names(self, query: object) -> tuple[Name, ...]:  # noqa: ARG002
        """The names of the answers: users of a stream, of both, of either, and a share."""
        return tuple(Name("", question) for question in QUESTIONS)

    def reading(self, query: object, epoch: int) -> BothReading:  # noqa: ARG002
        """Return the reading of a release."""
        return BothReading(self, epoch)

    @classmethod
    def planning_errors(
        cls, designs: Sequence[BothPlan], users: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The errors of the users of both streams, as a share of those of either."""
        errors = [one.model(0).deviation(users) / users for one in designs]
        return np.fmin(np.array(errors), WORST_ERROR)

    def reach(self, confidence: float, truth: float | None) -> float:
        """Return the bound on an answer's error at this probability, in standard deviations."""
        users = grid(*self.planned)
        worst = float(users[int(np.argmax(self.relative_errors(users)))])
        return noise_quantile(confidence, self.model(0).output_share(truth or worst))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the predicted error is of."""
        shared = f"{100 * self.share:g} % of the users of each stream are in the other one too"
        return (f"the error is that of the users of both, where {shared}",)

    @property
    def drawing(self) -> Drawing:
        """Nobody is made up for a picture."""
        return Drawing()

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:  # noqa: ARG002
        """The exact answer.

        Args:
            name: of the answer.
            states: of the users that came, in either stream, (users, 2).
            last: not used.
        """
        left, right = (states > 0).T
        counted = {
            "left": left.sum(),
            "right": right.sum(),
            "intersection": (left & right).sum(),
            "union": (left | right).sum(),
        }
        if name.question == "share":
            return float(counted["intersection"] / max(counted["left"], 1))
        return float(counted[name.question])


@dataclass(frozen=True, slots=True)
class BothReading(CountReading):
    """A release of the number of cells of each level that show each pair of bits.

    Args:
        plan: of the statistic.
        epoch: the number of announced intrusions so far.
        tables: how many tables the counts are of.
    """

    plan: BothPlan

    @property
    def scales(self) -> tuple[Fraction]:
        """One for all counts: a user moves two of them by one."""
        return (SENSITIVITY / self.plan.split.budget.release,)

    def sums(self, cells: PairedBits, table: Table) -> NDArray[np.int64]:
        """Return the number of cells of each level that show each pair of bits."""
        return cells.pair_counts(table, self.plan.levels)

    def answer(self, counts: NDArray[np.int64], confidence: float) -> Answers:  # type: ignore[override]
        """The five answers, each with its interval."""
        model = self.plan.joint_model(self.epoch, self.tables)
        observed = model.observed(counts)
        found = (
            operations.count(observed, LEFT, confidence=confidence),
            operations.count(observed, RIGHT, confidence=confidence),
            operations.count(observed, BOTH, confidence=confidence),
            operations.count(observed, LEFT | RIGHT, confidence=confidence),
            operations.share(observed, BOTH, LEFT, confidence=confidence),
        )
        epsilon = float_above(self.plan.split.budget.release)
        public = {"epsilon": epsilon, "counts": tuple(counts.tolist())}
        names = self.plan.names(None)
        return Answers(
            replace(one, name=name, **public)  # type: ignore[arg-type]
            for one, name in zip(found, names, strict=True)
        )


@functools.lru_cache(maxsize=256)
def plan_both(
    expected: tuple[int, int],
    memory: int,
    cells: int | None,
    sides: tuple[str, str],
    share: float,
    request: Request,
) -> BothPlan:
    """Plan a `BothCount` within `memory` bytes of both tables, or of so many cells."""
    low, high = expected
    designs = _designs(expected, sides, share, request)
    if cells is not None:
        return designs.best(cells)
    most = 4 * memory
    if low == high:
        most = min(most, CELLS_PER_USER * high)
    return designs.best(most)


@functools.lru_cache(maxsize=8)
def _designs(
    expected: tuple[int, int], sides: tuple[str, str], share: float, request: Request
) -> Designs[BothPlan]:
    """The designs for any memory."""

    def made(levels: int, cells: Sequence[int]) -> list[BothPlan]:
        splits = pair_splits(request, cells)
        return [
            BothPlan(expected, levels, each, request, _split(one), *sides, share, one.law)
            for each, one in zip(cells, splits, strict=True)
        ]

    return Designs(made, expected)


def _split(chosen: PairSplit) -> Split:
    contrast = float(chosen.law.present - chosen.law.absent)
    return Split(chosen.budget, contrast, chosen.noise_variance)
