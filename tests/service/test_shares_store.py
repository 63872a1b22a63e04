"""What both of two servers keep: whose store it is, and which payloads came."""

from __future__ import annotations

import contextlib

import pytest

from panprivacy.devices.aggregator import shares_store
from panprivacy.devices.aggregator.batch import BatchBucket
from panprivacy.devices.aggregator.helper_store import HelperStore
from panprivacy.devices.aggregator.leader_store import LeaderStore
from panprivacy.devices.aggregator.shares_store import OpenedRow
from panprivacy.errors import PlanError
from tests.service.two_servers import VERIFY_KEY, histogram, task_of

TASK = task_of(histogram(2))
ROLES = pytest.mark.parametrize("role", [LeaderStore, HelperStore])


@pytest.fixture
def begin(tmp_path):
    """Opens stores in one place, each after the one before."""
    with contextlib.ExitStack() as stack:

        def begun(role, task=TASK, key=VERIFY_KEY):
            stack.pop_all().close()
            store = role(f"sqlite:///{tmp_path}/store.sqlite", task, key, tmp_path / "mark")
            stack.callback(store.end)
            return store

        yield begun


def new(store, opened):
    """Which reports are new, in a transaction of its own."""
    with store._alone() as (connection, _):
        return store._new(connection, opened)


def whole(*payloads):
    return OpenedRow(payloads, True)


@ROLES
def test_a_store_belongs_to_one_task_and_one_verification_key(begin, role):
    begin(role)
    for other in ({"task": task_of(histogram(2))}, {"key": bytes(len(VERIFY_KEY))}):
        with pytest.raises(PlanError, match="another task or under another verification key"):
            begin(role, **other)
    begin(role)


def test_the_store_of_one_server_is_none_of_the_other(begin):
    begin(LeaderStore)
    with pytest.raises(PlanError):
        begin(HelperStore)


@ROLES
def test_a_report_with_a_payload_that_came_before_is_not_new(begin, role):
    store = begin(role)
    first = {b"a": whole(b"1", b"2"), b"b": whole(b"3")}
    assert new(store, first) == {b"a", b"b"}
    assert new(store, {b"c": whole(b"4", b"2"), b"d": whole(b"5")}) == {b"d"}
    again = begin(role)
    assert new(again, {b"e": whole(b"4"), b"f": whole(b"6")}) == {b"f"}


@ROLES
def test_of_two_reports_with_one_payload_the_first_is_new(begin, role):
    store = begin(role)
    assert new(store, {b"a": whole(b"1"), b"b": whole(b"1"), b"c": whole(b"2")}) == {b"a", b"c"}


@ROLES
def test_a_report_that_has_a_payload_twice_is_not_new(begin, role):
    assert new(begin(role), {b"a": whole(b"1", b"1")}) == set()


@ROLES
def test_payloads_of_a_report_that_is_cut_are_known_from_then_on(begin, role):
    store = begin(role)
    assert new(store, {b"a": OpenedRow((b"1",), False)}) == set()
    assert new(store, {b"b": whole(b"1")}) == set()


@pytest.mark.parametrize("most", [1, 2, 7])
def test_many_payloads_are_asked_for_in_pieces(begin, monkeypatch, most):
    monkeypatch.setattr(shares_store, "_MOST_VARIABLES", most)
    store = begin(LeaderStore)
    names = [b"%d" % number for number in range(7)]
    assert new(store, {name: whole(name) for name in names[:5]}) == {*names[:5]}
    assert new(store, {name: whole(name) for name in names}) == {*names[5:]}


@ROLES
def test_an_empty_batch_has_a_share_of_each_answer(begin, role):
    store = begin(role)
    empty = BatchBucket.empty(TASK.kind.answers)
    assert store._batch(None) == empty
    added = BatchBucket(1, bytes(32), (1, 0, 0))
    assert store._batch(bytes(added)) == added
