"""Dictionary attack: the intruder has the state and a list of people who may have come.

The intruder looks each of them up. A secret key, or a salt that changes each day, does not prevent
it: the program needs it to count, so it is part of the stolen state.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from panprivacy.audit.attacks.guesses import Guesses, percent
from panprivacy.audit.attacks.outcome import (
    ORDINARY,
    PRODUCT,
    AttackResult,
    Finding,
    Panel,
    bounded_advantage,
    fallen,
)
from panprivacy.audit.attacks.seized import Seized, tossed
from panprivacy.audit.attacks.sketches import HyperLogLog, LinearCounting, SaltedHashes
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.distinct.statistic import DistinctCount
from panprivacy.tables.hashing import KEY_BYTES

CANDIDATES = 100_000
MEMORY = 1 << 20
_OURS = "DistinctCount"
_LEAST_ADVANTAGE = 0.9


def attack(epsilon: Fraction | float) -> AttackResult:
    """Look up 100,000 candidates in salted hashes, and in sketches of the same memory."""
    total, coins = positive_fraction(epsilon=epsilon), SystemCoins()
    came = tossed(coins, CANDIDATES)
    findings, panels = list[Finding](), list[Panel]()
    ordinary: dict[str, SaltedHashes | HyperLogLog | LinearCounting] = {
        "salted hashes": SaltedHashes(coins.key(KEY_BYTES)),
        "HyperLogLog": HyperLogLog(MEMORY, coins.key(KEY_BYTES)),
        "bitmap": LinearCounting(MEMORY, coins.key(KEY_BYTES)),
    }
    for name, program in ordinary.items():
        program.add(np.flatnonzero(came))
        guesses = Guesses(came, program.may_hold(np.arange(len(came))))
        rates, advantage = f"{_rates(guesses)}; a no is certain", guesses.advantage
        findings.append(fallen(name, "members found", guesses.found, rates))
        findings.append(fallen(name, "advantage", advantage, rates, least=_LEAST_ADVANTAGE))
        panels.append(Panel(f"{name}, looked up", ORDINARY, guesses))
    visitors = DistinctCount(epsilon=total, memory=MEMORY)
    visitors.update(np.flatnonzero(came))
    seized = Seized.of(visitors)
    bits = np.unpackbits(seized.table, bitorder="little")
    cells = seized.slots(np.arange(len(came)))
    ours = Guesses(came, bits[cells].astype(np.bool_))  # the best guess: the candidate's bit
    findings.append(bounded_advantage(_OURS, ours, total, _rates(ours)))
    panels.append(Panel(f"{_OURS}, looked up", PRODUCT, ours))
    return AttackResult("dictionary", float(total), tuple(findings), tuple(panels))


def _rates(guesses: Guesses) -> str:
    return (
        f"{percent(guesses.found)} of {guesses.came.sum():,} members are named, "
        f"and {percent(guesses.suspected)} of the others"
    )
