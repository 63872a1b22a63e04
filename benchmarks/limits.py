"""What bits can tell of a number of users, and the least errors that follow: docs/laws.md.

Where no epsilon is said, it is 1.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EPSILON = 1.0


def information(load: Floats | float, epsilon: float) -> Floats:
    """What a redrawn bit tells about the logarithm of the number of users (Fisher).

    Args:
        load: how many users the bit meets on average.
        epsilon: of a look; infinite without privacy.
    """
    users = np.asarray(load, float)
    response = np.exp(2 * users) * noise(epsilon)
    return users**2 / (response + np.expm1(users))


def noise(epsilon: float) -> float:
    """The variance that randomised response adds to a bit, once it is told unbiased."""
    return 0.0 if math.isinf(epsilon) else 1 / (4 * math.sinh(epsilon / 2) ** 2)


LOADS = np.geomspace(1e-6, 60, 200_001)


@dataclass(frozen=True)
class Limit:
    """What is best at an epsilon.

    Args:
        load: users a bit at which it tells most.
        most: what it tells there.
        early: users a bit at which a user tells most.
        each: what a user tells there.
        area: what a bit tells in all, over the logarithm of the number of users.
    """

    load: float
    most: float
    early: float
    each: float
    area: float


@functools.cache
def limit(epsilon: float) -> Limit:
    """The limits of bits at an epsilon."""
    told = information(LOADS, epsilon)
    best, early = int(np.argmax(told)), int(np.argmax(told / LOADS))
    area = float(np.trapezoid(told, np.log(LOADS)))
    each = float(told[early] / LOADS[early])
    return Limit(float(LOADS[best]), float(told[best]), float(LOADS[early]), each, area)


def least(users: float, bits: int, epsilon: float = EPSILON) -> float:
    """The least relative error for a known number of users: the third claim."""
    best, load = limit(epsilon), users / bits
    if load < best.early:
        told = users * best.each
    else:
        told = bits * float(information(min(load, best.load), epsilon))
    return math.sqrt(max(1 / told - 1 / users, 0))


def least_ever(bits: int, epsilon: float = EPSILON) -> float:
    """The same, for the number of users for which it is smallest."""
    return min(least(bits * load, bits, epsilon) for load in np.geomspace(1e-3, 2, 400))


def least_over(low: float, high: float, bits: int, epsilon: float = EPSILON) -> float:
    """The least error over a range, as the root of its mean square: the fourth claim."""
    width, edges = math.log(high / low), np.geomspace(1e-3, 1, 1_000)
    edges = edges[edges < width / 2]
    told = bits * limit(epsilon).area + math.pi**2 / edges
    return float(np.sqrt((width - edges) / told).max())
