"""From specifications to what a program counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

from panprivacy.errors import PlanError
from panprivacy.planning.comparisons import MOST_UPDATES
from panprivacy.slices import Slice
from panprivacy.statistics.grouped import Grouped
from panprivacy.statistics.moving import Continual
from panprivacy.statistics.planner import check_useful
from panprivacy.statistics.specification import Specification, blamed, together
from panprivacy.statistics.together import Together

_MOST_MOVED: Final = 10**18
"""No number that is counted is larger."""

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
    moves: Fraction | None = None,
    key: bytes | None = None,
    slice_: Slice | None = None,
) -> Counting:
    """The statistics with a ledger of their own, which share epsilon equally.

    Args:
        specifications: of the statistics.
        epsilon: total loss.
        releases: how many epsilon covers; with `moves` the last is for the end.
        intrusions: how many announced intrusions it covers.
        grouping: the groups that are counted apart, if any.
        moves: by how much the number has to move before the next answer; None if none waits.
        key: of the addressing, where other shards have the same; None for one of its own.
        slice_: which slice of the tables to count, of a shard of a cluster; it is planned for
            `intrusions_of_slices`. None for the whole.

    Raises:
        PlanError: there are none.
        SpecificationError: one cannot be planned, or its answers would be noise.
    """
    if not specifications:
        message = "stat= must say what to count, such as distinct; see panprivacy stats"
        raise PlanError(message)
    if slice_ is not None:
        _check_slices(specifications, moves)
        intrusions = intrusions_of_slices(releases, intrusions)
    counting: Counting
    covers: dict[str, Any] = {"releases": releases, "intrusions": intrusions}
    made = partial(together, specifications, **covers, key=key, slice_=slice_)
    if moves is not None:
        if grouping is not None:
            message = "moves is for one statistic without groups"
            raise PlanError(message)
        counting = make_moving(specifications, moves, epsilon=epsilon, **covers)
    elif grouping is None:
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


def intrusions_of_slices(releases: int, intrusions: int) -> int:
    """How many announced intrusions the slices of a table are planned for.

    What a slice contributes is a look at it. It is the one that nobody announces at the last
    release; at each before that it is announced.

    Args:
        releases: how many the whole makes.
        intrusions: how many others may be announced.
    """
    return intrusions + releases - 1


def _check_slices(specifications: Sequence[Specification], moves: Fraction | None) -> None:
    """Refuse what needs the answer where it is counted: a shard has none.

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
                message += "none: say it"
                raise PlanError(message)


def make_moving(
    specifications: Sequence[Specification],
    moves: Fraction,
    *,
    epsilon: Fraction,
    releases: int,
    intrusions: int = 0,
) -> Continual:
    """One statistic whose answer stands until it has moved; a release is kept for the end.

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
        made = Continual(
            partial(one.make, intrusions=intrusions),
            threshold=moves,
            updates=releases - 1,
            at_end=1,
            epsilon=epsilon,
            label=one.label,
            asked=one.asked(),
        )
        made.check_threshold()
    return made


def numbered(counting: Counting) -> bool:
    """Whether ids number the users of a universe."""
    return any(one.plan.numbered is not None for one in counting.statistics.values())


def check_needed(
    counting: Counting, *, user: str | None, delta: str | None, side: str | None
) -> None:
    """Refuse to count where a column that is needed has no name.

    Raises:
        PlanError: nothing says whose an event is, who comes and who leaves, or of which of two
            streams it is.
    """
    for label, one in counting.statistics.items():
        sides, missing = one.plan.sides, ""
        if one.plan.reads_ids and user is None:
            missing = "user=: the column that says whose an event is"
        elif one.plan.needs_deltas and delta is None:
            missing = "delta=: the column that says who comes and who leaves"
        elif sides and side is None:
            missing = "side=: the column that says which of two streams an event is "
            missing += f"of, {' or '.join(sides)}"
        if missing:
            message = f"{label} needs {missing}"
            raise PlanError(message)


def steps_of(specifications: Sequence[Specification]) -> int | None:
    """How many releases the sizes cover, where they say so."""
    return next((one.sizes.steps for one in specifications if one.sizes.steps), None)
