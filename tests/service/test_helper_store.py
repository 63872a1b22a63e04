"""What the helper of two servers keeps: one response to a job, one verdict on a report."""

from __future__ import annotations

import pytest

from panprivacy.devices.aggregator.batch import BatchBucket
from panprivacy.devices.aggregator.helper_store import Verdict
from panprivacy.devices.aggregator.messages import ReportError
from panprivacy.devices.aggregator.problems import AbortError, Reason
from panprivacy.devices.aggregator.shares_store import OpenedRow
from tests.service.two_servers import histogram, task_of

ADDED = BatchBucket(1, bytes(32), (1, 0, 0))


@pytest.fixture
def made(world):
    return world(task_of(histogram(2), batch=2))


@pytest.fixture
def store(made):
    return made.helper_store


def opened(*names, whole=True):
    """A row of a payload of its own for each report."""
    return {name: OpenedRow((b"of " + name,), whole) for name in names}


def never(*_):
    raise AssertionError("there is an answer already")


def judged(store, job, rows):
    """What is wrong with the reports of a new job, which adds one to the batch."""
    found = {}

    def verdict(wrong):
        found.update(wrong)
        return Verdict(b"response to " + job, ADDED)

    assert store.judge(job, b"request", rows, verdict) == b"response to " + job
    return found


def shared(store, request=b"request"):
    """The batch that is told, and of how many reports."""
    told = []
    store.share(request, lambda *given: told.append(given) or b"share")
    return told


def test_it_knows_no_job_that_it_did_not_answer(store):
    assert store.response(b"j" * 16, b"request") is None


def test_a_job_is_answered_by_the_same_bytes_and_added_once(made, store):
    assert judged(store, b"job", opened(b"a")) == {}
    made.start_helper()
    again = made.helper_store
    assert again.response(b"job", b"request") == b"response to job"
    assert again.judge(b"job", b"request", opened(b"a"), never) == b"response to job"
    assert shared(again) == [(ADDED, 1)]


def test_another_request_for_a_job_is_refused(store):
    judged(store, b"job", opened(b"a"))
    for ask in (
        lambda: store.response(b"job", b"other"),
        lambda: store.judge(b"job", b"other", opened(b"b"), never),
    ):
        with pytest.raises(AbortError, match="a job keeps its reports") as refused:
            ask()
        assert refused.value.reason is Reason.INVALID_MESSAGE


def test_a_report_is_judged_once_under_its_id_and_by_its_payloads(store):
    judged(store, b"first", opened(b"a"))
    rows = {
        **opened(b"a", b"b"),
        b"renamed": opened(b"a")[b"a"],
        b"cut": OpenedRow((), False),
    }
    assert judged(store, b"second", rows) == {
        b"a": ReportError.REPORT_REPLAYED,
        b"renamed": ReportError.REPORT_REPLAYED,
        b"cut": ReportError.HPKE_DECRYPT_ERROR,
    }
    assert shared(store) == [(ADDED.combined(ADDED), 4)]


def test_the_first_row_of_a_report_is_the_only_one_that_is_stripped(store):
    assert store.strips({b"a": b"row", b"b": b"row"}) == {b"a", b"b"}
    assert store.strips({b"a": b"row", b"b": b"other", b"c": b"row"}) == {b"a", b"c"}


def test_a_report_that_is_stripped_alone_is_not_counted(store):
    store.strips({b"a": b"row", b"b": b"row"})
    judged(store, b"job", opened(b"a"))
    assert shared(store) == [(ADDED, 1)]


def test_after_the_share_no_report_is_stripped_or_judged(store):
    store.strips({b"a": b"row"})
    assert shared(store) == [(BatchBucket.empty(3), 0)]
    assert store.strips({b"a": b"row", b"b": b"row"}) == {b"a"}
    assert judged(store, b"job", opened(b"a")) == {b"a": ReportError.BATCH_COLLECTED}


def test_the_share_is_given_to_one_request(made, store):
    assert store.share(b"request", lambda *_: b"share") == b"share"
    made.start_helper()
    assert made.helper_store.share(b"request", never) == b"share"
    with pytest.raises(AbortError, match="given to another request") as refused:
        made.helper_store.share(b"other", never)
    assert refused.value.reason is Reason.BATCH_OVERLAP


def test_a_share_that_cannot_be_made_changes_nothing(store):
    def refuses(*_):
        raise AbortError(Reason.INVALID_BATCH_SIZE, "too few")

    with pytest.raises(AbortError, match="too few"):
        store.share(b"first", refuses)
    assert judged(store, b"job", opened(b"a")) == {}
    assert store.share(b"second", lambda *_: b"share") == b"share"
