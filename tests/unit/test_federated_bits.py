"""Bits of devices."""

from __future__ import annotations

from fractions import Fraction

import pytest

from panprivacy.devices.federated.bits import Reporting


def test_of_ever_so_many_other_devices_so_many_are_counted_that_their_variance_is_enough():
    reporting = Reporting(present=Fraction(3, 4), absent=Fraction(1, 4))
    assert reporting.others(10**7, (0, 0)).variance == pytest.approx(10**5, rel=1e-3)
    assert reporting.others(10**4, (0, 0)).variance == pytest.approx(9_999 * 3 / 16)
