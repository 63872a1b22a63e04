"""Coins that are enumerated."""

from __future__ import annotations

import pytest

from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from tests.exact.test_loss import bits


def test_noise_that_is_walked_less_far_than_counts_lie_apart_is_refused():
    with pytest.raises(ValueError, match=r"EnumeratedCoins\(tail=2\)"):
        exact_loss(
            lambda coins: bits(coins, 2),
            [[0], RELEASE],
            [[], RELEASE],
            coins=EnumeratedCoins(tail=1),
        )


@pytest.mark.parametrize("tail", [4, 6, 9])
def test_the_loss_does_not_depend_on_the_tail(tail):
    stream, neighbour = [[0], RELEASE, [0]], [[], RELEASE, []]
    loss = exact_loss(bits, stream, neighbour, coins=EnumeratedCoins(tail=tail))
    assert float(loss) == pytest.approx(float(exact_loss(bits, stream, neighbour)), rel=1e-12)
