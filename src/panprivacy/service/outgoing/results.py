"""From the answers of a release to the rows of the release store."""

from __future__ import annotations

from dataclasses import asdict

from panprivacy.guarantee import float_above
from panprivacy.programs.counting import Counting
from panprivacy.service.outgoing.records import Moment, Published
from panprivacy.statistics.release import Answers


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
                **asdict(moment),
                "confidence": confidence,
                "epsilon": float_above(costs[str(row["statistic"])]),
            }
        )
        for row in answers.rows()
    ]
