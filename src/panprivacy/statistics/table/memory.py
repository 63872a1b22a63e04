"""The memory of a table statistic: key and cells, and everything that writes to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from panprivacy.errors import BudgetError, InputError, PanPrivacyError
from panprivacy.ground.validation import whole_number
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Account, Ledger
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.abilities import searched_law
from panprivacy.statistics.amounts import unit_of, whole_units
from panprivacy.statistics.deltas import concatenated_deltas
from panprivacy.statistics.header import Header, public_text, unpacked
from panprivacy.statistics.internals import Memory
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.records import Sizes
from panprivacy.statistics.slicing import address_of, table_of
from panprivacy.statistics.state import State
from panprivacy.tables.addressing import Addressing, CellBatch
from panprivacy.tables.cells.protocol import Deltas, Table
from panprivacy.tables.ids import (
    AmountColumn,
    Ids,
    Labels,
    SharedColumn,
    WholeNumbers,
    read_deltas,
    read_ids,
)
from panprivacy.tables.slices import Slice

P = TypeVar("P", bound=Plan)


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that a statistic has checked and can count; they hold ids.

    Args:
        plan: of the statistic that has checked them.
        ids: of the users.
        deltas: int64, one for each id; None for 1 each.
    """

    plan: Plan
    ids: list[Ids]
    deltas: Deltas | None


