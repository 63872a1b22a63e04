"""Heavy hitters: a count of them that is too accurate counts people, too.

Appendix B of Mir et al.: an item of weight `W/k` for each of k people who came is a heavy hitter,
and all others have weight 0. So the number of heavy hitters is that of different people, to
the same accuracy, and its state is decoded as in `decoding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.attacks.decoding import ERROR, PEOPLE, decode_products, decoded, held
from panprivacy.audit.attacks.guesses import Guesses, Truths
from panprivacy.audit.attacks.outcome import ORDINARY, PRODUCT, AttackResult, Panel, bounded_share
from panprivacy.audit.attacks.reconstruction import RealNumbers
from panprivacy.audit.attacks.seized import Seized, guess_from_noise, integers, tossed
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.statistics.incidence.plan import IncidencePlan
from panprivacy.statistics.incidence.statistic import Incidence

WEIGHT = 3
"""`W/k`: an item that is fed once more has twice that, and stays one heavy hitter."""

_OURS = f"Incidence, at least {WEIGHT}"


@dataclass(frozen=True, slots=True, eq=False)
class AccurateHeavyHitters:
    """An ordinary program: it keeps the weight of every item, and adds noise on the way out."""

    weights: NDArray[np.int64]
    coins: Coins

    def counts_with(self, fed: Truths) -> RealNumbers:
        """Return the number of heavy items with `fed` added, within a tenth of the root of k."""
        heavy = (self.weights + WEIGHT * fed >= WEIGHT).sum(axis=1)
        return (heavy + integers(self.coins, ERROR, len(fed))).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class SeizedIncidence:
    """The state of an `Incidence`, run forward by the intruder with coins of the intruder's own."""

    seized: Seized[IncidencePlan]
    coins: Coins

    def counts_with(self, fed: Truths) -> RealNumbers:
        """Add to the counters of the people who are fed, and read the number of heavy ones."""
        plan, counts = self.seized.plan, []
        heavy = np.flatnonzero(plan.states.at_least(WEIGHT).scores)
        votes = sum(np.roll(plan.law.kernel(), state) for state in heavy)
        for row in fed:
            people, table = np.flatnonzero(row), self.seized.table.copy()
            plan.table.update(table, [people], np.full(len(people), WEIGHT), 0, self.coins)
            counts.append(votes @ plan.table.histogram(table))
        return np.array(counts, np.float32)


def attack(epsilon: Fraction | float) -> AttackResult:
    """Decode 1,000 bits from an accurate count of heavy hitters, and from an `Incidence`."""
    total, coins = positive_fraction(epsilon=epsilon), SystemCoins()
    came = tossed(coins, PEOPLE)
    accurate = AccurateHeavyHitters(WEIGHT * came.astype(np.int64), coins)
    seized = seize(total, came)
    ordinary = Guesses(came, decode_products(accurate, coins))
    ours = Guesses(came, decode_products(SeizedIncidence(seized, coins), coins))
    counters = seized.table.astype(np.int64)
    surest = guess_from_noise(seized.plan.law, counters, came, visits=WEIGHT)
    told = (
        f"without any query, {surest.right:,} of the {len(surest.came):,} people whose counter "
        "tells anything are guessed from it"
    )
    findings = (
        decoded("accurate heavy hitters", ordinary),
        held(_OURS, ours, total),
        bounded_share(f"{_OURS}, counters", surest, total, told),
    )
    panels = (
        Panel("accurate\nheavy hitters", ORDINARY, ordinary),
        Panel(f"Incidence,\nat least {WEIGHT}", PRODUCT, ours),
    )
    return AttackResult("heavy-hitters", float(total), findings, panels)


def seize(epsilon: Fraction, came: Truths) -> Seized[IncidencePlan]:
    """Return the state of an `Incidence` after each of these people came until heavy."""
    visits = Incidence(universe=len(came), bound=2 * WEIGHT, epsilon=epsilon)
    people = np.flatnonzero(came)
    visits.update(people, np.full(len(people), WEIGHT))
    return Seized.of(visits, visits.plan.table.dtype)
