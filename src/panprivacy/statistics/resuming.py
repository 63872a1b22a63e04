"""What can go on from an earlier state, and states that hold others: groups, windows, streams.

Such a state begins with a header like any other, which gives the size of all that follows: a few
bytes of its own, of which the public text gives the number as "own_bytes", and the states in it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from panprivacy._version import VERSION
from panprivacy.statistics.header import Header, opened

OWN_BYTES = "own_bytes"
"""In the public text of a state that holds others: how many bytes stand before the first."""


class Resumable(Protocol):
    """What has a state, and can go on from an earlier one."""

    @property
    def state_bytes(self) -> int:
        """The size of `state()`, which no stream changes."""

    def state(self) -> bytes:
        """All that survives between two updates, in bytes that nothing but time changes."""

    def check_state(self, state: bytes, *, released: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""

    def resume(self, state: bytes, *, released: int = 0) -> None:
        """Go on from an earlier state in place of its own; see `Statistic.resume`."""


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
    def state_bytes(self) -> int:
        """The size of the whole state."""
        return self._header().state_bytes

    def packed(self, own: bytes = b"") -> bytes:
        """The state, with what is its own."""
        return b"".join([self._header().packed(), own, *(one.state() for one in self.held)])

    def parts(self, state: bytes) -> tuple[bytes, list[bytes]]:
        """What is its own in a state, and the states in it.

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
        return Header(packed, self.own_bytes + inside, 0, 0)


def parted(states: bytes, held: Sequence[Resumable]) -> list[bytes]:
    """The state of each; what is too much is the last one's, which refuses it."""
    ends = itertools.accumulate(one.state_bytes for one in held[:-1])
    return [states[start:end] for start, end in itertools.pairwise([0, *ends, len(states)])]


def resume_all(held: Sequence[Resumable], states: Sequence[bytes], released: Iterable[int]) -> None:
    """Let all go on from earlier states, or none of them.

    Args:
        held: what is to go on.
        states: one for each.
        released: how many releases of each have left in all.
    """
    counts = list(released)
    check_all(held, states, counts)
    for one, state, count in zip(held, states, counts, strict=True):
        one.resume(state, released=count)


def check_all(held: Sequence[Resumable], states: Sequence[bytes], released: Iterable[int]) -> None:
    """Raise what `resume_all` would refuse, without changing anything."""
    for one, state, count in zip(held, states, released, strict=True):
        one.check_state(state, released=count)
