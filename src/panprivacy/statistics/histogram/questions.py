"""What a release of a `Histogram` may be asked."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Annotated

from panprivacy.errors import PlanError
from panprivacy.statistics.records import Query, custom_field, flag

MOST_QUANTILES = 1_000


def read_shares(name: str, given: object) -> tuple[float, ...]:
    """Return one share, or several, each from 0 to 1.

    Raises:
        PlanError: something is no such number.
    """
    message = f"{name}=: name a share from 0 to 1, or several, such as 0.5,0.95"
    if isinstance(given, str):
        parts: list[object] = list(given.split(","))
    elif isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
        parts = list(given)
    else:
        parts = [given]
    found = []
    for part in parts:
        if isinstance(part, bool) or not isinstance(part, str | numbers.Real):
            raise PlanError(message)
        try:
            found.append(float(part))
        except (ValueError, OverflowError):
            raise PlanError(message) from None
    if len(found) > MOST_QUANTILES or not all(0 <= one <= 1 for one in found):
        raise PlanError(message)
    return tuple(dict.fromkeys(found))


class HistogramQuery(Query, frozen=True):
    """What a release answers; without any, the count of each bin.

    All intervals of one release hold together with the probability `confidence`.
    """

    quantile: Annotated[
        tuple[float, ...],
        custom_field(read_shares, "0.5,0.95", "the values that such shares of events do not exceed",
                     "0.5,0.95"),
    ] = ()  # fmt: skip
    mean: Annotated[bool, flag("the mean of the values, each cut to the outer edges")] = False
    cumulative: Annotated[bool, flag("the share of events below each edge")] = False
    counts: Annotated[bool, flag("the number of events in each bin")] = False

    @property
    def of_counts(self) -> bool:
        """Whether the counts of bins are answers: they are if nothing else is."""
        return self.counts or not (self.quantile or self.mean or self.cumulative)

    @property
    def families(self) -> int:
        """The number of questions, which share what may go wrong equally."""
        return len(self.quantile) + self.mean + self.cumulative + self.of_counts
