"""The base class of table statistics: it joins a plan, a memory and releases.

A statistic is three things: a public plan, a state (all that survives between two updates), and
the functions that join them. What differs from one statistic to the next, its plan says.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar, cast

from panprivacy.errors import PlanError
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import Budget, Epsilon, Guarantee, Ledger
from panprivacy.statistics.arguments import instance, request, shared_key
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.private import Private
from panprivacy.statistics.records import Sizes
from panprivacy.statistics.release import Answer
from panprivacy.statistics.signatures import documented, format_sizes, signature_of
from panprivacy.statistics.table.contributions import unknown
from panprivacy.statistics.table.internals import TableInternals
from panprivacy.statistics.table.memory import TableMemory
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.statistics.useful import check_useful
from panprivacy.tables.ids import AmountColumn, Labels, WholeNumbers
from panprivacy.tables.slices import Slice

_HOME = "panprivacy.statistics."
"""Where the statistics of the catalogue are, which imports this module; a test compares."""

P = TypeVar("P", bound=Plan)
A = TypeVar("A", bound=Answer)


class Statistic(Private, Generic[P, A]):
    """The base of all table statistics; see the subclasses.

    An object belongs to one thread at a time; several threads need a lock around it.

    A subclass names its records: `entry = CatalogueEntry(CroppedSizes, ...)`. Its constructor takes
    the fields of the sizes by name, or the record, and the arguments below. Type checkers cannot
    read records, so a subclass writes the fields down once more for them alone.

    Args:
        sizes: the record, in place of its fields.
        epsilon: total loss of state and releases, in nats.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers.
        budget: how epsilon is split between state and releases; None for the split that errs
            least, as `plan` has it.
        ledger: budget shared with other statistics of the same stream.
        coins: source of all randomness; None for the operating system's.
        key: 16 bytes or more, of which the addressing key is made: shards whose cells are to be
            added up need the same; None to draw one.
        slice_: which slice of the table this is, of a shard of a cluster: it counts the users of
            that shard, and contributes; None for the whole table.

    Raises:
        PlanError: an argument out of range, or some that do not go together.
        NoiseError: a table so small that its answers would be noise; `testing.allow_noise` allows
            it, for tests and audits.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ()

    entry: ClassVar[CatalogueEntry]
    """What the catalogue knows of it: its name, its records, and the cases that check it."""

    internals: TableInternals[P]
    """The parts that the rest of the package uses: memory, windows, contributions, releasing."""

    _memory: ClassVar[type[TableMemory[Any]]] = TableMemory
    """Keeps the state."""

    _releasing: ClassVar[type[TableReleasing[Any]]] = TableReleasing
    """Makes the releases."""

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if "entry" in vars(cls):
            common = inspect.signature(Statistic.__init__)
            cls.__signature__ = signature_of(cls.entry.sizes, common)  # type: ignore[attr-defined]
            cls.__doc__ = documented(cls.__doc__ or "", cls.entry.sizes, cls.entry.query)

    def __init__(
        self,
        sizes: Sizes | None = None,
        *,
        epsilon: Epsilon | None = None,
        releases: int = 1,
        intrusions: int = 0,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
        key: bytes | None = None,
        slice_: Slice | None = None,
        **named: Any,
    ) -> None:
        if epsilon is None:
            message = f"{type(self).__name__} needs epsilon=, the total privacy loss, such as 1"
            raise PlanError(message)
        asked = request(epsilon, releases, intrusions, budget)
        if sizes is not None and (named or not isinstance(sizes, self.entry.sizes)):
            message = (
                f"name the sizes of {self.entry.name}, or give one {self.entry.sizes.__name__}"
            )
            raise PlanError(message)
        read = self.entry.sizes.read(self.entry.name, named) if sizes is None else sizes
        if key is not None and read.learned:
            message = "each window that learns draws a key of its own: leave out key="
            raise PlanError(message)
        plan = cast("P", read.planned(asked))  # the sizes of its entry make its plans
        drawn_by = SystemCoins() if coins is None else coins
        budgeted = instance(Ledger, ledger=ledger) or Ledger(asked.epsilon)
        budgeted.check(asked.epsilon)
        check_useful(read, asked)
        memory = self._memory(
            self.entry.name,
            read,
            plan,
            ledger=budgeted,
            coins=drawn_by,
            slice_=self._read_slice(slice_, key, published=read.published),
            key=shared_key(key, plan.key_bytes),
        )
        releasing = self._releasing(memory, self.entry.query)
        self.internals = TableInternals(
            memory, releasing, self.entry.query, known=self._merge_knows_it()
        )
        # Last, so that a table that does not fit in memory costs a shared ledger nothing.
        memory.account = budgeted.open(asked.epsilon)
        memory.account.spend(releasing.state_epsilon)

    @classmethod
    def _merge_knows_it(cls) -> bool:
        """Return whether `merge` could read it: it knows the statistics of this package."""
        named = next(kind for kind in cls.__mro__ if "entry" in vars(kind))
        return named.__module__.startswith(_HOME)

    def _read_slice(
        self, given: Slice | None, key: bytes | None, *, published: bool
    ) -> Slice | None:
        """Refuse a slice of what nothing could put together again."""
        read = instance(Slice, slice_=given)
        if read is not None:
            if not self._merge_knows_it():
                raise unknown(self.entry.name, "let each shard count for itself, and release")
            if key is not None and not published:
                message = "the slices of a table have keys of their own: leave out key="
                raise PlanError(message)
        return read

    @property
    def plan(self) -> P:
        """The public parameters: sizes, the split of epsilon, the predicted error."""
        return self.internals.memory.plan

    @property
    def ledger(self) -> Ledger:
        """The budget this statistic draws on; shared if it was given one."""
        return self.internals.memory.ledger

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of its plan.

        Of a statistic that learns, a window that nobody sees loses what it would with any plan that
        splits epsilon alike.
        """
        promise = self.plan.guarantee
        if not self.internals.windows.expects:
            return promise
        asked, budget = self.plan.request, self.plan.split.budget
        unseen = budget.unseen(releases=asked.releases, intrusions=asked.intrusions)
        return replace(promise, unseen=unseen)

    def update(
        self,
        users: Labels,
        deltas: WholeNumbers | AmountColumn | None = None,
        sides: Labels | str | None = None,
    ) -> None:
        """Take in one batch of events; an error changes nothing.

        Args:
            users: user ids, one for each event: a NumPy array, Arrow array, pandas or Polars
                series, or sequence of whole numbers, byte strings or texts.
            deltas: one whole number for each event; None for 1 each. Where the sizes have a `unit`,
                one amount for each event: a number that is divided by it.
            sides: which of two streams each event is of, for a statistic of two; others count the
                events of both.

        Raises:
            InputError: a null, a wrong type, a delta that cannot be counted, or an id outside a
                declared universe. The message names the row, never the id.
        """
        memory = self.internals.memory
        memory.apply(memory.prepare(users, deltas, sides))

    def release(self, *, confidence: float = 0.95, **asked: Any) -> A:
        """Publish the answer; the budget is spent first.

        Args:
            confidence: probability, 0 to 1, that each interval covers the truth.
            asked: what the statistic may be asked, by name; see its class.

        Returns:
            The answer with its interval, a function of the noised counts and the plan alone.

        Raises:
            PlanError: something cannot be asked. Nothing was spent.
            BudgetError: all planned releases have been made. Nothing was spent.
            LostReleaseError: too many users for the cells. This has been spent.
        """
        return cast("A", self.internals.releasing.release(confidence=confidence, **asked))

    def __repr__(self) -> str:
        """Return its plan and the number of releases left; nothing of the stream."""
        memory = self.internals.memory
        kept, asked = memory.kept, memory.plan.request
        left = (
            f"{asked.releases - kept.releases} of {asked.releases} releases left"
            if kept
            else "wiped"
        )
        sizes = format_sizes(memory.sizes)
        return f"<{type(self).__name__} {sizes}epsilon={float(asked.epsilon):g}: {left}>"
