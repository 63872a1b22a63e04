"""The releases of a table statistic: its sums with fresh noise, once they are paid for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PanPrivacyError
from panprivacy.ground.validation import proportion
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.internals import Releasing
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.records import Query
from panprivacy.statistics.release import Answer, Answers, Lost
from panprivacy.statistics.table.memory import TableMemory

P = TypeVar("P", bound=Plan)


class TableReleasing(Releasing, Generic[P]):
    """The releases of a table statistic.

    Args:
        memory: of the statistic.
        query: the record of what a release may be asked.
    """

    __slots__ = ("_query", "compared", "memory")

    adds_noise: ClassVar[bool] = True
    """Whether a release is its sums with noise of the scales that its reading says; derived."""

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.adds_noise = cls._add_noise is TableReleasing._add_noise

    def __init__(self, memory: TableMemory[P], query: type[Query]) -> None:
        self.memory, self._query = memory, query
        self.compared = False

    @property
    def planned(self) -> int:
        """Number of releases that epsilon covers."""
        return self.memory.plan.request.releases

    @property
    def made(self) -> int:
        """Number of releases made so far."""
        return self.memory.now.releases

    @property
    def state_epsilon(self) -> Fraction:
        """Loss of the state with all planned looks, in nats; it is charged at the start."""
        plan = self.memory.plan
        return plan.split.budget.of_state(plan.request.intrusions)

    def of_releases(self, count: int) -> Fraction:
        """Return the loss of the first `count` releases, in nats, on top of the state."""
        return self.memory.plan.split.budget.of_releases(count)

    def query(self, asked: Mapping[str, Any]) -> Query:
        """Read what a release is asked.

        Raises:
            PlanError: something cannot be asked.
        """
        return self._query.read(self.memory.name, asked)

    def release(self, *, confidence: float = 0.95, **asked: Any) -> Answer:
        """Publish the answer; the budget is spent first. See `Statistic.release`."""
        level, reading = proportion(confidence=confidence), self.reading(**asked)
        return self.answer(reading, self._noised(reading), level)

    def reading(self, **asked: Any) -> Reading:
        """Return how a release that is asked this is made, and how its noised sums are read.

        Raises:
            PlanError: something cannot be asked.
        """
        return self.memory.plan.reading(self.query(asked), self.memory.announced)

    def _noised(self, reading: Reading) -> NDArray[np.int64]:
        """Pay for a release, and add output noise to its sums, which are wiped.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
            PanPrivacyError: this is a slice. Nothing was spent.
        """
        self._refuse_slice()
        self.memory.check_steps()
        if cost := self.release_epsilon:
            self.memory.account.spend(cost)
        counts = self.with_noise(reading)
        self.memory.now.releases += 1
        return counts

    def answer(
        self, reading: Reading, counts: NDArray[np.int64], confidence: float = 0.95
    ) -> Answer:
        """Return the answer to noised sums: a function of them and of the plan alone."""
        return reading.answer(counts, confidence).under(self.memory.name)

    def with_noise(self, reading: Reading) -> NDArray[np.int64]:
        """Return the sums of a reading that is paid for, with fresh noise."""
        sums = reading.sums(self.memory.cells, self.memory.now.table)
        try:
            return self._add_noise(reading, sums)
        finally:
            wipe(sums)

    def contributed(self, reading: Reading) -> bytes:
        """Return what a contribution holds of a release: its sums, without output noise."""
        sums = reading.sums(self.memory.cells, self.memory.now.table)
        packed = sums.tobytes()
        wipe(sums)
        return packed

    def _add_noise(self, reading: Reading, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums with discrete Laplace noise on each; a subclass may draw another one."""
        return noised_sums(sums, reading.scales, self.memory.coins)

    def _refuse_slice(self) -> None:
        """Refuse an answer of a slice: noise and decoder are those of the whole table."""
        if self.memory.slice is not None:
            message = "a slice has no answer of its own: merge the contributions of all shards"
            raise PanPrivacyError(message)

    def check_release(self, *, confidence: float = 0.95, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything.

        Args:
            confidence: as for `release`.
            asked: as for `release`.
        """
        proportion(confidence=confidence)
        self.reading(**asked)
        self.memory.check_steps()

    def lost(self, *, confidence: float = 0.95, **asked: Any) -> Answers:  # noqa: ARG002
        """Return what takes the place of a release that is lost, as `LostReleaseError` says."""
        names = self.memory.plan.names(self.query(asked))
        return Answers([Lost(names)]).under(self.memory.name)

    def unread(self, *, confidence: float = 0.95, **asked: Any) -> Answers:  # noqa: ARG002
        """Return the answers of a release that is not lost, by name and without numbers."""
        names = self.memory.plan.answered(self.query(asked))
        return Answers([Lost(names)]).under(self.memory.name)


def noised_sums(
    sums: NDArray[np.int64], scales: Sequence[Fraction], coins: Coins
) -> NDArray[np.int64]:
    """Return the sums with discrete Laplace noise on each; a single scale is that of all."""
    if len(scales) == 1:
        noise = coins.discrete_laplace(scales[0], len(sums))
    else:
        drawn = [coins.discrete_laplace(scale, 1) for scale in scales]
        noise = np.concatenate(drawn)
        wipe(*drawn)
    counts = sums + noise
    wipe(noise)
    return counts
