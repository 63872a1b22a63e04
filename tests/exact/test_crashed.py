"""Counts of events with one crash, as the exact audit has them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from panprivacy.audit.streams import CRASH, SAVE
from panprivacy.audit.suite.crashed import OneBit, crashed

SUBJECTS = {subject.name: subject for subject in crashed(Fraction(1))}


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_each_claims_more_than_epsilon_over_a_crash(subject):
    assert 1 < subject.claimed <= 4
    assert all(stream.index(SAVE) < stream.index(CRASH) for stream in subject.streams)


def test_an_event_is_left_out_with_its_retry_or_without():
    subject = SUBJECTS["running-count-crash"]
    neighbours = [list(subject.neighbours("event", stream)) for stream in subject.streams]
    assert [len(each) for each in neighbours] == [1, 3, 3]
    assert [SAVE, [], CRASH, "release", [], "release"] in neighbours[2]


def test_the_bit_is_one_of_a_shipping_table():
    count = OneBit(horizon=1, expected=1, memory=1, epsilon=1)
    assert count.plan.cells == 1
    count.update(["somebody"])
    assert count.release().counts
