"""Two servers that count together what neither of them sees: what a task says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

import msgspec

from panprivacy.errors import PlanError
from panprivacy.ground.validation import hexadecimal, positive_integer

if TYPE_CHECKING:
    from panprivacy.devices.federated.kind import Kind
    from panprivacy.devices.federated.promise import Promise

KEY_BYTES: Final = 33

Collusion = Literal["none", "one-server"]
"""Servers that may collude with an intruder of the device: none, or one of them."""

_MOST_REPORTS: Final = 10_000_000


class TwoServers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The public keys of two servers, and what they have agreed on.

    The keys are for one task: what a server opens in two tasks may tell the other one a bit.
    [docs/guarantees/two-servers.md]

    Args:
        leader: the key of the one to which devices send, 33 bytes in hexadecimal digits.
        helper: the key of the other one.
        collusion: what a device holds is encrypted to "none": each share to its server; or
            "one-server": both shares to both servers, so that each needs the other to open its own.
        batch: the minimum number of reports that are released together.

    Raises:
        PlanError: a value is out of range, or both keys are the same.
    """

    leader: str
    helper: str
    collusion: Collusion
    batch: int

    def __post_init__(self) -> None:
        hexadecimal(KEY_BYTES, leader=self.leader)
        hexadecimal(KEY_BYTES, helper=self.helper)
        if self.leader == self.helper:
            message = "both servers have the same key: each has to make its own"
            raise PlanError(message)
        if self.collusion not in get_args(Collusion):
            message = f"collusion must be one of {', '.join(get_args(Collusion))}"
            raise PlanError(message)
        positive_integer(_MOST_REPORTS, batch=self.batch)

    @property
    def joint(self) -> bool:
        """Whether each server removes its layer from the shares that the other one opens."""
        return self.collusion == "one-server"

    def check(self, kind: Kind, promise: Promise) -> None:
        """Raise `PlanError` unless two servers can count this, and keep the promise."""
        if kind.adds:
            name = kind.__struct_config__.tag
            message = f"a {name} needs values that can be added under encryption, which shares "
            message += "cannot be: ask one server, or ask two for a histogram"
            raise PlanError(message)
        if self.batch < promise.devices:
            message = f"batch must be at least the {promise.devices:,} devices of the promise"
            raise PlanError(message)
