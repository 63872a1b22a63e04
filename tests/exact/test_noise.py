"""What a walk believes of noise: it is added, one to each sum, and walked far enough."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.noise import check_noise
from panprivacy.errors import PlanError

HALF = Fraction(1, 2)
COINS = EnumeratedCoins(tail=3)


def move(counts, noise, probability=HALF):
    told = None if counts is None else SimpleNamespace(counts=counts)
    return SimpleNamespace(published=told, noise=noise, probability=probability)


def added(*sums):
    """All sums with noise of -1 and 1 each."""
    each = HALF / len(sums)
    return [move((one + noise,), (noise,), each) for one in sums for noise in (-1, 1)]


def test_noise_that_is_added_passes():
    check_noise({"point": added(5), "other": added(5, 7)}, COINS)
    check_noise({"point": [move((5,), (), Fraction(1))]}, COINS)
    check_noise({"point": [move(None, ())]}, COINS)
    check_noise({}, COINS)


@pytest.mark.parametrize(
    "moves",
    [
        [move((5, 6), (1,), HALF), move((4, 5), (-1,), HALF)],  # one for two counts
        [move((6,), (1,), HALF), move((6,), (-1,), HALF)],  # it is taken away once
        [move(None, (1,), HALF), move(None, (-1,), HALF)],  # it goes nowhere
    ],
)
def test_noise_that_is_not_added_one_to_each_is_refused(moves):
    with pytest.raises(PlanError, match="noise must be added to whole numbers, one to each"):
        check_noise({"point": moves}, COINS)


def test_sums_lie_no_further_apart_than_noise_is_walked():
    check_noise({"one": added(0), "other": added(3)}, COINS)
    with pytest.raises(
        PlanError, match=r"lie 4 apart .* at 3: give coins=EnumeratedCoins\(tail=4\)"
    ):
        check_noise({"one": added(0), "other": added(4)}, COINS)


def test_without_noise_counts_may_lie_anywhere():
    outcomes = {name: [move((count,), (), Fraction(1))] for name, count in (("a", 0), ("b", 99))}
    check_noise(outcomes, COINS)
