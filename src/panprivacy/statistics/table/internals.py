"""The internals of a table statistic, with the types of its parts."""

from __future__ import annotations

from typing import Generic, TypeVar

from panprivacy.statistics.internals import Internals
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import Query
from panprivacy.statistics.table.contributions import TableContributions
from panprivacy.statistics.table.memory import TableMemory
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.statistics.table.windows import TableWindows

P = TypeVar("P", bound=Plan)


class TableInternals(Internals, Generic[P]):
    """The four parts of a table statistic.

    Args:
        memory: key and cells.
        releasing: its releases.
        query: the record of what a release may be asked.
        known: whether `merge` could read its contributions.
    """

    __slots__ = ()

    memory: TableMemory[P]
    windows: TableWindows
    contributions: TableContributions
    releasing: TableReleasing[P]

    def __init__(
        self,
        memory: TableMemory[P],
        releasing: TableReleasing[P],
        query: type[Query],
        *,
        known: bool,
    ) -> None:
        super().__init__(
            memory,
            TableWindows(memory, query),
            TableContributions(releasing, known=known),
            releasing,
        )
