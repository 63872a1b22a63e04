"""Whatever is drawn and whatever a kernel is handed is zero once a step is over, but for the table.

One spy sees every draw and every array that goes into a kernel or comes out of one; another one
what variables of functions let go of.
"""

from __future__ import annotations

import dis
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit.streams import ANNOUNCE, RELEASE, take
from panprivacy.ground import kernels as _kernels
from panprivacy.papers.published import CalibratedNorm, StableDistinctCount
from panprivacy.privacy import coins
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.table.releasing import TableReleasing
from panprivacy.tables.cells.modular import ModularCells
from panprivacy.tables.cells.packed import PackedCells

from .cases import ONLINE, Followed

SIZES = {"epsilon": 1, "releases": 2, "intrusions": 1}
RANGE = {"expected": (100, 10_000)}


class Named(pp.Incidence):
    """Releases two counts in place of the histogram."""

    def release(self):
        return super().release(exactly=[1, 2], at_least=[2])


MAKES = {
    "density": lambda spy: pp.Density(universe=2_000, coins=spy, **SIZES),
    "density of a sample": lambda spy: pp.Density(universe=2_000, cells=500, coins=spy, **SIZES),
    "distinct": lambda spy: pp.DistinctCount(**RANGE, coins=spy, **SIZES),
    "net": lambda spy: pp.DistinctCount(**RANGE, deletions=True, bound=3, coins=spy, **SIZES),
    "strict": lambda spy: pp.DistinctCount(**RANGE, deletions="strict", coins=spy, **SIZES),
    "incidence": lambda spy: pp.Incidence(universe=2_000, bound=3, coins=spy, **SIZES),
    "named": lambda spy: Named(universe=2_000, bound=30, coins=spy, **SIZES),
    "cropped": lambda spy: pp.CroppedSum(universe=2_000, tau=3, coins=spy, **SIZES),
    "levels": lambda spy: pp.CroppedSum(**RANGE, tau=3, coins=spy, **SIZES),
    "threshold": lambda spy: pp.ThresholdCount(
        universe=2_000, threshold=30, bound=100, coins=spy, **SIZES
    ),
    "heavy": lambda spy: pp.HeavyHitterCount(k=10, total=3_000, coins=spy, **SIZES),
    "running": lambda spy: pp.RunningCount(horizon=300, epsilon=1, intrusions=1, coins=spy),
    "rounded": lambda spy: pp.HeavyHitterCount(k=10, total=3_000, resolution=4, coins=spy, **SIZES),
}
SKETCHES = {
    "norm": lambda spy: CalibratedNorm(
        columns=[[1, 0], [3, 1]], modulus=11, universe=2_000, coins=spy, **SIZES
    ),
    "stable": lambda spy: StableDistinctCount(
        universe=2_000, rows=2, modulus=11, grid=5, coins=spy, **SIZES
    ),
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
    "_decide 2",  # the digits of a probability
    "_look_up 1",  # the score of each value
    "_recur 0", "_recur 2",  # the weights of a law
    "_search 1", "_search 2",
    "_scales_of 1", "_scales_of 2", "_scales_of 3", "_scales_of 7",  # the shape of a tree
    "draws_of 3", "draws_of 4", "draws_of 5", "draws_of 9",
    "advance 10", "advance 11", "advance 12",
    "advance 6", "advance 7",  # what leaves
}  # fmt: skip
IDS = {
    "_hash_to_levels 0",
    "_hash_and_mark 0",
    "_hash_and_write 0",
    "_permute 0",
    "slots_of_integers 0",
    "slots_of_integers 1",
}
"""The caller's ids, and the key, which is in the state."""

IDS_AS_SLOTS = {"mark_slots 0", "_write_slots 0", "_count 1", "_add 1"}
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
    call, add_noise = _kernels.InlinedFunction.__call__, TableReleasing._add_noise

    def called(kernel, *arguments):
        given = call(kernel, *arguments)
        for place, one in enumerate([*arguments, given]):
            if isinstance(one, np.ndarray):
                found.append((f"{kernel.plain.__name__} {place}", one))
        return given

    def summed(releasing, reading, sums):
        found.append(("sums", sums))
        return add_noise(releasing, reading, sums)

    for cells, name in ((PackedCells, "_draw"), (ModularCells, "histogram")):
        monkeypatch.setattr(cells, name, noting(found, name, getattr(cells, name)))
    monkeypatch.setattr(_kernels.InlinedFunction, "__call__", called)
    monkeypatch.setattr(TableReleasing, "_add_noise", summed)
    return found


