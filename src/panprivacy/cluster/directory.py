"""Directory of a stream for publishers: the public keys of its shards, and the routing.

The coordinator publishes it in the broker, and again from time to time, because the broker may
lose its memory. It is public and not signed: anybody who may write it can make publishers seal to
keys of their own. So only the coordinator may: `docs/guarantees/envelopes.md` shows the
permissions.
"""

from __future__ import annotations

from typing import Final, Self

import msgspec

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import KEY_BYTES
from panprivacy.cluster.queues import BrokerError, Queue
from panprivacy.cluster.routing import Router
from panprivacy.errors import PanPrivacyError
from panprivacy.intake.sources.columns import Prefixes

USER: Final = "user"
COLUMNS: Final = (USER, "delta", "group", "side")
"""Contents of columns, in the order of the columns of a batch; every batch has users."""


class Directory(msgspec.Struct, frozen=True, kw_only=True):
    """Directory of the shard keys of one stream.

    Args:
        key: the key of the routing.
        numbered: whether ids number the users of a universe.
        columns: the content of each column of a batch, some of `COLUMNS` in their order.
        publics: the public key of each shard.
        addresses: prefix lengths that identify a user if users are IP addresses; else None.
    """

    key: bytes
    numbered: bool
    columns: tuple[str, ...]
    publics: tuple[bytes, ...]
    addresses: Prefixes | None = None

    def put_up(self, broker: Broker, name: str, stream: str) -> None:
        """Publish this directory in the broker.

        Raises:
            BrokerError: the broker does not answer, or refuses.
        """
        broker.tell(name, stream, msgspec.json.encode(self))

    @classmethod
    def read(cls, broker: Broker, name: str, stream: str) -> Self:
        """Return the directory that the coordinator has published.

        Raises:
            BrokerError: the broker does not answer, or has no readable directory.
        """
        content = broker.directory_entry(name, stream)
        if not content:  # or it was withdrawn
            message = f"the broker has no directory of {stream}: no cluster {name} counts it now"
            raise BrokerError(message)
        try:
            found = msgspec.json.decode(content, type=cls)
            found.router()
        except (msgspec.DecodeError, PanPrivacyError):
            found = None
        if (
            found is None
            or any(len(public) != KEY_BYTES for public in found.publics)
            or USER not in found.columns
            or [one for one in COLUMNS if one in found.columns] != list(found.columns)
        ):
            message = f"the directory of {stream} is damaged, or of another version of panprivacy"
            raise BrokerError(message)
        return found

    def router(self) -> Router:
        """Return the router, which assigns rows to shards.

        Raises:
            PlanError: the key is invalid, or there are too few or too many shards.
        """
        return Router(len(self.publics), self.key, numbered=self.numbered)

    def queues(self, name: str, stream: str) -> list[Queue]:
        """Return the queues of all shards."""
        shards = len(self.publics)
        return [Queue(name, stream, shards, shard) for shard in range(shards)]
