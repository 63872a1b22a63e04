"""Addresses on which the service listens, as a configuration writes them, and their sockets."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from panprivacy.errors import PlanError
from panprivacy.intake.sources.columns import show

_HTTP_FORMS: Final = "127.0.0.1:{0}, [::1]:{0} or unix:/run/panprivacy/http.sock"
_DATAGRAM_FORMS: Final = "unix:/run/panprivacy/nginx.sock or udp://127.0.0.1:5514"
_PLACE: Final = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*)):(\d{1,5})", re.ASCII)
_LAST_PORT: Final = 0xFFFF
_LONGEST_SOCKET_PATH: Final = 107
_HTTP_MODE: Final = 0o660
_OWNERS_MODE: Final = 0o600
_UNSENT_BYTES: Final = 1 << 14
"""Bytes of unsent answers that the kernel buffers for each connection."""
_RECEIVE_BYTES: Final = 8 << 20
_FORCE_RECEIVE_BUFFER: Final = 33
"""SO_RCVBUFFORCE of Linux, which Python does not name."""
_REMEDIES: Final = {
    errno.EACCES: "have root make its folder for this user, or take a port above 1023",
    errno.EADDRINUSE: "another program listens there: stop it, or take another address",
    errno.EADDRNOTAVAIL: "take an address of this machine, such as 127.0.0.1",
    errno.EEXIST: "it is no socket: take another path, or remove it",
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "make its folder first",
}
_OTHER_REMEDY: Final = (
    "write udp://127.0.0.1:5514, udp://[::1]:5514 or unix:/run/panprivacy/nginx.sock"
)


# Addresses


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on: a port of an IP address, or the path of a Unix socket.

    Args:
        host: the IP address; empty for a Unix socket.
        port: 0 for any free one.
        path: of the socket; empty for an IP address.
    """

    host: str = ""
    port: int = 0
    path: str = ""

    def url(self, scheme: str) -> str:
        """Return the address as text; the scheme is for an IP address."""
        if self.path:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"


def http_address(listen: str, usual: int = 8642) -> Address:
    """Read an address for HTTP; equal places give equal addresses.

    Args:
        listen: the place.
        usual: the port of the examples in an error.

    Raises:
        PlanError: it is not such a place.
    """
    return _address(listen, _HTTP_FORMS.format(usual))


def datagram_address(listen: str) -> Address:
    """Read an address for datagrams; equal places give equal addresses.

    Raises:
        PlanError: it is not such a place.
    """
    if not listen.startswith(("unix:", "udp://")):
        message = f"listen must be {_DATAGRAM_FORMS}"
        raise PlanError(message)
    return _address(listen.removeprefix("udp://"), _DATAGRAM_FORMS)


def _address(text: str, forms: str) -> Address:
    message = f"listen must be {forms}"
    kind, _, path = text.partition(":")
    if kind == "unix":
        if not path.startswith("/") or "\0" in path or path.endswith("/"):
            message = "listen must name a Unix socket by its whole path: "
            message += "unix:/run/panprivacy/a.sock"
            raise PlanError(message)
        if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
            message = f"listen must name a path of at most {_LONGEST_SOCKET_PATH} bytes"
            raise PlanError(message)
        return Address(path=os.path.normpath(path))
    found = _PLACE.fullmatch(text)
    try:
        host = ip_address((found[1] or found[2]) if found else "")
    except ValueError:
        raise PlanError(message) from None
    if found is None or (host.version == 6) != bool(found[1]) or int(found[3]) > _LAST_PORT:
        raise PlanError(message)
    return Address(str(host), int(found[3]))


# Sockets of connections


@contextmanager
def http_socket(address: Address) -> Iterator[socket.socket]:
    """Provide a socket for HTTP that does not listen yet; close it and remove its file at the end.

    A socket file that a dead program left behind is replaced.

    Raises:
        PlanError: nothing can listen there.
    """
    try:
        if not address.path:
            sock = _tcp(address)
        else:
            _remove_stale(Path(address.path), socket.SOCK_STREAM)
            sock = _unix(address.path, _HTTP_MODE)
    except OSError as error:
        where = address.path or f"{address.host}, port {address.port}"
        says = os.strerror(error.errno) if error.errno else str(error)
        message = f"cannot listen at {where}: {says}; name another place with listen"
        raise PlanError(message) from None
    try:
        yield sock
    finally:
        sock.close()
        if address.path:
            with suppress(OSError):
                Path(address.path).unlink()


