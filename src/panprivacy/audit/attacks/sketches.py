"""Ordinary sketches of different users, as small as they can be written: what is to fall.

Both keep a secret key for their hash, and the key has to be part of the state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.attacks.guesses import Truths
from panprivacy.hashing import hash_integers, key_words

People = NDArray[np.int64]


class _Bytes:
    """The state of both: so many bytes of memory, and the key of the hash.

    `add` counts people; `may_hold` says who may have been counted, and its no is certain.
    """

    def __init__(self, memory: int, key: bytes) -> None:
        self._key = key
        self._cells = np.zeros(memory, np.uint8)

    def _hashes(self, people: People) -> NDArray[np.uint64]:
        hashes = np.empty(len(people), np.uint64)
        hash_integers(people, *key_words(self._key), hashes)
        return hashes


class Bitmap(_Bytes):
    """Linear counting: one bit for each value of a hash (Whang, Vander-Zanden, Taylor 1990)."""

    def add(self, people: People) -> None:
        """Set the bit of each person."""
        places, bits = self._places(people)
        np.bitwise_or.at(self._cells, places, bits)

    def may_hold(self, people: People) -> Truths:
        """Whether the bit of each person is set."""
        places, bits = self._places(people)
        return (self._cells[places] & bits) > 0

    def _places(self, people: People) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        hashes = self._hashes(people) % np.uint64(8 * len(self._cells))
        return hashes >> np.uint64(3), np.uint8(1) << (hashes & np.uint64(7)).astype(np.uint8)


class HyperLogLog(_Bytes):
    """The largest number of zeros at the end of a hash, by register (Flajolet et al. 2007)."""

    def add(self, people: People) -> None:
        """Raise the register of each person to his rank."""
        places, ranks = self._ranks(people)
        np.maximum.at(self._cells, places, ranks)

    def may_hold(self, people: People) -> Truths:
        """Whether the register of each person is at least his rank."""
        places, ranks = self._ranks(people)
        return self._cells[places] >= ranks

    def _ranks(self, people: People) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
        """The register of each person, and one more than the zeros at the end of the rest."""
        rest, places = np.divmod(self._hashes(people), np.uint64(len(self._cells)))
        return places, np.bitwise_count(rest ^ (rest - np.uint64(1)))
