"""The public front of a state: what it is, how much follows, and nothing about anybody.

A state is a header of fixed size, the public parameters as JSON, the addressing key and the table.
The header has the lengths of all that follows, so states can be written one after another.
"""

from __future__ import annotations

import functools
import io
import json
import struct
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, BinaryIO

from panprivacy._version import VERSION
from panprivacy.errors import InputError
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.records import Sizes
from panprivacy.tables.planning.request import Request
from panprivacy.tables.slices import Slice

_LAYOUT = struct.Struct("<8sIQIIQ")
"""Magic, bytes of public text, bytes of key and arrays, releases, announced intrusions, tick."""

_FORMAT = b"panpriv"
_MAGIC = _FORMAT + b"2"

MOST_TEXT = 1 << 17
"""More bytes of public parameters than any plan has; a longer text is not read."""

_PARTS = "sizes", "request", "slice"
"""Of the public parameters, those that hold several."""

_CUT = "the state is cut off, or more follows it"


@dataclass(frozen=True, slots=True)
class Header:
    """The public header of a state, before its key and its table.

    Args:
        front: the public parameters as JSON.
        body_bytes: of key and table.
        releases: number of releases made.
        intrusions: number of intrusions announced.
        tick: number of steps made, where time is cut into steps.
    """

    front: bytes
    body_bytes: int
    releases: int = 0
    intrusions: int = 0
    tick: int = 0

    @property
    def front_bytes(self) -> int:
        """The size of the header as a state begins with it."""
        return _LAYOUT.size + len(self.front)

    @property
    def state_bytes(self) -> int:
        """The size of the whole state."""
        return self.front_bytes + self.body_bytes

    def packed(self) -> bytes:
        """The header as a state begins with it."""
        counters = self.releases, self.intrusions, self.tick
        return _LAYOUT.pack(_MAGIC, len(self.front), self.body_bytes, *counters) + self.front

    def public(self) -> dict[str, Any]:
        """The public parameters.

        Raises:
            InputError: the text is not what `public_text` writes.
        """
        try:
            found = json.loads(self.front)
            known = isinstance(found, dict) and json.dumps(found, sort_keys=True) == str(
                self.front, "ascii"
            )
        except (ValueError, RecursionError):
            known = False
        if not known:
            message = "the state is damaged: its public parameters cannot be read"
            raise InputError(message)
        return found


def read_header(stream: BinaryIO) -> Header:
    """Read the front of a state, and leave the stream before its key and table.

    Raises:
        InputError: no state begins here, or it ends before its key.
    """
    front = stream.read(_LAYOUT.size)
    if not front.startswith(_MAGIC[: len(front)]) or not front:
        other = front.startswith(_FORMAT)
        message = "a state of another format" if other else "there is no state of panprivacy here"
        raise InputError(message)
    if len(front) < _LAYOUT.size:
        message = "the state is cut off"
        raise InputError(message)
    _, text_bytes, body_bytes, *counters = _LAYOUT.unpack(front)
    if text_bytes > MOST_TEXT:
        message = "the state is damaged: its public parameters are too long"
        raise InputError(message)
    text = stream.read(text_bytes)
    if len(text) < text_bytes:
        message = "the state is cut off"
        raise InputError(message)
    return Header(text, body_bytes, *counters)


def unpacked(state: bytes, own: Header) -> tuple[Header, memoryview]:
    """The header of a state, and its key and table, which have the right size.

    Args:
        state: a whole state.
        own: the header of the statistic that is to go on from it.

    Raises:
        InputError: as for `opened`.
    """
    header, body = opened(state, own)
    if header.body_bytes != own.body_bytes:
        raise InputError(_CUT)
    return header, body


def opened(state: bytes, own: Header) -> tuple[Header, memoryview]:
    """The header of a state, and all that follows it.

    Args:
        state: a whole state.
        own: the header of what is to go on from it.

    Raises:
        InputError: it is none, damaged, or of something else. The message names what differs.
    """
    header = read_header(io.BytesIO(state))
    if header.front != own.front:
        raise InputError(_difference(header.public(), own.public()))
    body = memoryview(state)[own.front_bytes :]
    if header.body_bytes != len(body):
        raise InputError(_CUT)
    return header, body


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, object, object]]:
    """The public parameters in which two states differ, with what each says; None for nothing."""
    first, second = _flat(one), _flat(other)
    return [
        (name, first.get(name), second.get(name))
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    ]


def _difference(found: dict[str, Any], own: dict[str, Any]) -> str:
    """Why a state is not one of this statistic's."""
    for name in ("version", "statistic", "format"):
        theirs, ours = found.get(name, 1), own.get(name, 1)
        if theirs != ours:
            return f"the state is of {name} {theirs!s:.40}, and this is {ours}"
    names = [name for name, _, _ in differing(found, own)]
    return f"the state is of {own['statistic']}, with another {', '.join(names)}"


def _flat(public: dict[str, Any]) -> dict[str, object]:
    """The parameters and those within them, by name."""
    inner = [public[part] for part in _PARTS if isinstance(public.get(part), dict)]
    outer = {name: one for name, one in public.items() if name not in _PARTS}
    return {**outer, **{name: value for part in inner for name, value in part.items()}}


@functools.lru_cache(maxsize=64)
def public_text(
    statistic: str,
    sizes: Sizes,
    request: Request,
    budget: Budget,
    ledger: Fraction,
    law: str = "",
    slice_: Slice | None = None,
) -> bytes:
    """The public parameters as JSON: whoever reads them can plan the same statistic.

    Args:
        statistic: its name.
        sizes: what it was told.
        request: epsilon and what it covers.
        budget: how the plan splits epsilon.
        ledger: total of the ledger.
        law: what tells it from others, if it was searched for: `abilities.searched_law`.
        slice_: which slice of the table it is; None for the whole.
    """
    asked = {
        "epsilon": str(request.epsilon),
        "releases": request.releases,
        "intrusions": request.intrusions,
        "own_budget": request.budget is not None,
    }
    public: dict[str, Any] = {
        "version": VERSION,
        "statistic": statistic,
        "ledger": str(ledger),
        "sizes": sizes.plain(),
        "request": asked,
        "budget": {"state": str(budget.state), "release": str(budget.release)},
    }
    if law:
        public["law"] = law
    if slice_ is not None:
        public["shard"] = slice_.shard
        public["slice"] = {"shards": slice_.shards, "routing": slice_.key.hex()}
    return json.dumps(public, sort_keys=True).encode()
