"""The statistics that the contract is checked on: what each brings in its folder."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import cycle, islice
from types import SimpleNamespace

import numpy as np

from panprivacy.papers.online import ListUpdate, MultiCounter, PrivateExperts
from panprivacy.papers.published import PUBLISHED
from panprivacy.statistics.arguments import request
from panprivacy.statistics.cases import Trial
from panprivacy.statistics.catalogue import KINDS, StatisticType
from panprivacy.statistics.release import Answers, Release
from panprivacy.statistics.statistic import Statistic
from panprivacy.tables.cells.parity import ParityCells


def spread_ids(count: int) -> list[int]:
    """So many different ids, that also fit in 32 bits and in every universe of a trial."""
    return [20_011 + 37 * index for index in range(count)]


@dataclass(frozen=True)
class Case:
    """One way to set up a statistic, and what it may be fed.

    Args:
        kind: the statistic.
        trial: the way.
    """

    kind: StatisticType
    trial: Trial

    @property
    def name(self) -> str:
        """Shown by pytest."""
        return self.trial.name

    @property
    def build(self):
        """Makes the statistic; takes `coins=` and overrides of every argument."""

        def built(**overrides):
            if "releases" in overrides:
                overrides[self.covers] = overrides.pop("releases")
            return self.kind(**{"epsilon": 1, **self.trial.sizes, **overrides})

        return built

    @property
    def covers(self) -> str:
        """The name of the argument that says how many releases there are."""
        return self.trial.covers

    @property
    def tiny(self):
        """Overrides that leave few enough coins to walk every outcome."""
        return self.trial.tiny

    def make(self, coins=None, **overrides) -> Statistic:
        """The statistic."""
        return self.build(coins=coins, **overrides)

    def make_tiny(self, coins=None, **overrides) -> Statistic:
        """The same statistic, with few cells."""
        return self.build(coins=coins, **{**self.trial.tiny, **overrides})

    @functools.cached_property
    def plan(self):
        """Of the statistic."""
        return self.kind.entry.sizes.read(self.name, self.trial.sizes).planned(request(1))

    @property
    def takes_bytes(self) -> bool:
        """Whether ids may be byte strings and texts."""
        return self.counts_users and self.plan.numbered is None

    @property
    def counts_users(self) -> bool:
        """Whether it matters whose an event is."""
        return self.plan.hides == "user"

    @property
    def pays(self) -> bool:
        """Whether a release costs something."""
        return self.plan.split.budget.release > 0

    @property
    def universe(self) -> int | None:
        """Ids from here on are refused; None if every id has a place."""
        return self.plan.numbered

    @property
    def noise(self) -> str:
        """The coin that a cell is born with."""
        if not self.counts_users or hasattr(self.plan.table, "scale"):
            return "discrete_laplace"
        drawn = any(hasattr(self.plan.table, name) for name in ("law", "laws", "lattice", "pair"))
        return "categorical" if drawn else "bernoulli"

    @property
    def redraw(self) -> str:
        """The coin that a cell is redrawn with; of a pair of bits, one bit is redrawn."""
        return "bernoulli" if hasattr(self.plan.table, "pair") else self.noise

    @property
    def toggles(self) -> bool:
        """Whether cells are parities."""
        return isinstance(self.plan.table, ParityCells)

    @property
    def redraws(self) -> bool:
        """Whether a cell is redrawn when its user appears, and tells no more than that he did."""
        adds = any(hasattr(self.plan.table, name) for name in ("law", "lattice", "scale"))
        return self.counts_users and not adds and not self.toggles

    @property
    def life(self) -> dict[str, int]:
        """What it has to cover to be led through a life."""
        return LIFE if self.trial.intrusions else {"releases": LIFE["releases"]}

    def drawn_by_a_release(self, counts):
        """The coins of a release: noise for each count, or one point of a lattice for all."""
        if hasattr(self.plan, "release_weights"):
            return [("categorical", 1)]
        if self.trial.publishes:  # what each 1 and each 0 is shown as, and the next table
            return 3 * [("bernoulli", self.plan.table.cells)]
        return [("discrete_laplace", len(counts))]

    def read(self, statistic, counts):
        """The noised sums that a model reads, of the counts of a release."""
        if not self.trial.publishes:
            return counts
        return statistic.plan.reading(None, 0).counts(counts)

    @property
    def tells_users_apart(self) -> bool:
        """Whether not all users meet the same cell."""
        return self.plan.address(bytes(self.plan.key_bytes)).cells > 1

    @property
    def deltas(self):
        """What the stream of the case is made of."""
        return self.trial.deltas

    @property
    def refused_deltas(self):
        """Some that cannot be counted."""
        return self.trial.refused

    @property
    def rounds(self) -> bool:
        """Whether updates draw coins that round deltas."""
        return self.trial.rounds

    def ids(self, count: int) -> list[int]:
        """So many different whole-number ids."""
        return spread_ids(count)

    def rows(self, count: int) -> tuple[list[int], list[int]]:
        """A batch of so many events: ids, about a third of them twice, and deltas."""
        ids = self.ids(max(2 * count // 3, 1))
        return list(islice(cycle(ids), count)), list(islice(cycle(self.deltas), count))


def answers_of(released) -> list[Release]:
    """The answers of a release of one moment: several, where a statistic has names for them."""
    return list(released.values()) if isinstance(released, Answers) else [released]


def answer_of(plan, released) -> Release:
    """The answer that a plan of one model is named after."""
    return released[plan.name.question] if isinstance(released, Answers) else released


LIFE = {"releases": 2, "intrusions": 1}
"""What a statistic has to cover to be led through a life with an announced intrusion."""


def lead_through_life(statistic: Statistic, case: Case, count: int = 50) -> list[object]:
    """Batches of `count` rows, two releases and an announced intrusion, if there can be one."""
    statistic.update(*case.rows(count))
    first = statistic.release()
    if case.trial.intrusions:
        statistic.announce_intrusion()
    statistic.update(*case.rows(count))
    return [first.counts, statistic.release().counts]


ALL = [Case(kind, trial) for kind in (*KINDS, *PUBLISHED) for trial in kind.entry.trials]

CASES = [case for case in ALL if issubclass(case.kind, Statistic)]
"""Those of one table; the others are several statistics together."""


class Counted(MultiCounter):
    """Counters that take batches as statistics do: a release ends a step."""

    def update(self, which, deltas=None):
        self.count(which)

    def release(self):
        self.step()
        return SimpleNamespace(counts=self.values.tolist())


class Ordered(ListUpdate):
    """A list that does."""

    update = Counted.update

    def release(self):
        self.step()
        return SimpleNamespace(counts=self.places.tolist())


class Followed(PrivateExperts):
    """Experts that do: a release ends a round, and who was wrong in it waits with the caller."""

    wrong = ()

    def update(self, which, deltas=None):
        self.wrong = [*self.wrong, *which]

    def release(self):
        choice = self.round(np.isin(np.arange(self.n), self.wrong))
        return SimpleNamespace(counts=[choice, *self.values.tolist()])


class Deciding(Case):
    """One way to set up a program that decides at every step; announcements need no plan."""

    life = {"releases": LIFE["releases"]}  # noqa: RUF012

    def ids(self, count: int) -> list[int]:
        """Numbers of counters, experts or elements, 20 different ones."""
        return [one for _, one in zip(range(count), cycle(spread_ids(20)), strict=False)]


MANY = {"n": 21_000, "horizon": 1}
ONLINE = [
    Deciding(Counted, Trial("counters", {**MANY, "every": 1}, None, covers="horizon")),
    Deciding(Ordered, Trial("list", {**MANY, "every": 1}, None, covers="horizon")),
    Deciding(
        Followed, Trial("experts, advice", {**MANY, "unit": "advice"}, None, covers="horizon")
    ),
    Deciding(Followed, Trial("experts, rounds", {**MANY, "unit": "round"}, None, covers="horizon")),
]
"""Programs that decide at every step: they keep a state and a budget as statistics do."""
