"""Heavy hitters: a count of them that is too accurate counts people, too.

Appendix B of Mir et al.: an item of weight `W/k` for each of k people who came is a heavy hitter,
and all others have weight 0. So the number of heavy hitters is that of different people, to
the same accuracy, and its state is decoded as in `decoding`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy._validate import positive_fraction
from panprivacy.audit.attacks.decoding import ERROR, PEOPLE, decode_products, decoded, held
from panprivacy.audit.attacks.guesses import Guesses, Truths
from panprivacy.audit.attacks.outcome import ORDINARY, PRODUCT, Outcome, Panel, bounded_share
from panprivacy.audit.attacks.reconstruction import Floats
from panprivacy.audit.attacks.seized import Seized, guess_from_noise, tossed, whole_numbers
from panprivacy.coins import Coins, SystemCoins
from panprivacy.statistics.incidence.plan import IncidencePlan
from panprivacy.statistics.incidence.statistic import Incidence

WEIGHT = 3
"""`W/k`: an item that is fed once more has twice that, and stays one heavy hitter."""

_OURS = f"Incidence, at least {WEIGHT}"


class AccurateHeavyHitters:
    """An ordinary program: it keeps the weight of every item, and adds noise on the way out.

    Args:
        weights: of the items; all of its state.
        coins: of the noise.
    """

    def __init__(self, weights: NDArray[np.int64], coins: Coins) -> None:
        self._weights = weights
        self._coins = coins

    def counts_with(self, fed: Truths) -> Floats:
        """How many items are heavy once these are fed, to within a tenth of the root of k."""
        heavy = (self._weights + WEIGHT * fed >= WEIGHT).sum(axis=1)
        return (heavy + whole_numbers(self._coins, ERROR, len(fed))).astype(np.float32)


class SeizedIncidence:
    """The state of an `Incidence`, run forward by whoever took it.

    Args:
        seized: what he took.
        coins: his own.
    """

    def __init__(self, seized: Seized[IncidencePlan], coins: Coins) -> None:
        plan = seized.plan
        self._seized = seized
        self._coins = coins
        heavy = np.flatnonzero(plan.states.at_least(WEIGHT).scores)
        self._votes = sum(np.roll(plan.law.kernel(), state) for state in heavy)

    def counts_with(self, fed: Truths) -> Floats:
        """Add to the counters of those who are fed, and read how many are heavy."""
        return np.array([self._count_with(np.flatnonzero(row)) for row in fed], np.float32)

    def _count_with(self, people: NDArray[np.int64]) -> float:
        cells, table = self._seized.plan.table, self._seized.table.copy()
        cells.update(table, [people], np.full(len(people), WEIGHT), 0, self._coins)
        return float(self._votes @ cells.histogram(table))


def attack(epsilon: Fraction | float) -> Outcome:
    """Decode 1,000 bits from an accurate count of heavy hitters, and from an `Incidence`."""
    total, coins = positive_fraction(epsilon=epsilon), SystemCoins()
    came = tossed(coins, PEOPLE)
    accurate = AccurateHeavyHitters(WEIGHT * came.astype(np.int64), coins)
    seized = seize(total, came)
    ordinary = Guesses(came, decode_products(accurate, coins))
    ours = Guesses(came, decode_products(SeizedIncidence(seized, coins), coins))
    counters = seized.table.astype(np.int64)
    surest = guess_from_noise(seized.plan.law, counters, came, visits=WEIGHT)
    findings = (
        decoded("accurate heavy hitters", ordinary),
        held(_OURS, ours, total),
        bounded_share(f"{_OURS}, counters", surest, total, _told(surest)),
    )
    panels = (
        Panel("accurate\nheavy hitters", ORDINARY, ordinary),
        Panel(f"Incidence,\nat least {WEIGHT}", PRODUCT, ours),
    )
    return Outcome("heavy-hitters", float(total), findings, panels)


def seize(epsilon: Fraction, came: Truths) -> Seized[IncidencePlan]:
    """The state of an `Incidence` after each of these people came so often as to be heavy."""
    visits = Incidence(universe=len(came), bound=2 * WEIGHT, epsilon=epsilon)
    people = np.flatnonzero(came)
    visits.update(people, np.full(len(people), WEIGHT))
    return Seized.of(visits, visits.plan.table.dtype)


def _told(guesses: Guesses) -> str:
    return (
        f"without any query, {guesses.right:,} of the {len(guesses.came):,} people whose counter "
        "tells anything are guessed from it"
    )
