"""Statistics of a program, made from specifications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

from panprivacy.errors import PlanError
from panprivacy.intake.sources import Column, Prefixes
from panprivacy.statistics.abilities import Sided
from panprivacy.statistics.amounts import unit_of
from panprivacy.statistics.composites.grouped import Grouped
from panprivacy.statistics.composites.moving import ChangeTriggered
from panprivacy.statistics.composites.together import Together
from panprivacy.statistics.specification import Specification, blamed, together
from panprivacy.tables.planning.comparisons import MOST_UPDATES
from panprivacy.tables.slices import Slice

_MOST_MOVED: Final = 10**18
"""Upper bound of all counted numbers."""

Counting = Together[Any, Any]
"""All statistics of a program, or those of each group."""


@dataclass(frozen=True)
class Grouping:
    """The groups that are counted separately.

    Args:
        labels: the labels of the groups.
        per_user: maximum number of groups in which one user may appear.
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
    moves: Fraction | None = None,
    key: bytes | None = None,
    table_key: bytes | None = None,
    slice_: Slice | None = None,
) -> Counting:
    """Return the statistics with their own ledger, which share epsilon equally.

    Args:
        specifications: specifications of the statistics.
        epsilon: total loss.
        releases: number of releases that epsilon covers; with `moves` the last is for the end.
        intrusions: number of announced intrusions that it covers.
        grouping: the groups that are counted separately, if any.
        moves: minimum change of the number before the next answer; None if no answer waits.
        key: key of the addressing, if other shards have the same; None for a key of its own.
        table_key: key of the addressing of tables that are published, the same in all windows that
            are compared; None for `key`.
        slice_: the slice of the tables to count, for a shard of a cluster; it is planned for
            `intrusions_of_slices`. None for the complete tables.

    Raises:
        PlanError: there are no specifications.
        SpecificationError: one cannot be planned, or its answers would be noise.
    """
    if not specifications:
        message = "stat= must say what to count, such as distinct; see panprivacy stats"
        raise PlanError(message)
    if slice_ is not None:
        _check_slices(specifications, moves)
        intrusions = intrusions_of_slices(releases, intrusions)
    covers: dict[str, Any] = {"releases": releases, "intrusions": intrusions}
    made = partial(together, specifications, **covers, key=key, table_key=table_key, slice_=slice_)
    if moves is not None:
        if grouping is not None:
            message = "moves is for one statistic without groups"
            raise PlanError(message)
        return make_moving(specifications, moves, epsilon=epsilon, **covers)
    if grouping is None:
        return made(epsilon=epsilon)
    return Grouped(
        lambda share: made(epsilon=share),
        grouping.labels,
        epsilon=epsilon,
        per_user=grouping.per_user,
        ignore_others=grouping.ignore_others,
    )


def intrusions_of_slices(releases: int, intrusions: int) -> int:
    """Return the number of announced intrusions for which the slices of a table are planned.

    The contribution of a slice is a look at it. At the last release it is the unannounced look; at
    each earlier release it is announced.

    Args:
        releases: number of releases of the complete table.
        intrusions: number of other intrusions that may be announced.
    """
    return intrusions + releases - 1


def _check_slices(specifications: Sequence[Specification], moves: Fraction | None) -> None:
    """Check that no statistic needs the answer where it is counted: a shard has none.

    Raises:
        PlanError: an answer stands until the number has moved.
        SpecificationError: windows learn from answers.
    """
    if moves is not None:
        message = "moves looks at the number each time, which no shard of a cluster knows: leave "
        message += "it out, or count on one machine"
        raise PlanError(message)
    for position, one in enumerate(specifications):
        for name in one.sizes.learned:
            with blamed(position):
                message = f'{name} = "learn" learns from answers, and a shard of a cluster has '
                message += "none: say a number"
                raise PlanError(message)


