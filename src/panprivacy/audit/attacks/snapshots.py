"""Two snapshots: the intruder sees the same state twice and compares.

Unannounced, a bit that changed betrays its user with certainty; a second look like that lies
outside of the guarantee. With `announce_intrusion` between the looks, every bit is flipped by a
coin, and both looks together cost what was planned for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.attacks.guesses import Guesses, Truths, percent
from panprivacy.audit.attacks.outcome import (
    OUTSIDE,
    PRODUCT,
    AttackResult,
    Finding,
    Panel,
    bounded_advantage,
    bounded_share,
)
from panprivacy.audit.attacks.seized import bits_of, tossed
from panprivacy.ground.validation import positive_fraction
from panprivacy.privacy.coins import SystemCoins
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.statistics.density.statistic import Density
from panprivacy.tables.cells.bits import BitCells

PEOPLE = 100_000
_LEAST = 1e-99

BitArray = NDArray[np.uint8]
UserActions = tuple[int, int]

_CAME, _STAYED, _LEFT = "came between", "came before and between", "came before, left between"
_HISTORIES: dict[str, UserActions] = {_CAME: (0, 1), _STAYED: (1, 1), _LEFT: (1, -1)}
"""Actions of members before the first intrusion and between the two: 1 to come, -1 to leave."""


def attack(epsilon: Fraction | float) -> AttackResult:
    """Compare two intrusions into one `Density`, with and without an announcement."""
    total = positive_fraction(epsilon=epsilon)
    came = tossed(SystemCoins(), PEOPLE)
    changed = _compare_unannounced(total, came)
    announced = {name: _compare_announced(total, came, name) for name in _HISTORIES}
    findings = [_betrayed(changed)]
    for name, looks in announced.items():
        said = (
            f"both looks cost {float(looks.planned):.4g} as planned, and the best test names "
            f"{percent(looks.guesses.found)} of the members and "
            f"{percent(looks.guesses.suspected)} of the others"
        )
        target = f"announced: {name}"
        findings.append(bounded_advantage(target, looks.guesses, looks.planned, said))
    surest, planned = announced[_LEFT].surest, announced[_LEFT].planned
    said = (
        f"members {_LEFT}; about the {len(surest.came):,} people whose two bits tell most "
        f"the intruder is right {percent(surest.share)} of the time"
    )
    findings.append(bounded_share("announced: the surest bits", surest, planned, said))
    panels = (
        Panel("two looks,\nunannounced", OUTSIDE, changed),
        Panel("announced between\nthe two looks", PRODUCT, announced[_CAME].guesses),
    )
    return AttackResult("snapshots", float(total), tuple(findings), panels)


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """Guesses from two intrusions at the planned loss: about all, and by the most telling bits."""

    planned: Fraction
    guesses: Guesses
    surest: Guesses


def _two_looks(
    members: Density, came: Truths, history: UserActions, between: Callable[[], None]
) -> tuple[BitArray, BitArray]:
    """Return the bits before and after the actions of members between the intrusions."""
    people, looks = np.flatnonzero(came), list[BitArray]()
    for delta in history:
        if looks:
            between()
        if delta:
            members.update(people, np.full(len(people), delta))
        looks.append(bits_of(members))
    return looks[0], looks[1]


def _compare_unannounced(epsilon: Fraction, came: Truths) -> Guesses:
    """Guess from a changed bit that a member came between the intrusions."""
    members = Density(universe=PEOPLE, epsilon=epsilon)
    first, second = _two_looks(members, came, _HISTORIES[_CAME], lambda: None)
    return Guesses(came, first != second)


def _compare_announced(epsilon: Fraction, came: Truths, name: str) -> Looks:
    """Return the best test from both intrusions, by the likelihood of the two bits."""
    members, history = Density(universe=PEOPLE, epsilon=epsilon, intrusions=1), _HISTORIES[name]
    looks = _two_looks(members, came, history, members.announce_intrusion)
    plan = members.plan
    ratio = (_law(plan.table, history) / _law(plan.table, (0, 0)))[looks]
    guesses, told = Guesses(came, ratio > 1), np.abs(np.log(ratio))
    most = told == told.max()
    return Looks(_planned(plan), guesses, Guesses(came[most], guesses.said[most]))


def _planned(plan: DensityPlan) -> Fraction:
    """Return the total privacy loss of both intrusions."""
    return plan.request.looks * plan.split.budget.state


def _law(cells: BitCells, history: UserActions) -> NDArray[np.float64]:
    """Return the probability of each pair of bits, from the public plan."""
    first = _coin(float(cells.presence(0)), history[0] or -1)
    keep = float(1 + cells.gain()) / 2
    left = np.array([[keep, 1 - keep], [1 - keep, keep]])
    drawn = np.tile(_coin(float(cells.presence(1)), history[1]), (2, 1))
    law = first[:, np.newaxis] * (drawn if history[1] else left)
    return np.maximum(law, _LEAST)  # at a large epsilon some pairs never occur


def _coin(presence: float, delta: int) -> NDArray[np.float64]:
    """Return the law of a bit that was redrawn when its user came, or departed or at the start."""
    law = np.array([1 - presence, presence])
    return law if delta > 0 else law[::-1]


def _betrayed(guesses: Guesses) -> Finding:
    share = guesses.precision
    sentence = (
        f"{guesses.said.sum():,} of {guesses.came.sum():,} members have a bit that changed, and "
        f"{percent(share)} of those with such a bit are members: no promise is made about a second "
        "unannounced look"
    )
    return Finding(
        f"unannounced: {_CAME}", OUTSIDE, "names right", share, None, None, share == 1.0, sentence
    )
