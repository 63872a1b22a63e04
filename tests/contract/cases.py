"""The one list of statistics that the contract is checked on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from operator import attrgetter

import panprivacy as pp
from panprivacy.statistics.statistic import Statistic


def spread_ids(count: int) -> list[int]:
    """So many different ids, that also fit in 32 bits and in every universe below."""
    return [20_011 + 37 * index for index in range(count)]


GROUPS, VALUES = attrgetter("groups"), attrgetter("law.modulus")
"""What a release publishes: a count of each group of cells, or of each value of a cell."""


@dataclass(frozen=True)
class Case:
    """One way to set up a statistic, and what it may be fed.

    Args:
        name: shown by pytest.
        build: makes the statistic; takes `coins=` and overrides of every argument.
        tiny: overrides that leave few enough coins to walk every outcome; users 0, 1 and 2 exist.
            None where so few cells cannot be read.
        takes_bytes: whether ids may be byte strings and texts.
        ids: makes so many different whole-number ids.
        deltas: what the stream of the case is made of.
        refused_deltas: some that cannot be counted.
        universe: ids from here on are refused; None if every id has a place.
        noise: the coin that a cell is born with.
        published: how many counts a release has, by the plan.
        rounds: whether updates draw coins that round deltas, so that the same coins leave the same
            table only after the same batches.
    """

    name: str
    build: Callable[..., Statistic]
    tiny: Mapping[str, object] | None
    takes_bytes: bool
    refused_deltas: Sequence[int]
    ids: Callable[[int], list[int]] = spread_ids
    deltas: Sequence[int] = (1,)
    universe: int | None = None
    noise: str = "bernoulli"
    published: Callable[[object], int] = GROUPS
    rounds: bool = False

    def make(self, coins=None, **overrides) -> Statistic:
        """The statistic."""
        return self.build(coins=coins, **overrides)

    def make_tiny(self, coins=None, **overrides) -> Statistic:
        """The same statistic, with few cells."""
        return self.build(coins=coins, **{**self.tiny, **overrides})

    def rows(self, count: int) -> tuple[list[int], list[int]]:
        """A batch of so many events: ids, about a third of them twice, and deltas."""
        ids = self.ids(max(2 * count // 3, 1))
        return list(islice(cycle(ids), count)), list(islice(cycle(self.deltas), count))


LIFE = {"releases": 2, "intrusions": 1}
"""What a statistic has to cover to be led through a life."""


def lead_through_life(statistic: Statistic, case: Case, count: int = 50) -> list[object]:
    """Batches of `count` rows, two releases and an announced intrusion."""
    statistic.update(*case.rows(count))
    first = statistic.release()
    statistic.announce_intrusion()
    statistic.update(*case.rows(count))
    return [first.counts, statistic.release().counts]


CASES = [
    Case(
        name="density",
        build=partial(pp.Density, universe=50_021, epsilon=1),
        tiny={"universe": 3},
        takes_bytes=False,
        refused_deltas=(0, 2, -2),
        universe=50_021,
    ),
    Case(
        name="density of a sample",
        build=partial(pp.Density, universe=60_013, cells=10_007, epsilon=1),
        tiny={"universe": 4, "cells": 2},
        takes_bytes=False,
        refused_deltas=(0, 2, -2),
        universe=60_013,
    ),
    Case(
        name="density with deletions",
        build=partial(pp.Density, universe=50_021, epsilon=1),
        tiny={"universe": 3},
        takes_bytes=False,
        deltas=(1, -1, -1, 1, 1),
        refused_deltas=(0, 2, -2),
        universe=50_021,
    ),
    Case(
        name="distinct count, one level",
        build=partial(pp.DistinctCount, expected=3_000, memory=4_096, epsilon=1),
        tiny={"expected": 1, "memory": 1},
        takes_bytes=True,
        refused_deltas=(0, -1),
    ),
    Case(
        name="distinct count, many levels",
        build=partial(pp.DistinctCount, expected=(1_000, 1_000_000), memory=4_096, epsilon=1),
        tiny={"expected": (1, 1_000), "memory": 1},
        takes_bytes=True,
        refused_deltas=(0, -1),
    ),
    Case(
        name="distinct count with deletions",
        build=partial(
            pp.DistinctCount, expected=3_000, memory=4_096, deletions=True, bound=2, epsilon=1
        ),
        tiny={"expected": 1, "memory": 1},
        takes_bytes=True,
        deltas=(1, 1, -1),
        refused_deltas=(3, -3, 2**62),
        noise="categorical",
    ),
    Case(
        name="distinct count of signed states",
        build=partial(
            pp.DistinctCount,
            expected=(1_000, 1_000_000),
            memory=4_096,
            deletions=True,
            bound=5,
            signed=True,
            epsilon=1,
        ),
        tiny={"expected": 1, "memory": 1, "bound": 2},
        takes_bytes=True,
        deltas=(1, -3, 2),
        refused_deltas=(11, -11, -(2**62)),
        noise="categorical",
    ),
    Case(
        name="incidence",
        build=partial(pp.Incidence, universe=50_021, bound=7, epsilon=1),
        tiny={"universe": 3, "bound": 2},
        takes_bytes=False,
        deltas=(1, 1, -1, 3),
        refused_deltas=(8, -8, 2**62),
        universe=50_021,
        noise="categorical",
        published=VALUES,
    ),
    Case(
        name="incidence of a sample, signed",
        build=partial(
            pp.Incidence, universe=60_013, cells=10_007, bound=300, signed=True, epsilon=1
        ),
        tiny={"universe": 4, "cells": 2, "bound": 1},
        takes_bytes=False,
        deltas=(1, -2, 5),
        refused_deltas=(601, -601, -(2**62)),
        universe=60_013,
        noise="categorical",
        published=VALUES,
    ),
    Case(
        name="incidence of hashed users",
        build=partial(pp.Incidence, expected=60_000, bound=2, epsilon=1),
        tiny=None,
        takes_bytes=True,
        deltas=(1, 1, 2),
        refused_deltas=(3, -3),
        noise="categorical",
        published=VALUES,
    ),
    Case(
        name="cropped sum",
        build=partial(pp.CroppedSum, universe=50_021, tau=3, bound=20, epsilon=1),
        tiny={"universe": 3, "tau": 2, "bound": 3},
        takes_bytes=False,
        deltas=(1, 1, -1, 3),
        refused_deltas=(41, -41, 2**62),
        universe=50_021,
        noise="categorical",
    ),
    Case(
        name="cropped sum of hashed users",
        build=partial(pp.CroppedSum, expected=3_000, tau=3, bound=20, epsilon=1),
        tiny={"expected": 1, "cells": 2, "tau": 1, "bound": 1},
        takes_bytes=True,
        deltas=(1, 1, -1, 3),
        refused_deltas=(21, -21, 2**62),
        noise="categorical",
    ),
    Case(
        name="cropped sum over levels",
        build=partial(
            pp.CroppedSum, expected=(300, 30_000), memory=1 << 15, tau=3, bound=20, epsilon=1
        ),
        tiny={"expected": (1, 2), "memory": 4, "tau": 1, "bound": 1},
        takes_bytes=True,
        deltas=(1, 1, -1, 3),
        refused_deltas=(21, -21, 2**62),
        noise="categorical",
    ),
    Case(
        name="cropped sum of a sample",
        build=partial(pp.CroppedSum, universe=60_013, cells=10_007, tau=40, bound=900, epsilon=1),
        tiny={"universe": 4, "cells": 2, "tau": 2, "bound": 2},
        takes_bytes=False,
        deltas=(1, -2, 50),
        refused_deltas=(1_801, -1_801, -(2**62)),
        universe=60_013,
        noise="categorical",
    ),
    Case(
        name="heavy hitter count",
        build=partial(pp.HeavyHitterCount, k=100, total=50_000, resolution=1, epsilon=1),
        tiny={"k": 1, "total": 2, "cells": 2},
        takes_bytes=True,
        deltas=(1, 1, -1, 3),
        refused_deltas=(50_001, -50_001, 2**62),
        noise="categorical",
    ),
    Case(
        name="heavy hitter count of rounded deltas",
        build=partial(pp.HeavyHitterCount, k=100, total=50_000, resolution=4, epsilon=1),
        tiny={"k": 1, "total": 4, "cells": 2, "resolution": 2},
        takes_bytes=True,
        deltas=(1, 1, -1, 3),
        refused_deltas=(50_001, -50_001, 2**62),
        noise="categorical",
        rounds=True,
    ),
    Case(
        name="threshold count",
        build=partial(pp.ThresholdCount, universe=50_021, least=7, bound=40, epsilon=1),
        tiny={"universe": 3, "least": 2, "bound": 2},
        takes_bytes=False,
        deltas=(1, 1, -1, 3),
        refused_deltas=(41, -41, 2**62),
        universe=50_021,
        noise="categorical",
    ),
    Case(
        name="threshold count of a sample",
        build=partial(pp.ThresholdCount, universe=60_013, cells=10_007, least=100, epsilon=1),
        tiny={"universe": 4, "cells": 2, "least": 3, "bound": 3},
        takes_bytes=False,
        deltas=(1, -2, 50),
        refused_deltas=(6_401, -6_401, -(2**62)),
        universe=60_013,
        noise="categorical",
    ),
]