def left(seen, statistic):
    """What of all this is not zero, is not the table, and is neither public nor the caller's."""
    allowed = PUBLIC | IDS | (set() if statistic.plan.key_bytes else IDS_AS_SLOTS)
    arrays = statistic.internals.memory.now.arrays
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


def test_a_comparison_leaves_nothing(seen, monkeypatch):
    noised = noting(seen, "compared", TableReleasing.with_noise)
    monkeypatch.setattr(TableReleasing, "with_noise", noised)
    distinct = partial(pp.DistinctCount, **RANGE, coins=Spy(seen))
    running = pp.ChangeTriggered(distinct, threshold=90_000, updates=2, epsilon=1)
    (statistic,) = running.statistics.values()
    running.update(np.arange(1_000))
    seen.clear()
    assert running.check() is None
    assert {"discrete_laplace", "sums", "compared"} <= {name for name, _ in seen}
    assert left(seen, statistic) == set()


OF_FORESTS = {
    "_count 2",  # which levels count
    "_advance_all 6", "_advance_all 7",  # what leaves
    "_advance_all 10", "_advance_all 11", "_advance_all 12",  # the shape of all trees
}  # fmt: skip


@pytest.mark.parametrize("deciding", ONLINE, ids=lambda case: case.name)
def test_no_step_of_decisions_leaves_what_was_drawn_or_counted(deciding, seen):
    """But for a perturbation of choices, which follow from it and from what is public."""
    choices = {"perturbation": 0} if deciding.kind is Followed else {}
    program = deciding.make(coins=Spy(seen), n=50, horizon=40, **choices)
    for step in ([3, 3, 7], RELEASE, ANNOUNCE, [4], RELEASE):
        seen.clear()
        take(program, step)
        kept = program._kept._memory.cells, program._kept._memory.told
        held = [each for each in seen if not any(np.shares_memory(each[1], one) for one in kept)]
        assert {name for name, one in held if one.any()} <= PUBLIC | OF_FORESTS
    assert "discrete_laplace" in {name for name, _ in seen}


def test_a_statistic_that_is_forgotten_leaves_an_empty_table(seen):
    statistic = MAKES["incidence"](Spy(seen))
    arrays = statistic.internals.memory.now.arrays
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
    large = pp.Density(universe=20_000, coins=SystemCoins(), **SIZES)
    large.update(range(15_000))
    assert len(keys) > 1
    assert not any(any(key) for key in keys)


def test_the_spy_sees_what_is_left(seen, monkeypatch):
    monkeypatch.setattr("panprivacy.tables.cells.packed.wipe", lambda *arrays: None)
    statistic = MAKES["density"](Spy(seen))
    assert "bernoulli" in left(seen, statistic)


# What functions leave in their variables

WATCHED = (
    "privacy/noise.py",
    "tables/addressing.py",
    "tables/hashing.py",
    "tables/polynomial.py",
    "statistics/statistic.py",
    "statistics/table/memory.py",
    "statistics/table/releasing.py",
    "statistics/table/contributions.py",
)
WATCHED += (
    "statistics/running/stepwise/nodes.py",
    "statistics/running/count.py",
    "tables/counters/tree.py",
)
WATCHED += (
    "tables/cells/bits.py",
    "tables/cells/modular.py",
    "tables/cells/threshold.py",
    "reading.py",
)
WATCHED += (
    "papers/published/mir_lattice_cells.py",
    "papers/published/mir_columns.py",
    "papers/published/mir_exponential.py",
)
SOURCE = str(Path(pp.__file__).parent)

