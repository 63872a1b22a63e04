"""What the leader of two servers keeps: each report once, in one job, added up once."""

from __future__ import annotations

import pytest

from panprivacy.devices.aggregator.batch import BatchBucket
from panprivacy.devices.aggregator.messages import ReportError
from panprivacy.devices.aggregator.shares_store import OpenedRow
from panprivacy.errors import PanPrivacyError
from tests.service.two_servers import copied, histogram, honest, task_of

ADDED = BatchBucket(1, bytes(32), (1, 0, 0))


@pytest.fixture
def made(world):
    return world(task_of(histogram(2), batch=2))


def reports(made, count):
    return [honest(made.task, [1, 0, 0]) for _ in range(count)]


def test_a_report_counts_once_whatever_it_is_called(made):
    (report,) = reports(made, 1)
    store, name = made.leader_store, report.metadata.report_id
    assert store.add([report, report]) == [None, None]
    assert store.batch()[1] == 1
    other = copied(made.task, report, name)
    assert store.add([other]) == [ReportError.REPORT_REPLAYED]
    renamed = report._replace(metadata=report.metadata._replace(report_id=b"n" * 16))
    assert store.add([renamed]) == [ReportError.REPORT_REPLAYED]
    assert store.batch()[1] == 1


def test_a_job_is_the_same_until_it_ends_and_is_added_once(made):
    store = made.leader_store
    store.add(reports(made, 3))
    job = store.job(2)
    names = [one.metadata.report_id for one in job.reports]
    assert names == sorted(names)
    assert len(names) == 2
    assert store.job(9) == job
    store.finish(job.name, ADDED)
    store.finish(job.name, ADDED)
    assert store.batch() == (ADDED, 3)
    rest = store.job(2)
    assert rest.name != job.name
    assert len(rest.reports) == 1
    store.finish(rest.name, ADDED)
    assert store.job(2) is None
    assert store.batch()[0].shares == (2, 0, 0)


def test_a_batch_closes_once_enough_came_and_none_waits(made):
    store = made.leader_store
    store.add(reports(made, 1))
    with pytest.raises(PanPrivacyError, match="1 reports have come, and a release takes 2 or more"):
        store.close()
    more = reports(made, 2)
    store.add(more[:1])
    assert not store.close()
    store.finish(store.job(2).name, ADDED)
    assert not store.closed
    assert store.close()
    assert store.closed
    assert store.add(more) == [None, ReportError.BATCH_COLLECTED]


def test_an_answer_is_given_once_and_is_there_when_it_begins_again(made):
    assert made.leader_store.stored_answer() is None
    assert made.leader_store.answer(b"one") == b"one"
    assert made.leader_store.answer(b"other") == b"one"
    made.start_leader()
    assert made.leader_store.stored_answer() == b"one"


def test_a_job_is_judged_once_and_opened_again_with_the_same_shares_alone(made):
    """Other rows would show what a share is at two points."""
    store = made.leader_store
    store.add(reports(made, 2))
    job = store.job(2)
    first, second = (one.metadata.report_id for one in job.reports)
    opened = {first: OpenedRow((b"a", b"b"), True), second: OpenedRow((b"c",), False)}
    assert store.judge(job.name, opened) == {first}
    assert store.judge(job.name, opened) == {first}
    assert store.judge(job.name, {**opened, second: OpenedRow((b"c",), True)}) == {first}
    assert store.judge(job.name, {**opened, first: OpenedRow((b"a", b"x"), True)}) == set()


def test_what_was_in_one_job_is_refused_in_the_next(made):
    store = made.leader_store
    store.add(reports(made, 2))
    for allowed in (True, False):
        job = store.job(1)
        (name,) = (one.metadata.report_id for one in job.reports)
        found = store.judge(job.name, {name: OpenedRow((b"payload",), True)})
        assert found == ({name} if allowed else set())
        store.finish(job.name, ADDED)
