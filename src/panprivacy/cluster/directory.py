"""What publishers have to know of a stream: the keys of its shards, and who belongs to which.

The coordinator puts it up in the broker, and puts it up again now and then, as the broker's memory
may be lost. It is public, and not signed: whoever may write it can have publishers seal to keys of
his own. So only the coordinator may: `docs/guarantees/envelopes.md` shows the permissions.
"""

from __future__ import annotations

from typing import Final, Self

import msgspec

from panprivacy.cluster.broker import Broker
from panprivacy.cluster.envelopes import KEY_BYTES
from panprivacy.cluster.queues import BrokerError, Queue
from panprivacy.cluster.routing import Router
from panprivacy.errors import PanPrivacyError
from panprivacy.sources.columns import Prefixes

USER: Final = "user"
COLUMNS: Final = (USER, "delta", "group", "side")
"""What columns hold, in the order in which batches have them; users are in all."""


class Directory(msgspec.Struct, frozen=True, kw_only=True):
    """Of one stream.

    Args:
        key: of the routing.
        numbered: whether ids number the users of a universe.
        columns: what each column of a batch holds, some of `COLUMNS` in their order.
        publics: the public key of each shard.
        addresses: how much of the IP addresses counts that users are; None if they are none.
    """

    key: bytes
    numbered: bool
    columns: tuple[str, ...]
    publics: tuple[bytes, ...]
    addresses: Prefixes | None = None

    def put_up(self, broker: Broker, name: str, stream: str) -> None:
        """Put it up in the broker.

        Raises:
            BrokerError: the broker does not answer, or refuses.
        """
        broker.tell(name, stream, msgspec.json.encode(self))

    @classmethod
    def read(cls, broker: Broker, name: str, stream: str) -> Self:
        """What the coordinator has put up.

        Raises:
            BrokerError: the broker does not answer, or has none that can be read.
        """
        content = broker.told(name, stream)
        if not content:  # or it was taken down
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
        """Says which shard counts a row.

        Raises:
            PlanError: the key is none, or there are too few or too many shards.
        """
        return Router(len(self.publics), self.key, numbered=self.numbered)

    def queues(self, name: str, stream: str) -> list[Queue]:
        """Of all shards."""
        shards = len(self.publics)
        return [Queue(name, stream, shards, shard) for shard in range(shards)]
