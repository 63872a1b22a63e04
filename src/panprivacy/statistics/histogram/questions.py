"""What a release of a `Histogram` may be asked."""

from __future__ import annotations

from typing import Annotated

from panprivacy.statistics.quantiles import read_shares
from panprivacy.statistics.records import Query, custom_field, flag


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