LEFT = {
    "_piece words": "the caller's ids",
    "_piece values": "the caller's ids",
    "__iter__ piece": "the caller's ids, where these are the slots",
    "mark slots": "the caller's ids, where these are the slots",
    "_mark piece": "the caller's ids, where these are the slots",
    "update piece": "the caller's ids, where these are the slots",
    "update changes": "the caller's deltas, or ones",
    "_marks weights": "of the law",
    "_marks ordinary": "of the law",
    "_marks outside": "of the law",
    "ones ordinary": "of the law",
    "of scores": "of the questions",
    "_cumulated exact": "of the law",
    "_guide starts": "of the law",
    "categorical ends": "of the law",
    **dict.fromkeys(
        (
            "_noise found",
            "_noise order",
            "_noise places",
            "_noise starts",
            "born born",
            "born scales",
            "rerandomise scales",
            "run scales",
        ),
        "of the tree of steps",
    ),
    **dict.fromkeys(
        ("exceeds least", "exceeds above", "exceeds below", "answer tails"),
        "of the noise of a plan",
    ),
    **dict.fromkeys(
        ("medians entries", "run answers", "run left", "release released"), "what leaves"
    ),
    "uniform_below rejected": "which draws are made again tells nothing of those that count",
}


class Watch:
    """Finds arrays that are not zero when a variable of a function lets go of them.

    But for what the caller handed in, or gets.
    """

    def __init__(self):
        self.found, self._frames = set(), {}

    def __call__(self, frame, event, returned):
        name = frame.f_code.co_filename
        if not (name.startswith(SOURCE) and name.endswith(WATCHED)):
            return None
        held = dict(arrays(frame.f_locals))
        if event == "call" and id(frame) not in self._frames:
            self._frames[id(frame)] = frame, {root(one) for one in held.values()}, {}
            return self
        _, given, before = self._frames.get(id(frame), (None, set(), {}))
        yields = frame.f_code.co_code[frame.f_lasti] in YIELDS
        ends = event == "return" and not yields
        gone = [(name, one) for name, one in before.items() if held.get(name) is not one or ends]
        kept = given | {root(one) for _, one in arrays({"": returned})}
        kept |= set() if ends else {root(one) for one in held.values()}
        self.found |= {
            f"{frame.f_code.co_name} {name.split('.')[0]}"
            for name, one in gone
            if one.any() and root(one) not in kept
        }
        self._frames[id(frame)] = frame, given, held
        if ends:
            del self._frames[id(frame)]
        return self


YIELDS = {
    dis.opmap[name] for name in ("YIELD_VALUE", "RETURN_GENERATOR", "SEND") if name in dis.opmap
}


def arrays(names):
    """Arrays by the name of the variable that holds them, alone or in a sequence."""
    for name, value in names.items():
        several = value if isinstance(value, list | tuple) else [value]
        for place, one in enumerate(several):
            if isinstance(one, np.ndarray):
                yield f"{name}.{place}", one


def root(array):
    """What an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return id(array)


@pytest.fixture
def watch():
    """What is left by the functions that are called until the test ends."""
    one, before = Watch(), sys.gettrace()
    yield one
    sys.settrace(before)


@pytest.mark.parametrize("name", SKETCHES)
def test_no_function_of_a_sketch_leaves_what_it_drew_or_counted(name, watch):
    """Once its lattice is known, and what noise does to it, which are public."""
    for watched in (None, watch):
        sys.settrace(watched)
        statistic = SKETCHES[name](SystemCoins())
        for step in STEPS:
            take(statistic, step)
    sys.settrace(None)
    assert watch.found <= LEFT.keys()


@pytest.mark.parametrize("name", MAKES)
def test_no_function_leaves_what_it_drew_or_counted(name, watch):
    sys.settrace(watch)
    statistic = MAKES[name](SystemCoins())
    for step in STEPS:
        take(statistic, step)
    sys.settrace(None)
    assert watch.found <= LEFT.keys()


@pytest.mark.parametrize(
    ("module", "name", "left_over"),
    [
        ("tables.cells.threshold", "rounded", {"rounded_to digits", "rounded_to left"}),
        ("tables.cells.modular", "named", {"weighted histogram"}),
        ("statistics.table.releasing", "named", {"noised_sums drawn"}),
        (
            "papers.published.mir_lattice_cells",
            "norm",
            {"update moved", "_move entries", "initial drawn"},
        ),
        ("papers.published.mir_exponential", "stable", {"_add_noise noise", "_add_noise drawn"}),
    ],
)
def test_the_watch_sees_what_is_left(module, name, left_over, watch, monkeypatch):
    monkeypatch.setattr(f"panprivacy.{module}.wipe", lambda *_: None)
    sys.settrace(watch)
    statistic = {**MAKES, **SKETCHES}[name](SystemCoins())
    for step in STEPS:
        take(statistic, step)
    sys.settrace(None)
    assert left_over <= watch.found
