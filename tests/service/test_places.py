"""A service and its dashboard over IPv6 and Unix sockets, before and after they were killed."""

from __future__ import annotations

import socket
import stat

import httpx
import pytest

from panprivacy.service.client import announced
from tests.commands import run_command
from tests.service.browsing import dashboard
from tests.service.running import TOKENS, Service, wait_until_read

pytestmark = pytest.mark.long

STREAM = """
[streams.visits]
epsilon = 10
confidence = 0.999999
window = "1d"
releases = 3
intrusions = 1
user = "ip"
ids = "addresses"
prefix = "24:56"
[[streams.visits.stat]]
name = "distinct"
expected = "1:1000"
[[streams.visits.syslog]]
listen = "{log}"
format = "lines"
pattern = '^(?P<ip>\\S+)$'
"""
LINES = ["2001:db8:1:2::7", "2001:db8:1:ff::1", "203.0.113.5", "::ffff:203.0.113.9", "2001:db9::1"]
"""Three networks of 56 or 24 bits."""


class UnixService(Service):
    """One that listens at a Unix socket of its folder."""

    def __init__(self, folder, streams):
        self.path = folder / "http.sock"
        super().__init__(folder, streams, server=f'listen = "unix:{self.path}"')
        self.client.close()
        self.client = httpx.Client(transport=httpx.HTTPTransport(uds=str(self.path)))

    def url(self, path=""):
        return f"http://localhost{path}"


def send_line(family, where, line):
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.sendto(f"<190>Nov 30 06:00:00 nginx: {line}".encode(), where)


def counted(service):
    """How many networks came, as an answer with little noise says."""
    assert service.release().status_code == 201
    row = service.releases()[-1]
    return row["low"], row["high"]


def test_unix_sockets_are_there_again_after_a_kill_and_only_for_their_group(tmp_path):
    log = tmp_path / "log.sock"
    with UnixService(tmp_path, STREAM.format(log=f"unix:{log}")) as service:
        for _ in range(2):
            service.begin()
            assert f"where=unix:{service.path}" in service.said
            for path in (service.path, log):
                assert stat.S_IMODE(path.stat().st_mode) == 0o660
            for line in LINES:
                send_line(socket.AF_UNIX, str(log), line)
            assert service.send(["192.0.2.1"], durable=True).status_code in (200, 400)
            service.kill()
            assert service.path.is_socket()  # stale, and in nobody's way
            assert log.is_socket()
        service.begin()
        told = announced(f"unix:{service.path}", "visits", TOKENS["announce"], "look")
        assert told["left"] == 0
        assert service.stop() == 0
        assert not service.path.exists()
        assert not log.exists()


def test_a_second_program_does_not_take_a_socket_away(tmp_path):
    pytest.importorskip("nicegui")
    with UnixService(tmp_path, STREAM.format(log=f"unix:{tmp_path}/log.sock")) as service:
        service.start()
        again = run_command("dashboard", service.config, "--listen", f"unix:{service.path}")
        assert again.code == 2
        assert "Address already in use; name another place" in again.stderr
        assert service.status() == "ok"


def test_the_dashboard_over_ipv6_and_a_unix_socket(tmp_path):
    pytest.importorskip("nicegui")
    with UnixService(tmp_path, STREAM.format(log=f"unix:{tmp_path}/log.sock")) as service:
        service.start()
        board = tmp_path / "board.sock"
        for listen, base in (("[::1]:0", None), (f"unix:{board}", "http://localhost")):
            with dashboard(service.config, "--listen", listen) as where:
                uds = None if base is None else str(board)
                transport = httpx.HTTPTransport(uds=uds, verify=False)
                with httpx.Client(transport=transport, base_url=base or where) as client:
                    assert where.startswith("http://[::1]:" if base is None else "unix:/")
                    origin = {"Origin": base or where}
                    entered = client.post("/enter", data={"token": TOKENS["read"]}, headers=origin)
                    assert entered.status_code == 303
                    assert "/streams/visits" in client.get("/").text
                    if base is not None:
                        assert stat.S_IMODE(board.stat().st_mode) == 0o660
        assert not board.exists()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_ipv6_and_both_at_once(tmp_path):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as free:
        free.bind(("::", 0))
        port = free.getsockname()[1]
    stream = STREAM.format(log=f"udp://[::]:{port}")
    with Service(tmp_path, stream, server='listen = "[::]:0"') as service:
        service.start()
        http = int(service.url().rpartition(":")[2])
        for host in ("[::1]", "127.0.0.1"):
            got = service.client.get(f"http://{host}:{http}/healthz")
            assert got.status_code == 200
        ways = [(socket.AF_INET6, ("::1", port)), (socket.AF_INET, ("127.0.0.1", port))]
        for line in LINES:
            for family, where in ways:
                send_line(family, where, line)
        for way, (family, where) in enumerate(ways):
            for network in range(100):
                send_line(family, where, f"10.{way}.{network}.1")
        wait_until_read(port)  # nobody confirms a datagram
        low, high = counted(service)
        assert 103 < low <= 203 <= high < 300  # low is above 140 where both ways are counted
        service.kill()
        service.begin()
        told = announced(f"http://[::1]:{service.url().rpartition(':')[2]}", "visits",
                         TOKENS["announce"], "look")  # fmt: skip
        assert told["left"] == 0
