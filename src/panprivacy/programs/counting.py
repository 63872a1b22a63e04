"""From specifications to what a program counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from panprivacy.errors import PlanError
from panprivacy.statistics.grouped import Grouped
from panprivacy.statistics.planner import check_useful
from panprivacy.statistics.specification import Specification, blamed, together
from panprivacy.statistics.together import Together

Counting = Together[Any, Any]
"""All statistics of a program, or those of each group."""


@dataclass(frozen=True)
class Grouping:
    """The groups that are counted apart.

    Args:
        labels: of the groups.
        per_user: in how many of them one user may appear.
        ignore_others: leave out rows of undeclared groups; else they are an error.
    """

    labels: Sequence[str]
    per_user: int = 1
    ignore_others: bool = False


def make_counting(
    specifications: Sequence[Specification],
    *,
    epsilon: Fraction,
    releases: int = 1,
    intrusions: int = 0,
    grouping: Grouping | None = None,
    key: bytes | None = None,
) -> Counting:
    """The statistics with a ledger of their own, which share epsilon equally.

    Raises:
        PlanError: there are none.
        SpecificationError: one cannot be planned, or its answers would be noise.
    """
    if not specifications:
        message = "stat= must say what to count, such as distinct; see panprivacy stats"
        raise PlanError(message)
    counting: Counting
    made = partial(together, specifications, releases=releases, intrusions=intrusions, key=key)
    if grouping is None:
        counting = made(epsilon=epsilon)
    else:
        counting = Grouped(
            lambda share: made(epsilon=share),
            grouping.labels,
            epsilon=epsilon,
            per_user=grouping.per_user,
            ignore_others=grouping.ignore_others,
        )
    for position, statistic in enumerate(counting.statistics.values()):
        with blamed(position):
            parts = epsilon / statistic.plan.request.epsilon
            check_useful(statistic.plan, statistic.sizes, parts)
    return counting


def numbered(counting: Counting) -> bool:
    """Whether ids number the users of a universe."""
    return any(one.plan.numbered is not None for one in counting.statistics.values())


def check_user(counting: Counting, user: str | None) -> None:
    """Refuse to count users where nothing says whose an event is."""
    for label, one in counting.statistics.items():
        if one.plan.reads_ids and user is None:
            message = f"{label} needs --user: the column that says whose an event is"
            raise PlanError(message)


def steps_of(specifications: Sequence[Specification]) -> int | None:
    """How many releases the sizes cover, where they say so."""
    return next((one.sizes.steps for one in specifications if one.sizes.steps), None)


def check_sides(counting: Counting, side: str | None) -> None:
    """Refuse to count two streams where nothing tells them apart."""
    for label, one in counting.statistics.items():
        if one.plan.sides and side is None:
            message = f"{label} needs side=: the column that says which of two streams an event is "
            message += f"of, {' or '.join(one.plan.sides)}"
            raise PlanError(message)


def check_deltas(counting: Counting, delta: str | None) -> None:
    """Refuse to count who leaves where nothing says so."""
    for label, one in counting.statistics.items():
        if one.plan.needs_deltas and delta is None:
            message = f"{label} needs delta=: the column that says who comes and who leaves"
            raise PlanError(message)
