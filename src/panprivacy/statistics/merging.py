"""One answer from several shards: their contributions are decoded together, with one noise.

>>> import numpy as np
>>> import panprivacy as pp
>>> def shard(users):
...     count = pp.CroppedSum(tau=5, universe=30_000, epsilon=2)
...     count.update(users)
...     return count.contribute()
>>> parts = [shard(np.arange(0, 9_000)), shard(np.arange(9_000, 20_000))]
>>> 12_000 < pp.merge(parts).value < 28_000  # 20,000
True

docs/merging.md says how, docs/guarantees/merging.md why it is private.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import InputError, LostReleaseError, PanPrivacyError, PlanError
from panprivacy.ground.validation import proportion
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import Guarantee, PrivacyLoss, format_rounded_up
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.contribution import (
    ContributionPart,
    ContributionSummary,
    read_parts,
)
from panprivacy.statistics.explain.description import Description, describe
from panprivacy.statistics.header import differing
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.reading import Reading
from panprivacy.statistics.records import Query
from panprivacy.statistics.release import Answer, Answers, Lost
from panprivacy.statistics.sketch.combined import joined_slices, read_slices
from panprivacy.statistics.sketch.plan import OverlapPlan
from panprivacy.statistics.table.releasing import noised_sums
from panprivacy.tables.slices import Slice

_NO_DESIGN = "ledger", "shard"
"""Public, but of no meaning to an answer; or checked by itself."""

_TOO_FEW = "merge two contributions or more, each the bytes that contribute() gave"


def merge(
    contributions: Sequence[bytes], *, confidence: float = 0.95, coins: Coins | None = None
) -> Any:
    """Return the answer of several shards, from what their `contribute` handed out.

    Guarantee: a user of one shard loses at most epsilon, the argument of that shard's constructor,
    by the answer and one look at the state of each shard, or at its contribution in place of that.
    Forget the contributions afterwards: merged once more, they cost a release more.
    [tests/exact/test_merging.py, docs/guarantees/merging.md]

    Args:
        contributions: one of each shard, in any order.
        confidence: probability, 0 to 1, that each interval covers the truth.
        coins: source of the output noise; None for the operating system's.

    Returns:
        What `release` of the shards would: an answer, or several by name.

    Raises:
        InputError: a contribution is damaged, there twice, or of another design than the first.
        PlanError: there is only one, and others have to come; or confidence is no probability.
        LostReleaseError: too many users for the cells of a shard, of one statistic alone.
    """
    level = proportion(confidence=confidence)
    return Merger(contributions).release(level, SystemCoins() if coins is None else coins)


class Merger:
    """Contributions that go together; they have been checked, and have no noise yet.

    Args:
        contributions: one of each shard, in any order.

    Raises:
        InputError: as for `merge`.
        PlanError: there are none, or only one.
    """

    def __init__(self, contributions: Sequence[bytes]) -> None:
        several: list[Any] = list(contributions)
        if not several or not all(isinstance(one, bytes) for one in several):
            raise PlanError(_TOO_FEW)
        shards = []
        for place, one in enumerate(several, start=1):
            with_place = f"contribution {place}: "
            try:
                shards.append(read_parts(one))
            except InputError as error:
                raise InputError(with_place + error.reason) from None
        _check_different(shards)
        self._merged = [_Merged.of(parts) for parts in _aligned(shards)]
        self._left = True

    @property
    def statistics(self) -> dict[str, Any]:
        """Plans and sizes of the merged statistics, by label."""
        return {one.label: one.described for one in self._merged}

    @property
    def ids(self) -> list[list[str]]:
        """The random numbers by which each contribution is known, in their order."""
        return [
            [part.told.id for part in parts]
            for parts in zip(*(one.parts for one in self._merged), strict=True)
        ]

    @property
    def complete(self) -> bool:
        """Whether each shard had counted everything."""
        return not self._cut_short

    @property
    def _cut_short(self) -> list[int]:
        """Numbers of the contributions that cover only a part of their input."""
        parts = self._merged[0].parts
        return [place for place, part in enumerate(parts, start=1) if not part.told.complete]

    @property
    def state_bytes(self) -> int:
        """The size of all states that were contributed from."""
        return sum(part.header.state_bytes for one in self._merged for part in one.parts)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of each user of one shard."""
        each = self._distinct_parts
        further = PrivacyLoss.total(one.additional_loss for one in each)
        promise = Guarantee.of_all(one.guarantee for one in each)
        cost = format_rounded_up(further.epsilon)
        return promise.contributed("a contribution is the look at its shard").on_condition(
            f"a user is in one contribution; each further one costs {cost}"
        )

    @property
    def _distinct_parts(self) -> list[_Merged]:
        """Contributions of each statistic; one stands for all groups, which are equal."""
        ungrouped = itertools.count()
        found = {}
        for one in self._merged:
            first = one.parts[0]
            alike = next(ungrouped) if one.summary.group is None else repr(one.summary.asked)
            found[one.label, first.header.front, alike] = one
        return list(found.values())

    @property
    def remarks(self) -> list[str]:
        """The price, as sentences, each once; and what is missing."""
        missing = [
            f"contribution {place} is not complete: its count began late, or ended early"
            for place in self._cut_short
        ]
        return [*dict.fromkeys(one.remark for one in self._merged), *missing]

    def release(self, confidence: float, coins: Coins) -> Any:
        """Return the answer, once; see `merge`."""
        if len(self._merged) > 1 or self._merged[0].summary.label:
            return self.answers(confidence, coins)
        self._take_once()
        return self._merged[0].released(confidence, coins)

    def answers(self, confidence: float, coins: Coins) -> Answers:
        """Return all answers by name, once; None for one that is lost."""
        self._take_once()
        return Answers(self._released(confidence, coins))

    def _take_once(self) -> None:
        if not self._left:
            message = "these contributions were released already"
            raise PanPrivacyError(message)
        self._left = False

    def _released(self, confidence: float, coins: Coins) -> Iterator[Answer]:
        for one in self._merged:
            try:
                yield one.released(confidence, coins)
            except LostReleaseError:  # the others are paid for as well
                yield one.lost


