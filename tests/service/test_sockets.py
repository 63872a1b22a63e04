"""Where the service listens: what an address may be, and whose the sockets are."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from panprivacy.errors import PlanError
from panprivacy.service.sockets import (
    Address,
    datagram_address,
    datagram_socket,
    http_address,
    http_socket,
    owners_socket,
)


def opened(listen, **options):
    return datagram_socket(datagram_address(listen), **options)


def sender_to(sock):
    sender = socket.socket(sock.family, socket.SOCK_DGRAM)
    sender.connect(sock.getsockname())
    return sender


@pytest.fixture
def unix(tmp_path):
    return f"unix:{tmp_path}/log.sock"


@pytest.mark.parametrize("address", ["udp://127.0.0.1:0", "udp://[::1]:0", "unix"])
def test_socket_receives_and_does_not_block(address, unix):
    if "::1" in address and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with opened(unix if address == "unix" else address) as sock, sender_to(sock) as sender:
        assert sock.gettimeout() == 0
        sender.send(b"x")
        assert sock.recv(10) == b"x"


def largest_buffer():
    """What the kernel gives this user, who may be an administrator, that asks for 8 MiB."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in (socket.SO_RCVBUF, 33):
            with suppress(PermissionError):
                probe.setsockopt(socket.SOL_SOCKET, name, 8 << 20)
        return probe.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def test_receive_buffer_is_as_large_as_allowed():
    with opened("udp://127.0.0.1:0") as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == largest_buffer()


@pytest.mark.parametrize("mode", [0o600, 0o660, 0o666])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_mode_is_set_and_never_wider(tmp_path, monkeypatch, unix, mode, umask):
    path = tmp_path / "log.sock"
    before, chmod = [], Path.chmod

    def noted(changed, new):
        before.append(stat.S_IMODE(changed.stat().st_mode))
        chmod(changed, new)

    monkeypatch.setattr(Path, "chmod", noted)
    previous = os.umask(umask)
    try:
        with opened(unix, mode=mode):
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(previous)
    assert before == [mode & ~umask]


def test_stale_file_is_replaced(tmp_path, unix):
    opened(unix).close()
    assert (tmp_path / "log.sock").is_socket()
    with opened(unix) as sock, sender_to(sock) as sender:
        sender.send(b"x")
        assert sock.recv(10) == b"x"


def test_live_socket_is_left_alone(unix):
    with opened(unix) as sock, sender_to(sock) as sender:
        with pytest.raises(PlanError, match="another program listens there"):
            opened(unix)
        sender.send(b"x")
        assert sock.recv(10) == b"x"


def test_live_socket_of_another_type_is_left_alone(tmp_path, unix):
    path = tmp_path / "log.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(PlanError, match="another program listens there"):
            opened(unix)
    assert path.exists()


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, lambda path: path.symlink_to("x")])
def test_other_files_are_left_alone(tmp_path, unix, make):
    path = tmp_path / "log.sock"
    make(path)
    with pytest.raises(PlanError, match="it is no socket"):
        opened(unix)
    assert os.path.lexists(path)


@pytest.mark.parametrize(
    ("listen", "says"),
    [
        ("", "listen must be unix:/run"),
        ("/run/log.sock", "listen must be unix:/run"),
        ("unix:log.sock", "by its whole path"),
        ("xudp://127.0.0.1:5514", "listen must be unix:/run"),
        ("tcp://127.0.0.1:5514", "listen must be unix:/run"),
        ("udp:127.0.0.1:5514", "listen must be unix:/run"),
        ("udp://127.0.0.1", "listen must be unix:/run"),
        ("udp://127.0.0.1:5514/x", "listen must be unix:/run"),
        ("udp://::1:5514", "listen must be unix:/run"),
        ("udp://127.0.0.1:5514\n", "listen must be unix:/run"),
        ("udp://localhost:5514", "listen must be unix:/run"),
        ("udp://:5514", "listen must be unix:/run"),
        ("udp://[::x]:5514", "listen must be unix:/run"),
        ("udp://127.0.0.1:65536", "listen must be unix:/run"),
        ("unix:/tmp/" + "x" * 200, "a path of at most 107 bytes"),
        ("unix:/tmp/\0", "by its whole path"),
        ("udp://192.0.2.1:5514", "cannot listen on 'udp://192.0.2.1:5514': .*; take an address"),
        ("unix:/no/such/folder/log.sock", "make its folder first"),
        ("unix:/proc/version/log.sock", "make its folder first"),
    ],
)
def test_bad_address_is_refused_in_one_line(listen, says):
    with pytest.raises(PlanError, match=says) as caught:
        opened(listen)
    assert str(caught.value).isprintable()


def test_taken_port_is_refused():
    says = pytest.raises(PlanError, match="another program listens there")
    with opened("udp://127.0.0.1:0") as sock, says:
        opened(f"udp://127.0.0.1:{sock.getsockname()[1]}")


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_sockets_of_connections_have_their_mode_whatever_the_umask(tmp_path, umask):
    path, own = tmp_path / "http.sock", tmp_path / "own.sock"
    previous = os.umask(umask)
    try:
        with http_socket(http_address(f"unix:{path}")), owners_socket(own):
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            assert stat.S_IMODE(own.stat().st_mode) == 0o600
    finally:
        assert os.umask(previous) == umask
    assert not path.exists()


def test_a_file_that_a_dead_service_left_behind_is_replaced(tmp_path):
    path = tmp_path / "http.sock"
    owners_socket(path).close()
    with http_socket(Address(path=str(path))) as sock, socket.socket(socket.AF_UNIX) as client:
        sock.listen()
        client.connect(str(path))


def test_what_a_live_program_listens_at_is_left_to_it(tmp_path):
    path = tmp_path / "http.sock"
    says = r"cannot listen at .*: Address already in use; name another place"
    with socket.socket(socket.AF_UNIX) as live, socket.socket(socket.AF_UNIX) as client:
        live.bind(str(path))
        live.listen(0)
        client.setblocking(False)
        for _ in range(2):  # with a place for who connects, and without
            with pytest.raises(PlanError, match=says), http_socket(Address(path=str(path))):
                pass
            client.connect_ex(str(path))
        assert path.is_socket()
    path.unlink()
    path.touch()
    with pytest.raises(PlanError, match="File exists"), http_socket(Address(path=str(path))):
        pass
    assert path.is_file()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_all_addresses_of_ipv6_are_those_of_ipv4_too():
    with http_socket(http_address("[::]:0")) as sock:
        sock.listen()
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, sock.getsockname()[1])).close()
    with opened("udp://[::]:0") as sock:
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family, socket.SOCK_DGRAM) as sender:
                sender.sendto(b"x", (host, sock.getsockname()[1]))
            assert sock.recv(10) == b"x"


def test_nobody_connects_before_all_else_is_ready():
    with http_socket(http_address("127.0.0.1:0")) as sock, pytest.raises(ConnectionRefusedError):
        socket.create_connection(sock.getsockname())


def test_answers_over_tcp_leave_at_once():
    with http_socket(http_address("127.0.0.1:0")) as sock:
        assert sock.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("listen", ["192.0.2.1:1", "unix:/no/such/folder/http.sock"])
def test_what_cannot_be_listened_at_for_http_is_named(listen):
    says = pytest.raises(PlanError, match=r"cannot listen at .*; name another place with listen")
    with says, http_socket(http_address(listen)):
        pass


def test_where_an_owner_cannot_listen_is_named(tmp_path):
    with pytest.raises(PlanError, match=r"cannot listen at .*no/own.sock: No such file"):
        owners_socket(tmp_path / "no" / "own.sock")
