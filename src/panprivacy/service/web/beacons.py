"""Beacons: visits that web pages tell by themselves, with a script and without a token.

Anybody can send a visit. So visits have room of their own, and take none from senders with a token.
The id of a visitor is the address, of which a prefix counts, and the user agent. The table of the
stream hashes it with the key of its window, and nothing else of it remains: a window that has ended
took its key along, so that nobody can find a visitor again in another one.
"""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

from starlette.responses import Response

from panprivacy.intake.sources import Prefixes
from panprivacy.service.config.beacon import BEACON_FIELDS, UNIX, BeaconConfig
from panprivacy.service.engine import Engine
from panprivacy.service.incoming.admission import Admission, Sender, overwrite
from panprivacy.service.incoming.problems import Problem, check_restored
from panprivacy.service.served import Served
from panprivacy.service.web.asked import HttpRequest

SCRIPT: Final = Path(__file__).with_name("beacon.js").read_bytes()
"""The script, the same for all streams and visitors."""

_HEADERS: Final = {
    "Content-Type": "text/javascript; charset=utf-8",
    # and no ETag: a browser sends it back, as it does a cookie
    "Cache-Control": "public, max-age=3600",
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}
_KINDS: Final = {"text/plain": "visit"}
_BODY_BYTES: Final = 4_096
_WAITING_BYTES: Final = 4 << 20
_SECONDS: Final = 2.0
_AGENT_CHARACTERS: Final = 512
_NO_VISITOR: Final = (
    "the proxy does not name the visitor: have it set X-Forwarded-For to an IP address"
)

_Address = IPv4Address | IPv6Address


class Beacons:
    """Endpoints of the beacons of a service.

    Args:
        engine: the engine of the service.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._admission = Admission(_BODY_BYTES, _WAITING_BYTES, _SECONDS)
        self._beacons = {
            name: _Beacon(stream, stream.config.beacon)
            for name, stream in engine.streams.items()
            if stream.config.beacon is not None
        }

    async def script(self, asked: HttpRequest) -> Response:
        """Return the script that a page loads."""
        beacon = self._beacon(asked)
        self._engine.sweeper.soon()
        return Response(SCRIPT, headers={**_HEADERS, **beacon.closing(asked)})

    async def visit(self, asked: HttpRequest) -> Response:
        """Count a visit."""
        beacon = self._beacon(asked)
        check_restored(waiting=self._engine.waiting)
        headers = beacon.answer_headers(asked)
        if asked.encoding() is not None:
            raise Problem(415, "a visit is not compressed: leave out Content-Encoding")
        asked.body_format(_KINDS)
        stream = beacon.stream
        sender = Sender(stream.name, stream.name)  # each leaves room to the others
        with self._admission.request(sender):
            length, chunks = asked.body_length(), asked.body()
            try:
                async with self._admission.body(sender, length, chunks) as body:
                    row = beacon.row(asked, body)
                    await self._engine.bodies.count(stream, "ndjson", row, None)
            finally:  # also for a body that is incomplete or too long
                self._engine.sweeper.soon()
        return Response(status_code=204, headers=headers)

    def _beacon(self, asked: HttpRequest) -> _Beacon:
        """Return the beacon of the stream of a request."""
        found = self._beacons.get(asked.path["name"])
        if found is None:
            raise Problem(404, "there is no stream of this name that has a beacon")
        return found


class _Beacon:
    """The beacon of one stream.

    Args:
        stream: the stream.
        config: its beacon.
    """

    def __init__(self, stream: Served, config: BeaconConfig) -> None:
        self.stream = stream
        self._origins, self._prefixes = config.admitted, config.prefixes
        self._networks, self._is_at_socket = config.networks, UNIX in config.proxies

    def answer_headers(self, asked: HttpRequest) -> dict[str, str]:
        """Return the headers of the answer; refuse a page of another site."""
        origin = asked.header("Origin")
        if origin not in self._origins:
            raise Problem(403, "Origin must be one of the origins of this beacon")
        allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        return {**allowed, **self.closing(asked)}

    def closing(self, asked: HttpRequest) -> dict[str, str]:
        """Return the header that closes a connection of a visitor.

        The service knows their address while it is open. That of a proxy stays open.
        """
        return {} if self._is_proxy(_peer(asked)) else {"Connection": "close"}

    def row(self, asked: HttpRequest, body: bytearray) -> bytearray:
        """Return the line of NDJSON that counts a visit; overwrite its body."""
        try:
            page, _, referrer = body.decode().partition("\n")
        except ValueError:
            raise Problem(400, "a visit must be a text in UTF-8") from None
        finally:
            overwrite(body)
        told = dict(zip(BEACON_FIELDS, (page, referrer), strict=True))
        columns, row = self.stream.columns, {}
        if columns.user is not None:
            row[columns.user.name] = self._visitor(asked)
        if columns.group is not None:
            row[columns.group.name] = told[columns.group.name] or "-"
        return bytearray(json.dumps(row).encode() + b"\n")

    def _visitor(self, asked: HttpRequest) -> str:
        """Return the id of a visitor: the prefix of the address, and the user agent."""
        agent = asked.header("User-Agent") or ""
        return f"{_prefix(self._address(asked), self._prefixes)} {agent[:_AGENT_CHARACTERS]}"

    def _address(self, asked: HttpRequest) -> _Address:
        """Return the last address on the way that is no declared proxy."""
        peer = _peer(asked)
        if not self._is_proxy(peer):
            if peer is None:
                raise Problem(400, _NO_VISITOR)
            return peer
        last = None
        for hop in reversed(asked.listed("X-Forwarded-For").split(",")):
            last = _parsed(hop.strip())
            if not self._is_proxy(last):
                break
        if last is None:
            raise Problem(400, _NO_VISITOR)
        return last

    def _is_proxy(self, address: _Address | None) -> bool:
        """Return whether an address is that of a declared proxy; None is a Unix socket."""
        if address is None:
            return self._is_at_socket
        return any(address in network for network in self._networks)


def _peer(asked: HttpRequest) -> _Address | None:
    """Return the address of the other end of the connection; None for a Unix socket."""
    return None if asked.peer is None else _parsed(asked.peer)


def _parsed(text: str) -> _Address:
    """Return an address; one of IPv4 for an IPv6 address that maps it."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        raise Problem(400, _NO_VISITOR) from None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _prefix(address: _Address, prefixes: Prefixes) -> str:
    """Return the bits of an address that count, as digits."""
    kept = prefixes.ipv4 if address.version == 4 else prefixes.ipv6
    dropped = address.max_prefixlen - kept
    return f"{address.version}:{int(address) >> dropped:x}"
