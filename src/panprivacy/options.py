"""What can be asked of a program by name, and whether it goes together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from panprivacy._parse import Expected
from panprivacy._validate import expected_range
from panprivacy.errors import PlanError


class Statistics(StrEnum):
    """The statistics that can be asked for by name."""

    distinct = "distinct"
    density = "density"
    incidence = "incidence"
    cropped_sum = "cropped-sum"
    threshold = "threshold"
    heavy_hitters = "heavy-hitters"


@dataclass(frozen=True)
class Sizes:
    """What the user said of the size of the problem; None where he said nothing.

    Args:
        universe: number of possible users.
        memory: bytes of each table.
        expected: how many users there will be.
        bound: the largest distance of a user's state from 0.
        signed: whether states below 0 occur.
        deletions: whether users leave.
        tau: the most that a user counts for in a cropped sum.
        least: the state from which on a user counts in full, of a threshold.
        k: a heavy hitter holds at least 1/k of the total.
        total: what the deltas of all users add up to.
    """

    universe: int | None = None
    memory: int | None = None
    expected: Expected | None = None
    bound: int | None = None
    signed: bool = False
    deletions: bool = False
    tau: int | None = None
    least: int | None = None
    k: int | None = None
    total: int | None = None

    @property
    def most_users(self) -> int | None:
        """How many may come, for open-ended ids; None with a universe, and if nobody said."""
        if self.universe is not None:
            return None
        return self.expected[1] if isinstance(self.expected, tuple) else self.expected


@dataclass(frozen=True)
class Asked:
    """What an incidence count releases; nothing for the whole histogram."""

    exactly: tuple[int, ...] = ()
    at_least: tuple[int, ...] = ()
    cropped_sum: tuple[int, ...] = ()

    def named(self) -> Mapping[str, Any]:
        """The arguments of `Incidence.release`."""
        return {name: states for name, states in vars(self).items() if states}


@dataclass(frozen=True)
class Grouping:
    """The groups that are counted apart.

    Args:
        labels: of the groups.
        per_user: in how many of them one user may appear.
        ignore_others: leave out rows of undeclared groups; else they are an error.
    """

    labels: list[str]
    per_user: int
    ignore_others: bool


_UNIVERSE = {
    *(Statistics.density, Statistics.incidence),
    *(Statistics.cropped_sum, Statistics.threshold),
}
"""They may have users that are numbered."""

_OPEN_ENDED = {Statistics.incidence, Statistics.cropped_sum}
"""They need the number of expected users unless users are numbered."""

_BOUNDED = {Statistics.cropped_sum, Statistics.threshold}
"""They may be told the largest sum of a user's deltas, and have one unless told."""

_OF_INCIDENCE = {"tau": "cropped_sum", "least": "at_least"}
"""By what name an incidence count is asked the same."""


def check_options(names: list[Statistics], sizes: Sizes, asked: Asked, delta: str | None) -> None:
    """Refuse options that no statistic uses, and those that need another one."""
    if sizes.deletions and delta is None:
        message = "deletions= needs delta=: the column that says who comes and who leaves"
        raise PlanError(message)
    _check_users(names, sizes)
    _check_states(names, sizes, asked)
    _check_thresholds(names, sizes)


def _check_users(names: list[Statistics], sizes: Sizes) -> None:
    """Refuse a number of users that no statistic uses."""
    if sizes.universe is not None and not _UNIVERSE & set(names):
        message = "universe= is for stat= density, incidence, cropped-sum and threshold"
        message += "; distinct takes expected=" if Statistics.distinct in names else ""
        raise PlanError(message)
    if sizes.expected is None:
        return
    hashed = sizes.universe is None and _OPEN_ENDED & set(names)
    if not (Statistics.distinct in names or hashed):
        message = "expected= is for open-ended ids: universe= says how many users there are"
        if names == [Statistics.heavy_hitters]:
            message = "expected= is not for stat= heavy-hitters: any number of users may come"
        raise PlanError(message)
    expected_range(sizes.expected)


def _check_states(names: list[Statistics], sizes: Sizes, asked: Asked) -> None:
    """Refuse to say of states what no statistic uses, or to leave out what one needs."""
    bounded = Statistics.incidence in names or (sizes.deletions and Statistics.distinct in names)
    if asked.named() and Statistics.incidence not in names:
        message = "exactly=, at_least= and cropped_sum= are for stat= incidence"
        if asked.cropped_sum and Statistics.cropped_sum in names:
            message = "cropped_sum= is for stat= incidence; cropped-sum takes tau="
        if asked.at_least and Statistics.threshold in names:
            message = "at_least= is for stat= incidence; threshold takes least="
        raise PlanError(message)
    if sizes.signed and not bounded:
        message = "signed= is for stat= incidence, or distinct with deletions="
        raise PlanError(message)
    if sizes.bound is not None and not (bounded or _BOUNDED & set(names)):
        message = (
            "bound= is for stat= incidence, cropped-sum and threshold, or distinct with deletions="
        )
        raise PlanError(message)
    if sizes.bound is None and bounded:
        message = "say bound=: the largest sum of a user's deltas, or the most rows a user has"
        raise PlanError(message)


def _check_thresholds(names: list[Statistics], sizes: Sizes) -> None:
    """Refuse to say how much counts where no statistic asks, or to leave it out."""
    heavy, thresholds = Statistics.heavy_hitters in names, (sizes.k, sizes.total)
    _check_own(names, Statistics.cropped_sum, "the most that a user counts for", tau=sizes.tau)
    counts = "the state from which on a user counts in full"
    _check_own(names, Statistics.threshold, counts, least=sizes.least)
    if heavy and None in thresholds:
        message = "stat= heavy-hitters needs k= and total=: who holds 1/k of the total is counted"
        raise PlanError(message)
    if thresholds != (None, None) and not heavy:
        message = "k= and total= are for stat= heavy-hitters"
        raise PlanError(message)


def _check_own(names: list[Statistics], owner: Statistics, says: str, **named: int | None) -> None:
    """Refuse to leave out a size that one statistic needs, or to say it for others."""
    ((size, value),) = named.items()
    if owner in names and value is None:
        message = f"stat= {owner} needs {size}=: {says}"
        raise PlanError(message)
    if owner not in names and value is not None:
        message = f"{size}= is for stat= {owner}"
        if Statistics.incidence in names:
            message += f"; incidence takes {_OF_INCIDENCE[size]}="
        raise PlanError(message)
