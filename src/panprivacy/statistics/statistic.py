"""What every table statistic does: take in batches, release, survive an intrusion.

A statistic is three things: a public plan, a state (all that survives between two updates), and
the functions here that join them. What differs from one statistic to the next, its plan says.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from panprivacy._validate import proportion, whole_number
from panprivacy.addressing import Rows
from panprivacy.cells.protocol import Deltas, Table
from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import BudgetError, InputError, PanPrivacyError, PlanError
from panprivacy.guarantee import Budget, Epsilon, Guarantee, Ledger
from panprivacy.ids import Ids, Labels, WholeNumbers, read_deltas, read_ids
from panprivacy.noise import wipe
from panprivacy.planning.learning import Evidence, Learned, Reach
from panprivacy.slices import Slice
from panprivacy.statistics.arguments import instance, request, shared_key
from panprivacy.statistics.cases import Cases, Trial, Walk
from panprivacy.statistics.comparing import Comparisons
from panprivacy.statistics.contribution import ID_BYTES, Form, Part, Told
from panprivacy.statistics.deltas import joined_deltas
from panprivacy.statistics.header import Header, public_text, unpacked
from panprivacy.statistics.plan import Plan, Reading
from panprivacy.statistics.private import Private, release_cost
from panprivacy.statistics.records import Query, Sizes
from panprivacy.statistics.release import Answer, Answers, Lost, Name, Release
from panprivacy.statistics.signatures import documented, shown_sizes, signature_of
from panprivacy.statistics.state import State

_HOME = "panprivacy.statistics."
"""Where the statistics of the catalogue are, which imports this module; a test compares."""

P = TypeVar("P", bound=Plan)
A = TypeVar("A", bound=Answer)


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


class Statistic(Private, Generic[P, A]):
    """The base of all table statistics; see the subclasses.

    An object belongs to one thread at a time; several threads need a lock around it.

    A subclass names its records: `class CroppedSum(Statistic[...], sizes=CroppedSizes)`. Its
    constructor takes the fields of the sizes by name, or the record, and the arguments below. Type
    checkers cannot read records, so a subclass writes the fields down once more for them alone.

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
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = (
        "_account", "_addressing", "_coins", "_kept", "_ledger", "_plan", "_sizes", "_slice",
        "_told",
    )  # fmt: skip

    name: ClassVar[str]
    """What the command line, configurations and states call it: the tag of its sizes."""

    sizes_type: ClassVar[type[Sizes]]
    query_type: ClassVar[type[Query]]

    adds_noise: ClassVar[bool] = True
    """Whether a release is its sums with noise of the scales that its reading says; derived."""

    trials: ClassVar[Sequence[Trial]] = ()
    """The lives that the contract suite leads it through."""

    walks: ClassVar[Sequence[Walk]] = ()
    """The sizes and streams that the exact audit walks."""

    def __init_subclass__(
        cls, sizes: type[Sizes] | None = None, query: type[Query] = Query, **rest: Any
    ) -> None:
        super().__init_subclass__(**rest)
        cls.adds_noise = cls._add_noise is Statistic._add_noise
        if sizes is not None:
            cls.sizes_type, cls.query_type = sizes, query
            cls.trials, cls.walks = Cases(cls.trials), Cases(cls.walks)
            cls.name = str(sizes.__struct_config__.tag)
            common = inspect.signature(Statistic.__init__)
            cls.__signature__ = signature_of(sizes, common)  # type: ignore[attr-defined]
            cls.__doc__ = documented(cls.__doc__ or "", sizes, query)

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
        if sizes is not None and (named or not isinstance(sizes, self.sizes_type)):
            message = f"name the sizes of {self.name}, or give one {self.sizes_type.__name__}"
            raise PlanError(message)
        read = self.sizes_type.read(self.name, named) if sizes is None else sizes
        if key is not None and read.learned:
            message = "each window that learns draws a key of its own: leave out key="
            raise PlanError(message)
        plan: P = read.planned(asked)
        self._told = plan  # which deltas there may be: a bound that windows learn refuses no row
        self._coins = SystemCoins() if coins is None else coins
        self._ledger = instance(Ledger, ledger=ledger) or Ledger(asked.epsilon)
        self._ledger.check(asked.epsilon)
        self._kept: State | None = None
        self._slice = self._read_slice(slice_, key)
        self._be_born(read, plan, shared_key(key, plan.key_bytes))
        # Last, so that a table that does not fit in memory costs a shared ledger nothing.
        self._account = self._ledger.open(asked.epsilon)
        self._account.spend(self.state_epsilon)

    def _read_slice(self, given: Slice | None, key: bytes | None) -> Slice | None:
        """Refuse a slice of what nothing could put together again."""
        read = instance(Slice, slice_=given)
        if read is not None:
            self._check_known("let each shard count for itself, and release")
            if key is not None:
                message = "the slices of a table have keys of their own: leave out key="
                raise PlanError(message)
        return read

    def _be_born(self, sizes: Sizes, plan: P, key: bytes | None = None) -> None:
        """Draw a key and a table; those that there were, which counted nothing, are wiped."""
        if key is None:
            key = self._coins.key(plan.key_bytes) if plan.key_bytes else b""
        newborn = State(key, [plan.cells_in(self._slice).born(self._coins)])
        self.forget()
        self._sizes, self._plan, self._kept = sizes, plan, newborn
        self._addressing = plan.address_in(self._slice, key)

    @property
    def plan(self) -> P:
        """The public parameters: sizes, the split of epsilon, the predicted error."""
        return self._plan

    @property
    def sizes(self) -> Sizes:
        """What it was told of the size of its problem."""
        return self._sizes

    @property
    def slice(self) -> Slice | None:
        """Which slice of the table this is; None for the whole."""
        return self._slice

    @property
    def ledger(self) -> Ledger:
        """The budget this statistic draws on; shared if it was given one."""
        return self._ledger

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of its plan.

        Of a statistic that learns, a window that nobody sees loses what it would with any plan that
        splits epsilon alike.
        """
        promise = self._plan.guarantee
        if not self._sizes.learned:
            return promise
        asked, budget = self._plan.request, self._plan.split.budget
        unseen = budget.unseen(releases=asked.releases, intrusions=asked.intrusions)
        return replace(promise, unseen=unseen)

    @property
    def releases(self) -> int:
        """How many releases have been made."""
        return self._state.releases

    @property
    def announced(self) -> int:
        """How many intrusions have been announced; `guarantee.intrusions` may be."""
        return self._state.intrusions

    @property
    def lasting(self) -> bool:
        """Whether it goes on where a window ends: its sizes say how many releases there are."""
        return self._sizes.steps is not None

    @property
    def planned(self) -> int:
        """How many releases epsilon covers."""
        return self._plan.request.releases

    @property
    def state_epsilon(self) -> Fraction:
        """What the state costs with all planned looks, in nats; it is paid at birth."""
        return self._plan.split.budget.of_state(self._plan.request.intrusions)

    @property
    def release_epsilon(self) -> Fraction:
        """What the next release costs, in nats; all have the same cost where losses are sums."""
        return release_cost(self, self.releases + 1)

    def of_releases(self, count: int) -> Fraction:
        """What the first so many releases cost, in nats, on top of the state."""
        return self._plan.split.budget.of_releases(count)

    @property
    def expects(self) -> tuple[Learned, ...]:
        """What it is planned for, of what windows learn."""
        return tuple(self._sizes.learned.values())

    def expect(self, ranges: Sequence[Learned]) -> None:
        """Plan anew, before anything is counted; epsilon stays split as it is.

        Raises:
            PlanError: nothing can be planned for that. Nothing was changed.
            PanPrivacyError: it has made releases or announced intrusions. Nothing was changed.
        """
        self._check_new()
        if not ranges:
            return
        budget, fields = self._plan.split.budget, self._sizes.fields()
        learned = zip(self._sizes.learned.items(), ranges, strict=True)
        then = {
            name: fields[name].value(type(first)(expected).within(first))
            for (name, first), expected in learned
        }
        sizes, own = structs.replace(self._sizes, **then), Budget(budget.state, budget.release)
        self._be_born(sizes, sizes.planned(replace(self._plan.request, budget=own)))

    def after(
        self, answers: Mapping[Name, Release | None], states: Reach | None = None
    ) -> tuple[Learned, ...]:
        """What to plan for after its answer; as it is if that is lost."""
        plan: Any = self._plan
        answer, reached = next(filter(None, answers.values()), None), self.reached(answers)
        users = None
        if answer is not None and "expected" in self._sizes.learned:
            users = plan.alike(answer.low)[0], plan.alike(answer.high)[0]
        seen = Evidence(users, states if reached is None else reached)
        return tuple(expected.after(seen) for expected in self.expects)

    def reached(self, answers: Mapping[Name, Release | None]) -> Reach | None:
        """How far from 0 states reach; None if no answer says."""
        return self._plan.reached(answers, self.announced)

    def tells_states(self, **asked: Any) -> bool:
        """Whether what it answers then says how far states reach."""
        return self._plan.tells_states(self.query_type.read(self.name, asked))

    @property
    def _cells(self) -> Any:
        """The cells of its table, or of its slice."""
        return self._plan.cells_in(self._slice)

    @property
    def _state(self) -> State:
        if self._kept is None:
            message = "the state was wiped; make a new statistic"
            raise PanPrivacyError(message)
        return self._kept

    def update(
        self,
        users: Labels,
        deltas: WholeNumbers | None = None,
        sides: Labels | str | None = None,
    ) -> None:
        """Take in one batch of events; an error changes nothing.

        Args:
            users: user ids, one for each event: a NumPy array, Arrow array, pandas or Polars
                series, or sequence of whole numbers, byte strings or texts.
            deltas: one whole number for each event; None for 1 each.
            sides: which of two streams each event is of, for a statistic of two; others count the
                events of both.

        Raises:
            InputError: a null, a wrong type, a delta that cannot be counted, or an id outside a
                declared universe. The message names the row, never the id.
        """
        self.apply(self.prepare(users, deltas, sides))

    def prepare(
        self,
        users: Labels,
        deltas: WholeNumbers | None = None,
        sides: Labels | str | None = None,  # noqa: ARG002 - for a statistic of two streams
    ) -> Batch:
        """Check one batch of events without counting it, so that several statistics can take it.

        Args:
            users: as for `update`.
            deltas: as for `update`.
            sides: as for `update`.

        Returns:
            What `apply` takes. It holds ids: use it at once.

        Raises:
            InputError: as for `update`.
        """
        ids = read_ids(users)
        self._addressing.check(ids)
        checked = None if deltas is None else read_deltas(deltas, sum(map(len, ids)))
        if checked is not None:
            self._told.check_deltas(checked)
        return Batch(self._plan, ids, checked)

    def apply(self, *batches: Batch) -> None:
        """Count what this statistic has checked, or one of the same plan, in one pass.

        Args:
            batches: what `prepare` gave, in order.

        Raises:
            InputError: one was checked for another plan. Nothing was counted.
        """
        self._check_plans(one.plan for one in batches)
        ids = [chunk for batch in batches for chunk in batch.ids]
        state, rows = self._state, Rows(self._addressing, ids)
        deltas = joined_deltas([(sum(map(len, one.ids)), one.deltas) for one in batches])
        self._cells.update(state.table, rows, deltas, state.intrusions, self._coins)

    def _check_plans(self, plans: Iterable[Plan]) -> None:
        """Refuse batches that were checked for another plan: their cells may not exist here."""
        if any(plan is not self._plan and plan != self._plan for plan in plans):
            message = "this batch was checked for another plan"
            raise InputError(message)

    def forget(self) -> None:
        """Wipe the state: nothing can be counted, released or seen any more. May be repeated."""
        if self._kept is not None:
            wipe(*self._kept.arrays)
            self._kept = None

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
        level, reading = proportion(confidence=confidence), self.reading(**asked)
        return self.answer(reading, self._noised(reading), level)

    def reading(self, **asked: Any) -> Reading:
        """How a release that is asked this is made, and what its noised sums say.

        Raises:
            PlanError: something cannot be asked.
        """
        query = self.query_type.read(self.name, asked)
        return self._plan.reading(query, self._state.intrusions)

    def _noised(self, reading: Reading) -> NDArray[np.int64]:
        """Pay for a release, and add output noise to its sums, which are wiped.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
            PanPrivacyError: this is a slice. Nothing was spent.
        """
        self._check_whole()
        self._check_left()
        self._account.spend(self.release_epsilon)
        counts = self._with_noise(reading)
        self._state.releases += 1
        return counts

    def answer(self, reading: Reading, counts: NDArray[np.int64], confidence: float = 0.95) -> A:
        """What noised sums say: a function of them and of the plan alone."""
        answer: Any = reading.answer(counts, confidence)
        return answer.under(self.name)

    def comparisons(
        self, epsilon: Fraction, *, delta: Fraction, updates: int, asked: Mapping[str, Any]
    ) -> Comparisons:
        """Pay for all comparisons of its number with an answer that stands; see `Continual`.

        Args:
            epsilon: of all comparisons together, beside that of the statistic.
            delta: of all comparisons together.
            updates: after how many releases nothing is compared any more.
            asked: what a release is asked: it has one answer.

        Raises:
            PlanError: its number cannot be compared. Nothing was spent.
            BudgetError: the ledger has less than `epsilon` available. Nothing was spent.
        """
        self._check_new()
        noised = self._with_noise
        return Comparisons(self, noised, cost=epsilon, delta=delta, updates=updates, asked=asked)

    def _with_noise(self, reading: Reading) -> NDArray[np.int64]:
        """The sums of a reading that is paid for, with fresh noise."""
        sums = reading.sums(self._cells, self._state.table)
        try:
            return self._add_noise(reading, sums)
        finally:
            wipe(sums)

    def _add_noise(self, reading: Reading, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums with discrete Laplace noise on each; who draws another one says how."""
        return noised_sums(sums, reading.scales, self._coins)

    def check_parts(self, form: Form, **asked: Any) -> None:
        """Raise what `parts` would refuse, without changing anything."""
        self._check_known("let each shard release")
        query, epoch = self.query_type.read(self.name, asked), self._state.intrusions
        self._check_left()
        if self._slice is None:
            self._plan.merged(form, query, epoch, 2)
        elif form == "sums":
            self._plan.reunited(query, epoch, self._slice.shards)
        else:
            message = "the cells of slices are of different users: contribute sums"
            raise PlanError(message)

    def _check_known(self, instead: str) -> None:
        """Refuse what `merge` could not read: it knows the statistics of this package."""
        named = next(kind for kind in type(self).__mro__ if "name" in vars(kind))
        if not named.__module__.startswith(_HOME):
            message = f"merge does not know {self.name}: {instead}"
            raise PlanError(message)

    def _check_whole(self) -> None:
        """Refuse an answer of a slice: noise and decoder are those of the whole table."""
        if self._slice is not None:
            message = "a slice has no answer of its own: merge the contributions of all shards"
            raise PanPrivacyError(message)

    def parts(self, form: Form, **asked: Any) -> list[Part]:
        """What `contribute` packs; the budget is spent first."""
        self.check_parts(form, **asked)
        reading, query = self.reading(**asked), self.query_type.read(self.name, asked)
        told = Told(id=self._coins.key(ID_BYTES).hex(), form=form, asked=query.plain())
        header, goes_on = self._layout, self.announced < self.guarantee.intrusions
        with self.announcing() if goes_on else nullcontext():
            self._account.spend(self.release_epsilon)
            part = Part(header, told, self._contributed(form, reading))
        self._state.releases += 1
        if not goes_on:
            self.forget()
        return [part]

    def _contributed(self, form: Form, reading: Reading) -> bytes:
        """The sums, or key and table."""
        if form == "cells":
            return self._state.packed()
        sums = reading.sums(self._cells, self._state.table)
        packed = sums.tobytes()
        wipe(sums)
        return packed

    def check_release(self, *, confidence: float = 0.95, **asked: Any) -> None:
        """Raise what `release` would refuse, without spending anything.

        Args:
            confidence: as for `release`.
            asked: as for `release`.
        """
        proportion(confidence=confidence)
        self.reading(**asked)
        self._check_left()

    def lost(self, *, confidence: float = 0.95, **asked: Any) -> Answers:  # noqa: ARG002
        """What stands in the place of a release that is lost, as `LostReleaseError` says."""
        names = self._plan.names(self.query_type.read(self.name, asked))
        return Answers([Lost(names)]).under(self.name)

    def unread(self, *, confidence: float = 0.95, **asked: Any) -> Answers:  # noqa: ARG002
        """The answers of a release that is not lost, by name and without numbers."""
        names = self._plan.answered(self.query_type.read(self.name, asked))
        return Answers([Lost(names)]).under(self.name)

    def _check_left(self) -> None:
        """Raise `BudgetError` if all planned releases have been made."""
        if self._state.releases >= self.planned:
            message = (
                f"all {self.planned} planned releases have been made; "
                "plan for more with releases= when the statistic is made"
            )
            raise BudgetError(message)

    @contextmanager
    def announcing(self) -> Iterator[None]:
        """Announce an intrusion when the block ends, unless it raises.

        What can fail does so before the block, so several statistics announce all or none.

        Raises:
            BudgetError: no further announced intrusion was planned. Nothing was changed.
        """
        if self._state.intrusions >= self._plan.request.intrusions:
            message = (
                f"{self._plan.request.intrusions} announced intrusions were planned for; "
                "plan for more with intrusions= when the statistic is made"
            )
            raise BudgetError(message)
        noise = self._fresh_noise(self._state)
        try:
            yield
            self._rerandomise(self._state, noise)
            self._state.intrusions += 1
        finally:
            wipe(noise)

    def _fresh_noise(self, state: State) -> Table:  # noqa: ARG002
        """What an announced intrusion adds to a state."""
        return self._cells.fresh_noise(self._coins)

    def _rerandomise(self, state: State, noise: Table) -> None:
        """Add it."""
        self._cells.rerandomise(state.table, noise)

    def state(self) -> bytes:
        """Exactly what an intruder would get; reading it changes nothing.

        Whoever reads it has intruded: only one unannounced look is covered. Announce this one
        before the state may be seen again.
        """
        return self._layout.packed() + self._state.packed()

    def resume(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Go on from an earlier state of the same plan, in place of this statistic's own.

        An old state beside a newer one is a second look, so only a sealed checkpoint may keep one
        (docs/threat-model.md). What the releases and intrusions of that state cost is spent here.

        Args:
            state: what `state()` returned. Wipe it afterwards if it can be wiped.
            released: how many releases have left in all, if some did after the state was taken.
            announced: how many intrusions have been announced in all, if some were after the
                state was taken: it is re-randomised for each that it does not know.

        Raises:
            InputError: it is damaged, or of another statistic, plan or version. Nothing changed.
            PlanError: more releases or announcements have been made than were planned.
            PanPrivacyError: this statistic has made releases or announced intrusions of its own.
        """
        earlier = self._earlier(state, released, announced)
        later = replace(earlier, arrays=[earlier.table.copy()])
        try:
            self._catch_up(later, announced)
            if cost := self.of_releases(later.releases):
                self._account.spend(cost)
        except BaseException:
            wipe(*later.arrays)
            raise
        self.forget()
        self._kept, self._addressing = later, self._plan.address_in(self._slice, later.key)

    def _catch_up(self, state: State, announced: int) -> None:
        """Bring an earlier state to where others were told of: it is re-randomised as often."""
        for _ in range(state.intrusions, announced):
            noise = self._fresh_noise(state)
            self._rerandomise(state, noise)
            wipe(noise)
        state.intrusions = max(state.intrusions, announced)

    def check_state(self, state: bytes, *, released: int = 0, announced: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        self._earlier(state, released, announced)

    def _earlier(self, state: bytes, released: int, announced: int) -> State:
        """An earlier state, once it is checked; its table is a part of the bytes."""
        self._check_new()
        header, body = unpacked(state, self._layout)
        asked, key_bytes = self._plan.request, len(self._state.key)
        table = np.frombuffer(body, self._state.table.dtype, offset=key_bytes)
        releases = max(header.releases, whole_number(0, asked.releases, released=released))
        whole_number(0, asked.intrusions, announced=announced)
        possible = releases <= asked.releases and header.intrusions <= asked.intrusions
        possible &= header.tick == self._sizes.ticks(header.releases)
        if not possible or not self._cells.is_table(table):
            message = "the state is damaged: no such state can come about"
            raise InputError(message)
        return State(bytes(body[:key_bytes]), [table], releases, header.intrusions, header.tick)

    def _check_new(self) -> None:
        """Refuse to begin anew what has told something."""
        if self._state.releases or self._state.intrusions:
            message = "only a new statistic can go on from an earlier state"
            raise PanPrivacyError(message)

    def __repr__(self) -> str:
        """What it is planned for, and how many releases are left; nothing of the stream."""
        kept, asked = self._kept, self._plan.request
        left = (
            f"{asked.releases - kept.releases} of {asked.releases} releases left"
            if kept
            else "wiped"
        )
        sizes = shown_sizes(self._sizes)
        return f"<{type(self).__name__} {sizes}epsilon={float(asked.epsilon):g}: {left}>"

    @property
    def _layout(self) -> Header:
        """The public part of the state; its length depends on the plan alone."""
        state, asked = self._state, self._plan.request
        budget, total = self._plan.split.budget, self._ledger.total
        law = self._plan.searched_law
        text = public_text(self.name, self._sizes, asked, budget, total, law, self._slice)
        return Header(text, state.nbytes, state.releases, state.intrusions, state.tick)


def noised_sums(
    sums: NDArray[np.int64], scales: Sequence[Fraction], coins: Coins
) -> NDArray[np.int64]:
    """Sums with discrete Laplace noise of its own on each; one scale is that of all of them."""
    if len(scales) == 1:
        noise = coins.discrete_laplace(scales[0], len(sums))
    else:
        drawn = [coins.discrete_laplace(scale, 1) for scale in scales]
        noise = np.concatenate(drawn)
        wipe(*drawn)
    counts = sums + noise
    wipe(noise)
    return counts
