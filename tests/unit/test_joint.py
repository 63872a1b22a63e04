"""To which keys shares are encrypted, and by which they are opened."""

from __future__ import annotations

import pytest

from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.joint import own_key, payload_keys
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import PlanError
from panprivacy.testing import SeededCoins

LEADER, HELPER, OTHER = (DecryptionKey.generate(SeededCoins(seed)) for seed in (1, 2, 3))


def servers(collusion, leader=LEADER, helper=HELPER):
    names = {"leader": bytes(leader.public).hex(), "helper": bytes(helper.public).hex()}
    return TwoServers(**names, collusion=collusion, batch=1)


def test_without_collusion_each_has_its_own_key():
    told = servers("none")
    assert [bytes(key) for key in payload_keys(told)] == [
        bytes(LEADER.public),
        bytes(HELPER.public),
    ]
    assert own_key(told, LEADER) is LEADER


def test_a_joint_key_is_the_sum_of_both_and_neither_is_a_part_of_it_as_it_is():
    told = servers("one-server")
    one, other = payload_keys(told)
    assert bytes(one) == bytes(other)
    parts = [own_key(told, key).public for key in (LEADER, HELPER)]
    assert bytes(one) == bytes(parts[0].plus(parts[1]))
    plain = LEADER.public.plus(HELPER.public)
    assert bytes(one) not in {bytes(plain), bytes(LEADER.public), bytes(HELPER.public)}


def test_the_factor_of_a_key_depends_on_both_and_on_their_order():
    joint = {
        bytes(payload_keys(servers("one-server", *pair))[0])
        for pair in ((LEADER, HELPER), (HELPER, LEADER), (LEADER, OTHER))
    }
    assert len(joint) == 3


@pytest.mark.parametrize("collusion", ["none", "one-server"])
def test_a_key_of_neither_server_opens_nothing(collusion):
    with pytest.raises(PlanError, match="the secret key is not that of a server of the task"):
        own_key(servers(collusion), OTHER)
