"""The shipping classes, at sizes that can be walked completely, and the streams they are tried on.

Users share a cell where users are hashed; they come once, again, before and after releases and
announced intrusions, leave, and are left out of samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from panprivacy.audit.exact.chain import Audited
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.neighbours import short_streams
from panprivacy.audit.streams import ANNOUNCE, RELEASE, Step, Stream
from panprivacy.audit.suite.subject import Subject
from panprivacy.audit.suite.wrapped import Asking, Groups, Sharing, Unseen
from panprivacy.cells.law import Law
from panprivacy.guarantee import Budget
from panprivacy.statistics.cropped.statistic import CroppedSum
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.distinct.statistic import DistinctCount
from panprivacy.statistics.heavy.statistic import HeavyHitterCount
from panprivacy.statistics.incidence.statistic import Incidence
from panprivacy.statistics.threshold.statistic import ThresholdCount

_MOST_TAIL = 12
"""The longest tail that noise needs if counts lie no further apart."""

_SPREADING = bytes(range(40))
"""An addressing key that sends users to different cells; of zeros, polynomials send all to one."""

_BATCHES: Sequence[Step] = [[(0, 1)], [(0, 2)], [(1, -1)]]

Make = Callable[[EnumeratedCoins], Audited]


def products(epsilon: Fraction) -> list[Subject]:
    """Every product with a total of `epsilon`."""
    bits = _bits, _further_bits, _hashed
    counters = _named, _further_counters, _blocks, _thresholds
    kinds = *bits, *counters, _joined
    return [product for kind in kinds for product in kind(epsilon)]


def _product(
    name: str, says: str, make: Make, claimed: Fraction, streams: Sequence[Stream], **rest: Any
) -> Subject:
    return Subject(name, "product", says, make, claimed, streams, **rest)


def _density(epsilon: Fraction, universe: int = 2, **sizes: Any) -> Make:
    return lambda coins: Density(universe=universe, epsilon=epsilon, coins=coins, **sizes)


def _bits(epsilon: Fraction) -> list[Subject]:
    density = partial(_density, epsilon)
    return [
        _product(
            "density",
            "presence bits of two users, two releases",
            density(releases=2),
            epsilon,
            list(short_streams([[0], [1], [0, 1, 0]], 2, releases=2)),
            coins=_tail(density(releases=2)),
        ),
        _product(
            "density-4-cells",
            "presence bits of four users, two releases",
            density(4, releases=2),
            epsilon,
            [
                *short_streams([[0]], 2, releases=2),
                *short_streams([[2, 0, 1]], 1, releases=2),
                [[2, 0], RELEASE, [1, 0], RELEASE],
            ],
            coins=_tail(density(4, releases=2)),
        ),
    ]


def _further_bits(epsilon: Fraction) -> list[Subject]:
    """Users that leave, a state that is seen twice, a sample."""
    density = partial(_density, epsilon)
    comes, leaves, other = [(0, 1)], [(0, -1)], [(1, 1)]
    return [
        _product(
            "density-deletions",
            "users leave again",
            density(),
            epsilon,
            list(short_streams([comes, leaves, other], 3, releases=1)),
            coins=_tail(density()),
        ),
        _product(
            "density-announced",
            "an announced intrusion and an unannounced one, users that leave, a release",
            density(intrusions=1),
            epsilon,
            list(short_streams([comes, leaves, other], 2, releases=1, announced=1)),
            coins=_tail(density(intrusions=1)),
        ),
        _product(
            "density-sample",
            "two cells for three users",
            density(3, cells=2),
            epsilon,
            list(short_streams([[0], [1], [2]], 2, releases=1)),
            users=((0, 1), (1, 2), (2, 0)),
            coins=_tail(density(3, cells=2)),
        ),
    ]


def _hashed(epsilon: Fraction) -> list[Subject]:
    def distinct(memory: int = 1, **sizes: Any) -> Make:
        plan = {"expected": (1, 4), "memory": memory, "epsilon": epsilon, **sizes}
        return lambda coins: DistinctCount(coins=coins, **plan)

    net = {"memory": 2, "deletions": True, "bound": 2}
    return [
        _product(
            "distinct-count",
            "users that share hashed bits, a release",
            distinct(),
            epsilon,
            [[[5], RELEASE, [6, 5]], [[6, 5, 7], [5], RELEASE], [RELEASE, [5]]],
            users=((5, 6),),
            coins=_tail(distinct()),
        ),
        _product(
            "distinct-count-announced",
            "an announced intrusion into hashed bits",
            distinct(intrusions=1),
            epsilon,
            [[[5, 6], ANNOUNCE, [5]]],
            users=((5, 6),),
        ),
        _product(
            "net-count",
            "users whose deltas do not add up to 0, a release",
            distinct(**net),
            epsilon,
            list(short_streams([[(5, 1)], [(5, -1)], [(6, 2)]], 2, releases=1)),
            users=((5, 6), (5, 7), (5, 8)),
            coins=_tail(distinct(**net)),
        ),
    ]


def _counters(
    epsilon: Fraction, modulus: int, releases: int = 2, **sizes: Any
) -> Callable[[EnumeratedCoins | None], Incidence]:
    share = epsilon / (releases + 1 + sizes.get("intrusions", 0))
    arguments = {
        "epsilon": epsilon,
        "budget": Budget(state=share, release=share),
        "law": Law.flat(modulus, share),
        "releases": releases,
        "universe": 2,
        "bound": modulus - 1,
        **sizes,
    }
    return lambda coins: Incidence(coins=coins, **arguments)


def _named(epsilon: Fraction) -> list[Subject]:
    return [
        _naming(
            f"incidence-named-{modulus}",
            f"counters modulo {modulus}, two releases of one named count",
            _counters(epsilon, modulus),
            epsilon,
            list(short_streams(_BATCHES[:tried], 2, releases=2)),
        )
        for modulus, tried in ((3, 3), (7, 2), (11, 2))
    ]


def _naming(
    name: str,
    says: str,
    plain: Callable[[EnumeratedCoins | None], Incidence],
    claimed: Fraction,
    streams: Sequence[Stream],
    **rest: Any,
) -> Subject:
    """A count that is asked how many users came once."""

    def make(coins: EnumeratedCoins) -> Asking:
        return Asking(plain(coins), exactly=(1,))

    return _product(name, says, make, claimed, streams, coins=_tail(plain), **rest)


def _further_counters(epsilon: Fraction) -> list[Subject]:
    """Whole histograms, a state that is seen twice, a sample."""
    return [
        _product(
            "incidence-histogram-3",
            "counters modulo 3, two releases of the whole histogram",
            _counters(epsilon, 3),
            epsilon,
            [
                [[(0, 1)], RELEASE, [(0, 1)], RELEASE],
                [RELEASE, [(0, 2)], RELEASE, [(0, -1)]],
                [[(1, 1), (0, 1)], RELEASE, RELEASE],
            ],
            coins=EnumeratedCoins(tail=2),
        ),
        _product(
            "incidence-announced",
            "an announced intrusion into counters modulo 3",
            _counters(epsilon, 3, intrusions=1),
            epsilon,
            list(short_streams(_BATCHES, 3, announced=1)),
        ),
        _naming(
            "incidence-sample-signed",
            "two counters for three users whose states may be below 0",
            _counters(epsilon, 3, releases=1, universe=3, cells=2, bound=1, signed=True),
            epsilon,
            list(short_streams([[(0, 1)], [(1, -2)], [(2, -1)]], 2, releases=1)),
            users=((0, 1), (1, 2), (2, 0)),
        ),
    ]


def _blocks(epsilon: Fraction) -> list[Subject]:
    """Counters whose noise is larger on blocks of values."""

    def cropped(coins: EnumeratedCoins | None) -> CroppedSum:
        return CroppedSum(tau=2, bound=4, universe=2, coins=coins, **_halves(epsilon))

    return [
        _product(
            "cropped-sum",
            "states up to 2 of two users, who go beyond it and come back, a release",
            cropped,
            epsilon,
            list(short_streams([[(0, 1)], [(0, 4)], [(1, -3)]], 2, releases=1)),
            coins=_tail(cropped),
        ),
    ]


def _thresholds(epsilon: Fraction) -> list[Subject]:
    """Such counters, of which a user may count in part."""

    def threshold(coins: EnumeratedCoins | None) -> ThresholdCount:
        return ThresholdCount(threshold=4, bound=4, universe=2, coins=coins, **_halves(epsilon))

    def heavy(coins: EnumeratedCoins | None) -> HeavyHitterCount:
        return HeavyHitterCount(k=1, total=2, cells=2, coins=coins, **_halves(epsilon))

    return [
        _product(
            "threshold",
            "counters of two users, who counts in full and who in part, a release",
            threshold,
            epsilon,
            list(short_streams([[(0, 3)], [(0, 4)], [(1, -1)]], 2, releases=1)),
            coins=_tail(threshold),
        ),
        _product(
            "heavy-hitters",
            "users that share two hashed counters, who counts in full and who in part, a release",
            heavy,
            epsilon,
            list(short_streams([[(5, 1)], [(5, 2)], [(6, -1)]], 2, releases=1)),
            users=((5, 6), (5, 7), (5, 8)),  # 8 has another cell than the others
            coins=replace(_tail(heavy), addressing_key=_SPREADING),
        ),
    ]


def _halves(epsilon: Fraction) -> dict[str, Any]:
    """Half of epsilon for the state and half for one release."""
    share = epsilon / 2
    return {"epsilon": epsilon, "budget": Budget(state=share, release=share)}


def _joined(epsilon: Fraction) -> list[Subject]:
    def unseen(coins: EnumeratedCoins) -> Unseen:
        return Unseen(Density(universe=2, epsilon=epsilon, coins=coins))

    claimed = Density(universe=2, epsilon=epsilon).unseen
    return [
        _product(
            "unseen-window",
            "a release of a window whose state nobody saw",
            unseen,
            claimed,
            list(short_streams([[0], [1, 0]], 2, releases=1)),
            coins=_tail(lambda coins: Density(universe=2, epsilon=epsilon, coins=coins)),
        ),
        _product(
            "groups",
            "a user in two groups, a table for each, a release",
            lambda coins: Groups(coins, epsilon),
            epsilon,
            list(short_streams([[(0, 7)], [(0, 8)], [(1, 7)]], 2, releases=1)),
            coins=EnumeratedCoins(tail=3),
        ),
        _product(
            "shared-ledger",
            "two statistics of one stream with one ledger, a release of each",
            lambda coins: Sharing(coins, epsilon),
            epsilon,
            list(short_streams([[0], [1]], 2, releases=1)),
            coins=EnumeratedCoins(tail=3),
        ),
    ]


def _tail(make: Callable[..., Any]) -> EnumeratedCoins:
    """Coins for one noise: to three times its scale, beyond which e**-3 of it lies.

    At a small epsilon less far, which sets more aside and takes no longer. Counts lie at most as
    far apart as there are cells.
    """
    plan = make(None).plan
    scale = 1 / plan.split.budget.release
    return EnumeratedCoins(tail=max(min(math.ceil(3 * scale), _MOST_TAIL), plan.cells))