@dataclass(frozen=True, slots=True)
class _Merged:
    """The contributions of all shards to one statistic, or to one group of it.

    Args:
        parts: one of each shard.
        described: the statistic.
        query: the query of the release.
        reading: reading of all parts together.
    """

    parts: list[ContributionPart]
    described: Description
    query: Query
    reading: Reading

    @classmethod
    def of(cls, parts: list[ContributionPart]) -> _Merged:
        """Return contributions of one design."""
        first = parts[0]
        described, told = describe(first.header), first.told
        plan, epoch = described.plan, first.header.intrusions
        if described.slice_ is not None:
            _check_slices(parts, described.slice_.shards)
        elif len(parts) < 2:
            raise PlanError(_TOO_FEW)
        try:
            query = described.kind.entry.query.read(described.name, told.asked)
            if described.slice_ is None:
                reading = plan.aggregation.reading(told.form, query, epoch, len(parts))
            else:
                reading = plan.slicing.reading(query, epoch, len(parts))
        except PlanError as error:
            raise InputError(str(error)) from None
        published = isinstance(plan, OverlapPlan)
        merged = (_JoinedSlices if published else cls)(parts, described, query, reading)
        merged.check_sizes()
        return merged

    def check_sizes(self) -> None:
        """Refuse contributions that are not as long as their design says."""
        plan = self.described.plan
        if any(len(part.body) != self._size(part) for part in self.parts):
            message = "a contribution is damaged: it is not as long as its design says"
            raise InputError(message)
        if self.summary.form == "cells":
            keys = {part.body[: plan.key_bytes] for part in self.parts}
            if len(keys) > 1:
                message = (
                    "the shards have different addressing keys, so their cells are of different "
                    "users: make all with the same key="
                )
                raise InputError(message)

    def _size(self, part: ContributionPart) -> int:
        """Return the number of bytes of a contribution of this design."""
        plan = self.described.plan
        if self.summary.form == "cells":
            return plan.key_bytes + plan.table.nbytes
        slice_ = self.described.slice_
        if slice_ is None:
            return 8 * self.reading.size
        own = replace(slice_, shard=part.header.public()["shard"])
        return 8 * plan.slicing.size(own, self.reading)

    @property
    def summary(self) -> ContributionSummary:
        """Description in the contributions."""
        return self.parts[0].told

    @property
    def label(self) -> str:
        """Label of the statistic."""
        return self.summary.label or self.described.name

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee of one shard. A user may appear in up to `per_user` groups."""
        promise, groups = self.described.guarantee, self.summary.per_user
        return promise if groups is None else promise.in_groups(groups)

    @property
    def additional_loss(self) -> PrivacyLoss:
        """The loss of a user of one more shard there, at most."""
        further = PrivacyLoss(self.described.plan.aggregation.additional_loss(self.summary.form))
        return further.times(self.summary.per_user or 1)

    @property
    def remark(self) -> str:
        """The price, as a sentence."""
        epoch, tables = self.parts[0].header.intrusions, len(self.parts)
        if self.described.slice_ is not None:
            return f"{self.label}: {tables} slices of one table are read as that table"
        times = self.described.plan.aggregation.error(self.summary.form, epoch, tables)
        how = "added up cell by cell" if self.summary.form == "cells" else "of different users"
        return (
            f"{self.label}: {tables} tables {how} err about {times:.2g} times as much as one table "
            "of all users"
        )

    def released(self, confidence: float, coins: Coins) -> Answer:
        """Return the answer, with one output noise."""
        sums = self._sums()
        counts = noised_sums(sums, self.reading.scales, coins)
        wipe(sums)
        return self.reading.answer(counts, confidence).under(self.label, self.summary.group)

    @property
    def lost(self) -> Answer:
        """Placeholder for an answer that is lost."""
        return Lost(self.described.plan.names(self.query)).under(self.label, self.summary.group)

    def _sums(self) -> NDArray[np.int64]:
        """Return the sums of all shards: added up, or side by side."""
        if self.summary.form == "cells":
            return self._sums_of_cells()
        each = [np.frombuffer(part.body, np.int64) for part in self.parts]
        plan = self.described.plan
        together = plan.aggregation if self.described.slice_ is None else plan.slicing
        return together.combine_sums(each)

    def _sums_of_cells(self) -> NDArray[np.int64]:
        """Return the sums of the added tables: their noise and their users' updates add up."""
        plan = self.described.plan
        cells: Any = plan.table
        offset = plan.key_bytes
        tables = [
            np.frombuffer(part.body, cells.dtype, offset=offset).copy() for part in self.parts
        ]
        if not all(map(cells.is_table, tables)):
            message = "a contribution is damaged: a cell holds what none can hold"
            raise InputError(message)
        total = tables[0]
        for table in tables[1:]:
            cells.rerandomise(total, table)
        sums = self.reading.sums(cells, total)
        wipe(*tables)
        return sums


