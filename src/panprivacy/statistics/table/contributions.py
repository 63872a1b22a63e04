"""What a table statistic hands out for `merge`: its sums, or its key and cells."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from panprivacy.errors import PlanError
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.contribution import ID_BYTES, ContributionPart, ContributionSummary
from panprivacy.statistics.internals import Contributions
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.table.releasing import TableReleasing


class TableContributions(Contributions):
    """The contributions of a table statistic.

    Args:
        releasing: its releases, of which a contribution is one.
        known: whether `merge` could read it: it knows the statistics of this package.
    """

    __slots__ = ("_known", "_releasing")

    def __init__(self, releasing: TableReleasing[Any], *, known: bool) -> None:
        self._releasing, self._known = releasing, known

    def check_parts(self, form: Form, **asked: Any) -> None:
        """Raise what `parts` would refuse, without changing anything."""
        memory = self._releasing.memory
        if not self._known:
            raise unknown(memory.name, "let each shard release")
        query, epoch = self._releasing.query(asked), memory.announced
        memory.check_steps()
        if memory.slice is None:
            memory.plan.aggregation.reading(form, query, epoch, 2)
        elif form == "sums":
            memory.plan.slicing.reading(query, epoch, memory.slice.shards)
        else:
            message = "the cells of slices are of different users: contribute sums"
            raise PlanError(message)

    def parts(self, form: Form, **asked: Any) -> list[ContributionPart]:
        """Return what `contribute` packs; the budget is spent first."""
        self.check_parts(form, **asked)
        releasing, memory = self._releasing, self._releasing.memory
        reading, query = releasing.reading(**asked), releasing.query(asked)
        told = ContributionSummary(
            id=memory.coins.key(ID_BYTES).hex(), form=form, asked=query.plain()
        )
        header, goes_on = memory.header, memory.announced < memory.plan.guarantee.intrusions
        with memory.announcing() if goes_on else nullcontext():
            memory.account.spend(releasing.release_epsilon)
            part = ContributionPart(header, told, self._contributed(form, reading))
        memory.now.releases += 1
        if not goes_on:
            memory.forget()
        return [part]

    def _contributed(self, form: Form, reading: Reading) -> bytes:
        """Return the sums, or key and table."""
        memory = self._releasing.memory
        if form == "cells":
            return memory.now.packed()
        return self._releasing.contributed(reading)


def unknown(name: str, instead: str) -> PlanError:
    """Build the error for a statistic that `merge` could not read."""
    return PlanError(f"merge does not know {name}: {instead}")
