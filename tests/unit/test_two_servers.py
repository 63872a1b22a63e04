"""What a task says of two servers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import PlanError

GOOD = {"leader": "02" * 33, "helper": "03" * 33, "collusion": "none", "batch": 10}


def test_keys_are_joint_where_one_server_may_collude():
    assert not TwoServers(**GOOD).joint
    assert TwoServers(**{**GOOD, "collusion": "one-server"}).joint


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"leader": "02" * 32}, "leader must be 33 bytes in lower-case hexadecimal"),
        ({"helper": "0G" * 33}, "helper must be 33 bytes in lower-case hexadecimal"),
        ({"helper": GOOD["leader"]}, "both servers have the same key: each has to make its own"),
        ({"collusion": "both"}, "collusion must be one of none, one-server"),
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"batch": 10_000_001}, "batch must be at most 10,000,000"),
    ],
)
def test_what_cannot_be_is_refused(wrong, says):
    with pytest.raises(PlanError, match=says):
        TwoServers(**{**GOOD, **wrong})


def test_a_batch_has_all_devices_of_the_promise():
    promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 100), devices=10)
    kind = DeviceHistogram(most=2, epsilon_0=Fraction(1))
    TwoServers(**GOOD).check(kind, promise)
    with pytest.raises(PlanError, match="batch must be at least the 10 devices of the promise"):
        TwoServers(**{**GOOD, "batch": 9}).check(kind, promise)


def test_what_adds_under_encryption_cannot_be_shared():
    promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 100))
    with pytest.raises(PlanError, match="a mean needs values that can be added under encryption"):
        TwoServers(**GOOD).check(Mean.planned(promise, most=1), promise)
