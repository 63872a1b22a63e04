"""From a target error to a plan: the smallest memory or the smallest epsilon that reaches it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from panprivacy.errors import PlanError
from panprivacy.ground.validation import (
    MOST_BYTES,
    positive_fraction,
    positive_integer,
    proportion,
)
from panprivacy.privacy.guarantee import Epsilon, warn_if_weak
from panprivacy.statistics.alternatives import EPSILONS, MOST_SEARCHED, Alternatives, Target
from panprivacy.statistics.catalogue import kind_of
from panprivacy.statistics.plan import Plan
from panprivacy.statistics.statistic import Statistic


def plan(
    statistic: str | type[Statistic[Any, Any]],
    *,
    epsilon: Epsilon | None = None,
    error: Epsilon | None = None,
    memory: int | None = None,
    confidence: float = 0.95,
    releases: int = 1,
    intrusions: int = 0,
    **sizes: Any,
) -> Any:
    """Plan a statistic: from epsilon and memory to an error, or from an error to either.

    >>> import panprivacy as pp
    >>> plan = pp.plan("distinct", expected=(10_000, 1_000_000), epsilon=1, error=0.1)
    >>> plan.table.nbytes, plan.relative_margin(0.95) <= 0.1
    (4096, True)
    >>> print(plan.guarantee.year(86_400)[1])  # of daily windows, one of them seen
    epsilon 22.4591

    With `epsilon` alone, the plan of least regret within `memory`: at each answer of the range that
    is planned for its relative error exceeds that of the best plan for this answer by some factor,
    and the largest of these factors is the smallest. Without a range it is that of the largest
    error, so this plan errs least; of an "incidence" that is the error of one of a few entries. Of
    plans of counters that err at most 5 % more the one with most room for states beyond its bound
    is taken. With `epsilon` and `error`, the smallest memory that reaches the error anywhere in the
    range. With `error` alone, the smallest epsilon (to three digits) that reaches it within
    `memory`.

    Args:
        statistic: its class, such as `DistinctCount`; or its name, such as "distinct", of which
            `panprivacy stats` lists all.
        epsilon: total loss of state and releases, in nats.
        error: how far an answer may stray, as a share of what the plan calls its `measure`: of
            the number of users for "distinct", of the universe for "density", and so on.
        memory: bytes of table, at most; None for what the statistic takes unless told, or with
            `epsilon` and `error` for what it takes to reach the error.
        confidence: probability with which an answer strays by no more than `error`.
        releases: how many releases epsilon covers.
        intrusions: how many announced intrusions epsilon covers.
        sizes: of the statistic, as its constructor takes them.

    Returns:
        The plan of the statistic.

    Raises:
        PlanError: an argument is out of range, or nothing reaches the error; says what would.
    """
    kind = kind_of(statistic)
    search = Alternatives(kind.entry.sizes.read(kind.entry.name, sizes), releases, intrusions)
    level = proportion(confidence=confidence)
    size = None if memory is None else positive_integer(MOST_BYTES, memory=memory)
    if error is None:
        if epsilon is None:
            message = "a plan needs epsilon, or the error to reach, or both"
            raise PlanError(message)
        wanted = positive_fraction(epsilon=epsilon)
        warn_if_weak(wanted)
        return search.plan(wanted, size)
    target = float(positive_fraction(error=error))
    total = None if epsilon is None else positive_fraction(epsilon=epsilon)
    if total is not None:
        warn_if_weak(total)
    return plan_for(search, total, target, size, level)


def plan_for(
    search: Alternatives,
    epsilon: Fraction | None,
    target: float,
    memory: int | None,
    confidence: float,
) -> Plan:
    """The smallest plan whose answers stray by no more than a target.

    Args:
        search: of plans of one problem.
        epsilon: of the plan, whose memory is searched for; None to search for the epsilon.
        target: as a share of what the plan calls its `measure`.
        memory: bytes of table, at most.
        confidence: how often answers are to stray by no more.

    Raises:
        PlanError: nothing reaches it; says what would.
    """
    name = f"margin {confidence}"
    wanted = Target(lambda candidate: candidate.relative_margin(confidence), target, name)
    if epsilon is None:
        found = search.smallest_epsilon(memory, wanted)
        if found is None:
            search.plan(EPSILONS[1], memory)  # raises what is wrong with any epsilon
        return found or search.refuse(None, memory or search.sizes.most_memory, wanted)
    found = search.smallest_memory(epsilon, memory or MOST_SEARCHED, wanted)
    return found or search.refuse(epsilon, memory or MOST_SEARCHED, wanted)
