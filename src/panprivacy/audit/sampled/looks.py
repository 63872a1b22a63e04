"""What an intruder sees of one run of the shipping code, with the coins of production."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.streams import ANNOUNCE, RELEASE, Stream, repeated, take
from panprivacy.coins import SystemCoins


class FixedKeyCoins(SystemCoins):
    """The coins of production, but for the addressing key, which is the same in every run.

    The guarantee holds for every key, and under fresh keys no cell would be the user's. The key is
    cut or repeated to length.
    """

    __slots__ = ("_key",)

    def __init__(self, addressing_key: bytes = bytes(16)) -> None:
        self._key = addressing_key

    def key(self, nbytes: int) -> bytes:
        """The fixed key."""
        return repeated(self._key, nbytes)


@dataclass(frozen=True, slots=True)
class Seen:
    """What an intruder sees of one run: the state at each look, and the counts of all releases."""

    states: list[bytes]
    counts: list[int]


def look(statistic: Any, steps: Stream, after_step: int) -> Seen:
    """Run a statistic, and see its state after so many steps, and all that is public."""
    seen = Seen([], [])
    for number, step in enumerate(steps):
        if number == after_step or step == ANNOUNCE:
            seen.states.append(statistic.state())
        answer = take(statistic, step)
        seen.counts.extend(answer.counts if step == RELEASE else ())
    if after_step == len(steps):
        seen.states.append(statistic.state())
    return seen


def read_words(state: bytes, cell_bytes: int = 1) -> NDArray[np.uint64]:
    """The little-endian words of a state, aligned with its end, where the cells are.

    >>> read_words(bytes([9, 1, 2, 0, 4]), 2).tolist()
    [513, 1024]
    """
    table = np.frombuffer(state, np.uint8)[len(state) % cell_bytes :].reshape(-1, cell_bytes)
    words = np.zeros((len(table), 8), np.uint8)
    words[:, :cell_bytes] = table
    return words.view("<u8")[:, 0]


def read_bits(state: bytes) -> NDArray[np.uint8]:
    """The bits of a state, lowest first in each byte."""
    return np.unpackbits(np.frombuffer(state, np.uint8), bitorder="little")
