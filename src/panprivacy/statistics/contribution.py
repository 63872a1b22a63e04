"""What a shard hands out so that several are read as one: its sums, or its cells.

A contribution holds what no noise protects yet but that of the cells. Whoever reads it has looked
at the state. Its front is public: that of the state, and which form it has.
"""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from panprivacy.errors import InputError
from panprivacy.statistics.aggregation import Form
from panprivacy.statistics.header import Header, read_header
from panprivacy.statistics.release import Label

ID_BYTES = 16

_MAGIC = b"panpart1"
_LAYOUT = struct.Struct("<8sIQ")
"""Magic, bytes of what is told, bytes of sums or cells; the header of the state follows."""

_DAMAGED = "the contribution is damaged, or cut off"


class ContributionSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The public header of a contribution, beside the front of its state.

    Args:
        id: drawn when it was made; its copies have the same.
        form: what it holds.
        asked: what the release is asked.
        label: what the statistic is called; empty for its own name.
        group: of users; None if they are not counted by group.
        per_user: in how many groups a user may be; None where there are no groups.
        complete: whether all was counted; not where a signal or an error ended the count early.
    """

    id: str
    form: Form
    asked: dict[str, Any]
    label: str = ""
    group: Label | None = None
    per_user: int | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class ContributionPart:
    """The contribution of one statistic.

    Args:
        header: of its state.
        told: what else is public.
        body: sums, int64; or key and table.
    """

    header: Header
    told: ContributionSummary
    body: bytes

    def under(self, **named: Any) -> ContributionPart:
        """The same under a label, of a group, or of a count that ended early."""
        return ContributionPart(self.header, replace(self.told, **named), self.body)

    def packed(self) -> bytes:
        """Return the contribution as bytes."""
        told = msgspec.json.encode(self.told, order="sorted")
        front = _LAYOUT.pack(_MAGIC, len(told), len(self.body))
        return front + self.header.packed() + told + self.body


def read_parts(contribution: bytes) -> list[ContributionPart]:
    """The contributions of the statistics of one shard.

    Raises:
        InputError: it is none, or damaged. No message shows what is in it.
    """
    stream, parts = io.BytesIO(contribution), list[ContributionPart]()
    while front := stream.read(_LAYOUT.size):
        if not front.startswith(_MAGIC[: len(front)]):
            message = "there is no contribution of panprivacy here"
            raise InputError(message)
        if len(front) < _LAYOUT.size:
            raise InputError(_DAMAGED)
        _, told_bytes, body_bytes = _LAYOUT.unpack(front)
        header = read_header(stream)
        if told_bytes + body_bytes > len(contribution):  # any 64 bits, of damaged ones
            raise InputError(_DAMAGED)
        told, body = stream.read(told_bytes), stream.read(body_bytes)
        if len(told) < told_bytes or len(body) < body_bytes:
            raise InputError(_DAMAGED)
        try:
            parts.append(
                ContributionPart(header, msgspec.json.decode(told, type=ContributionSummary), body)
            )
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise InputError(_DAMAGED) from None
    if not parts:
        message = "the contribution is empty"
        raise InputError(message)
    return parts
