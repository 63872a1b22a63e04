"""Sketches of others that are private when they leave, and only then, drawn by their exact laws."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.limits import EPSILON, Floats
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.tables.decoders.levels import level_shares

GENERATOR = np.random.default_rng()
BITS = 8 * (1 << 16)
"""Of each of them."""


def flipped_model(levels: int, cells: int) -> LevelModel:
    """Levels of bits that are flipped once, when they leave."""
    contrast = math.tanh(EPSILON / 2)
    return LevelModel(levels, cells, contrast, (1 + contrast) / 2, 1, 0)


@dataclass(frozen=True)
class Flipped:
    """Sketch-Flip-Merge as published: bits that are set, and flipped once when they leave.

    A bit stays with probability `e**epsilon/(e**epsilon + 1)`. The estimate is that of their
    composite likelihood, which ours is without output noise.
    """

    levels: int

    @property
    def model(self) -> LevelModel:
        """How it errs."""
        return flipped_model(self.levels, BITS // self.levels)

    def predicted(self, users: int) -> float:
        """The relative error."""
        return float(self.model.deviation(users)) / users

    def answers(self, users: int, runs: int) -> Floats:
        """Estimates from fresh sketches."""
        return np.array([self.model.estimate(self._ones(users)) for _ in range(runs)])

    def _ones(self, users: int) -> NDArray[np.int64]:
        """Of each level; from 40 users a cell on all are met, but for once in 10^13."""
        cells, stay = BITS // self.levels, (1 + math.tanh(EPSILON / 2)) / 2
        came = np.minimum(GENERATOR.multinomial(users, level_shares(self.levels)), 40 * cells)
        met = np.array(
            [np.count_nonzero(np.bincount(GENERATOR.integers(cells, size=x))) for x in came]
        )
        return GENERATOR.binomial(met, stay) + GENERATOR.binomial(cells - met, 1 - stay)


@dataclass(frozen=True)
class Loglog:
    """A HyperLogLog that is private when it leaves, and only then.

    After Dickens, Thaler and Ting (2022): users are sampled by their hash, and `phantoms` more are
    put in before. Registers have 6 bits; the estimate is that of most likelihood.
    """

    registers: int = BITS // 6

    @property
    def kept(self) -> float:
        """The probability that a user is sampled."""
        return -math.expm1(-EPSILON)

    @property
    def phantoms(self) -> int:
        """How many users are put in before."""
        return math.ceil(self.registers * (1 + math.exp(-EPSILON))) - 1

    def predicted(self, users: int) -> float:
        """The relative error."""
        inside = self.phantoms + self.kept * users
        halves = inside / self.registers * 0.5 ** np.arange(1, 64)
        empty = math.exp(-inside / self.registers)
        chance = -np.exp(-halves) * np.expm1(-halves)
        told = (inside / self.registers) ** 2 * empty + float(
            (chance * (halves * (1 / np.expm1(halves) - 1)) ** 2).sum()
        )
        variance = inside**2 / (self.registers * told) - inside
        return math.sqrt(variance + users * self.kept * (1 - self.kept)) / self.kept / users

    def answers(self, users: int, runs: int) -> Floats:
        """Estimates from fresh sketches."""
        each = np.full(self.registers, 1 / self.registers)
        found = np.empty(runs)
        for run in range(runs):
            inside = self.phantoms + GENERATOR.binomial(users, self.kept)
            came = GENERATOR.multinomial(inside, each)
            lowest = -np.expm1(np.log(GENERATOR.random(self.registers)) / np.maximum(came, 1))
            longest = np.minimum(np.ceil(-np.log2(lowest)), 63) * (came > 0)
            inside = self.registers * self._load(np.bincount(longest.astype(int), minlength=64))
            found[run] = (inside - self.phantoms) / self.kept
        return found

    @staticmethod
    def _load(counts: NDArray[np.int64]) -> float:
        """The users a register under which such counts of registers are most likely."""
        low, high, weights = 1e-6, 1e9, 0.5 ** np.arange(1, 64)
        for _ in range(100):
            load = math.sqrt(low * high)
            with np.errstate(over="ignore"):
                score = weights * (1 / np.expm1(load * weights) - 1) @ counts[1:] - counts[0]
            low, high = (load, high) if score > 0 else (low, load)
        return low
