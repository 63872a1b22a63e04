"""An accurate, locally pan-private count encrypts bits (Theorem 6.1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb

import pytest

from panprivacy.devices.federated.elgamal import CIPHERTEXT_BYTES, DecryptionKey
from panprivacy.devices.federated.encryption_from_counting import BitEncryption, Ciphertext
from panprivacy.errors import InputError, PlanError
from panprivacy.privacy.coins import SystemCoins

COINS = SystemCoins()
DEVICES = 29
KEPT = Fraction(19, 20)
"""The probability that a device reports its bit as it is."""


@dataclass
class RandomisedResponse:
    """The paper's Algorithm 3: a ciphertext of whether there was an event, noised at the end."""

    horizon: int = 4

    def initialize(self, devices, coins):
        key = DecryptionKey.generate(coins)
        self.key = key.public
        row = self.key.encrypt([0] * devices, coins)
        return key, [row[i : i + CIPHERTEXT_BYTES] for i in range(0, len(row), CIPHERTEXT_BYTES)]

    def tick(self, state, event, coins):
        fresh = self.key.encrypt([1], coins)
        return self.key.rerandomise(fresh if event else state, coins)

    def report(self, state, coins):
        if coins.bernoulli(KEPT, 1)[0]:
            return self.key.rerandomise(state, coins)
        less = self.key.add(self.key.encrypt([1], coins), self.key.scale(state, -1))
        return self.key.rerandomise(less, coins)

    def estimate(self, reports, server):
        ones = int(server.bits(b"".join(reports)).sum())
        return (ones - len(reports) * float(1 - KEPT)) / float(2 * KEPT - 1)


@pytest.mark.long
def test_bits_are_decrypted_after_any_number_of_re_randomisations():
    """Each of eight decryptions fails with probability below 1e-11."""
    wrong = sum(comb(DEVICES, k) * 19 ** (DEVICES - k) for k in range(15, DEVICES + 1))
    assert Fraction(wrong, 20**DEVICES) < Fraction(1, 10**11)
    scheme = BitEncryption(RandomisedResponse(), DEVICES)
    secret, public = scheme.keys(COINS)
    for bit in (False, True):
        ciphertext = scheme.encrypt(bit, public, COINS)
        for ticks in range(1, 5):
            assert ciphertext.ticks == ticks
            assert scheme.decrypt(ciphertext, secret, COINS) is bit
            if ticks < 4:
                ciphertext = scheme.rerandomise(ciphertext, COINS)


def test_the_public_key_and_all_ciphertexts_share_no_state():
    scheme = BitEncryption(RandomisedResponse(), 5)
    _, public = scheme.keys(COINS)
    one, other = (scheme.encrypt(bit, public, COINS) for bit in (False, True))
    rows = [public, *(row.states for row in (one, other, scheme.rerandomise(one, COINS)))]
    assert len({state for row in rows for state in row}) == 4 * 5


def test_after_the_last_tick_nothing_is_re_randomised():
    scheme = BitEncryption(RandomisedResponse(horizon=1), 3)
    secret, public = scheme.keys(COINS)
    ciphertext = scheme.encrypt(True, public, COINS)
    with pytest.raises(InputError, match="all 1 ticks are over"):
        scheme.rerandomise(ciphertext, COINS)
    with pytest.raises(InputError, match="ticks are over"):
        scheme.rerandomise(Ciphertext(2, ciphertext.states), COINS)
    assert scheme.decrypt(Ciphertext(1, ciphertext.states), secret, COINS) in {True, False}


def test_another_key_decrypts_nothing():
    scheme = BitEncryption(RandomisedResponse(), 3)
    _, public = scheme.keys(COINS)
    ciphertext = scheme.encrypt(True, public, COINS)
    with pytest.raises(InputError, match="another key"):
        scheme.decrypt(ciphertext, DecryptionKey.generate(COINS), COINS)


class Plain(RandomisedResponse):
    """Counts as well, and keeps the bit itself: what it is built on leaks, and so does it."""

    def initialize(self, devices, coins):
        return None, [b"\0"] * devices

    def tick(self, state, event, coins):
        return b"\1" if event else state

    def report(self, state, coins):
        return state

    def estimate(self, reports, server):
        return reports.count(b"\1")


def test_any_count_will_do_and_what_it_leaks_leaks():
    scheme = BitEncryption(Plain(), 3)
    secret, public = scheme.keys(COINS)
    for bit in (False, True):
        ciphertext = scheme.rerandomise(scheme.encrypt(bit, public, COINS), COINS)
        assert scheme.decrypt(ciphertext, secret, COINS) is bit
        assert ciphertext.states == (bytes([bit]),) * 3


@pytest.mark.parametrize("devices", [0, -1, 1.5, True])
def test_devices_are_counted_from_1(devices):
    with pytest.raises(PlanError, match="devices must be a whole number"):
        BitEncryption(Plain(), devices)


def test_only_a_bit_is_encrypted():
    with pytest.raises(PlanError, match="bit must be True or False"):
        BitEncryption(Plain(), 1).encrypt(2, (b"\0",), COINS)
