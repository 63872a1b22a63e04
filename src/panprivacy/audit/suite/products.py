"""The shipping classes, at sizes that can be walked completely, and the streams they are tried on.

Each statistic brings its own walks, and so do the papers' own algorithms; beside them stand the
programs that hold several statistics, and those that decide at every step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

from panprivacy.audit.crashes import Restarted
from panprivacy.audit.exact.chain import Audited
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.ideal import device_of
from panprivacy.audit.neighbours import short_streams
from panprivacy.audit.shards import ContributedWindows, TwoShards, TwoSlices
from panprivacy.audit.streams import ANNOUNCE, CRASH, RELEASE, EventStream
from panprivacy.audit.subject import Approximate, SeenOnce, Subject
from panprivacy.audit.suite.crashed import Steps, crashed
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.errors import allow_noise
from panprivacy.papers.online import ListUpdate, MultiCounter, PrivateExperts
from panprivacy.papers.published import PUBLISHED
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Budget, Ledger
from panprivacy.statistics.cases import Short, Walk
from panprivacy.statistics.catalogue import kinds
from panprivacy.statistics.composites.grouped import Grouped
from panprivacy.statistics.composites.moving import ChangeTriggered
from panprivacy.statistics.composites.together import Together
from panprivacy.statistics.density.statistic import Density
from panprivacy.tables.slices import Slice

_MOST_TAIL = 12
"""The longest tail that noise needs if counts lie no further apart."""

MakeSubject = Callable[[EnumeratedCoins | None], Any]


@allow_noise()
def products(epsilon: Fraction) -> list[Subject]:
    """Every product with a total of `epsilon`."""
    walkable = *kinds().values(), *PUBLISHED
    walked = [_walked(kind, walk, epsilon) for kind in walkable for walk in kind.entry.walks]
    joined = *_unseen_and_groups(epsilon), *_shards(epsilon), _sharing(epsilon), _moving(epsilon)
    deciding = *_counters(epsilon), *_experts(epsilon), *crashed(epsilon)
    return [*walked, *joined, *deciding, *_devices(epsilon)]


def _walked(kind: type[Any], walk: Walk, epsilon: Fraction) -> Subject:
    """A walk of a statistic, or of an algorithm of a paper that is several."""
    share = epsilon / (walk.releases + walk.intrusions + 1)
    arguments: dict[str, Any] = {
        **(walk.sizes(share) if callable(walk.sizes) else walk.sizes),
        "epsilon": epsilon,
        "releases": walk.releases,
        "budget": Budget(state=share, release=share) if walk.evenly else None,
    }
    if walk.intrusions:  # which some of the papers' algorithms cannot be told
        arguments["intrusions"] = walk.intrusions

    def plain(coins: EnumeratedCoins | None) -> Any:
        return kind(coins=coins, **arguments)

    def asking(coins: EnumeratedCoins | None) -> Any:
        return Together({kind.entry.name: plain(coins)}, {kind.entry.name: walk.asked})

    make, claimed, streams = asking if walk.asked else plain, epsilon, list(_streams(walk))
    if crashes := max(stream.count(CRASH) for stream in streams):
        make = partial(Restarted, make)
        claimed = plain(None).guarantee.crashed(crashes).epsilon
    coins = (
        _tail(plain)
        if walk.tail is None
        else EnumeratedCoins(tail=walk.tail, state_tail=walk.state_tail)
    )
    return Subject(
        walk.name,
        "product",
        walk.says,
        make,
        claimed,
        streams,
        users=walk.users,
        coins=coins if walk.key is None else replace(coins, addressing_key=walk.key),
        adjacency="event" if plain(None).guarantee.adjacency == "event" else "add_remove",
    )


def _streams(walk: Walk) -> Iterator[EventStream]:
    """All streams of a walk."""
    for one in walk.streams:
        if isinstance(one, Short):
            releases = walk.releases if one.releases is None else one.releases
            public = {"releases": releases, "announced": walk.intrusions}
            yield from short_streams(one.batches, one.length, **public)
        else:
            yield one


def _density(coins: Coins | None, epsilon: Fraction) -> Density:
    return Density(universe=2, epsilon=epsilon, coins=coins)


def _unseen_and_groups(epsilon: Fraction) -> list[Subject]:
    """Return subjects for the loss of a window that nobody saw, and of a user in two groups."""
    density = partial(_density, epsilon=epsilon)
    product = partial(Subject, kind="product", claimed=epsilon)
    return [
        product(
            "unseen-window",
            says="a release of a window whose state nobody saw",
            make=lambda coins: Unseen(density(coins)),
            claimed=density(None).guarantee.unseen_loss.epsilon,
            streams=list(short_streams([[0], [1, 0]], 2, releases=1)),
            coins=_tail(density),
        ),
        product(
            "groups",
            says="a user in two groups, a table for each, a release",
            make=lambda coins: TwoGroups(coins, epsilon),
            streams=list(short_streams([[(0, 7)], [(0, 8)], [(1, 7)]], 2, releases=1)),
            coins=EnumeratedCoins(tail=3),
        ),
    ]


def _shards(epsilon: Fraction) -> list[Subject]:
    """Statistics of which each shard has a part."""
    density = partial(_density, epsilon=epsilon)
    coins = replace(_tail(density), tail=max(_tail(density).tail, 4))

    def slice_of_three(coins: Coins, slice_: Slice) -> Density:
        return Density(universe=3, epsilon=epsilon, coins=coins, slice_=slice_)

    def single_user(coins: Coins | None) -> Density:
        return Density(universe=1, epsilon=epsilon, coins=coins)

    product = partial(Subject, kind="product", claimed=epsilon)
    return [
        product(
            "two-shards",
            says="two shards of different users, which are looked at once, or merged: an answer",
            make=lambda coins: TwoShards(density, coins),
            streams=list(short_streams([[(0, 0, 1)], [(1, 1, 1), (0, 0, -1)]], 2, releases=2)),
            coins=coins,
        ),
        product(
            "two-slices",
            says="two slices of one table, each of the users of a shard: the answer of the table",
            make=lambda coins: TwoSlices(slice_of_three, coins),
            streams=list(short_streams([[(0, 1)], [(1, 1), (0, -1)]], 2, releases=2)),
            coins=coins,
        ),
        product(
            "contributed-windows",
            says="two windows that contribute, both of which somebody opens",
            make=lambda coins: ContributedWindows(single_user, coins),
            claimed=single_user(None).guarantee.contributed().over(2).epsilon,
            streams=[[[0], RELEASE, [0], RELEASE]],
            users=((0, 0),),
            coins=EnumeratedCoins(tail=4),
        ),
    ]


def _sharing(epsilon: Fraction) -> Subject:
    """Several statistics that draw on one budget."""

    def sharing(coins: EnumeratedCoins) -> Audited:
        ledger = Ledger(epsilon)
        half: dict[str, Any] = {"epsilon": epsilon / 2, "ledger": ledger, "coins": coins}
        return Together({name: Density(universe=2, **half) for name in ("one", "other")})

    return Subject(
        "shared-ledger",
        "product",
        "two statistics of one stream with one ledger, a release of each",
        sharing,
        epsilon,
        list(short_streams([[0], [1]], 2, releases=1)),
        coins=EnumeratedCoins(tail=3),
    )


def _moving(epsilon: Fraction) -> Subject:
    """An answer that stands until the number has moved."""
    sizes: dict[str, Any] = {"threshold": 1, "updates": 1, "delta": Fraction(1, 1000)}

    def moving(coins: EnumeratedCoins) -> MovingStatistic:
        density = partial(Density, universe=2, coins=coins)
        return MovingStatistic(
            ChangeTriggered(density, epsilon=epsilon, comparisons=epsilon / 2, **sizes)
        )

    return SeenOnce(
        "moving-answer",
        "product",
        "a share that is compared, and published if it has moved, at delta 0.001",
        moving,
        epsilon,
        [[[0], RELEASE]],
        coins=EnumeratedCoins(tail=12),
        delta=sizes["delta"],
    )


class MovingStatistic:
    """A running answer whose releases are comparisons: no counts where the last answer stands."""

    def __init__(self, running: ChangeTriggered) -> None:
        self.running = running
        self.update, self.state = running.update, running.state
        self.announce_intrusion = running.announce_intrusion

    def release(self) -> SimpleNamespace:
        """Compare, and tell what is published."""
        answers = self.running.check()
        return SimpleNamespace(counts=() if answers is None else answers.counts)


def _counters(epsilon: Fraction) -> list[Subject]:
    """Many counters, and what is decided from them; a release ends a step, and hides one event."""
    short = EnumeratedCoins(tail=5, state_tail=1)
    two: dict[str, Any] = {"n": 2, "horizon": 1, "epsilon": epsilon}

    def order(shelf: Any) -> list[int]:
        return shelf.order.tolist()

    product = partial(Subject, kind="product", claimed=epsilon, adjacency="event")
    return [
        product(
            "multi-counter",
            says="two counters and the step in which both answer, seen at any time",
            make=lambda coins: Steps(MultiCounter(**two, every=1, coins=coins)),
            streams=[[[0], [1], RELEASE]],
            coins=short,
        ),
        product(
            "multi-counter-announced",
            says="a counter that answers after two steps, and an announced intrusion, "
            "which is free",
            make=lambda coins: Steps(MultiCounter(1, 2, every=2, epsilon=epsilon, coins=coins)),
            streams=[[[0], ANNOUNCE, RELEASE, [0], RELEASE]],
            users=((0, 0),),  # there is no other
            coins=replace(short, tail=10),
        ),
        product(
            "list-update",
            says="a list of two and the step after which its order changes, seen at any time",
            make=lambda coins: Steps(ListUpdate(**two, every=1, weights=1, coins=coins), order),
            streams=[[[0], RELEASE]],
            coins=short,
        ),
    ]


def _experts(epsilon: Fraction) -> list[Subject]:
    """Return subjects for prediction with expert advice that hide one advice or one round."""
    two: dict[str, Any] = {"n": 2, "horizon": 1, "epsilon": epsilon, "perturbation": 0}
    coins = EnumeratedCoins(tail=4)
    product = partial(Subject, kind="product", claimed=epsilon)
    return [
        product(
            "experts-advice",
            says="two experts and a round, which hides what one of them advised",
            make=lambda coins: ExpertRounds(PrivateExperts(**two, unit="advice", coins=coins)),
            streams=[[[0], RELEASE], [[0, 1], RELEASE]],
            coins=coins,
            adjacency="event",
        ),
        product(
            "experts-round",
            says="two experts and a round, which hides who of both was wrong",
            make=lambda coins: ExpertRounds(PrivateExperts(**two, unit="round", coins=coins)),
            streams=[[[0], RELEASE], [[1], RELEASE]],
            users=((0, 1), (1, 0)),
            coins=coins,
            adjacency="replace",
        ),
    ]


class ExpertRounds:
    """Experts: a row is one who was wrong in the open round, of which nobody sees the middle."""

    def __init__(self, experts: PrivateExperts) -> None:
        self.experts, self.state = experts, experts.state
        self.wrong: list[int] = []

    def update(self, wrong: Sequence[int], _deltas: Any = None) -> None:
        """Note who was wrong."""
        self.wrong += wrong

    def release(self) -> SimpleNamespace:
        """End the round; the mistakes of each, and whom to follow."""
        experts, wrong = self.experts, self.wrong
        self.wrong = []
        choice = experts.round([one in wrong for one in range(experts.n)])
        return SimpleNamespace(counts=tuple(experts.values.astype(int).tolist()), choice=choice)


def _devices(epsilon: Fraction) -> list[Subject]:
    """Devices of each kind, whose every tick is looked at, and their reports; ideal encryption."""
    ticks = 2
    every = [[[0]] * ticks + [RELEASE]]
    each, mean = Promise(epsilon=epsilon), Promise(epsilon=epsilon, delta=Fraction(1, 100))
    averaging = Mean.planned(mean, most=1)
    product = partial(Subject, kind="product", claimed=epsilon)
    return [
        product(
            "device-count",
            says="a device that reports whether there was an event",
            make=device_of(CountNonZero.planned(each), each, ticks),
            streams=every,
        ),
        product(
            "device-histogram",
            says="a device that reports how many events there were, up to 2",
            make=device_of(DeviceHistogram.planned(each, most=2), each, ticks),
            streams=every,
        ),
        Approximate(
            "device-mean",
            "product",
            "a device that reports with Gaussian noise, at delta 0.01",
            device_of(averaging, mean, ticks),
            epsilon,
            every,
            coins=EnumeratedCoins(tail=math.ceil(6 * math.sqrt(averaging.variance)) + 1),
            delta=mean.delta,
        ),
    ]


class Unseen:
    """A statistic whose state nobody ever sees."""

    def __init__(self, statistic: Density) -> None:
        self._statistic = statistic
        self.update, self.release = statistic.update, statistic.release

    def state(self) -> bytes:
        """Nothing."""
        return b""


class TwoGroups:
    """A table for each of two groups; the delta of a row is its group."""

    def __init__(self, coins: EnumeratedCoins, epsilon: Fraction) -> None:
        self._grouped = Grouped(
            lambda share: Density(universe=2, epsilon=share, coins=coins),
            [7, 8],
            epsilon=epsilon,
            per_user=2,
        )
        self.state, self.release = self._grouped.state, self._grouped.release

    def update(self, users: Sequence[int], groups: Sequence[int] = ()) -> None:
        """Count each user in their group."""
        self._grouped.update(users, groups)


def _tail(make: MakeSubject) -> EnumeratedCoins:
    """Coins for one noise: to three times its scale, beyond which e**-3 of it lies.

    At a small epsilon less far, which sets more aside and takes no longer. Counts lie at most as
    far apart as there are cells.
    """
    plan = make(None).plan
    scale = 1 / plan.split.budget.release
    return EnumeratedCoins(tail=max(min(math.ceil(3 * scale), _MOST_TAIL), plan.table.cells))
