"""States that hold others: of several statistics, groups, windows, streams.

Such a state begins with a header like any other, which gives the size of all that follows: a few
bytes of its own, of which the public text gives the number as "own_bytes", and the states in it.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from panprivacy._version import VERSION
from panprivacy.statistics.header import Header, opened, read_header
from panprivacy.statistics.internals import Memory, Resumable

CountOrCounts = int | Sequence[int]
"""A number for each, or one for all."""

OWN_BYTES = "own_bytes"
"""In the public text of a state that holds others: how many bytes stand before the first."""


@dataclass(frozen=True, slots=True)
class Container:
    """Writes and reads the state of something that holds others.

    Args:
        name: of the class.
        public: its public parameters.
        own_bytes: size of what it adds to the states that it holds.
        held: what it holds, in order.
    """

    name: str
    public: dict[str, Any]
    own_bytes: int
    held: Sequence[Resumable]

    @property
    def front(self) -> bytes:
        """The public parameters, its own and those of what it holds."""
        return b"".join([self._header().front, *(one.front for one in self.held)])

    @property
    def state_bytes(self) -> int:
        """The size of the whole state."""
        return self._header().state_bytes

    def packed(self, own: bytes = b"") -> bytes:
        """The state, with what is its own."""
        return b"".join([self._header().packed(), own, *(one.state() for one in self.held)])

    def parts(self, state: bytes) -> tuple[bytes, list[bytes]]:
        """Return the container's own part of a state, and the states in it.

        Raises:
            InputError: it is none, damaged, or of something else; the message names what differs.
        """
        _, body = opened(state, self._header())
        return bytes(body[: self.own_bytes]), parted(bytes(body[self.own_bytes :]), self.held)

    def _header(self) -> Header:
        inside = sum(one.state_bytes for one in self.held)
        text = {
            "version": VERSION, "statistic": self.name, OWN_BYTES: self.own_bytes, **self.public,
        }  # fmt: skip
        packed = json.dumps(text, default=str, sort_keys=True).encode()
        return Header(packed, self.own_bytes + inside)


def parted(states: bytes, held: Sequence[Resumable]) -> list[bytes]:
    """The state of each, as long as it says; what is too much is the last one's, which refuses it.

    Raises:
        InputError: no state begins where one ends.
    """
    stream, ends = io.BytesIO(states), [0]
    for _ in held[:-1]:
        stream.seek(ends[-1])
        ends.append(ends[-1] + read_header(stream).state_bytes)
    return [states[start:end] for start, end in itertools.pairwise([*ends, len(states)])]


def resume_all(
    held: Sequence[Resumable],
    states: Sequence[bytes],
    released: CountOrCounts = 0,
    announced: CountOrCounts = 0,
) -> None:
    """Let all go on from earlier states, or none of them.

    Where one cannot after all, for want of coins or of memory, private programs are wiped: some
    would go on, and others would make again the releases that are paid for.

    Args:
        held: what is to go on.
        states: one for each.
        released: how many releases of each, or of all alike, have left in all.
        announced: how many intrusions have been announced to each, or to all alike.
    """
    check_all(held, states, released, announced)
    try:
        for one, state, counts in _each(held, states, released, announced):
            one.resume(state, **counts)
    except BaseException:
        for each in held:
            if isinstance(each, Memory):
                each.forget()
        raise


def check_all(
    held: Sequence[Resumable],
    states: Sequence[bytes],
    released: CountOrCounts = 0,
    announced: CountOrCounts = 0,
) -> None:
    """Raise what `resume_all` would refuse, without changing anything."""
    for one, state, counts in _each(held, states, released, announced):
        one.check_state(state, **counts)


def _each(
    held: Sequence[Resumable],
    states: Sequence[bytes],
    released: CountOrCounts,
    announced: CountOrCounts,
) -> Iterator[tuple[Resumable, bytes, dict[str, int]]]:
    """Return the contained objects, their states, and the releases made since."""
    made = [[one] * len(held) if isinstance(one, int) else one for one in (released, announced)]
    for one, state, out, seen in zip(held, states, *made, strict=True):
        yield one, state, {"released": out, "announced": seen}
