"""Nothing that depends on the state leaves for nothing: every public name of every object."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pyrage
import pytest

import panprivacy as pp
from panprivacy.continual import METHODS
from panprivacy.papers.local import LROracle, RandomisedResponse
from panprivacy.papers.online import ListUpdate, MultiCounter, PrivateExperts
from panprivacy.papers.published.naor_incidence import PrimeIncidence
from panprivacy.statistics.comparing import compare

from .cases import ALL
from .unpaid import Life, leaks

LIFE = {"releases": 2}


def of_case(case):
    """A statistic, and batches of many and of few rows."""
    events = case.rows(50), case.rows(3)
    return Life(lambda coins: case.make(coins, **LIFE), events, case.rows(2))


def together(coins):
    ledger = pp.Ledger(2)
    more = {"ledger": ledger, "coins": coins, "epsilon": 1, "releases": 2}
    return pp.Together({"who": pp.Density(universe=100, **more),
                        "how": pp.CroppedSum(universe=100, tau=3, **more)})  # fmt: skip


def grouped(coins):
    made = partial(pp.Density, universe=100, releases=2, coins=coins)
    return pp.Grouped(lambda epsilon: made(epsilon=epsilon), ["a", "b"], epsilon=1)


def moving(coins):
    made = partial(pp.Density, universe=100, coins=coins)
    return pp.ChangeTriggered(made, threshold="0.1", updates=2, epsilon=100)


def compared(coins):
    share = pp.Density(universe=100, epsilon=50, ledger=pp.Ledger(100), coins=coins)
    made = compare(share, Fraction(50), delta=Fraction(1, 1_000), updates=1, asked={})
    LEDGERS[id(made)] = share
    return made


LEDGERS = {}
"""Of comparisons the statistic, which nothing but they hold."""


def windowed(coins):
    return pp.Windowed(partial(pp.Density, universe=100, epsilon=1, coins=coins), 3_600,
                       clock=lambda: 10.0)  # fmt: skip


MANY, FEW = [list(range(60))], [list(range(5))]
GROUPS = [["a", "b"] * 30], [["a", "b"] * 2 + ["a"]]
OBJECTS = {
    "together": Life(together, (MANY, FEW), FEW),
    "groups": Life(grouped, (MANY + GROUPS[0], FEW + GROUPS[1]), FEW + GROUPS[1]),
    "moving": Life(moving, (MANY, FEW), FEW),
    "comparisons": Life(
        compared,
        (MANY, FEW),
        FEW,
        feed=lambda one, events: LEDGERS[id(one)].update(*events),
        spent=lambda one: lambda: LEDGERS[id(one)].ledger.spent,
    ),
    "windows": Life(
        windowed, (MANY, FEW), FEW,
        spent=lambda one: lambda ledger=one.current.ledger: ledger.spent,
    ),
    "counter": Life(
        lambda coins: pp.continual.Counter(9, epsilon=1, open_steps=True, coins=coins), (7, 1), 1,
        feed=lambda one, events: [one.add() for _ in range(events)],
    ),
    "counters": Life(
        lambda coins: MultiCounter(4, 9, epsilon=1, coins=coins), ([0, 0, 1], [2]), [1],
        feed=lambda one, events: one.count(events),
    ),
    "list": Life(
        lambda coins: ListUpdate(4, 9, epsilon=1, every=3, coins=coins), ([0, 0, 1], [2]), [1],
        feed=lambda one, events: one.count(events),
    ),
    "experts": Life(
        lambda coins: PrivateExperts(4, 9, unit="round", epsilon=1, coins=coins), (0, 1), 1,
        feed=lambda one, wrong: one.round(np.arange(4) == wrong),
    ),
}  # fmt: skip


class Fed(LROracle):
    """An oracle that is given its records after its coins."""

    __slots__ = ("_drawn",)

    def __init__(self, coins):
        self._drawn = coins

    def _fed(self, records):
        super().__init__(records, 9, domain=3, coins=self._drawn)


def counted(method, **more):
    """A counter of a method, after steps; what has left of them differs, and is told again."""
    loss = {"rho" if METHODS[method].by_rho else "epsilon": 1}
    return Life(
        lambda coins: pp.continual.Counter(9, method=method, coins=coins, **loss, **more),
        ([1, 1, 1], [0, 0, 1]), 1,
        feed=lambda one, events: one.run(events),
        left={"value", "interval"},
    )  # fmt: skip


OBJECTS |= {f"counter, {method}": counted(method) for method in METHODS if method != "tree"}
OBJECTS |= {
    "counter without a horizon": Life(
        lambda coins: pp.continual.Counter(None, epsilon=1, open_steps=True, coins=coins),
        (7, 1), 1,
        feed=lambda one, events: [one.add() for _ in range(events)],
    ),
    "synthetic": Life(
        lambda coins: pp.continual.Synthetic(pp.continual.Counter(9, epsilon=1, coins=coins)),
        ([1, 1, 1], [0, 0, 1]), 1,
        feed=lambda one, events: one.run(events),
        left={"value", "run", "step", "counter"},
        spent=lambda one: lambda ledger=one.counter.ledger: ledger.spent,
    ),
    "oracle": Life(
        Fed, ([0, 1, 2], [2, 2, 2]), [0],
        feed=Fed._fed,
        spent=lambda one: lambda: one.spent([0, 1, 2]),
        calls={"ask": lambda one, _: one.ask(RandomisedResponse(3, 1))},
    ),
    "windows of groups": Life(
        lambda coins: pp.Windowed(partial(grouped, coins), 3_600, clock=lambda: 10.0),
        (MANY + GROUPS[0], FEW + GROUPS[1]), FEW + GROUPS[1],
        spent=lambda one: lambda ledger=one.current.ledger: ledger.spent,
    ),
}  # fmt: skip


STATISTICS = [case for case in ALL if case.kind is not PrimeIncidence]
"""All but one whose releases are no answers, so that it has no `check`."""


@pytest.mark.long
@pytest.mark.parametrize("case", STATISTICS, ids=lambda case: case.name)
def test_no_statistic_gives_away_anything_for_nothing(case):
    assert leaks(of_case(case)) == []


@pytest.mark.parametrize("name", OBJECTS)
def test_nothing_that_holds_statistics_or_counts_does(name):
    assert leaks(OBJECTS[name]) == []


class Sealed(pp.Checkpoint):
    """A checkpoint, and what it is of."""

    def __init__(self, folder, coins):
        identity = pyrage.x25519.Identity.generate()
        self._identity = folder / "identity"
        self._identity.write_text(str(identity))
        super().__init__(folder / "sealed", recipient=str(identity.to_public()))
        self._statistic = pp.Density(universe=100, epsilon=1, coins=coins)

    def _fed(self, events):
        self._statistic.update(*events)
        self.write([self._statistic])

    def _resumed(self):
        self.resume([pp.Density(universe=100, epsilon=1)], identity=self._identity)


def test_a_checkpoint_gives_nothing_away(tmp_path):
    folders = (tmp_path / str(number) for number in itertools.count())

    def made(coins):
        folder = next(folders)
        folder.mkdir()
        return Sealed(folder, coins)

    calls = {
        "contribute": lambda one, _: one.contribute(one._statistic),
        "resume": lambda one, _: one._resumed(),
        "unsealed": lambda one, _: one.unsealed(one._identity),
        "write": lambda one, _: one.write([one._statistic]),
    }
    sealed = Life(
        made, (MANY, FEW), FEW, feed=Sealed._fed, calls=calls,
        spent=lambda one: lambda: one._statistic.ledger.spent,
    )  # fmt: skip
    assert leaks(sealed) == []


class Leaking(pp.Density):
    """Gives away what a density does not."""

    __slots__ = ()

    @property
    def ones(self):
        return int(np.bitwise_count(self.internals.memory.now.table).sum())

    def compared(self):
        return self.internals.releasing.with_noise(self.internals.releasing.reading())

    def full(self):
        if np.bitwise_count(self.internals.memory.now.table).sum() > 35:
            message = "too many came"
            raise pp.PanPrivacyError(message)

    def paid_and_exact(self):
        self.internals.memory.account.spend(self.internals.releasing.release_epsilon)
        return self.ones

    def paid(self):
        self.internals.memory.account.spend(self.internals.releasing.release_epsilon)
        return self.compared()


def test_what_leaks_is_found():
    """A count, a count with noise for nothing, a refusal, and what is paid for without noise."""
    leaking = Life(lambda coins: Leaking(universe=60, epsilon=9, coins=coins), (MANY, FEW), FEW)
    assert leaks(leaking) == ["compared", "full", "ones", "paid_and_exact"]