def make_moving(
    specifications: Sequence[Specification],
    moves: Fraction,
    *,
    epsilon: Fraction,
    releases: int,
    intrusions: int = 0,
) -> ChangeTriggered:
    """Return a statistic whose answer stands until it has moved; one release is for the end.

    Raises:
        PlanError: there are several, or no release but that of the end, or a number is too large.
        SpecificationError: it cannot be planned, or noise alone would move it.
    """
    if len(specifications) != 1:
        message = "moves is for one statistic: count the others in another program"
        raise PlanError(message)
    if releases < 2:
        message = "moves needs releases of at least 2: the last answer comes at the end"
        raise PlanError(message)
    if releases > MOST_UPDATES + 1:
        message = f"releases must be at most {MOST_UPDATES + 1:,} with moves"
        raise PlanError(message)
    if moves > _MOST_MOVED:
        message = f"moves must be at most {_MOST_MOVED:,}"
        raise PlanError(message)
    (one,) = specifications
    with blamed(0):
        made = ChangeTriggered(
            partial(one.make, intrusions=intrusions),
            threshold=moves,
            updates=releases - 1,
            at_end=1,
            epsilon=epsilon,
            label=one.label,
            asked=one.asked(),
        )
        made.internals.releasing.check_threshold()
    return made


def numbered(counting: Counting) -> bool:
    """Return whether ids number the users of a universe."""
    return any(one.plan.numbered is not None for one in counting.statistics.values())


def check_needed(
    counting: Counting,
    *,
    user: str | None,
    value: str | None,
    delta: str | None,
    side: str | None,
) -> None:
    """Check that each required column has a name.

    Raises:
        PlanError: there is no column of the users, of the values, of arrivals and departures, or of
            the two streams; or there are users and values.
    """
    _check_value(counting, user, value, delta)
    amounts = reads_amounts(counting)
    for label, one in counting.statistics.items():
        sides, missing = one.plan.sides if isinstance(one.plan, Sided) else None, ""
        if one.plan.reads_values and value is None:
            missing = "value=: the column of numbers that says what is counted of an event"
        elif amounts and value is None:
            missing = "value=: the column of amounts, of which unit= makes whole deltas"
        elif one.plan.reads_ids and user is None:
            missing = "user=: the column that says whose an event is"
        elif one.plan.needs_deltas and delta is None:
            missing = "delta=: the column that says who comes and who leaves"
        elif sides and side is None:
            missing = "side=: the column that says which of two streams an event is "
            missing += f"of, {' or '.join(sides)}"
        if missing:
            message = f"{label} needs {missing}"
            raise PlanError(message)


def _check_value(
    counting: Counting, user: str | None, value: str | None, delta: str | None
) -> None:
    """Check that a column of values, if there is one, is read, and goes with the others."""
    plans = [one.plan for one in counting.statistics.values()]
    if reads_amounts(counting):
        _check_amounts(counting, delta)
    elif value is None:
        return
    elif not any(plan.reads_values for plan in plans):
        message = "value= is for what counts events by their value, such as histogram, or amounts "
        message += "by their unit=: leave it out"
        raise PlanError(message)
    elif user is not None or any(plan.reads_ids for plan in plans):
        message = "a stream has users or values: count what reads user= in a program of its own"
        raise PlanError(message)


def reads_amounts(counting: Counting) -> bool:
    """Return whether a statistic reads amounts, beside the column of users."""
    return any(unit_of(one.plan) is not None for one in counting.statistics.values())


def _check_amounts(counting: Counting, delta: str | None) -> None:
    """Check that all statistics of a stream of amounts read them, and no deltas."""
    if delta is not None:
        message = "value= says the amounts of which unit= makes deltas: leave out delta="
        raise PlanError(message)
    for label, one in counting.statistics.items():
        if unit_of(one.plan) is None:
            message = f"{label} does not read amounts, as others do by unit=: give it a unit= too, "
            message += "or count it in a program of its own"
            raise PlanError(message)


def amount_column(counting: Counting, value: str | None) -> Column | None:
    """Return the column of amounts; None if nothing reads any."""
    return Column(value, numbers=True) if value and reads_amounts(counting) else None


def first_column(
    user: str | None, value: str | None, *, integers: bool, address: Prefixes | None
) -> Column | None:
    """Return the column of the users, or that of the values in their place; None if there is none.

    Args:
        user: the name of the column of the users.
        value: the name of the column of the values.
        integers: whether ids are whole numbers.
        address: what of an address counts, if ids are addresses.
    """
    if value is not None:
        return Column(value, numbers=True)
    return None if user is None else Column(user, integers=integers, address=address)


def steps_of(specifications: Sequence[Specification]) -> int | None:
    """Return the number of releases that the sizes cover, if they give it."""
    return next((one.sizes.steps for one in specifications if one.sizes.steps), None)
