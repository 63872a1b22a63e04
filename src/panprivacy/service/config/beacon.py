"""Configuration of a beacon: the web pages whose visits a stream takes, and who names visitors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

import msgspec

from panprivacy.errors import PlanError
from panprivacy.intake.programs.counting import Counting
from panprivacy.intake.programs.intake import Columns
from panprivacy.intake.sources import Prefixes
from panprivacy.intake.sources.columns import parse_prefixes, show
from panprivacy.service.config.values import parse_origin

BEACON_FIELDS: Final = "page", "referrer"
"""What a beacon tells of a visit: the path of the page, and the host of the page before it."""
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_PATHS: Final = "a path as browsers send it, such as /help or /%C3%BCber, without ? and #"
_HOSTS: Final = "- or a host as browsers send it, such as news.example or xn--bcher-kva.example"
_GROUPS: Final = {
    "page": (r"/[!-~]*", _PATHS),
    "referrer": (r"-|[a-z0-9._-]+(:[0-9]+)?|\[[0-9a-f:]+\](:[0-9]+)?", _HOSTS),
}
"""The form of the groups that can come, and what to write."""
UNIX: Final = "unix"
"""The proxy that connects to the Unix socket of the service."""

_TOO_LONG: Final = (
    "a beacon knows a visitor within one window, and this counts users over several windows: count "
    "them in another stream"
)


class BeaconConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `[streams.NAME.beacon]` table.

    Args:
        origins: web sites whose pages are counted, as `https://example.org`.
        proxies: addresses and networks of proxies that name the visitor in X-Forwarded-For; "unix"
            for one that connects to the Unix socket of the service.
        prefix: how many leading bits of a visitor's address count, of IPv4:IPv6.
    """

    origins: tuple[str, ...]
    proxies: tuple[str, ...] = ()
    prefix: str = "32:64"

    @property
    def admitted(self) -> frozenset[str]:
        """The origins as browsers write them.

        Raises:
            PlanError: one is no origin.
        """
        found = set()
        for one in self.origins:
            origin, path = parse_origin(one, "each of origins")
            if path:
                message = "each of origins must end after its host and port, without a path"
                raise PlanError(message)
            found.add(origin)
        return frozenset(found)

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The networks of the proxies.

        Raises:
            PlanError: one is no network.
        """
        found = []
        for one in self.proxies:
            if one == UNIX:
                continue
            message = 'each of proxies must be an address, a network such as "10.1.2.0/24", or '
            message += f'"unix", not {show(one)}'
            try:
                network = ip_network(one)
            except ValueError:
                raise PlanError(message) from None
            if not network.prefixlen or (network.version == 6 and network.subnet_of(_MAPPED)):
                raise PlanError(message)  # everybody; or one of IPv4, which is written as such
            found.append(network)
        return tuple(found)

    @property
    def prefixes(self) -> Prefixes:
        """The leading bits that count.

        Raises:
            PlanError: `prefix` has another form.
        """
        try:
            return parse_prefixes(self.prefix)
        except ValueError:
            message = "prefix must be how many bits to keep of IPv4:IPv6, such as 24:56"
            raise PlanError(message) from None

    def check(self, columns: Columns, counting: Counting, groups: Sequence[str]) -> None:
        """Raise `PlanError` if a stream cannot be counted from visits.

        Args:
            columns: the columns that the stream reads.
            counting: its statistics.
            groups: its groups, if any.
        """
        if not self.admitted:
            message = 'origins must name a web site at least, such as ["https://example.org"]'
            raise PlanError(message)
        _ = self.networks, self.prefixes
        user, group = columns.user, columns.group
        if user is not None and (user.integers or user.numbers or user.address is not None):
            message = (
                "a beacon counts visitors by address and user agent: leave out ids, and count "
            )
            message += "no values"
            raise PlanError(message)
        if columns.delta or columns.side or columns.amount:
            message = "a beacon tells of a visit, and no number: leave out delta, side and value"
            raise PlanError(message)
        if group is not None and group.name not in BEACON_FIELDS:
            message = f"by must be {' or '.join(BEACON_FIELDS)}: a beacon tells of nothing else"
            raise PlanError(message)
        form, hint = _GROUPS.get(group.name if group else "", ("", ""))
        if any(not re.fullmatch(form, one) or {"?", "#"} & set(one) for one in groups):
            message = f"each of groups must be {hint}: others never come"
            raise PlanError(message)
        each = counting.statistics.values()
        keeps = counting.internals.windows.lasting and any(one.plan.reads_ids for one in each)
        if keeps or any(one.internals.memory.sizes.published for one in each):
            raise PlanError(_TOO_LONG)
