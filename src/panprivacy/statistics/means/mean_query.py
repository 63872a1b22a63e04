"""What a release of a `CroppedSum` may be asked."""

from __future__ import annotations

from typing import Annotated

from panprivacy.statistics.records import Query, flag


class CroppedQuery(Query, frozen=True):
    """What a release answers; without any question, the sum."""

    mean: Annotated[
        bool, flag("the mean of the users that came, each cropped, in place of the sum")
    ] = False
