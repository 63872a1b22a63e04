"""From the answers of a release to the rows of the release store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from panprivacy.programs.counting import Counting
from panprivacy.service.outgoing.records import Published
from panprivacy.statistics.release import Answers


@dataclass(frozen=True, slots=True)
class Moment:
    """Which release of which window it is.

    Args:
        stream: name of the stream.
        start: when the window began to be counted, in UTC.
        end: when the counting that is released ended.
        number: of the release within its window, from 1.
        complete: whether a whole window was counted.
        now: when it is published.
    """

    stream: str
    start: datetime
    end: datetime
    number: int
    complete: bool
    now: datetime


def published(
    answers: Answers, counting: Counting, confidence: float, moment: Moment
) -> list[Published]:
    """One row for each number of a release, and one for each answer that is lost.

    Args:
        answers: by name.
        counting: what they are of, or its like.
        confidence: of all intervals.
        moment: which release it is.
    """
    costs = counting.release_costs(moment.number)
    return [
        Published(
            **{
                **row,
                "confidence": confidence,
                "epsilon": float(costs[str(row["statistic"])]),
                "stream": moment.stream,
                "start": moment.start,
                "end": moment.end,
                "complete": moment.complete,
                "number": moment.number,
                "released": moment.now,
            }  # type: ignore[arg-type]
        )
        for row in answers.rows()
    ]
