"""The cases of all statistics: found by their class alone, and with names of their own."""

from __future__ import annotations

from collections import Counter

import pytest

from panprivacy.audit import streams
from panprivacy.statistics.cases import ANNOUNCE, RELEASE, Short, Trial, Walk
from panprivacy.statistics.catalogue import kinds


def test_steps_are_called_as_the_audit_calls_them():
    assert (RELEASE, ANNOUNCE) == (streams.RELEASE, streams.ANNOUNCE)


@pytest.mark.parametrize("what", ["trials", "walks"])
def test_no_two_cases_have_one_name(what):
    found = Counter(one.name for kind in kinds().values() for one in getattr(kind.entry, what))
    assert found
    assert max(found.values()) == 1


def test_unless_told_a_case_is_of_one_release_and_of_two_users():
    trial = Trial("plain", {}, None)
    assert (trial.deltas, trial.refused, trial.rounds) == ((1,), (), False)
    assert (trial.covers, trial.intrusions) == ("releases", True)
    walk = Walk("plain", "says", {}, [Short([[0]], 1)])
    assert (walk.releases, walk.intrusions, walk.users) == (1, 0, ((0, 1),))
    assert (walk.tail, walk.state_tail, walk.key, walk.evenly) == (None, None, None, False)
    assert walk.streams[0].releases is None
