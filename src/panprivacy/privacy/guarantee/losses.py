"""Losses that are less than a sum: unseen states, and releases of bits."""

from __future__ import annotations

import functools
from decimal import ROUND_FLOOR
from fractions import Fraction

from panprivacy.privacy.guarantee.exact import (
    LARGEST_EXPONENT,
    exp_bounds,
    log_above,
    rounded,
    rounded_up,
)

_CHARGE_DIGITS = 15
"""Number of digits of the charge of releases of bits: few enough to be written into a ledger."""
_NOISE_DIGITS = 7
"""Digits of the epsilon of a release of bits: so few that its noise is drawn in machine words."""
_STEP_DIGITS = 55
_MOST_STEPS = 2_000
"""Releases of an unseen state with computed losses; later ones cost their complete epsilon."""


@functools.lru_cache(maxsize=1024)
def unseen_loss(state: Fraction, release: Fraction, releases: int = 1) -> Fraction:
    """Return an upper bound of the loss of `releases` releases of an unseen state, for any cells.

    For one release it is `2 artanh(tanh(state/2) tanh(release/2))`: the release depends on the
    user's cell, and the cell on the user, each through its own noise. Each additional release costs
    more, as earlier ones have revealed the cell. [docs/guarantees/windows.md]
    """
    most = releases * release
    if state + 2 * most > LARGEST_EXPONENT:
        return min(state, release) + most - release
    odds, each = exp_bounds(state)[1], exp_bounds(release)[1]
    grown, steps = Fraction(1), min(releases, _MOST_STEPS)
    for _ in range(steps):
        factor = _up((1 + odds * each) / (odds + each))
        grown, odds = _up(grown * factor), _up(odds * each * factor)
    loss = log_above(grown) + (releases - steps) * release
    return min(most, min(state, release) + most - release, loss)


@functools.lru_cache(maxsize=1024)
def unseen_bits(present: Fraction, release: Fraction, releases: int) -> Fraction | None:
    """Return the same bound for bits that are never flipped, if smaller; None if it is not proved.

    It is `ln(1-p + p e**(R release)) - R ln(p + (1-p) e**release)`.

    Args:
        present: p, the probability that a present bit is 1.
        release: epsilon of each release.
        releases: R, the number of releases.
    """
    odds = present / (1 - present)
    if releases * release > LARGEST_EXPONENT or exp_bounds(release)[1] > odds**2:
        return None
    most = 1 - present + present * exp_bounds(releases * release)[1]
    least = present + (1 - present) * exp_bounds(release)[0]
    return log_above(most) + releases * log_above(1 / least)


@functools.lru_cache(maxsize=1024)
def unseen_count(fewest: Fraction, most: Fraction, release: Fraction) -> Fraction:
    """Return the same bound for one release of the number of counted cells, 1 each.

    Args:
        fewest: the lowest probability that a cell is counted, over all states of its users.
        most: the highest one.
        release: epsilon of the release.
    """
    if release > LARGEST_EXPONENT:
        return release
    each = exp_bounds(release)[1]
    ratios = [
        (1 - high + high * each) / (1 - low + low * each)
        for low, high in ((fewest, most), (1 - most, 1 - fewest))
    ]
    return log_above(max(ratios))


@functools.lru_cache(maxsize=1024)
def joint_loss(surest: Fraction, releases: Fraction) -> Fraction:
    """Return an upper bound, in 15 digits, of the loss of releases of bits on top of the looks.

    It is `ln(1-p + p e**releases)`: a bit that the looks did not reveal is, with probability p at
    most, the one that a release makes more likely. [docs/guarantees/releases.md]

    Args:
        surest: p, at least 1/2.
        releases: the sum of their epsilons.
    """
    if releases > LARGEST_EXPONENT:
        return releases
    mean = 1 - surest + surest * exp_bounds(releases)[1]
    return min(releases, Fraction(rounded_up(log_above(mean), _CHARGE_DIGITS)))


def joint_releases(surest: Fraction, cost: Fraction, releases: int) -> Fraction:
    """Return the epsilon of each release for a `joint_loss` of all of them of at most `cost`.

    It is rounded down to 7 digits; the rounding of `joint_loss` is subtracted before.
    """
    spent = cost * (1 - Fraction(1, 10 ** (_CHARGE_DIGITS - 2)))
    total = spent
    if spent < LARGEST_EXPONENT - 1:  # the releases add up to at most ln 2 more
        odds = (exp_bounds(spent)[0] - 1 + surest) / surest
        total = max(spent, -log_above(1 / odds))
    return Fraction(rounded(total / releases, _NOISE_DIGITS, ROUND_FLOOR))


def _up(number: Fraction) -> Fraction:
    return Fraction(rounded_up(number, _STEP_DIGITS))
