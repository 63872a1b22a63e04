"""What a release of an `Incidence` may be asked."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import parse_powers, parse_states
from panprivacy.statistics.incidence.linear_queries import LinearQuery, States
from panprivacy.statistics.quantiles import read_shares
from panprivacy.statistics.records import Query, custom_field, flag


def _states(name: str, given: object) -> tuple[object, ...]:
    """One state, or several."""
    asked = parse_states(name, given) if isinstance(given, str) else given
    if isinstance(asked, numbers.Integral):
        return (asked,)
    if isinstance(asked, Iterable) and not isinstance(asked, bytes | Mapping):
        with suppress(TypeError):  # an array without dimensions
            return tuple(asked)
    message = f"{name}=: name a state, or several, as whole numbers"
    raise PlanError(message)


def _powers(name: str, given: object) -> tuple[tuple[object, object], ...]:
    """One pair of numbers, or several."""
    asked = parse_powers(name, given) if isinstance(given, str) else given
    message = f"{name} must be a pair (tau, power), or several"
    if not isinstance(asked, Iterable) or isinstance(asked, bytes | Mapping):
        raise PlanError(message)
    try:
        pairs: list[Any] = list(asked)
    except TypeError:  # an array without dimensions
        raise PlanError(message) from None
    if pairs and all(isinstance(one, numbers.Integral) for one in pairs):
        pairs = [pairs]
    if not all(isinstance(one, Sequence) and len(one) == 2 for one in pairs):
        raise PlanError(message)
    return tuple((tau, power) for tau, power in pairs)


def _inner_shares(name: str, given: object) -> tuple[float, ...]:
    """Return shares, each strictly between 0 and 1."""
    shares = read_shares(name, given)
    if not all(0 < share < 1 for share in shares):
        message = f"{name}=: a share of users must lie strictly between 0 and 1"
        raise PlanError(message)
    return shares


_SUMS = "the sums of states, each cut to 0 and these"


class IncidenceQuery(Query, frozen=True):
    """The statistics that a release names; without any, the whole histogram of states."""

    exactly: Annotated[
        tuple[int, ...],
        custom_field(_states, "0,1,5 or 0:8", "users that came exactly so often", "1:3"),
    ] = ()
    at_least: Annotated[
        tuple[int, ...], custom_field(_states, "2,5", "users that came so often or more", "2,5")
    ] = ()
    cropped_sum: Annotated[tuple[int, ...], custom_field(_states, "10", _SUMS, "10")] = ()
    cropped_moment: Annotated[
        tuple[tuple[int, int], ...],
        custom_field(_powers, "10**2", "the same of powers of states, as pairs (10, 2)", "10**2"),
    ] = ()
    distinct: Annotated[bool, flag("users whose state is not 0")] = False
    histogram: Annotated[
        tuple[int, ...],
        custom_field(_states, "1,5,10", "users from each of these states to below the next, and "
                     "from the last one on", "1,5,10"),
    ] = ()  # fmt: skip
    quantile: Annotated[
        tuple[float, ...],
        custom_field(_inner_shares, "0.5,0.9", "the states that such shares of the users that came "
                     "do not exceed", "0.5,0.9"),
    ] = ()  # fmt: skip
    mean: Annotated[
        bool, flag("the mean state of the users that came, each state cut to the bound")
    ] = False

    @property
    def needs_all(self) -> bool:
        """Whether it can be answered from the counts of all states alone."""
        return bool(self.quantile) or self.mean

    def linear(self, states: States) -> list[LinearQuery]:
        """The linear queries that are asked, in order.

        Raises:
            PlanError: one is beyond the states that there can be.
        """
        return [
            *(states.exactly(state) for state in self.exactly),
            *(states.at_least(least) for least in self.at_least),
            *(states.cropped_sum(tau) for tau in self.cropped_sum),
            *(states.cropped_moment(*pair) for pair in self.cropped_moment),
            *([states.distinct()] if self.distinct else []),
            *states.ranges(self.histogram),
        ]
