"""Nothing is left of a visit: neither address, user agent, page and referrer, nor what they become.

A visit that is counted, one of a page that is no group, and each that is refused have texts of
their own. A moment later none of them may be in the memory of the daemon, in its files or in its
log, whether the connection of the proxy is open or not. The same daemon without its launcher shows
that the search finds what is there.

In the state are, by design, cells, and the key of the window by which a visitor has one. So who
reads the memory while a window is open can hash any visitor; with the window its key goes.
"""

from __future__ import annotations

import secrets
import socket
import time
from contextlib import ExitStack

import numpy as np
import pytest

from panprivacy.tables.hashing import hash_byte_strings

from .memory import count_in_process, needs_administrator
from .test_memory import HARDENED, PLAIN
from .test_service import (
    NOTHING,
    Needles,
    addresses,
    bytes_of,
    folder,
    found,
    held_still,
    key_words,
    keys_in,
    pieces,
    rest,
    running,
    texts,
)

__all__ = ["folder"]

pytestmark = needs_administrator

SITE = "https://example.org"
STREAMS = f"""
[streams.pages]
epsilon = 1
window = "3650d"
by = "page"
groups = ["/", "/help"]
ignore_others = true
[[streams.pages.stat]]
name = "distinct"
expected = "1000:1e6"
[streams.pages.beacon]
origins = ["{SITE}"]
proxies = ["127.0.0.1"]
prefix = "32:128"
[streams.site]
epsilon = 1
window = "3650d"
[[streams.site.stat]]
name = "distinct"
expected = "1000:1e6"
[streams.site.beacon]
origins = ["{SITE}"]
"""
VISITS = 60


def told(daemon, visits, stream="pages"):
    """Tell visits on connections that stay open and on such that do not; the statuses."""
    kept, statuses = daemon.connection(), []
    for number, (agent, address, page, host) in enumerate(visits):
        used = kept if number % 2 else daemon.connection()
        headers = {"Origin": SITE, "Content-Type": "text/plain;charset=UTF-8",
                   "User-Agent": agent, "X-Forwarded-For": address,
                   "Referer": f"{SITE}{page}", "Cookie": f"session={agent}"}  # fmt: skip
        if number % 10 == 9:
            headers["Origin"] = f"https://{host}"  # of another site
        body = page.encode() + b"\n" + host.encode() + (b"\xff" if number % 10 == 7 else b"")
        used.request("POST", f"/v1/streams/{stream}/beacon", body, headers)
        answer = used.getresponse()
        answer.read()
        statuses.append(answer.status)
        if used is not kept:
            used.close()
    return statuses


def drawn():
    """Visits whose texts nobody else has: half of them of pages that are groups."""
    each = [[row.decode() for row in ids(VISITS)] for ids in (texts, addresses, texts, texts)]
    return [
        (agent, address, "/help" if number % 4 else f"/{page}", host)
        for number, (agent, address, page, host) in enumerate(zip(*each, strict=True))
    ]


def needles_of(visits):
    """The texts, and the addresses as 16 bytes and as digits."""
    agents, written, pages, hosts = zip(*visits, strict=True)
    secret = [page[1:] for page in pages if page != "/help"]
    packed = [bytes.fromhex(one.replace(":", "")) for one in written]
    halves = np.frombuffer(b"".join(packed), ">u8").astype(np.uint64)
    digits = [one.hex().encode() for one in packed]
    rows = [one.encode() for one in (*agents, *secret, *hosts)]
    spelt = [one.encode() for one in written]
    return Needles.of(
        pieces(rows), pieces(spelt, 16), pieces(digits, 16), bytes_of(halves, halves.byteswap())
    )


@pytest.mark.long
def test_nothing_is_left_of_a_visit(folder):
    with running(HARDENED, folder, STREAMS) as daemon:
        visits = drawn()
        statuses = told(daemon, visits)
        assert {*statuses} == {204, 400, 403}
        assert statuses.count(204) == VISITS * 8 // 10
        rest(daemon)
        with held_still(daemon):
            assert found(daemon, needles_of(visits)) == NOTHING
            assert len(keys_in(daemon.states())) == 3


@pytest.mark.long
def test_no_hash_of_a_visitor_is_left(folder):
    """Nor what the key of the window makes of one."""
    with running(HARDENED, folder, STREAMS) as daemon:
        visits = drawn()
        told(daemon, visits)
        rest(daemon)
        with held_still(daemon):
            ids = [
                f"6:{int(address.replace(':', ''), 16):x} {agent}".encode()
                for agent, address, _, _ in visits
            ]
            hashes = [_hashed(ids, key) for key in keys_in(daemon.states())]
            assert found(daemon, Needles.of(*map(bytes_of, hashes))) == NOTHING


def _hashed(ids, key):
    """The hash of each id under the key of a table."""
    data = np.frombuffer(b"".join(ids), np.uint8)
    ends = np.cumsum([0, *map(len, ids)], dtype=np.int64)
    for one in (data, ends):
        one.flags.writeable = False
    result = np.empty(len(ids), np.uint64)
    hash_byte_strings(ends, data, *key_words(key), result)
    return result


@pytest.mark.long
def test_who_visits_without_a_proxy_leaves_no_address(folder):
    """The daemon closes the connection, and with it goes the address of its other end."""
    with running(HARDENED, folder, STREAMS) as daemon, ExitStack() as stack:
        hosts = [f"127.{100 + number}.{100 + secrets.randbelow(100)}.{101 + number}"
                 for number in range(20)]  # fmt: skip
        socks = [
            stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), 30, (host, 0)))
            for host in hosts
        ]
        for sock in socks:  # connected ahead, as browsers do, and open while others come and go
            head = "POST /v1/streams/site/beacon HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
            head += f"Origin: {SITE}\r\nContent-Type: text/plain\r\n\r\n/\n"
            sock.sendall(head.encode())
            assert sock.recv(1 << 12).startswith(b"HTTP/1.1 204")
            time.sleep(0.15)
        time.sleep(1)
        rest(daemon)
        left = {one: count_in_process(daemon.process.pid, one.encode()) for one in hosts}
        assert left == dict.fromkeys(hosts, 0)


@pytest.mark.slow
def test_without_hardening_the_same_search_finds_visitors(folder):
    """The control."""
    with running(PLAIN, folder, STREAMS) as daemon:
        visits = drawn()
        told(daemon, visits)
        rest(daemon)
        with held_still(daemon):
            assert found(daemon, needles_of(visits))[0] > 0
