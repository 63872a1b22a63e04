"""The view of an intruder on one run of the shipping code, with the coins of production."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.streams import ANNOUNCE, RELEASE, EventStream, repeated, take
from panprivacy.privacy.coins import SystemCoins

_LARGEST: Final = 1e12
"""Stands for an end of an interval that is infinite."""


class FixedKeyCoins(SystemCoins):
    """The coins of production, but for the addressing key, which is the same in every run.

    The guarantee holds for every key, and under fresh keys no cell would be the user's.

    Args:
        addressing_key: cut or repeated to length; None for one that looks random at any length, so
            that users lie in cells of their own.
    """

    __slots__ = ("_key",)

    def __init__(self, addressing_key: bytes | None = None) -> None:
        self._key = addressing_key

    def key(self, nbytes: int) -> bytes:
        """Return the fixed key."""
        if self._key is None:
            return hashlib.shake_256(b"panprivacy audit").digest(nbytes)
        return repeated(self._key, nbytes)


@dataclass(frozen=True, slots=True)
class Seen:
    """The view of an intruder on one run.

    Args:
        states: at each look.
        counts: the noisy counts of all releases.
        bars: value, low and high of each answer; 0 of one that is lost, and at most 1e12.
    """

    states: list[bytes]
    counts: list[int]
    bars: list[float]


def look(statistic: Any, steps: EventStream, after_step: int) -> Seen:
    """Run a statistic, and return its state after some steps, and all that is public."""
    seen = Seen([], [], [])
    for number, step in enumerate(steps):
        if number == after_step or step == ANNOUNCE:
            seen.states.append(statistic.state())
        given = take(statistic, step)
        for answer in _answers(given) if step == RELEASE else ():
            seen.counts.extend(answer.counts)
            seen.bars.extend(_bars(answer))
    if after_step == len(steps):
        seen.states.append(statistic.state())
    return seen


def _answers(given: Any) -> Iterator[Any]:
    """Yield the answers of a release, or of each window that has ended."""
    if hasattr(given, "counts"):
        yield given
    else:
        yield from (window.release for window in given if window.release is not None)


def _bars(answer: Any) -> Iterator[float]:
    """Yield the ends of intervals, with the values; an own class may have these alone, or none."""
    ones = answer.answers().values() if hasattr(answer, "answers") else [answer]
    for one in ones:
        for name in ("value", "low", "high"):
            yield min(max(float(getattr(one, name, 0)), -_LARGEST), _LARGEST)


def read_words(state: bytes, cell_bytes: int = 1) -> NDArray[np.uint64]:
    """Return the little-endian words of a state, aligned with its end, where the cells are.

    >>> read_words(bytes([9, 1, 2, 0, 4]), 2).tolist()
    [513, 1024]
    """
    table = np.frombuffer(state, np.uint8)[len(state) % cell_bytes :].reshape(-1, cell_bytes)
    words = np.zeros((len(table), 8), np.uint8)
    words[:, :cell_bytes] = table
    return words.view("<u8")[:, 0]


def read_bits(state: bytes) -> NDArray[np.uint8]:
    """Return the bits of a state, lowest first in each byte."""
    return np.unpackbits(np.frombuffer(state, np.uint8), bitorder="little")