@dataclass(frozen=True, slots=True)
class _JoinedSlices(_Merged):
    """The slices of a table, each published by itself: no noise is added, as theirs is there."""

    @property
    def _slices(self) -> list[Slice]:
        whole = self.described.slice_
        if whole is None:
            raise PlanError(_TOO_FEW)
        return [replace(whole, shard=part.header.public()["shard"]) for part in self.parts]

    @property
    def _sketches(self) -> list[Sketch]:
        plan = cast("OverlapPlan", self.described.plan)
        return read_slices(plan, self._slices, [part.body for part in self.parts])

    def check_sizes(self) -> None:
        """Refuse tables that are none of their slices."""
        if not self._sketches:
            raise PlanError(_TOO_FEW)

    def released(self, confidence: float, coins: Coins) -> Answer:  # noqa: ARG002
        """Return the answer and the table, which are functions of what the slices published."""
        found = joined_slices(self.reading, self._slices, self._sketches, confidence)
        return found.under(self.label, self.summary.group)


def _check_different(shards: list[list[ContributionPart]]) -> None:
    """Refuse a contribution that is there twice."""
    seen: dict[str, int] = {}
    for place, parts in enumerate(shards, start=1):
        for id_ in {part.told.id for part in parts}:
            if id_ in seen:
                message = (
                    f"contribution {place} is contribution {seen[id_]} once more: its users would "
                    "count twice; leave it out"
                )
                raise InputError(message)
            seen[id_] = place


def _check_slices(parts: list[ContributionPart], shards: int) -> None:
    """Refuse anything but each slice of a table once."""
    found = [part.header.public().get("shard") for part in parts]
    for place, shard in enumerate(found, start=1):
        if shard not in range(shards):
            message = f"contribution {place} is damaged: there is no such slice"
            raise InputError(message)
        first = found.index(shard) + 1
        if first < place:
            message = (
                f"contribution {place} is of the slice of contribution {first}: its users would "
                "count twice; leave one out"
            )
            raise InputError(message)
    missing = [shard + 1 for shard in range(shards) if shard not in found]
    if missing:
        listed = ", ".join(map(str, missing[:8])) + ", ..." * (len(missing) > 8)
        message = f"of the {shards} slices of this table these are missing: {listed}"
        raise InputError(message)


def _aligned(shards: list[list[ContributionPart]]) -> Iterator[list[ContributionPart]]:
    """Yield the parts of all shards that belong together."""
    first = shards[0]
    for place, parts in enumerate(shards[1:], start=2):
        if len(parts) != len(first):
            message = (
                f"contribution {place} has {len(parts)} statistics, and contribution 1 has "
                f"{len(first)}: all shards must count the same"
            )
            raise InputError(message)
        for one, other in zip(first, parts, strict=True):
            _check_equal_designs(one, other, place)
    yield from map(list, zip(*shards, strict=True))


def _check_equal_designs(one: ContributionPart, other: ContributionPart, place: int) -> None:
    """Refuse contributions of two designs, with what differs."""
    both = [_design(part) for part in (one, other)]
    found = [pair for pair in differing(*both) if pair[0] not in _NO_DESIGN]
    if found:
        here = ", ".join(f"{name}={_format(mine)}" for name, mine, _ in found)
        there = ", ".join(f"{name}={_format(its)}" for name, _, its in found)
        message = f"shards must be alike: {here} in contribution 1, {there} in contribution {place}"
        raise InputError(message)


def _design(part: ContributionPart) -> dict[str, Any]:
    """Return the parameters that must be equal in two contributions before they can be merged."""
    told = part.told
    mine = {
        "announced": part.header.intrusions,
        "form": told.form,
        "label": told.label,
        "group": told.group,
        "per_user": told.per_user,
    }
    return {**part.header.public(), **{f"asked {k}": v for k, v in told.asked.items()}, **mine}


def _format(value: object) -> str:
    """Return a public parameter, in few words."""
    return "default" if value is None else f"{value!s:.40}"
