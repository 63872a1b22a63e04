"""Two servers in this process, each with a store of its own, and reports for them."""

from __future__ import annotations

import contextlib
import functools
import json
from fractions import Fraction

import pytest

from panprivacy.devices.aggregator.helper import Helper
from panprivacy.devices.aggregator.helper_store import HelperStore
from panprivacy.devices.aggregator.leader import Leader
from panprivacy.devices.aggregator.leader_store import LeaderStore
from panprivacy.devices.aggregator.messages import UPLOAD
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.devices.aggregator.problems import PeerError
from panprivacy.devices.aggregator.reports import dap_report, upload
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.embedding import PAYLOAD_BYTES, embed
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.joint import payload_keys
from panprivacy.devices.federated.messages import Report
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.rows import entries
from panprivacy.devices.federated.shares import Sharing, embedded
from panprivacy.devices.federated.task import Task
from panprivacy.devices.federated.two_servers import TwoServers
from panprivacy.devices.vdaf import MODULUS, Prio3Count
from panprivacy.testing import SeededCoins

COINS = SeededCoins(25)
LEADER, HELPER = DecryptionKey.generate(COINS), DecryptionKey.generate(COINS)
VERIFY_KEY = COINS.secret(Prio3Count.VERIFY_KEY_BYTES)
QUIET = Promise(epsilon=Fraction(100))
"""With so little noise an estimate is the sum of the bits."""


def task_of(kind=None, collusion="none", batch=1):
    """A task for both servers."""
    keys = {"leader": bytes(LEADER.public).hex(), "helper": bytes(HELPER.public).hex()}
    servers = TwoServers(**keys, collusion=collusion, batch=batch)
    kind = kind or CountNonZero.planned(QUIET)
    return Task.new(kind, QUIET, horizon=1, key=servers, coins=COINS)


@functools.cache
def sharing(task):
    """What a device encrypts with."""
    return Sharing(task.context, task.key)


@functools.cache
def keys_of(task):
    """To which keys it does."""
    return payload_keys(task.key)


def histogram(most):
    return DeviceHistogram.planned(QUIET, most=most)


def honest(task, bits, name=None):
    """A report of a device that holds these bits."""
    row = sharing(task).encrypt(bits, COINS)
    body = Report(name or COINS.key(16), row).to_bytes(task)
    (found,) = decoded(UPLOAD, upload([body], task))
    return found


def sharded(task, bits):
    """The payloads of bits, as a list for each server."""
    prio = Prio3Count(task.context)
    leader, helper = prio.shard(bits, COINS.secret(len(bits) * prio.RANDOM_BYTES))
    return entries(leader, prio.LEADER_BYTES), entries(helper, prio.HELPER_BYTES)


def sent(task, leader, helper, name=None):
    """A report with any payloads."""
    keys = keys_of(task)
    rows = [
        key.encrypt_points(b"".join(point for one in each for point in points(one)), COINS)
        for key, each in zip(keys, (leader, helper), strict=True)
    ]
    return dap_report(name or COINS.key(16), *rows)


def points(payload):
    """A payload in two points; one that is too short has no hash."""
    if len(payload) in {Prio3Count.LEADER_BYTES, Prio3Count.HELPER_BYTES}:
        return [embedded(payload, len(payload))]
    return [embed(payload[:PAYLOAD_BYTES]), embed(payload[PAYLOAD_BYTES:])]


def lying(task, amount, place=0):
    """A report that adds an amount to one answer; the proof is that of a 0."""
    leader, helper = sharded(task, [0] * task.kind.answers)
    share = (int.from_bytes(leader[place][:8], "little") + amount) % MODULUS
    leader[place] = share.to_bytes(8, "little") + leader[place][8:]
    return sent(task, leader, helper)


def copied(task, report, name=None):
    """The ciphertexts of a report, re-randomised, under another id."""
    keys = keys_of(task)
    rows = [
        key.rerandomise(one.enc + one.payload, COINS)
        for key, one in zip(keys, (report.leader, report.helper), strict=True)
    ]
    return dap_report(name or COINS.key(16), *rows)


class DiedError(BaseException):
    """A process ends here."""


class World:
    """Both servers; either may die, and is begun again with its store."""

    def __init__(self, folder, task, urls=None):
        self._folder, self.task = folder, task
        self._urls = urls or {
            role: f"sqlite:///{folder}/{role}.sqlite" for role in ("leader", "helper")
        }
        self._stack = contextlib.ExitStack()
        self.messages = []
        self.helper = self.helper_store = self.leader = self.leader_store = None
        self.start_helper()
        self.start_leader()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stack.close()

    def start_helper(self):
        if self.helper_store is not None:
            self.helper_store.end()
        kept = self._urls["helper"], self.task, VERIFY_KEY, self._folder / "helper.mark"
        store = HelperStore(*kept)
        self._stack.callback(store.end)
        self.helper_store = store
        self.helper = Helper(self.task, HELPER, VERIFY_KEY, store)

    def start_leader(self):
        if self.leader_store is not None:
            self.leader_store.end()
        kept = self._urls["leader"], self.task, VERIFY_KEY, self._folder / "leader.mark"
        store = LeaderStore(*kept)
        self._stack.callback(store.end)
        self.leader_store = store
        self.leader = Leader(self.task, LEADER, VERIFY_KEY, store, self)

    # What the leader asks the helper

    def strip(self, name, body):
        return self._asked("strip", name, body)

    def verify(self, name, body):
        return self._asked("verify", name, body)

    def share(self, name, body):
        return self._asked("share", name, body)

    def _asked(self, what, name, body):
        self.step("request")
        try:
            answer = getattr(self.helper, what)(name, body)
        except DiedError:
            self.start_helper()
            raise PeerError("the helper died") from None
        self.messages.append((what, name, body, answer))
        self.step("response")
        return answer

    def step(self, what):
        """Something between two steps."""

    def run(self):
        """Verify all that wait."""
        while self.leader.advance():
            pass

    def answer(self):
        """How many reports came, and the sums of which the answer is made."""
        return sums(self.task, self.leader.release())


def sums(task, answer):
    """How many reports came, and the sums of which an answer is made, up to half of the reports.

    An estimate is cut to the number of reports, and these here have no noise.
    """
    found, how = json.loads(answer), task.kind.reporting
    return found["reports"], [
        round(one["value"] * how.keep_probability + found["reports"] * how.absent)
        for one in found["answers"]
    ]


@pytest.fixture
def world(tmp_path):
    """Makes worlds."""
    with contextlib.ExitStack() as stack:

        def made(task):
            folder = tmp_path / str(len(list(tmp_path.iterdir())))
            folder.mkdir()
            return stack.enter_context(World(folder, task))

        yield made
