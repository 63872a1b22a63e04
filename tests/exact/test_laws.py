"""Laws of views, which are compared whatever floats can hold."""

from __future__ import annotations

import pytest

from panprivacy.audit.exact.laws import _is_above


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        ((1, 10**400), (1, 10**399)),
        ((10**400, 1), (1, 3)),
        ((10**500, 10**500 + 1), (10**500, 10**500)),
        ((0, 1), (1, 10**400)),
        ((2, 1), (0, 0)),
    ],
)
def test_ratios_are_compared_whatever_floats_can_hold(larger, smaller):
    assert _is_above(larger, smaller)
    assert not _is_above(smaller, larger)
    assert not _is_above(larger, larger)
