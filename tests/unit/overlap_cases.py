"""Small tables of bits, and all that may come of them."""

from __future__ import annotations

import itertools
import math

import numpy as np

from panprivacy.statistics.overlaps.occupancy import BitNoise, OccupancyModel
from panprivacy.statistics.overlaps.patterns import CellLayout, PatternCounts

ABSENT, PRESENT = (0.25, 0.1, 0.3), (0.75, 0.8, 0.9)


def noise(tables):
    return BitNoise(ABSENT[:tables], PRESENT[:tables])


def model(layout, tables=2):
    return OccupancyModel(layout, noise(tables))


def patterns_of(users):
    """The pattern of each user."""
    return np.repeat(np.arange(len(users)), users)


def placements(layout, users):
    """All cells that users may have, each with its probability; -1 for none."""
    number = len(patterns_of(users))
    if layout.universe is not None:
        every = itertools.permutations(range(layout.universe), layout.cells)
        for drawn in every:
            slots = np.full(layout.universe, -1)
            slots[list(drawn)] = np.arange(layout.cells)
            yield slots[:number], 1 / math.perm(layout.universe, layout.cells)
        return
    shares = [2.0**-level for level in range(1, layout.levels)]
    shares.append(shares[-1] if shares else 1)
    of_cell = np.repeat(shares, layout.cells_per_level) / layout.cells_per_level
    for cells in itertools.product(range(layout.cells), repeat=number):
        yield np.array(cells), math.prod(of_cell[list(cells)])


def occupied(layout, users, cells):
    """The patterns of all cells without noise."""
    found = np.zeros(layout.cells, int)
    for pattern, cell in zip(patterns_of(users), cells, strict=True):
        if cell >= 0:
            found[cell] |= pattern
    return found


EQUAL = (0.25,) * 2, (0.75,) * 2


LAYOUTS = {
    "hashed": CellLayout(3),
    "levelled": CellLayout(2, levels=2),
    "direct": CellLayout(6, universe=6),
    "sampled": CellLayout(3, universe=6),
}


def outcomes(layout, users):
    """All pattern counts of one level, each with its probability."""
    for cells, probability in placements(layout, users):
        found = occupied(layout, users, cells)
        for shown in itertools.product(range(4), repeat=layout.cells):
            law = probability
            for true, bits in zip(found, shown, strict=True):
                for i in range(2):
                    one = PRESENT[i] if true >> i & 1 else ABSENT[i]
                    law *= one if bits >> i & 1 else 1 - one
            yield np.bincount(shown, minlength=4)[None], law


def without_noise(users, layout=None):
    """The counts of a table without noise, a user a cell."""
    layout = layout or CellLayout(sum(users), universe=sum(users))
    tables = len(users).bit_length() - 1
    return PatternCounts(layout, np.array([users]), (0.0,) * tables, (1.0,) * tables)


LEVELLED = OccupancyModel(CellLayout(200, levels=4), BitNoise((0.2, 0.25, 0.1), (0.8, 0.7, 0.9)))


MANY = np.array([0, 300, 200, 150, 100, 50, 80, 120.0])
