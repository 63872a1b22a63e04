"""Devices in Python and in JavaScript read what the other one wrote, and write the same bytes."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import panprivacy.devices.federated as fed
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.messages import DeviceState, Report
from panprivacy.devices.federated.shares import BothServers
from panprivacy.devices.federated.task import VERSION
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.errors import PlanError
from panprivacy.privacy.coins import SystemCoins
from panprivacy.testing import SeededCoins
from tests.clients.javascript import built, lives

LIVES = 200
"""Of each of the five tasks, in either direction."""
HORIZON = 4
MOST = 2
SIGNER = Ed25519PrivateKey.generate()
LEADER, HELPER = (DecryptionKey.generate(SystemCoins()) for _ in range(2))


def servers(collusion="one-server", batch=1):
    return TwoServers(
        leader=bytes(LEADER.public).hex(),
        helper=bytes(HELPER.public).hex(),
        collusion=collusion,
        batch=batch,
    )


def task_of(name, to, promise=None):
    promise = promise or fed.Promise(epsilon=Fraction(1), delta=Fraction(name == "mean", 10**6))
    plan = {
        "count": lambda: fed.CountNonZero.planned(promise),
        "histogram": lambda: fed.DeviceHistogram.planned(promise, most=MOST),
        "mean": lambda: fed.Mean.planned(promise, most=MOST),
    }[name]
    return fed.Task.new(plan(), promise, horizon=HORIZON, key=to)


ONE = bytes(LEADER.public)
TASKS = {
    "count": task_of("count", ONE),
    "histogram": task_of("histogram", ONE),
    "mean": task_of("mean", ONE),
    "count-two": task_of("count", servers()),
    "histogram-two": task_of("histogram", servers()),
}
each_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


def key_of(task):
    if isinstance(task.key, TwoServers):
        return BothServers(task.context, task.key, LEADER, HELPER)
    return LEADER


def asked(task, events, *, state=None, report=False, **more):
    signer = SIGNER.public_key().public_bytes_raw().hex()
    request = {"task": task.signed(SIGNER).hex(), "signer": signer, "events": events}
    return {**request, "state": state, "report": report, **more}


def row_after(task, events):
    """The plain values of a device."""
    number = sum(events)
    at_least = [int(number >= place) for place in range(MOST + 1)]
    exactly = [int(number == place) for place in range(MOST + 1)]
    name = task.kind.__struct_config__.tag
    rows = {"histogram": exactly + at_least, "mean": at_least[1:]}
    return rows.get(name, [int(number > 0)])


class Memory:
    """A storage in memory."""

    def __init__(self, state=None):
        self.state = state

    def read(self):
        return self.state

    def write(self, state):
        self.state = state


def python_life(task, events, *, state=None, coins=None):
    """A device that goes on in Python, and its states."""
    storage = Memory(state)
    device, states = fed.Device(task, storage, coins=coins), []
    states.append(storage.state)
    for event in events:
        device.observe(event)
        states.append(storage.state)
    return device, states


def random_lives():
    for _ in range(LIVES):
        events = [random.random() < 0.4 for _ in range(HORIZON)]
        yield events, random.randint(0, HORIZON)


def check_states(task, states, all_events):
    rows = b"".join(DeviceState.read(state).row for state in states)
    found = key_of(task).bits(rows).tolist()
    assert found == [bit for events in all_events for bit in row_after(task, events)]


def check_reports(task, reports):
    read = [Report.read(report, task) for report in reports]
    assert len({report.name for report in read}) == LIVES
    row = b"".join(report.row for report in read)
    if task.kind.adds:
        bound = 20 * int(task.kind.variance) ** 0.5
        assert abs(task.kind.read(row, LEADER, 1)).max() < bound
        assert len(set(LEADER.marked_sums(row, -(10**4), 10**4).tolist())) > 2
    else:
        assert set(key_of(task).marked_bits(row).tolist()) == {0, 1}


@pytest.mark.long
@each_task
def test_python_goes_on_from_what_javascript_wrote(task):
    planned = list(random_lives())
    found = lives([asked(task, events[:split]) for events, split in planned])
    assert [one.get("error") for one in found] == [None] * LIVES
    ends, reports = [], []
    for (events, split), answer in zip(planned, found, strict=True):
        state = bytes.fromhex(answer["states"][-1])
        device, states = python_life(task, events[split:], state=state)
        ends.append(states[-1])
        reports.append(device.report())
    check_states(task, ends, [events for events, _ in planned])
    check_reports(task, reports)


@pytest.mark.long
@each_task
def test_javascript_goes_on_from_what_python_wrote(task):
    planned = list(random_lives())
    begun = [python_life(task, events[:split])[1][-1].hex() for events, split in planned]
    pairs = zip(planned, begun, strict=True)
    found = lives(
        [asked(task, events[split:], state=state, report=True) for (events, split), state in pairs]
    )
    assert [one.get("error") for one in found] == [None] * LIVES
    ends = [bytes.fromhex(answer["states"][-1]) for answer in found]
    check_states(task, ends, [events for events, _ in planned])
    check_reports(task, [bytes.fromhex(answer["report"]) for answer in found])


@pytest.mark.long
@each_task
def test_both_write_the_same_bytes_from_the_same_coins(task):
    planned = [(seed, events) for seed, (events, _) in enumerate(random_lives())][:20]
    found = lives([asked(task, events, report=True, seed=seed) for seed, events in planned])
    for (seed, events), answer in zip(planned, found, strict=True):
        device, states = python_life(task, events, coins=SeededCoins(seed))
        assert answer["states"] == [state.hex() for state in states]
        assert answer["report"] == device.report().hex()


@pytest.mark.long
def test_both_refuse_the_noise_that_is_not_enough_among_many():
    promise = fed.Promise(epsilon=Fraction(1), delta=Fraction(1, 10**6), devices=1_000)
    for name in ("count", "histogram", "mean"):
        task = task_of(name, ONE, promise)
        (answer,) = lives([asked(task, [True])])
        assert "error" not in answer, name
        document = task.canonical().decode()
        more = document.replace('"devices":1000', '"devices":900')
        assert more != document
        with pytest.raises(PlanError, match="does not keep its promise"):
            fed.Task.new(
                task.kind,
                fed.Promise(epsilon=promise.epsilon, delta=promise.delta, devices=900),
                horizon=HORIZON,
                key=ONE,
            )
        file = signed_by_hand(more)
        (answer,) = lives([{**asked(task, []), "task": file.hex()}])
        assert "the noise of the task does not keep its promise" in answer["error"], name


def signed_by_hand(document):
    """A file with a task that Python does not make."""
    signature = SIGNER.sign(b"panprivacy task\n" + document.encode()).hex()
    return f'{{"task":{document},"signature":"{signature}"}}'.encode()


def test_the_client_has_the_version_of_the_format():
    version = (built() / "package.json").read_text().split('"version": "')[1]
    assert version.split(".")[0] == str(VERSION)
