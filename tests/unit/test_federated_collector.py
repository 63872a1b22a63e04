"""A collector: what it takes, what it refuses, and what it answers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy import SystemCoins
from panprivacy.audit.ideal import IdealEncryption, MemoryStorage
from panprivacy.devices.federated.collector import Collector, ReplayError
from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.device import Device
from panprivacy.devices.federated.distributions import binomial
from panprivacy.devices.federated.elgamal import DecryptionKey
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.mean import Mean
from panprivacy.devices.federated.messages import Report, report_bytes
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import Task
from panprivacy.testing import SeededCoins
from tests import refusals

KEY = DecryptionKey.generate(SystemCoins())
ONE = Promise(epsilon=Fraction(1))
COUNT = CountNonZero.planned(ONE)
WITH_DELTA = Promise(epsilon=Fraction(1), delta=Fraction(1, 1000))
IDENTITY = b"\x00" * 33


def task_of(kind=COUNT, promise=ONE, key=KEY):
    return Task.new(kind, promise, horizon=1, key=bytes(key.public))


TASK = task_of()


def report(task=TASK, event=True, **given):
    device = Device(task, MemoryStorage(), **given)
    device.observe(event)
    return device.report()


GOOD = report()
FRONT = len(GOOD) - 66


def refused(collector, data, reason):
    before = len(collector)
    with pytest.raises(pp.InputError, match=reason) as caught:
        collector.add(data)
    assert len(collector) == before
    assert "\n" not in str(caught.value)


OFF_CURVE = b"\x02" + b"\xff" * 32

BROKEN = {
    "nothing": (b"", "no report"),
    "another magic": (b"PPDS" + GOOD[4:], "no report"),
    "another version": (GOOD[:4] + b"\x07" + GOOD[5:], "version 7"),
    "another task": (GOOD[:5] + bytes(32) + GOOD[37:], "another task"),
    "truncated": (GOOD[:-1], "too long or too short"),
    "oversized": (GOOD + b"\0", "too long or too short"),
    "one more ciphertext": (GOOD + GOOD[-66:], "too long or too short"),
    "off the curve": (GOOD[:FRONT] + OFF_CURVE + GOOD[FRONT + 33 :], "no point"),
    "off the curve at the end": (GOOD[:-33] + OFF_CURVE, "no point"),
    "the identity": (GOOD[:FRONT] + IDENTITY + GOOD[FRONT + 33 :], "no point"),
    "an uncompressed point": (GOOD[:FRONT] + b"\x04" + GOOD[FRONT + 1 :], "no point"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_report_is_refused_and_disturbs_nothing(name):
    collector = Collector(TASK, KEY)
    collector.add(report())
    refused(collector, *BROKEN[name])
    collector.add(report())
    assert len(collector) == 2
    assert collector.release()


@settings(max_examples=150)
@given(data=st.binary(max_size=3 * len(GOOD)))
def test_any_bytes_are_refused_in_one_line(data):
    refused(Collector(TASK, KEY), data, ".")


@settings(max_examples=100)
@given(place=st.integers(0, len(GOOD) - 1), flip=st.integers(1, 255))
def test_a_changed_report_is_refused_or_counted_as_another(place, flip):
    changed = bytearray(GOOD)
    changed[place] ^= flip
    collector = Collector(TASK, KEY)
    try:
        collector.add(bytes(changed))
    except pp.InputError:
        assert len(collector) == 0
    else:
        assert place >= FRONT - 16
        assert collector.release()


def test_a_report_counts_once():
    collector = Collector(TASK, KEY)
    collector.add(GOOD)
    with pytest.raises(ReplayError):
        collector.add(GOOD)
    other = report()
    refused(collector, GOOD[:FRONT] + other[FRONT:], "id or the ciphertexts")
    refused(collector, GOOD[: FRONT - 16] + bytes(16) + GOOD[FRONT:], "id or the ciphertexts")
    assert len(collector) == 1


def test_a_report_says_nothing_of_the_device():
    first, second = report(), report()
    assert first[: FRONT - 16] == second[: FRONT - 16]
    assert first[FRONT - 16 : FRONT] != second[FRONT - 16 : FRONT]
    assert len(first) == len(second) == report_bytes(TASK)


def test_an_answer_closes_the_batch_and_stays_the_same():
    collector = Collector(TASK, KEY)
    collector.add(GOOD)
    first = collector.release()
    with pytest.raises(pp.PanPrivacyError, match="the answer was given"):
        collector.add(report())
    again = collector.release()
    assert dict(first) == dict(again)
    wider = collector.release(confidence=0.999)
    assert wider.counts == first.counts
    with refusals.confidence():
        collector.release(confidence=1)


def test_an_answer_waits_for_the_devices_of_the_promise():
    promise = Promise(epsilon=Fraction(1), delta=Fraction(1, 100), devices=3)
    task = task_of(CountNonZero.planned(promise), promise)
    collector = Collector(task, KEY)
    for _ in range(2):
        collector.add(report(task))
    with pytest.raises(pp.PanPrivacyError, match=r"2 reports have come.*from 3 on"):
        collector.release()
    collector.add(report(task))
    (answer,) = collector.release().values()
    assert answer.epsilon == 1
    assert "delta 0.01" in collector.guarantee
    assert "3 devices" in collector.guarantee


def test_nothing_tells_whether_a_report_can_be_decrypted():
    """Twice a ciphertext of 1 is one of 2: who found it on a device would learn the bit."""
    collector = Collector(TASK, KEY)
    for value in (2, 10**6, -1, 0, 1):
        row = KEY.public.encrypt([value], SystemCoins())
        collector.add(Report(SystemCoins().key(16), row).to_bytes(TASK))
    foreign = DecryptionKey.generate(SystemCoins()).public.encrypt([1], SystemCoins())
    collector.add(Report(SystemCoins().key(16), foreign).to_bytes(TASK))
    assert len(collector) == 6
    assert collector.release().counts == (1,)


def test_a_number_out_of_range_counts_as_0_in_a_mean():
    task = task_of(Mean.planned(WITH_DELTA, most=2), WITH_DELTA)
    collector = Collector(task, KEY)
    for value in (10**9, 2):
        row = KEY.public.encrypt([value], SystemCoins())
        collector.add(Report(SystemCoins().key(16), row).to_bytes(task))
    assert collector.release().counts == (2,)


# What devices send has the law that the kind says


KINDS = [
    (COUNT, ONE),
    (DeviceHistogram.planned(ONE, most=2), ONE),
    (Mean.planned(WITH_DELTA, most=2), WITH_DELTA),
]


@pytest.mark.parametrize(("kind", "promise"), KINDS, ids=["count", "histogram", "mean"])
@pytest.mark.parametrize("events", [0, 1])
def test_reports_have_the_plain_law(kind, promise, events, monkeypatch):
    """500 reports by either way: means that differ by 6 standard deviations come once in 1e8.

    A law that keeps bits a third less often is told apart: seeds are fixed, so neither can fail by
    chance.
    """
    monkeypatch.setattr(
        "panprivacy.devices.federated.device.wipe_traces", lambda: None
    )  # it takes long
    key, coins, runs = IdealEncryption(), SeededCoins(3), 500
    task = Task.new(kind, promise, horizon=1, key=bytes(33))
    rows = [
        Report.read(report(task, bool(events), encryption=key, coins=coins), task).row
        for _ in range(runs)
    ]
    found = kind.read(b"".join(rows), key, 1)
    plain = kind.noised(np.full(100 * runs, events), coins)
    assert found.shape == (runs, kind.answers)
    assert plain.shape == (100 * runs, kind.answers)
    deviation = plain.std(axis=0) * math.sqrt(1 / runs)
    assert (abs(found.mean(axis=0) - plain.mean(axis=0)) <= 6 * deviation).all()


@pytest.mark.parametrize("bits", [0, 30, 100])
def test_an_interval_holds_the_truth_as_often_as_it_says(bits):
    """By the exact law of what is reported, not by chance."""
    reports, reporting = 100, COUNT.reporting
    law = binomial(bits, reporting.present) + binomial(reports - bits, reporting.absent)
    covered = sum(
        weight
        for ones, weight in enumerate(law.weights, law.first)
        if reporting.estimate(ones, reports, 0.9)[1]
        <= bits
        <= reporting.estimate(ones, reports, 0.9)[2]
    )
    assert 0.9 <= covered < 0.99


def test_estimates_have_no_bias():
    reports, bits, reporting = 60, 20, DeviceHistogram.planned(ONE, most=2).reporting
    law = binomial(bits, reporting.present) + binomial(reports - bits, reporting.absent)
    mean = sum(
        weight * (ones - reports * reporting.absent) / reporting.keep_probability
        for ones, weight in enumerate(law.weights, law.first)
    )
    assert float(mean) == pytest.approx(bits, abs=1e-9)


def test_the_interval_of_a_mean_covers_by_the_law_of_its_noise():
    kind = Mean(most=10, variance=Fraction(3))
    (answer,) = kind.release((50,), 10, 0.9, 1.0).values()
    reach = (answer.high - 5) * 10
    assert reach == pytest.approx(1.645 * math.sqrt(30), abs=1)
    wide = Mean(most=1000, variance=Fraction(10**8))
    (far,) = wide.release((500 * 10**6,), 10**6, 0.95, 1.0).values()
    assert 1.96 * 10 <= far.high - 500 <= 2.8 * 10
