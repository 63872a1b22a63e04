"""From the answers of a release to the rows of the release store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from panprivacy.programs.counting import Answer, Counting, Single
from panprivacy.service.outgoing.records import Published
from panprivacy.statistics.cropped.plan import CroppedPlan
from panprivacy.statistics.heavy.plan import HeavyPlan
from panprivacy.statistics.incidence.release import IncidenceRelease
from panprivacy.statistics.release import Label, Release
from panprivacy.statistics.threshold.plan import ThresholdPlan


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


def published(answers: Mapping[str, Answer], counting: Counting, moment: Moment) -> list[Published]:
    """One row for each number of a release, and one for each answer that is lost.

    Args:
        answers: by statistic.
        counting: what they are of, or its like.
        moment: which release it is.
    """
    return [
        row
        for name, answer in answers.items()
        for group, single in _singles(answer)
        for row in _rows(name, group, single, counting, moment)
    ]


def _singles(answer: Answer) -> Iterator[tuple[Label | None, Single]]:
    """Group and answer."""
    if isinstance(answer, Mapping):
        yield from answer.items()
    else:
        yield None, answer


def _rows(
    name: str, group: Label | None, single: Single, counting: Counting, moment: Moment
) -> Iterator[Published]:
    counted = counting.statistics[name]
    epsilon = float(counted.release_epsilon)
    for kind, state, release in _releases(single, counted.plan):
        yield Published(
            stream=moment.stream,
            start=moment.start,
            end=moment.end,
            complete=moment.complete,
            number=moment.number,
            statistic=name,
            group=None if group is None else str(group),
            kind=kind,
            state=state,
            value=None if release is None else release.value,
            low=None if release is None else release.low,
            high=None if release is None else release.high,
            confidence=counting.confidence,
            epsilon=epsilon,
            released=moment.now,
        )


def _releases(
    single: Single, plan: object
) -> Iterator[tuple[str | None, int | None, Release | None]]:
    """Kind, state and number; those of an incidence count are many."""
    if isinstance(single, IncidenceRelease):
        for name, release in single.answers().items():
            yield name.kind, name.argument, release
    elif isinstance(plan, CroppedPlan):
        yield "cropped_sum", plan.tau, single
    elif isinstance(plan, ThresholdPlan):
        yield "threshold", plan.least, single
    elif isinstance(plan, HeavyPlan):
        yield "heavy_hitters", plan.k, single
    else:
        yield None, None, single
