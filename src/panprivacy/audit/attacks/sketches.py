"""Ordinary counts of different users, as small as they can be written: what is to fall.

All keep a secret key for their hash, and the key has to be part of the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.attacks.guesses import Truths
from panprivacy.tables.hashing import hash_integers, key_words

People = NDArray[np.int64]
Marks = tuple[NDArray[np.uint64], NDArray[np.uint8]]


class SaltedHashes:
    """A hash of each person, with a salt that is stored for a day, as in web analytics."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt
        self._held = np.empty(0, np.uint64)

    def add(self, people: People) -> None:
        """Keep the hash of each person."""
        self._held = np.union1d(self._held, _hashes(people, self._salt))

    def may_hold(self, people: People) -> Truths:
        """Return whether the hash of each person is stored."""
        return np.isin(_hashes(people, self._salt), self._held)


class _Sketch(ABC):
    """A sketch of some bytes and the key of its hash; each person sets a mark in one byte."""

    _merge: ClassVar[np.ufunc]

    def __init__(self, memory: int, key: bytes) -> None:
        self._key = key
        self._cells = np.zeros(memory, np.uint8)

    def add(self, people: People) -> None:
        """Merge the mark of each person into its place."""
        self._merge.at(self._cells, *self._marks(people))

    def may_hold(self, people: People) -> Truths:
        """Return whether the mark of each person would change nothing; a no is certain."""
        places, marks = self._marks(people)
        held = self._cells[places]
        return self._merge(held, marks) == held

    @abstractmethod
    def _marks(self, people: People) -> Marks:
        """Return the place of each person, and the mark."""


class LinearCounting(_Sketch):
    """Linear counting: one bit for each value of a hash (Whang, Vander-Zanden, Taylor 1990)."""

    _merge = np.bitwise_or

    def _marks(self, people: People) -> Marks:
        hashes = _hashes(people, self._key) % np.uint64(8 * len(self._cells))
        return hashes >> np.uint64(3), np.uint8(1) << (hashes & np.uint64(7)).astype(np.uint8)


class HyperLogLog(_Sketch):
    """The largest number of zeros at the end of a hash, by register (Flajolet et al. 2007)."""

    _merge = np.maximum

    def _marks(self, people: People) -> Marks:
        """Return the register of each person, and one more than the trailing zeros of the rest."""
        rest, places = np.divmod(_hashes(people, self._key), np.uint64(len(self._cells)))
        return places, np.bitwise_count(rest ^ (rest - np.uint64(1)))


def _hashes(people: People, key: bytes) -> NDArray[np.uint64]:
    hashes = np.empty(len(people), np.uint64)
    hash_integers(people, *key_words(key), hashes)
    return hashes
