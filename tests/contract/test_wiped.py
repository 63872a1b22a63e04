"""Whatever is drawn and whatever a kernel is handed is zero once a step is over, but for the table.

One spy sees every draw and every array that goes into a kernel or comes out of one.
"""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy import _kernels, coins
from panprivacy.audit.streams import ANNOUNCE, RELEASE, take
from panprivacy.cells.bits import BitCells
from panprivacy.cells.modular import ModularCells
from panprivacy.coins import SystemCoins
from panprivacy.statistics.statistic import Statistic

SIZES = {"epsilon": 1, "releases": 2, "intrusions": 1}
RANGE = {"expected": (100, 10_000)}
MAKES = {
    "density": lambda spy: pp.Density(universe=2_000, coins=spy, **SIZES),
    "density of a sample": lambda spy: pp.Density(universe=2_000, cells=500, coins=spy, **SIZES),
    "distinct": lambda spy: pp.DistinctCount(**RANGE, coins=spy, **SIZES),
    "net": lambda spy: pp.DistinctCount(**RANGE, deletions=True, bound=3, coins=spy, **SIZES),
    "incidence": lambda spy: pp.Incidence(universe=2_000, bound=3, coins=spy, **SIZES),
    "cropped": lambda spy: pp.CroppedSum(universe=2_000, tau=3, coins=spy, **SIZES),
    "levels": lambda spy: pp.CroppedSum(**RANGE, tau=3, coins=spy, **SIZES),
    "threshold": lambda spy: pp.ThresholdCount(
        universe=2_000, threshold=30, bound=100, coins=spy, **SIZES
    ),
    "heavy": lambda spy: pp.HeavyHitterCount(k=10, total=3_000, coins=spy, **SIZES),
}
STEPS = (
    [*range(0, 1_500, 3)],
    [*range(5, 800, 4)],
    RELEASE,
    ANNOUNCE,
    [*range(0, 900, 3)],
    RELEASE,
)

PUBLIC = {
    "_compare 0",  # the digits of a probability
    "_look_up 1",  # the score of each value
    "_recur 0", "_recur 2",  # the weights of a law
    "_search 1", "_search 2",
}  # fmt: skip
IDS = {"hash_integers 0", "_permute 0", "slots_of_integers 0", "slots_of_integers 1"}
"""The caller's ids, and the key, which is in the state."""

IDS_AS_SLOTS = {"_mark_present 0", "_count 1", "_add 1"}
"""Where there is no key, ids are the slots."""

EVERYONE = np.arange(1 << 22)
"""The slots of all cells, which get noise."""


class Spy(SystemCoins):
    """Keeps what it hands out."""

    def __init__(self, seen):
        self._seen = seen

    def _noted(self, name, drawn):
        self._seen.append((name, drawn))
        return drawn

    def bernoulli(self, *law):
        return self._noted("bernoulli", super().bernoulli(*law))

    def categorical(self, *law):
        return self._noted("categorical", super().categorical(*law))

    def discrete_laplace(self, *law):
        return self._noted("discrete_laplace", super().discrete_laplace(*law))


def noting(found, name, method):
    def noted(*arguments):
        found.append((name, method(*arguments)))
        return found[-1][1]

    return noted


@pytest.fixture
def seen(monkeypatch):
    """Every array that was drawn, summed, or handed to a kernel."""
    found = []
    call, sums = _kernels.Part.__call__, Statistic.sums

    def called(kernel, *arguments):
        given = call(kernel, *arguments)
        for place, one in enumerate([*arguments, given]):
            if isinstance(one, np.ndarray):
                found.append((f"{kernel._function.__name__} {place}", one))
        return given

    def summed(statistic, *arguments):
        given = sums(statistic, *arguments)
        found.extend(("sums", one) for one in [given] if isinstance(one, np.ndarray))
        return given

    for cells, name in ((BitCells, "_draw"), (ModularCells, "histogram")):
        monkeypatch.setattr(cells, name, noting(found, name, getattr(cells, name)))
    monkeypatch.setattr(_kernels.Part, "__call__", called)
    monkeypatch.setattr(Statistic, "sums", summed)
    return found


def left(seen, statistic):
    """What of all this is not zero, is not the table, and is neither public nor the caller's."""
    allowed = PUBLIC | IDS | (set() if statistic.plan.key_bytes else IDS_AS_SLOTS)
    arrays = statistic._state.arrays
    found = {
        name
        for name, one in seen
        if one.any()
        and not np.array_equal(one, EVERYONE[: len(one)])
        and not any(np.shares_memory(one, array) for array in arrays)
    }
    seen.clear()
    return found - allowed


@pytest.mark.parametrize("name", MAKES)
def test_no_step_leaves_what_was_drawn_or_addressed(name, seen):
    statistic = MAKES[name](Spy(seen))
    assert seen
    assert left(seen, statistic) == set(), "it was born"
    for step in STEPS:
        take(statistic, step)
        assert seen, "the spy sees something"
        assert left(seen, statistic) == set(), step if isinstance(step, str) else "a batch"


def test_a_statistic_that_is_forgotten_leaves_an_empty_table(seen):
    statistic = MAKES["incidence"](Spy(seen))
    arrays = statistic._state.arrays
    assert all(array.any() for array in arrays)
    statistic.forget()
    assert not any(array.any() for array in arrays)


def test_no_key_outlives_its_draw(monkeypatch):
    keys, fresh = [], coins._fresh_key

    def kept():
        keys.append(fresh())
        assert any(keys[-1])
        return keys[-1]

    monkeypatch.setattr(coins, "_fresh_key", kept)
    MAKES["density"](SystemCoins()).release()
    assert len(keys) > 1
    assert not any(any(key) for key in keys)


def test_the_spy_sees_what_is_left(seen, monkeypatch):
    monkeypatch.setattr("panprivacy.cells.bits.wipe", lambda *arrays: None)
    statistic = MAKES["density"](Spy(seen))
    assert "bernoulli" in left(seen, statistic)