class TableMemory(Memory, Generic[P]):
    """The state of a table statistic, and what of it is public.

    Args:
        name: of the statistic.
        sizes: of its problem.
        plan: what was planned for them.
        ledger: the budget it draws on.
        coins: source of all randomness.
        slice_: the slice of the table that this is; None for the whole.
        key: the addressing key; None to draw one.
    """

    __slots__ = (
        "account", "addressing", "cells", "coins", "first_plan", "kept", "ledger", "name", "plan",
        "sizes", "slice",
    )  # fmt: skip

    account: Account
    """The part of the ledger that is this statistic's; opened once the table is there."""

    addressing: Addressing
    """The function from users to cells."""

    cells: Any
    """The cells of its table, or of its slice."""

    def __init__(
        self,
        name: str,
        sizes: Sizes,
        plan: P,
        *,
        ledger: Ledger,
        coins: Coins,
        slice_: Slice | None,
        key: bytes | None,
    ) -> None:
        self.name, self.ledger, self.coins, self.slice = name, ledger, coins, slice_
        self.first_plan = plan  # which deltas there may be: a learned bound refuses no row
        self.kept: State | None = None
        self.initialise(sizes, plan, key)

    def initialise(self, sizes: Sizes, plan: P, key: bytes | None = None) -> None:
        """Draw a key and a table; earlier ones, which counted nothing, are wiped."""
        if key is None:
            key = self.coins.key(plan.key_bytes) if plan.key_bytes else b""
        cells = table_of(plan, self.slice)
        newborn = State(key, [cells.initial(self.coins)])
        self.forget()
        self.sizes, self.plan, self.cells, self.kept = sizes, plan, cells, newborn
        self.addressing = address_of(plan, self.slice, key)

    @property
    def now(self) -> State:
        """The state, unless it was wiped."""
        if self.kept is None:
            message = "the state was wiped; make a new statistic"
            raise PanPrivacyError(message)
        return self.kept

    @property
    def announced(self) -> int:
        """Number of intrusions announced so far; `guarantee.intrusions` may be."""
        return self.now.intrusions

    def prepare(
        self,
        users: Labels | SharedColumn,
        deltas: WholeNumbers | AmountColumn | SharedColumn | None = None,
        sides: Labels | SharedColumn | str | None = None,  # noqa: ARG002 - for two streams
    ) -> Batch:
        """Check one batch of events without counting it, so that several statistics can take it.

        Args:
            users: as for `Statistic.update`.
            deltas: as for `Statistic.update`.
            sides: as for `Statistic.update`.

        Returns:
            What `apply` takes. It holds ids: use it at once.

        Raises:
            InputError: as for `Statistic.update`.
        """
        ids = read_ids(users)
        self.addressing.check(ids)
        return Batch(self.plan, ids, self._read_deltas(deltas, sum(map(len, ids))))

    def _read_deltas(self, deltas: Any, rows: int) -> Deltas | None:
        """Return the delta of each row, of amounts where the plan has a unit; None for 1 each."""
        plan = self.first_plan
        unit = unit_of(plan)
        if unit is not None and rows:
            if deltas is None:
                message = f"{self.name} with unit= counts amounts: give one for each id"
                raise InputError(message)
            signed = getattr(self.sizes, "signed", False)
            bound = plan.bound  # type: ignore[attr-defined] # whatever has a unit has one
            return whole_units(deltas, rows, unit, bound, signed=signed, coins=self.coins)
        if deltas is None:
            return None
        checked = read_deltas(deltas, rows)
        plan.check_deltas(checked)
        return checked

    def apply(self, *batches: Batch) -> None:
        """Count in one pass what this statistic has checked, or one of the same plan.

        Args:
            batches: what `prepare` gave, in order.

        Raises:
            InputError: one was checked for another plan. Nothing was counted.
        """
        self.check_plans([one.plan for one in batches])
        if len(batches) == 1:
            ids, deltas = batches[0].ids, batches[0].deltas
        else:
            ids = [chunk for batch in batches for chunk in batch.ids]
            deltas = concatenated_deltas([(sum(map(len, one.ids)), one.deltas) for one in batches])
        state, rows = self.now, CellBatch(self.addressing, ids)
        self.cells.update(state.arrays[0], rows, deltas, state.intrusions, self.coins)

    def check_plans(self, plans: Iterable[Plan]) -> None:
        """Refuse batches that were checked for another plan: their cells may not exist here."""
        for plan in plans:
            if plan is not self.plan and plan != self.plan:
                message = "this batch was checked for another plan"
                raise InputError(message)

    def check_steps(self) -> None:
        """Raise `BudgetError` if all planned releases have been made."""
        planned = self.plan.request.releases
        if self.now.releases < planned:
            return
        message = (
            f"all {planned} planned releases have been made; "
            "plan for more with releases= when the statistic is made"
        )
        if self.sizes.steps is not None:
            message = f"all {planned:,} steps have ended: make the count with a larger horizon="
        raise BudgetError(message)

    def forget(self) -> None:
        """Wipe the state: nothing can be counted, released or seen any more. May be repeated."""
        if self.kept is not None:
            wipe(*self.kept.arrays)
            self.kept = None

    @contextmanager
    def announcing(self) -> Iterator[None]:
        """Announce an intrusion when the block ends, unless it raises.

        What can fail does so before the block, so several statistics announce all or none.

        Raises:
            BudgetError: no further announced intrusion was planned. Nothing was changed.
        """
        planned = self.plan.request.intrusions
        if self.now.intrusions >= planned:
            message = (
                f"{planned} announced intrusions were planned for; "
                "plan for more with intrusions= when the statistic is made"
            )
            raise BudgetError(message)
        noise = self.fresh_noise(self.now)
        try:
            yield
            self.rerandomise(self.now, noise)
            self.now.intrusions += 1
        finally:
            wipe(noise)

    def fresh_noise(self, state: State) -> Table:  # noqa: ARG002
        """Return the noise that an announced intrusion adds to a state."""
        noise: Table = self.cells.fresh_noise(self.coins)
        return noise

    def rerandomise(self, state: State, noise: Table) -> None:
        """Add the noise to a state."""
        self.cells.rerandomise(state.table, noise)

    def state(self) -> bytes:
        """Return exactly what an intruder would get; reading it changes nothing."""
        return self.header.packed() + self.now.packed()

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Resume from an earlier state of the same plan; see `Statistic.resume`."""
        earlier = self.earlier(state, released, announced)
        later = replace(earlier, arrays=[earlier.table.copy()])
        try:
            self.catch_up(later, announced)
            if cost := self.plan.split.budget.of_releases(later.releases):
                self.account.spend(cost)
        except BaseException:
            wipe(*later.arrays)
            raise
        self.forget()
        self.kept, self.addressing = later, address_of(self.plan, self.slice, later.key)

    def catch_up(self, state: State, announced: int) -> None:
        """Re-randomise an earlier state as often as intrusions were announced since."""
        for _ in range(state.intrusions, announced):
            noise = self.fresh_noise(state)
            self.rerandomise(state, noise)
            wipe(noise)
        state.intrusions = max(state.intrusions, announced)

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        self.earlier(state, released, announced)

    def earlier(self, state: bytes, released: int, announced: int) -> State:
        """Return an earlier state, once it is checked; its table is a part of the bytes."""
        self.check_new()
        header, body = unpacked(state, self.header)
        asked, key_bytes = self.plan.request, len(self.now.key)
        table = np.frombuffer(body, self.now.table.dtype, offset=key_bytes)
        releases = max(header.releases, whole_number(0, asked.releases, released=released))
        whole_number(0, asked.intrusions, announced=announced)
        possible = releases <= asked.releases and header.intrusions <= asked.intrusions
        possible &= header.tick == self.sizes.ticks(header.releases)
        if not possible or not self.cells.is_table(table):
            message = "the state is damaged: no such state can come about"
            raise InputError(message)
        return State(bytes(body[:key_bytes]), [table], releases, header.intrusions, header.tick)

    def check_new(self) -> None:
        """Refuse to begin anew what has made releases or announced intrusions."""
        if self.now.releases or self.now.intrusions:
            message = "only a new statistic can go on from an earlier state"
            raise PanPrivacyError(message)

    @property
    def header(self) -> Header:
        """The public part of the state; its length depends on the plan alone."""
        state, asked = self.now, self.plan.request
        budget, total = self.plan.split.budget, self.ledger.total
        text = public_text(
            self.name, self.sizes, asked, budget, total, searched_law(self.plan), self.slice
        )
        return Header(text, state.nbytes, state.releases, state.intrusions, state.tick)

    @property
    def _layout(self) -> Header:
        return self.header
