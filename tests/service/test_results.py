"""The rows of a release: what was asked, of which users."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.intake.programs.counting import Grouping, make_counting
from panprivacy.service.outgoing.records import Moment
from panprivacy.service.outgoing.results import published
from panprivacy.statistics.release import Answers, Lost
from panprivacy.statistics.specification import Specification

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MOMENT = Moment("visits", NOON, NOON, number=1, complete=True, released=NOON)
EPSILON = Fraction(8)
ASKED = {
    "distinct,expected=1000": [("distinct", None, "")],
    "density,universe=1000": [("density", None, "")],
    "incidence,universe=1000,bound=9,exactly=2,at_least=3": [
        ("exactly", 2, "state=2"),
        ("at_least", 3, "state=3"),
    ],
    "incidence,universe=1000,bound=9,cropped_moment=4**1,4**2,cropped_sum=4,distinct": [
        ("cropped_sum", 4, "tau=4"),
        ("cropped_moment", 4, "tau=4,power=1"),
        ("cropped_moment", 4, "tau=4,power=2"),
        ("distinct", None, ""),
    ],
    "cropped-sum,universe=1000,tau=7": [("cropped_sum", 7, "tau=7")],
    "threshold,universe=1000,threshold=3": [("threshold", 3, "threshold=3")],
    "heavy-hitters,k=100,total=5000": [("heavy_hitters", 100, "k=100")],
}
"""Question, argument and arguments of each row."""


def counted(texts, groups=None, epsilon=EPSILON):
    counting = make_counting(
        [Specification.from_text(text) for text in texts],
        epsilon=epsilon,
        grouping=groups and Grouping(groups),
    )
    labels = [] if groups is None else [[groups[i % len(groups)] for i in range(500)]]
    counting.update(np.arange(500), *labels)
    return counting


def rows(texts, groups=None):
    counting = counted(texts, groups)
    return published(counting.release(confidence=0.9), counting, 0.9, MOMENT)


def asked(row):
    return row.question, row.argument, row.arguments


@pytest.mark.parametrize("text", ASKED)
def test_a_row_says_what_was_asked(text):
    found = rows([text])
    assert list(map(asked, found)) == ASKED[text]
    for row in found:
        assert (row.stream, row.statistic, row.group) == ("visits", text.partition(",")[0], None)
        assert (row.start, row.end, row.released, row.number) == (NOON, NOON, NOON, 1)
        assert row.complete
        assert row.low <= row.value <= row.high
        assert row.confidence == 0.9


def test_each_group_has_its_rows():
    found = rows(["cropped-sum,universe=1000,tau=7"], groups=["home", "help"])
    assert [(row.group, *asked(row)) for row in found] == [
        ("home", "cropped_sum", 7, "tau=7"),
        ("help", "cropped_sum", 7, "tau=7"),
    ]


def test_one_statistic_under_two_names_has_rows_of_both():
    texts = [f"cropped-sum,universe=1000,tau={tau},as=visits{tau}" for tau in (1, 7)]
    found = rows(texts, groups=["home", "help"])
    assert [(row.statistic, row.group, row.argument) for row in found] == [
        ("visits1", "home", 1),
        ("visits7", "home", 7),
        ("visits1", "help", 1),
        ("visits7", "help", 7),
    ]


def test_what_is_lost_has_a_row_with_its_question_and_what_was_paid():
    texts = ["distinct,expected=1000", "incidence,universe=1000,bound=9,exactly=1:2,as=often"]
    counting = counted(texts)
    whole = counting.release()
    lost = Answers(Lost((name,)) if name.statistic == "often" else one
                   for name, one in whole.items())  # fmt: skip
    found = published(lost, counting, 0.95, MOMENT)
    assert [(row.statistic, row.argument, row.value is None) for row in found] == [
        ("distinct", None, False),
        ("often", 1, True),
        ("often", 2, True),
    ]
    costs = {
        label: float(one.internals.releasing.of_releases(1))
        for label, one in counting.statistics.items()
    }
    assert [row.epsilon for row in found] == [costs[row.statistic] for row in found]
    assert {row.confidence for row in found} == {0.95}
