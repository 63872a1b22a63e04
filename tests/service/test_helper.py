"""What the helper of two servers does, and what it refuses to a leader."""

from __future__ import annotations

import pytest

from panprivacy.devices.aggregator.helper import Helper
from panprivacy.devices.aggregator.messages import (
    AGGREGATE_SHARE_REQ,
    JOB,
    RESPONSES,
    SHARES,
    AggregateShareReq,
    Party,
    ReportError,
)
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import AbortError, PeerError
from panprivacy.devices.aggregator.reports import batch_of, row_of, share_of
from tests.service.test_aggregators import REFUSED, outcomes
from tests.service.two_servers import (
    COINS,
    DiedError,
    copied,
    honest,
    task_of,
)


def test_a_helper_that_strips_other_rows_when_it_is_asked_again_is_told_nothing(world, monkeypatch):
    """It would have two points of the line on which a bit is; that it is asked, it can arrange."""
    both = world(task_of(collusion="one-server"))
    strip, verify, asked = Helper.strip, Helper.verify, []

    def swaps(self, job, body):
        rows = decoded(SHARES, strip(self, job, body))
        asked.append(body)
        given = rows[:: -1 if len(asked) > 1 else 1]
        swapped = (
            one._replace(encrypted_input_share=other.encrypted_input_share)
            for one, other in zip(rows, given, strict=True)
        )
        return SHARES.write(tuple(swapped))

    def breaks_off(self, job, body):
        if len(asked) == 1:
            raise DiedError
        return verify(self, job, body)

    monkeypatch.setattr(Helper, "strip", swaps)
    monkeypatch.setattr(Helper, "verify", breaks_off)
    both.leader.take([honest(both.task, [1]), honest(both.task, [0])])
    with pytest.raises(PeerError):
        both.leader.advance()
    both.run()
    *_, (_, _, body, _) = both.messages
    assert {one.payload for one in decoded(JOB, body).verify_inits} == {REFUSED}
    assert both.answer() == (2, [0])


def test_the_helper_refuses_what_a_leader_lets_through(world, monkeypatch):
    """The same report in two jobs, and a copy of it that the leader does not look at."""
    both = world(task_of())
    first = honest(both.task, [1])
    both.leader.take([first])
    both.run()
    _, _, body, _ = both.messages[-1]
    again = decoded(RESPONSES, both.helper.verify(COINS.key(16), body))
    assert [one.outcome for one in again] == [ReportError.REPORT_REPLAYED]
    monkeypatch.setattr(
        type(both.leader_store), "_new", lambda self, connection, opened: set(opened)
    )
    copy = copied(both.task, first)
    both.leader.take([copy])
    both.run()
    assert outcomes(both) == {copy.metadata.report_id: ReportError.REPORT_REPLAYED}
    assert both.answer() == (2, [1])


def test_the_helper_takes_its_layer_off_the_first_row_of_a_report_alone(world):
    task = task_of(collusion="one-server")
    both = world(task)
    first, other = honest(task, [1]), honest(task, [1])
    name = first.metadata.report_id

    def stripped(*reports):
        asked = tuple(
            share_of(name, row_of(one.leader, Party.LEADER), Party.LEADER) for name, one in reports
        )
        found = decoded(SHARES, both.helper.strip(bytes(16), SHARES.write(asked)))
        return [one.metadata.report_id for one in found]

    assert stripped((name, first)) == [name]
    assert stripped((name, first)) == [name]
    assert stripped((name, other)) == []
    both.leader.take([first])
    both.leader.release()
    assert stripped((COINS.key(16), other)) == []


def test_the_helper_takes_nothing_off_where_the_leader_opens_by_itself(world):
    with pytest.raises(AbortError, match="opens its rows of this task by itself"):
        world(task_of()).helper.strip(bytes(16), b"")


def test_the_helper_gives_its_share_for_the_whole_batch_alone_and_once(world):
    both = world(task_of(batch=2))
    both.leader.take([honest(both.task, [1]) for _ in range(2)])
    both.run()
    batch, _ = both.leader_store.batch()
    right = AggregateShareReq(batch_of(both.task), b"", batch.reports, batch.checksum)
    wrong = {
        "do not agree": right._replace(report_count=1),
        "agree": right._replace(checksum=bytes(32)),
        "one batch": right._replace(batch_selector=batch_of(task_of())),
        "parameter": right._replace(agg_param=b"x"),
    }
    for said, request in wrong.items():
        with pytest.raises(AbortError, match=said):
            both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(request))
    given = both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(right))
    assert both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(right)) == given
    with pytest.raises(AbortError, match="another request"):
        both.helper.share(b"x" * 16, AGGREGATE_SHARE_REQ.write(right))
    late = honest(both.task, [1])
    both.leader.take([late])
    both.run()
    assert outcomes(both) == {late.metadata.report_id: ReportError.BATCH_COLLECTED}


def test_the_helper_gives_no_share_of_too_few(world):
    both = world(task_of(batch=2))
    both.leader.take([honest(both.task, [1])])
    both.run()
    batch, _ = both.leader_store.batch()
    request = AggregateShareReq(batch_of(both.task), b"", batch.reports, batch.checksum)
    with pytest.raises(AbortError, match="1 reports have come, and a release takes 2"):
        both.helper.share(bytes(16), AGGREGATE_SHARE_REQ.write(request))
