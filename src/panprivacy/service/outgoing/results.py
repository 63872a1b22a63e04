"""Conversion of the answers of a release to rows of the release store."""

from __future__ import annotations

from dataclasses import asdict

from panprivacy.intake.programs.counting import Counting
from panprivacy.privacy.guarantee import float_above
from panprivacy.service.outgoing.records import Moment, Published
from panprivacy.statistics.release import Answers


def published(
    answers: Answers, counting: Counting, confidence: float, moment: Moment
) -> list[Published]:
    """Return one row for each number of a release, and one for each answer that is lost.

    Args:
        answers: the answers, by name.
        counting: their statistics, or similar ones.
        confidence: confidence level of all intervals.
        moment: the release.
    """
    costs = counting.internals.releasing.costs(moment.number)
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
