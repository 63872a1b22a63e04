"""What all kinds of reports have in common."""

from __future__ import annotations

from fractions import Fraction

from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.promise import Promise


def test_a_promise_is_kept_up_to_its_delta():
    kind = CountNonZero(epsilon_0=Fraction(1))
    delta = Fraction(kind.delta(Fraction(1, 2), 1))
    assert kind.keeps(Promise(epsilon=Fraction(1, 2), delta=delta))
    assert not kind.keeps(Promise(epsilon=Fraction(1, 2), delta=delta * Fraction(99, 100)))
