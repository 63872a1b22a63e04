"""Noise replay: the generator that draws the noise is part of the state.

The intruder starts the program again with its seed, and sees the cells as they were before anybody
came. What differs was done by people; and the noise of answers to come is known before they are
made.

A redrawn bit may fall on its old value, so a `Density` betrays those of its users whose bit
changed; counters, to which visits are added, betray every person's visits.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.attacks.guesses import Guesses, Truths, percent
from panprivacy.audit.attacks.outcome import (
    ORDINARY,
    PRODUCT,
    AttackResult,
    Panel,
    bounded_advantage,
    fallen,
)
from panprivacy.audit.attacks.seized import Seized, bits_of, guess_from_noise, tossed
from panprivacy.audit.kept_generator import KeptGenerator
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.incidence.statistic import Incidence

PEOPLE = 100_000
BOUND = 4
_SEEDED = "its seed in its state"
_FRESH = "SystemCoins"


def attack(epsilon: Fraction | float) -> AttackResult:
    """Replay the noise of seeded programs, and try the same on ours."""
    total, coins = positive_fraction(epsilon=epsilon), SystemCoins()
    came = tossed(coins, PEOPLE)
    visits = came * (1 + coins.categorical([1] * BOUND, PEOPLE).astype(np.int64))
    betrayed, exact, ones = _replay_bits(total, came, coins.key(32))
    recovered = _replay_counters(total, visits, coins.key(32))
    share = float((visits == recovered).mean())
    bits, counters = _guess_from_ours(total, came)
    bits_fell, counters_fell = f"Density, {_SEEDED}", f"Incidence, {_SEEDED}"
    findings = (
        fallen(bits_fell, "names right", betrayed.precision, _betrayed(betrayed)),
        fallen(
            bits_fell,
            "noise foreseen",
            float(exact == ones),
            f"less the noise they foresaw, the next release says {exact:,}, of {ones:,} ones",
        ),
        fallen(
            counters_fell,
            "people recovered",
            share,
            f"the number of visits of {percent(share)} of {PEOPLE:,} people is recovered exactly",
        ),
        bounded_advantage(f"Density, {_FRESH}", bits, total, _nothing(bits)),
        bounded_advantage(f"Incidence, {_FRESH}", counters, total, _nothing(counters)),
    )
    panels = (
        Panel("Density, its seed\nin its state", ORDINARY, betrayed),
        Panel("Incidence, its seed\nin its state", ORDINARY, Guesses(came, recovered > 0)),
        Panel(f"Density,\n{_FRESH}", PRODUCT, bits),
    )
    return AttackResult("replay", float(total), findings, panels)


def _density(epsilon: Fraction, coins: Coins) -> Density:
    return Density(universe=PEOPLE, epsilon=epsilon, coins=coins)


def _incidence(epsilon: Fraction, coins: Coins) -> Incidence:
    return Incidence(universe=PEOPLE, bound=BOUND, epsilon=epsilon, coins=coins)


def _counters(statistic: Incidence) -> NDArray[np.int64]:
    """Return the counter of each user, from the state."""
    return Seized.of(statistic, statistic.plan.table.dtype).table.astype(np.int64)


def _replay_bits(epsilon: Fraction, came: Truths, seed: bytes) -> tuple[Guesses, int, int]:
    """Guess from bits that differ from the initial ones; also a noiseless count, the ones."""
    kept = KeptGenerator(seed)
    members = _density(epsilon, kept)
    members.update(np.flatnonzero(came))
    seen, taken = bits_of(members), KeptGenerator(kept.seed, kept.calls)
    born = bits_of(_density(epsilon, KeptGenerator(taken.seed)))
    noise = taken.discrete_laplace(1 / members.plan.split.budget.release, 1)
    exact = members.release().counts[0] - int(noise[0])
    return Guesses(came, seen != born), exact, int(seen.sum())


def _replay_counters(
    epsilon: Fraction, visits: NDArray[np.int64], seed: bytes
) -> NDArray[np.int64]:
    """Return the visits of all people: each counter minus its initial noise."""
    kept = KeptGenerator(seed)
    members = _incidence(epsilon, kept)
    came = np.flatnonzero(visits)
    members.update(came, visits[came])
    born = _counters(_incidence(epsilon, KeptGenerator(kept.seed)))
    return (_counters(members) - born) % members.plan.law.modulus


def _guess_from_ours(epsilon: Fraction, came: Truths) -> tuple[Guesses, Guesses]:
    """Return the best guesses from bits and from counters as they ship, where members come once."""
    people, coins = np.flatnonzero(came), SystemCoins()
    bits, counters = _density(epsilon, coins), _incidence(epsilon, coins)
    bits.update(people)
    counters.update(people)
    from_counters = guess_from_noise(counters.plan.law, _counters(counters), came, visits=1)
    return Guesses(came, bits_of(bits).astype(np.bool_)), from_counters


def _betrayed(guesses: Guesses) -> str:
    return (
        f"{guesses.said.sum():,} of {guesses.came.sum():,} members are named, and "
        f"{percent(guesses.precision)} of these names are right; the other members' bits fell on "
        "their old values"
    )


def _nothing(guesses: Guesses) -> str:
    return (
        f"there is no generator to replay: of {len(guesses.came):,} people whose cells tell "
        f"anything, the best guess names {percent(guesses.found)} of the members and "
        f"{percent(guesses.suspected)} of the others"
    )
