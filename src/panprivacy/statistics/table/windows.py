"""What a table statistic learns from the answers of one window for the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs

from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.abilities import Ranging, UserCounting
from panprivacy.statistics.internals import LearningWindows
from panprivacy.statistics.records import Query
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.table.memory import TableMemory
from panprivacy.tables.planning.learning import Evidence, LearnedRange, StateRange


class TableWindows(LearningWindows):
    """The learning windows of a table statistic.

    Args:
        memory: of the statistic.
        query: the record of what a release may be asked.
    """

    __slots__ = ("_memory", "_query")

    def __init__(self, memory: TableMemory[Any], query: type[Query]) -> None:
        self._memory, self._query = memory, query

    @property
    def lasting(self) -> bool:
        """Whether it goes on where a window ends: its sizes say how many releases there are."""
        return self._memory.sizes.steps is not None

    @property
    def expects(self) -> tuple[LearnedRange, ...]:
        """The ranges it is planned for, of those that windows learn."""
        return tuple(self._memory.sizes.learned.values())

    def expect(self, ranges: Sequence[LearnedRange]) -> None:
        """Plan anew, before anything is counted; epsilon stays split as it is.

        Raises:
            PlanError: nothing can be planned for that. Nothing was changed.
            PanPrivacyError: it has made releases or announced intrusions. Nothing was changed.
        """
        memory = self._memory
        memory.check_new()
        if not ranges:
            return
        budget, fields = memory.plan.split.budget, memory.sizes.fields()
        learned = zip(memory.sizes.learned.items(), ranges, strict=True)
        then = {
            name: fields[name].value(type(first)(expected).within(first))
            for (name, first), expected in learned
        }
        sizes, own = structs.replace(memory.sizes, **then), Budget(budget.state, budget.release)
        memory.initialise(sizes, sizes.planned(replace(memory.plan.request, budget=own)))

    def after(
        self, answers: Mapping[Name, Release | None], states: StateRange | None = None
    ) -> tuple[LearnedRange, ...]:
        """Return the ranges to plan for after its answer; unchanged if that is lost."""
        plan = self._memory.plan
        answer, reached = next(filter(None, answers.values()), None), self.reached(answers)
        users = None
        learns_users = "expected" in self._memory.sizes.learned
        if answer is not None and learns_users and isinstance(plan, UserCounting):
            users = plan.synthetic_users(answer.low)[0], plan.synthetic_users(answer.high)[0]
        seen = Evidence(users, states if reached is None else reached)
        return tuple(expected.after(seen) for expected in self.expects)

    def reached(self, answers: Mapping[Name, Release | None]) -> StateRange | None:
        """Return how far from 0 states reach; None if no answer says."""
        plan = self._memory.plan
        return plan.reached(answers, self._memory.announced) if isinstance(plan, Ranging) else None

    def shows_range(self, **asked: Any) -> bool:
        """Return whether the answers to this say how far states reach."""
        query = self._query.read(self._memory.name, asked)
        plan = self._memory.plan
        return plan.shows_range(query) if isinstance(plan, Ranging) else False