def owners_socket(path: Path) -> socket.socket:
    """Return a Unix socket that only its owner can open, from its creation on.

    Raises:
        PlanError: there can be no such socket.
    """
    try:
        return _unix(str(path), _OWNERS_MODE)
    except OSError as error:
        message = f"cannot listen at {path}: {error.strerror or error}"
        raise PlanError(message) from None


def _tcp(address: Address) -> socket.socket:
    # asyncio sends answers at once (TCP_NODELAY) if a socket names its protocol.
    sock = socket.socket(_family(address), socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with _closed_unless_ready(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        _take_both(sock)
        sock.bind((address.host, address.port))
    return sock


def _unix(path: str, mode: int) -> socket.socket:
    """Return a Unix socket for connections; its file has this mode from its creation on."""
    sock = socket.socket(socket.AF_UNIX)
    before = os.umask(0o777 & ~mode)
    try:
        with _closed_unless_ready(sock):
            sock.bind(path)
    finally:
        os.umask(before)
    return sock


@contextmanager
def _closed_unless_ready(sock: socket.socket) -> Iterator[None]:
    """Close a socket if its set-up fails."""
    try:
        yield
    except BaseException:
        sock.close()
        raise


# Sockets of datagrams


def datagram_socket(address: Address, mode: int = 0o660) -> socket.socket:
    """Open a datagram socket that does not block, with as large a buffer as the system allows.

    A socket file that a dead program left behind is replaced.

    Args:
        address: where to listen.
        mode: the mode of the socket file: users with write access may send.

    Raises:
        PlanError: nothing can listen there.
    """
    try:
        if not address.path:
            sock = socket.socket(_family(address), socket.SOCK_DGRAM)
            return _receiving(sock, (address.host, address.port))
        path = Path(address.path)
        _remove_stale(path, socket.SOCK_DGRAM)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        # The umask is shared by all threads, and others may create files by now. So the mode is set
        # here; the file starts with this mode, less the umask.
        os.fchmod(sock.fileno(), mode)
        _receiving(sock, address.path)
        path.chmod(mode)
    except (OSError, ValueError) as error:
        code = error.errno if isinstance(error, OSError) else None
        says = os.strerror(code) if code else str(error)
        remedy = _REMEDIES.get(code or 0, _OTHER_REMEDY)
        message = f"cannot listen on {show(address.url('udp'))}: {says}; {remedy}"
    else:
        return sock
    raise PlanError(message)


def _remove_stale(path: Path, kind: socket.SocketKind) -> None:
    """Remove a socket file that nobody listens on.

    Raises:
        OSError: somebody does, or it is another kind of file.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(errno.EEXIST, "")
        with socket.socket(socket.AF_UNIX, kind) as probe:
            probe.settimeout(0)
            code = probe.connect_ex(str(path))
        # a program listens, with a socket of whatever type, or with very many who wait for it
        if code in (0, errno.EPROTOTYPE, errno.EAGAIN):
            raise OSError(errno.EADDRINUSE, "")
        if code != errno.ECONNREFUSED:
            raise OSError(code, "")
        path.unlink()


def _receiving(sock: socket.socket, place: tuple[str, int] | str) -> socket.socket:
    """Make a socket ready to receive; close it if that fails."""
    with _closed_unless_ready(sock):
        sock.settimeout(0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        with suppress(OSError):  # takes an administrator of the network
            sock.setsockopt(socket.SOL_SOCKET, _FORCE_RECEIVE_BUFFER, _RECEIVE_BYTES)
        _take_both(sock)
        sock.bind(place)
    return sock


def _take_both(sock: socket.socket) -> None:
    """Make `[::]` accept IPv4 as well, whatever the setting of the system."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address.host else socket.AF_INET
