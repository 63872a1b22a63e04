"""Shares of which quantiles are asked."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.statistics.quantiles import MOST_QUANTILES, read_shares


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        ("0.5,0.9", (0.5, 0.9)),
        (0.5, (0.5,)),
        ([0, 1], (0.0, 1.0)),
        (np.array([0.25]), (0.25,)),
        (["0.5", 0.5], (0.5,)),
        ([Decimal("0.5"), Decimal("0.95")], (0.5, 0.95)),  # as a configuration has them
    ],
)
def test_a_share_or_several_are_read(given, shares):
    assert read_shares("quantile", given) == shares


MANY = [share / 2_000 for share in range(MOST_QUANTILES + 1)]


@pytest.mark.parametrize(
    "given", ["", "x", "0.5,", -0.1, 1.1, math.nan, None, True, [None], b"1", {"a": 1}, MANY]
)
def test_what_is_no_share_is_refused(given):
    with pytest.raises(pp.PlanError, match="quantile=: name a share from 0 to 1"):
        read_shares("quantile", given)
