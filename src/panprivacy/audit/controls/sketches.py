"""Sketches with noise by the exponential mechanism, and two runs on one stream, as printed.

Reference: D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via statistics
on sketches", section 3.1 and Theorem 8.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from panprivacy.audit.controls.control import Control, Counted, revealed_by_single
from panprivacy.audit.controls.counters import CroppedMoment
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.streams import RELEASE
from panprivacy.privacy.coins import Coins

_ONE = 1 << 40
_BYTES = 4

SketchPoint = tuple[int, ...]


class NoisySketch:
    """Algorithm 1: a sketch with a random initial point, the likelier the nearer to 0.

    Args:
        coins: source of randomness.
        matrix: a row for each user.
        noise: distance from 0 of each point of the range.
        epsilon: a point of distance d has weight `exp(-epsilon d/4)`.
        modulus: modulus of the sketch; None for whole numbers, as printed.
    """

    def __init__(
        self,
        coins: Coins,
        matrix: Sequence[SketchPoint],
        noise: Mapping[SketchPoint, int],
        epsilon: Fraction,
        modulus: int | None = None,
    ) -> None:
        self._coins, self._matrix, self._modulus = coins, matrix, modulus
        self._points = list(noise)
        self._law = [math.ceil(_ONE * math.exp(-epsilon * d / 4)) for d in noise.values()]
        self._sketch = self._drawn()

    def update(self, users: Sequence[int], deltas: Iterable[int] | None = None) -> None:
        """Add each delta, times the row of the user."""
        for user, delta in zip(users, deltas or [1] * len(users), strict=True):
            self._sketch = self._sum(self._sketch, [delta * entry for entry in self._matrix[user]])

    def release(self) -> Counted:
        """Return the sketch with noise of the same law; the median is a function of it."""
        return Counted(self._sum(self._sketch, self._drawn()))

    def state(self) -> bytes:
        """Return the sketch."""
        return b"".join(entry.to_bytes(_BYTES, "little", signed=True) for entry in self._sketch)

    def _drawn(self) -> SketchPoint:
        return self._points[int(self._coins.categorical(self._law, 1)[0])]

    def _sum(self, one: Sequence[int], other: Sequence[int]) -> SketchPoint:
        sums = (first + second for first, second in zip(one, other, strict=True))
        return tuple(entry if self._modulus is None else entry % self._modulus for entry in sums)


def _in_the_box(matrix: Sequence[SketchPoint], most: int) -> dict[SketchPoint, int]:
    """Return the sketches of all states from -most to most, and how many are not 0 at least."""
    noise: dict[SketchPoint, int] = {}
    for states in itertools.product(range(-most, most + 1), repeat=len(matrix)):
        point = tuple(map(int, np.array(states) @ np.array(matrix)))
        distance = sum(map(bool, states))
        noise[point] = min(distance, noise.get(point, distance))
    return noise


class TwoMoments:
    """Algorithm 3 with one counter in each run, to which all users are hashed."""

    def __init__(self, coins: Coins, epsilon: Fraction, taus: Sequence[int]) -> None:
        self._runs = [CroppedMoment(coins, epsilon, tau, grid=1, universe=1) for tau in taus]

    def update(self, users: Sequence[int], deltas: Iterable[int] | None = None) -> None:
        """Count all of them in both runs."""
        given = None if deltas is None else list(deltas)
        for run in self._runs:
            run.update([0] * len(users), given)

    def release(self) -> Counted:
        """Return both sums."""
        return Counted(tuple(run.release().counts[0] for run in self._runs))

    def state(self) -> bytes:
        """Return both counters."""
        return b"".join(run.state() for run in self._runs)


_FAR_APART: Sequence[SketchPoint] = [(1,), (10,)]
_THEMSELVES: Sequence[SketchPoint] = [(1, 0), (0, 1)]
_MODULO_3 = {point: sum(map(bool, point)) for point in itertools.product(range(3), repeat=2)}
_COMES_TWICE = [[(0, 1)], [(0, 1)], RELEASE]

SKETCHES = (
    revealed_by_single(
        "m7",
        "noise from the rows of the matrix alone: updates lead out of them",
        lambda coins: NoisySketch(coins, _FAR_APART, dict.fromkeys(_FAR_APART, 1), Fraction(1)),
        claimed=Fraction(1),
    ),
    revealed_by_single(
        "m8",
        "noise from the sketches of states in a box: updates lead out of it",
        lambda coins: NoisySketch(coins, _FAR_APART, _in_the_box(_FAR_APART, 2), Fraction(1)),
        claimed=Fraction(1),
    ),
    Control(
        name="m8-two",
        says="to replace a user moves two states: epsilon, printed as epsilon/2 times that of one",
        make=lambda coins: NoisySketch(coins, _THEMSELVES, _MODULO_3, Fraction(2), 3),
        claimed=Fraction(1),
        streams=[_COMES_TWICE, [[(0, 2)], RELEASE, [(0, 1)]]],
        adjacency="replace",
        pair=(_COMES_TWICE, [[(1, 1)], [(1, 1)], RELEASE]),
        true_loss=2.0,
    ),
    Control(
        name="m9",
        says="two runs of Algorithm 2 cost 4 epsilon, printed as 2 epsilon",
        make=lambda coins: TwoMoments(coins, Fraction(6), taus=(2, 1)),
        claimed=Fraction(12),
        streams=[[[(0, 1)], [(0, 3)], RELEASE]],
        coins=EnumeratedCoins(tail=4),
        pair=([[(0, 1)], [(0, 3)], RELEASE], [[], [], RELEASE]),
        true_loss=12 + 6 * (3 / 4 + 1 / 2),
    ),
)
