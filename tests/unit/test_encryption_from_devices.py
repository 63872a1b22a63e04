"""Devices encrypt bits: Theorem 6.1 on the ones that ship."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from panprivacy.devices.federated.collector import Collector
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.encryption_from_counting import BitEncryption
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import Task
from panprivacy.privacy.coins import SystemCoins

COINS = SystemCoins()
DEVICES = 29


@dataclass
class Memory:
    """A storage of one state."""

    state: bytes | None = None

    def read(self):
        return self.state

    def write(self, state):
        self.state = state


@dataclass
class OnDevices:
    """Our count, one state a device; reports are wrong once in 55 times."""

    horizon: int = 3

    def initialize(self, devices, coins):
        key = DecryptionKey.generate(coins)
        promise = Promise(epsilon=Fraction(4))
        self.key, kind = key.public, CountNonZero.planned(promise)
        self.task = Task.new(kind, promise, horizon=self.horizon, key=bytes(self.key))
        return key, [self.opened(Memory(), coins)[1].state for _ in range(devices)]

    def opened(self, storage, coins):
        return Device(self.task, storage, encryption=self.key, coins=coins), storage

    def tick(self, state, event, coins):
        device, storage = self.opened(Memory(state), coins)
        device.observe(event)
        return storage.state

    def report(self, state, coins):
        return self.opened(Memory(state), coins)[0].report()

    def estimate(self, reports, server):
        collector = Collector(self.task, server)
        for report in reports:
            collector.add(report)
        (release,) = collector.release().values()
        return release.value


def test_devices_encrypt_bits():
    """Each of four decryptions fails with probability below 1e-17."""
    scheme = BitEncryption(OnDevices(), DEVICES)
    secret, public = scheme.keys(COINS)
    for bit in (False, True):
        fresh = scheme.encrypt(bit, public, COINS)
        again = scheme.rerandomise(fresh, COINS)
        assert len({*public, *fresh.states, *again.states}) == 3 * DEVICES
        for ciphertext in (fresh, again):
            assert scheme.decrypt(ciphertext, secret, COINS) is bit
