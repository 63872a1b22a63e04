"""Bits in shares for two servers: what each opens, and what a device holds and sends."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import panprivacy as pp
from panprivacy.audit.ideal import MemoryStorage
from panprivacy.devices.federated.collector import Collector
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device, encryption_of
from panprivacy.devices.federated.elgamal import CIPHERTEXT_BYTES, DecryptionKey, EncryptionKey
from panprivacy.devices.federated.embedding import embed
from panprivacy.devices.federated.group import ORDER
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.joint import _factor, own_key, payload_keys
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.messages import DeviceState, Report, report_bytes
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.rows import entries
from panprivacy.devices.federated.shares import (
    SERVER_BYTES,
    BothServers,
    Sharing,
    open_helper,
    open_leader,
    split,
)
from panprivacy.devices.federated.simulation import reported
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.devices.vdaf import MODULUS, Prio3Count, flp
from panprivacy.testing import SeededCoins

COINS = SeededCoins(1)
LEADER, HELPER, STRANGER = (DecryptionKey.generate(COINS) for _ in range(3))
ONE = Promise(epsilon=Fraction(1))
CONTEXT = b"a test"
EACH = pytest.mark.parametrize("collusion", ["none", "one-server"])
KINDS = [CountNonZero.planned(ONE), DeviceHistogram.planned(ONE, most=2)]


def servers(collusion="none", leader=LEADER, helper=HELPER, batch=1):
    keys = {"leader": bytes(leader.public).hex(), "helper": bytes(helper.public).hex()}
    return TwoServers(**keys, collusion=collusion, batch=batch)


def both(collusion, context=CONTEXT):
    return BothServers(context, servers(collusion), LEADER, HELPER)


def payloads(row, collusion):
    """What each server opens of a row, as they do it."""
    first, second = split(row)
    leader, helper = (own_key(servers(collusion), key) for key in (LEADER, HELPER))
    if collusion == "one-server":
        first, second = helper.strip(first), leader.strip(second)
    return open_leader(first, leader), open_helper(second, helper)


@EACH
def test_what_is_encrypted_is_what_the_servers_find(collusion):
    bits = [0, 1, 1, 0, 1]
    key = both(collusion)
    row = key.public.encrypt(bits, COINS)
    assert len(row) == len(bits) * key.public.entry_bytes == len(bits) * 4 * CIPHERTEXT_BYTES
    assert key.bits(row).tolist() == bits
    again = key.public.rerandomise(row, COINS)
    assert not set(entries(again, 33)) & set(entries(row, 33)), "every point is fresh"
    assert key.bits(again).tolist() == bits
    assert [one.payloads for one in payloads(again, collusion)] == [
        one.payloads for one in payloads(row, collusion)
    ]


@EACH
def test_what_is_opened_are_the_shares_of_the_draft(collusion):
    """The same random bytes give the shares that `Prio3Count` gives, which replays its vectors."""
    random = SeededCoins(7).secret(2 * Prio3Count.RANDOM_BYTES)
    row = Sharing(CONTEXT, servers(collusion)).encrypt([1, 0], SeededCoins(7))
    leader, helper = payloads(row, collusion)
    assert (leader.payloads, helper.payloads) == Prio3Count(CONTEXT).shard([1, 0], random)
    assert leader.readable.all()
    assert helper.readable.all()


@EACH
def test_no_server_opens_anything_by_itself_that_is_the_others(collusion):
    first, second = split(both(collusion).public.encrypt([0, 1], COINS))
    leader, helper = (own_key(servers(collusion), key) for key in (LEADER, HELPER))
    closed = [open_leader(first, helper), open_helper(second, leader)]
    if collusion == "one-server":
        closed += [open_leader(first, leader), open_helper(second, helper)]
    for opened in closed:
        assert not opened.readable.any()
        assert not any(opened.payloads)


def test_a_layer_comes_off_once():
    """Whoever strips what was stripped, or opens with the key without its factor, finds nothing."""
    first, _ = split(both("one-server").public.encrypt([1], COINS))
    leader, helper = (own_key(servers("one-server"), key) for key in (LEADER, HELPER))
    stripped = helper.strip(first)
    assert open_leader(stripped, leader).readable.all()
    assert not open_leader(helper.strip(stripped), leader).readable.any()
    assert not open_leader(stripped, LEADER).readable.any()


def test_the_second_to_choose_cannot_choose_the_joint_key():
    """With the plain sum it could: the joint key would be one whose secret it has."""
    wanted = DecryptionKey.generate(COINS)
    rogue = wanted.public.plus(LEADER.public.times(-1))
    assert rogue.plus(LEADER.public) == wanted.public
    names = {"leader": bytes(LEADER.public).hex(), "helper": bytes(rogue).hex()}
    chosen = TwoServers(**names, collusion="one-server", batch=1)
    row, _ = split(Sharing(CONTEXT, chosen).encrypt([1], COINS))
    for factor in (1, *(_factor(chosen, name) for name in names.values())):
        assert not open_leader(row, wanted.times(factor)).readable.any()


def test_the_factors_depend_on_both_keys_and_on_whose_they_are():
    pairs = [(LEADER, HELPER), (LEADER, STRANGER), (STRANGER, HELPER), (HELPER, LEADER)]
    joints = [payload_keys(servers("one-server", *pair))[0] for pair in pairs]
    assert len(set(joints)) == 4
    owns = [bytes(own_key(servers("one-server", *pair), pair[0])) for pair in pairs]
    assert len(set(owns)) == 4


def test_a_joint_key_is_the_sum_of_what_both_open_with():
    of_both = servers("one-server")
    leader, helper = own_key(of_both, LEADER), own_key(of_both, HELPER)
    secret = (int.from_bytes(bytes(leader), "big") + int.from_bytes(bytes(helper), "big")) % ORDER
    whole = DecryptionKey.from_bytes(secret.to_bytes(32, "big"))
    assert payload_keys(of_both) == (whole.public, whole.public)
    assert leader.public.plus(helper.public) == whole.public
    with pytest.raises(pp.PlanError, match="not that of a server"):
        own_key(of_both, STRANGER)
    with pytest.raises(pp.InputError, match="cancel each other out"):
        LEADER.public.plus(LEADER.public.times(-1))


# Rows that are none


def ciphertexts_of(*points):
    return LEADER.public.encrypt_points(b"".join(points), COINS)


@pytest.mark.parametrize(
    "entry",
    [
        ciphertexts_of(embed(bytes(31)), embed(bytes(17))),
        ciphertexts_of(embed(bytes(31)), embed(bytes(31))),
        LEADER.public.encrypt([0, 0], COINS),
        LEADER.public.encrypt([5, 5], COINS),
        HELPER.public.encrypt([0, 0], COINS),
    ],
    ids=["without a hash", "with a wrong one", "neutral", "no payload", "another key"],
)
def test_what_is_no_share_is_told_apart_and_loses_no_other(entry):
    good, _ = split(Sharing(CONTEXT, servers()).encrypt([1], COINS))
    found = open_leader(good + entry + good, LEADER)
    assert found.readable.tolist() == [True, False, True]
    share = open_leader(good, LEADER).payloads
    assert found.payloads == share + bytes(48) + share


def test_parts_of_two_shares_put_together_are_none():
    """A server that verified them would answer about a part that it has answered about before."""
    row = Sharing(CONTEXT, servers()).encrypt([1, 1], COINS)
    for half, open_half, key in zip(
        split(row), (open_leader, open_helper), (LEADER, HELPER), strict=True
    ):
        a, b, c, d = entries(half, CIPHERTEXT_BYTES)
        for mixed in (a + d, c + b, b + a, a + a, b + b):
            assert not open_half(mixed, key).readable.any()
        assert open_half(a + b + c + d, key).readable.all()


def test_a_layer_that_is_all_there_is_comes_off_without_an_error():
    """A crafted ciphertext whose rest would be neutral, which has no encoding."""
    leader, helper = (own_key(servers("one-server"), key) for key in (LEADER, HELPER))
    good, _ = split(both("one-server").public.encrypt([1], COINS))
    row = helper.strip(good + helper.public.encrypt([0, 0], COINS) + good)
    assert open_leader(row, leader).readable.tolist() == [True, False, True]


@EACH
def test_what_is_no_row_is_refused_in_one_line(collusion):
    sharing, row = both(collusion).public, both(collusion).public.encrypt([1, 0], COINS)
    damaged = row[: 3 * CIPHERTEXT_BYTES] + b"\x05" + row[3 * CIPHERTEXT_BYTES + 1 :]
    for wrong in (row[:-1], row[CIPHERTEXT_BYTES:], damaged, damaged[SERVER_BYTES:] + row[:132]):
        for work in (sharing.check, lambda wrong: sharing.rerandomise(wrong, COINS)):
            with pytest.raises(pp.InputError) as caught:
                work(wrong)
            assert "\n" not in str(caught.value)
    with pytest.raises(pp.InputError, match="132 for each bit"):
        open_leader(row[:-1], LEADER)
    sharing.check(row)


@EACH
def test_wrong_proofs_and_shares_of_other_tasks_are_no_bits(collusion):
    key, other = both(collusion), both(collusion, b"another")
    one, two = (key.public.encrypt([1], COINS) for _ in range(2))
    mixed = one[:SERVER_BYTES] + two[SERVER_BYTES:]
    for row in (mixed, other.public.encrypt([1], COINS)):
        with pytest.raises(pp.InputError, match=r"row 2 .*not those of a bit"):
            key.bits(one + row)
        assert key.marked_bits(one + row + two).tolist() == [1, -1, 1]
    with pytest.raises(pp.InputError, match="0 or 1"):
        key.public.encrypt([2], COINS)


# Tasks and devices


def task_of(kind, collusion="none", horizon=3, promise=ONE):
    return Task.new(kind, promise, horizon=horizon, key=servers(collusion))


class Keeping(SeededCoins):
    """Reports every bit as it is."""

    def bernoulli(self, probability, size):
        return np.ones(size, np.uint8)


@pytest.mark.parametrize("kind", KINDS, ids=["count", "histogram"])
@EACH
def test_devices_report_to_two_servers(kind, collusion):
    task, storage = task_of(kind, collusion), MemoryStorage()
    for tick in range(3):
        device = Device(task, storage, coins=Keeping(tick))  # from its state, each time
        device.observe(tick == 1)
    report = device.report()
    assert len(report) == report_bytes(task)
    found = Report.read(report, task)
    assert DeviceState.read(storage.state).name == found.name
    value = BothServers(task.context, task.key, LEADER, HELPER).bits(found.row)
    assert value.tolist() == ([1] if isinstance(kind, CountNonZero) else [0, 1, 0])


def test_a_task_says_who_the_servers_are():
    task, signer = task_of(KINDS[1], "one-server"), Ed25519PrivateKey.generate()
    again = Task.read(task.signed(signer), signer.public_key().public_bytes_raw())
    assert again == task
    assert again.digest == task.digest
    assert again.context == b"dap-17" + task.digest
    assert again.digest != task_of(KINDS[1], "none").digest
    assert isinstance(encryption_of(again), Sharing)


def test_two_servers_are_not_asked_for_what_they_cannot_do():
    rough = Promise(epsilon=Fraction(1), delta=Fraction(1, 1000))
    with pytest.raises(pp.PlanError, match="a mean needs values that can be added"):
        task_of(Mean.planned(rough, most=3), promise=rough)
    many = Promise(epsilon=Fraction(1), delta=Fraction(1, 1000), devices=100)
    with pytest.raises(pp.PlanError, match="at least the 100 devices"):
        task_of(CountNonZero.planned(many), promise=many)
    with pytest.raises(pp.PlanError, match="same key"):
        servers(helper=LEADER)
    with pytest.raises(pp.PlanError, match="collusion must be one of none, one-server"):
        servers("both")
    with pytest.raises(pp.PlanError, match="batch"):
        servers(batch=0)
    for name in ("leader", "helper"):
        fields = {"leader": "02" * 33, "helper": "03" * 33, name: "2" * 66 + "x"}
        with pytest.raises(pp.PlanError, match=f"{name} must be 33 bytes"):
            TwoServers(**fields, collusion="none", batch=1)
    no_point = TwoServers(leader="02" * 33, helper="05" * 33, collusion="none", batch=1)
    with pytest.raises(pp.InputError, match="no point"):
        Sharing(CONTEXT, no_point)


def test_no_server_answers_alone():
    with pytest.raises(pp.PlanError, match="for two servers, which answer together"):
        Collector(task_of(KINDS[0]), LEADER)


def test_reports_without_ticks_are_reports():
    sure = Promise(epsilon=Fraction(40))
    task = task_of(CountNonZero.planned(sure), promise=sure)
    events = np.array([0, 3, 1, 0])
    rows = [Report.read(report, task).row for report in reported(task, events, COINS)]
    found = BothServers(task.context, task.key, LEADER, HELPER).bits(b"".join(rows))
    assert found.tolist() == [0, 1, 1, 0]
    assert EncryptionKey(bytes.fromhex(task.key.leader)) == LEADER.public


# What somebody sees who has the states of all ticks, and more


STREAM = [False, True, False, False, True, False]


def states(collusion):
    """The rows of a device after each tick."""
    task, storage = task_of(KINDS[0], collusion, len(STREAM)), MemoryStorage()
    device, seen = Device(task, storage), []
    for event in STREAM:
        device.observe(event)
        seen.append(DeviceState.read(storage.state).row)
    return seen


def changed(shares):
    """Before which ticks the share became another one."""
    return [one.payloads != other.payloads for one, other in pairwise(shares)]


def test_whoever_has_the_key_of_a_server_sees_events_if_each_share_is_encrypted_to_one():
    """The reason for the joint key: a fresh share is another one."""
    for place, (open_half, key) in enumerate([(open_leader, LEADER), (open_helper, HELPER)]):
        shares = [open_half(split(row)[place], key) for row in states("none")]
        assert all(share.readable.all() for share in shares)
        assert changed(shares) == STREAM[1:]


def test_whoever_has_the_key_of_a_server_opens_nothing_of_the_joint_key():
    for place, (open_half, key) in enumerate([(open_leader, LEADER), (open_helper, HELPER)]):
        for one in (key, own_key(servers("one-server"), key)):
            shares = [open_half(split(row)[place], one) for row in states("one-server")]
            assert not any(share.readable.any() for share in shares)


def test_whoever_makes_a_server_strip_states_sees_events():
    """What is not promised: rows of a device that come in without it."""
    leader, helper = (own_key(servers("one-server"), key) for key in (LEADER, HELPER))
    shares = [open_leader(helper.strip(split(row)[0]), leader) for row in states("one-server")]
    assert changed(shares) == STREAM[1:]


@pytest.mark.parametrize("bit", [0, 1])
def test_a_share_that_is_verified_in_two_tasks_tells_the_bit(bit):
    """So the keys of servers are for one task: the helper knows its seed and both contexts."""
    verify_key, nonce = COINS.key(32), COINS.key(16)
    one, other = Prio3Count(CONTEXT), Prio3Count(b"another task")
    leader, helper = one.shard([bit], COINS.secret(Prio3Count.RANDOM_BYTES))
    values = []
    for prio in (one, other):
        # the sharing of the first task, for which the seed is expanded, at the point of each
        (x,) = prio._elements(5, [verify_key], [b"\1" + nonce], 1)[0]
        mine = one._expanded([helper], 1)
        sent = np.frombuffer(prio.verify_leader(verify_key, nonce, leader).verifiers, "<u8")
        own = flp.query(mine[:, 0], mine[:, 1:], np.array([x]))[0]
        values.append(((int(sent[1]) + int(own[1])) % MODULUS, int(x)))
    (here, x), (there, y) = values
    slope = (here - there) * pow(x - y, -1, MODULUS)
    assert (here - slope * (x + 1)) % MODULUS == bit, "the line at -1"
