"""Plans of additive cells: what a `FrequencyMoment` and an `InnerProduct` have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import parse_users
from panprivacy.ground.validation import MOST_BYTES, expected_range
from panprivacy.statistics.count_plan import CountAggregation, CountPlan, CountReading
from panprivacy.statistics.drawing import UserStates
from panprivacy.statistics.records import custom_field, integer
from panprivacy.statistics.slicing import Slicing
from panprivacy.tables.addressing import Independent
from panprivacy.tables.decoders.intervals import noise_quantile
from panprivacy.tables.decoders.quadratic import CellNoise
from panprivacy.tables.planning.additive import MOST_BOUND, Reach, released_variance, squares_fit
from panprivacy.tables.polynomial import WORD_BYTES

_INDEPENDENCE = 4
"""Cells and signs of so many users are independent: variances of sums of squares need no more."""

_MEMORY = 1 << 20
_MOST_CELLS = 1 << 27

Bound = Annotated[
    int,
    integer("the largest state of a user, on which privacy rests; the error is proportional to it",
          MOST_BOUND, example=20),
]  # fmt: skip
"""Of states."""

SumMemory = Annotated[
    int | None,
    integer("most bytes of cells, in place of cells; 1 MiB unless told", MOST_BYTES,
          example=1_048_576),
]  # fmt: skip
"""Of cells, where the plan does not choose."""

Clip = Annotated[
    int | None,
    integer("cells are cut to ±N and one noised sum leaves; 0 for noise on every cell; what errs "
          "less unless told", 1 << 40, 0, example=0),
]  # fmt: skip
"""Which of two forms a release has."""


def _range(name: str, value: object) -> tuple[int, int]:
    """A number, or a range of numbers."""
    del name
    return expected_range(parse_users(value) if isinstance(value, str) else value)


def answers(says: str) -> Any:
    """A field that is a range of answers."""
    return custom_field(_range, "N or LOW:HIGH", says, "1_000_000:1_000_000_000")


def cells_of(says: str) -> Any:
    """A field that is a number of cells."""
    return integer(says, _MOST_CELLS, example=65_536)


def most_cells(memory: int | None, tables: int) -> int:
    """Return the largest number of cells of each table, at least one."""
    return max((memory or _MEMORY) // (8 * tables), 1)


class AdditivePlan(CountPlan):
    """The plan of an answer that is read off additive cells."""

    __slots__ = ()

    tables: ClassVar[int] = 1
    """How many tables of equal size there are; a user has a cell in each."""

    bound: int
    signed: bool
    expected: tuple[int, int]
    cells: int
    clip: int

    proofs: ClassVar[tuple[str, ...]] = ("moments",)
    checks: ClassVar[tuple[str, ...]] = ("exact/test_moments", "statistical/test_moments")
    range_of_states = None  # answers are right beyond the bound; what is lost there is privacy

    @property
    def moves(self) -> Reach:
        """The distance by which one user can move the cells."""
        return Reach(self.bound, self.signed, self.tables)

    @property
    def conditions(self) -> tuple[str, ...]:  # type: ignore[override]
        """Unlike counters modulo M, sums hide no more than they were made for."""
        low, high = self.states
        told = f"it holds while each user's deltas add up to {low:,} to {high:,} at all times: "
        return (told + "who goes c times as far loses c times as much",)

    @property
    def states(self) -> tuple[int, int]:
        """The lowest and the highest state that epsilon covers."""
        return (-self.bound if self.signed else 0), self.bound

    @property
    def slicing(self) -> Slicing:
        """Slices of each table; cells leave as they are unless their squares are added up."""
        return Slicing(self, self.cells, self.tables, publishes_cells=not self.clip)

    @property
    def aggregation(self) -> AdditiveAggregation:
        """The contributions of several tables, as one."""
        return AdditiveAggregation(self)

    @property
    def table_cells(self) -> int:
        """The number of cells of one table."""
        return self.cells // self.tables

    @property
    def groups(self) -> int:
        """The number of numbers that a release publishes."""
        return (1 if self.tables == 1 else 3) if self.clip else self.cells

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002 - noise changes nothing
        """Return the L1 sensitivity of the numbers to one user, whatever was announced."""
        return self.moves.sensitivity(self.clip)

    @property
    def key_bytes(self) -> int:
        """Bytes of addressing key: a point and the coefficients of a polynomial."""
        return WORD_BYTES * (1 + _INDEPENDENCE)

    def address(self, key: bytes) -> Independent:
        """Return the addressing of a user's cell and sign: two slots map to a cell."""
        return Independent(2 * self.table_cells, key)

    def noise(self, epoch: int, added: int = 1) -> CellNoise:
        """Return the noise of a cell, with that of a release that publishes it.

        Args:
            epoch: how many intrusions were announced.
            added: of how many tables cells were added up.
        """
        return self.moves.noise(self.split.budget, epoch, published=not self.clip, added=added)

    def joint_model(self, epoch: int, tables: int) -> Any:
        """Return the estimate model of added numbers of several tables of disjoint users.

        Cells that are published are added up one by one, with the noise of all tables. Signs of
        different tables are independent, so products of two users vanish on average, as they do
        in one table. Sums of squares add up as they are.
        """
        model: Any = self.model(epoch)
        if not self.clip:
            return replace(model, noise=self.noise(epoch, tables))
        if not squares_fit(tables * self.table_cells, self.clip):
            message = "squares of so many shards do not fit in 64 bits: say a smaller clip="
            raise PlanError(message)
        return replace(model, tables=tables, slack=tables * model.slack)

    @property
    def limit(self) -> float:
        """The largest answer that it is planned for."""
        return float(self.expected[1])

    @property
    def planned(self) -> tuple[float, float]:
        """The lowest and the highest answer that it is planned for."""
        low, high = self.expected
        return float(low), float(high)

    @property
    def largest(self) -> float:
        """The highest of them."""
        return self.limit

    def of_clip(self, epoch: int) -> dict[str, Any]:
        """Return the largest loss by clipping, and the largest answer that it covers."""
        if not self.clip:
            return {}
        tails = self.moves.tails(self.table_cells, self.split.budget, epoch, self.limit)
        released = released_variance(self.moves, self.clip, self.split.budget)
        return {"released": released, "limit": self.limit, "slack": tails.hidden(self.clip)}

    def reach(self, confidence: float, truth: float | None) -> float:
        """Return the bound on an answer's error in deviations: hidden users are as random as noise.

        What a clip hides is far less.
        """
        model = self.model(self.request.intrusions)
        truths = self._truths if truth is None else [truth]
        return noise_quantile(confidence, max(model.output_share(float(one)) for one in truths))

    def facts(self, states: UserStates) -> list[str]:
        """Return the number of users who lose more than epsilon."""
        low, high = self.states
        beyond = int(((states > high) | (states < low)).sum())
        return [f"{beyond:,} users end beyond the bound, and lose more than epsilon"] * (beyond > 0)


class AdditiveAggregation(CountAggregation):
    """The contributions of several additive tables."""

    __slots__ = ("_clip",)

    bounded = False  # noise fits how far states move while they keep the condition

    def __init__(self, plan: AdditivePlan) -> None:
        super().__init__(plan)
        self._clip = plan.clip

    def of_cells(self, query: object, epoch: int, tables: int) -> CountReading:
        """Return the reading of the cell-wise sum of tables of one key.

        Raises:
            PlanError: cells are cut to a clip that is made for the noise of one table.
        """
        if self._clip:
            message = "the clip is made for the noise of one table: say clip=0 to add up cells"
            raise PlanError(message)
        return self.of_sums(query, epoch, tables)
