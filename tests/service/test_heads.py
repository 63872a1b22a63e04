"""What a head may take: of time, of bytes and of headers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from panprivacy.service.incoming.problems import Problem
from panprivacy.service.web.heads import UNPARSED_BYTES, HeadGuard


class Watched:
    """A head whose time passes when the test says so."""

    def __init__(self):
        self.due, self.refused, self.closed = None, [], 0
        self.head = HeadGuard(self.later, 3.0, self.refused.append, self.close)

    def later(self, seconds, call):
        self.due = seconds, call
        return SimpleNamespace(cancel=self.cancel)

    def cancel(self):
        self.due = None

    def close(self):
        self.closed += 1

    def expire(self):
        self.due[1]()


@pytest.fixture
def watched():
    return Watched()


def parser(version="1.1", method=b"GET", upgrades=False):
    return SimpleNamespace(
        get_http_version=lambda: version,
        get_method=lambda: method,
        should_upgrade=lambda: upgrades,
    )


def test_a_head_that_does_not_end_is_refused_in_time(watched):
    watched.head.expect()
    watched.head.begin()
    watched.head.expect()  # its time goes on
    assert watched.due[0] == 3.0
    watched.expire()
    (problem,) = watched.refused
    assert (problem.status, watched.closed) == (408, 0)


def test_where_no_head_begins_the_connection_is_closed(watched):
    watched.head.expect()
    watched.expire()
    assert (watched.refused, watched.closed) == ([], 1)


def test_after_its_end_no_time_runs(watched):
    watched.head.expect()
    watched.head.begin()
    watched.head.end(parser(), [(b"host", b"a")])
    assert watched.due is None
    assert not watched.head.is_open


def test_the_rest_has_its_own_time(watched):
    watched.head.expect()
    watched.head.begin()
    watched.head.close_in(7.0)
    watched.head.expect()
    assert watched.due[0] == 7.0
    watched.expire()
    assert (watched.refused, watched.closed) == ([], 1)


def test_bytes_and_headers_are_limited(watched):
    watched.head.begin()
    watched.head.measure(bytes(1 << 14), 414, [])
    for part, headers in ((b"a", []), (b"", [None] * 100)):
        with pytest.raises(Problem) as caught:
            watched.head.measure(part, 414, headers)
        assert caught.value.status == 414
        assert watched.head.fault is caught.value
        watched.head.begin()
    watched.head.measure(b"a", 431, [None] * 99)


def test_unparsed_bytes_are_limited_and_start_anew_with_a_head(watched):
    for _ in range(2):
        watched.head.begin()
        watched.head.check_unparsed(UNPARSED_BYTES)
        assert not watched.refused
    watched.head.check_unparsed(1)
    assert [one.status for one in watched.refused] == [431]


HOST, CHUNKS = (b"host", b"a"), (b"transfer-encoding", b"chunked")


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({}, []),
        ({}, [HOST, HOST]),
        ({"version": "1.0"}, [HOST, HOST]),
        ({"version": "1.0"}, [CHUNKS]),
        ({"method": b"CONNECT", "upgrades": True}, [HOST]),
    ],
)
def test_what_a_head_may_not_say(watched, given, headers):
    watched.head.begin()
    with pytest.raises(Problem) as caught:
        watched.head.end(parser(**given), headers)
    assert caught.value.status == 400
    assert watched.head.fault is caught.value


@pytest.mark.parametrize(
    ("given", "headers"),
    [({"version": "1.0"}, []), ({}, [HOST, CHUNKS]), ({"upgrades": True}, [HOST])],
)
def test_what_a_head_may_say(watched, given, headers):
    watched.head.begin()
    watched.head.end(parser(**given), headers)
    assert watched.head.fault is None
