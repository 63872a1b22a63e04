"""Which web sites may talk to the dashboard."""

from __future__ import annotations

import pytest

from panprivacy.errors import PlanError
from panprivacy.service.dashboard.origins import Origins


def admits(origins, *named, host="127.0.0.1:8643", scheme="http", method="POST"):
    headers = [(b"host", host.encode()), *[(b"origin", one.encode()) for one in named]]
    scope = {"type": "http", "scheme": scheme, "method": method, "headers": headers}
    return origins.admits(scope)


def test_its_own_origin_is_admitted_and_no_other():
    own = Origins()
    assert admits(own, "http://127.0.0.1:8643")
    assert admits(own, "http://[::1]:8643", host="[::1]:8643")
    assert admits(own, "https://board.example", host="Board.example", scheme="https")
    for other in (
        "http://127.0.0.1:8642",
        "https://127.0.0.1:8643",
        "http://localhost:8643",
        "http://127.0.0.1:8643.evil.example",
        "http://evil.example",
        "null",
        "",
    ):
        assert not admits(own, other)
        assert not admits(own, other, method="GET")


def test_declared_proxies_are_admitted_whatever_host_they_name():
    declared = Origins(["https://Numbers.example:443/", "http://[::1]:80", "http://a.example:81"])
    for origin in ("https://numbers.example", "http://[::1]", "http://a.example:81"):
        assert admits(declared, origin)
        assert admits(declared, origin, host="numbers.example")
    assert not admits(declared, "http://numbers.example")
    assert not admits(declared, "https://numbers.example", "https://numbers.example")


def test_a_proxy_has_the_dashboard_at_one_path():
    declared = Origins(["https://numbers.example/pp/", "http://a.example/pp"])
    assert declared.path == "/pp"
    assert admits(declared, "https://numbers.example")
    assert not admits(declared, "https://numbers.example/pp")
    assert Origins(["https://numbers.example/"]).path == Origins().path == ""
    assert Origins(["https://a/b-1/c.d"]).path == "/b-1/c.d"
    for others in (["https://a/b", "https://a"], ["https://a/b", "https://c/d"]):
        with pytest.raises(PlanError, match="at one path"):
            Origins(others)


def test_only_what_changes_nothing_may_leave_its_origin_out():
    assert admits(Origins(), method="GET")
    assert admits(Origins(), method="HEAD")
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert not admits(Origins(), method=method)
    scope = {"type": "websocket", "scheme": "ws", "headers": [(b"host", b"a")]}
    assert not Origins().admits(scope)


@pytest.mark.parametrize(
    "text",
    ["", "*", "numbers.example", "https://a//b", "https://a/..", "https://a/%41",
     "https://", "https://a/b?c", "https://a?b", "ftp://a", "null",
     "https://a:b", "https://me:secret@a", "https://[::1"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(PlanError, match="origin must be like"):
        Origins([text])
