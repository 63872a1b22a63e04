"""What the audit checks, and what it says of it."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import pytest

from panprivacy.audit.exact import Loss
from panprivacy.audit.subject import ADJACENCIES, Row
from tests.exact.test_products import subjects


def known(epsilon):
    """A loss that an audit found, made up."""
    larger = Fraction(math.exp(epsilon))
    return Loss(epsilon, [], [], 0, (), (Fraction(1), larger), Fraction(round(epsilon * 10), 100))


@pytest.mark.parametrize(
    ("losses", "holds"),
    [
        ((0.9, 1.9, 0.9), True),
        ((1.1, 1.9, 0.9), False),
        ((0.9, 2.1, 0.9), False),
        ((0.9, 1.9, 1.1), False),
    ],
)
def test_a_claim_is_of_every_adjacency(losses, holds):
    subject = subjects(1)["density"]
    row = Row(subject, dict(zip(ADJACENCIES, map(known, losses), strict=True)))
    assert row.holds is row.is_right is holds
    assert row.set_aside == Fraction(round(max(losses) * 10), 100)
    control = dataclasses.replace(subject, kind="control")
    assert Row(control, row.losses).is_right is not holds
