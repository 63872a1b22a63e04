"""Devices that are simulated, and the command that does it."""

from __future__ import annotations

import io
import json
import math
import sys
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from panprivacy.audit.ideal import IdealEncryption
from panprivacy.cli import federated as command
from panprivacy.errors import PlanError
from panprivacy.federated.count_nonzero import CountNonZero
from panprivacy.federated.histogram import Histogram
from panprivacy.federated.mean import Mean
from panprivacy.federated.promise import Promise
from panprivacy.federated.simulation import (
    Population,
    _spread,
    local_deviations,
    simulate,
    truth,
)
from panprivacy.testing import SeededCoins
from tests.commands import run_command

EVENTS = np.array([0, 0, 1, 2, 3, 7])
SMALL = ("federated", "simulate", "--devices", "60", "--ticks", "3", "--encrypted", "4")


def population(**changed):
    return Population(**{"devices": 100, "ticks": 10, "events": Fraction(2)} | changed)


@pytest.mark.parametrize("devices", [1, 2, 7, 100, 1_000])
def test_octaves_are_of_all_devices_and_twice_as_busy_each(devices):
    octaves = population(devices=devices).octaves()
    assert sum(size for size, _ in octaves) == devices
    chances = [chance for _, chance in octaves]
    assert chances == [min(Fraction(2**octave, 5), Fraction(1)) for octave in range(len(octaves))]


def test_a_device_of_the_busiest_octaves_has_an_event_at_every_tick():
    ticks = list(population().observed(SeededCoins(1)))
    events = np.sum(ticks, axis=0)
    assert len(ticks) == 10
    assert events[-4:].tolist() == [10] * 4
    assert 0 < events[:50].mean() < 4


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"devices": 0}, "devices must"),
        ({"ticks": 10_000_000}, "ticks must"),
        ({"events": Fraction(0)}, "events must be above 0"),
        ({"events": Fraction(11)}, "at most one a tick"),
    ],
)
def test_a_population_out_of_range_is_refused(changed, message):
    with pytest.raises(PlanError, match=message):
        population(**changed)


def test_the_truth_of_each_kind():
    assert truth(CountNonZero(epsilon_0=Fraction(1)), EVENTS).tolist() == [4]
    histogram = Histogram(most=3, epsilon_0=Fraction(1))
    assert truth(histogram, EVENTS).tolist() == [2, 1, 1, 2]
    assert truth(Mean(most=3, variance=Fraction(1)), EVENTS).tolist() == [9 / 6]


@pytest.mark.long
@pytest.mark.parametrize("variance", [Fraction(1, 20), Fraction(1), Fraction(100)])
def test_the_deviation_of_a_mean_is_that_of_its_whole_noise(variance):
    """A discrete Gaussian of variance 1/20 is 0 nearly always: its own variance is 9e-5."""
    kind, reports = Mean(most=3, variance=variance), 10**6
    (found,) = local_deviations(kind, np.zeros(1), reports)
    noise = kind.noised(np.zeros(reports, np.int64), SeededCoins(1))
    assert noise.std() == pytest.approx(
        found * math.sqrt(reports), rel=0.2 if variance < 1 else 0.01
    )


def test_devices_with_ciphertexts_are_spread_over_all():
    assert _spread(4, 100).tolist() == [0, 25, 50, 75]
    assert _spread(3, 3).tolist() == [0, 1, 2]
    assert _spread(0, 3).tolist() == []


def test_without_noise_the_answer_is_the_truth_and_each_tick_is_told():
    kind, told = CountNonZero(epsilon_0=Fraction(30)), []
    found = simulate(
        kind,
        Promise(epsilon=Fraction(30)),
        population(),
        IdealEncryption(),
        encrypted=30,
        coins=SeededCoins(2),
        advance=lambda: told.append(1),
    )
    assert found.answers.only().value == pytest.approx(found.truths[0])
    assert len(told) == 10


def test_more_ciphertexts_than_devices_are_refused():
    kind = CountNonZero(epsilon_0=Fraction(1))
    with pytest.raises(PlanError, match="encrypted must"):
        simulate(kind, Promise(epsilon=Fraction(1)), population(), IdealEncryption(), encrypted=101)


@pytest.mark.parametrize(
    ("kind", "servers"),
    [
        ("count-nonzero", ()),
        ("histogram", ()),
        ("mean", ()),
        ("count-nonzero", ("--collusion", "none")),
        ("histogram", ("--collusion", "one-server")),
    ],
)
def test_the_command_prints_estimate_interval_truth_and_error(kind, servers):
    words = (*SMALL, "--kind", kind, "--delta", "1e-3", *servers)
    found = run_command(*words)
    assert (found.code, found.stderr) == (0, "")
    heads = ("events", "estimate", "interval", "truth", "error", "standard error")
    assert all(head in found.stdout.splitlines()[0] for head in heads)
    assert "errs by less than" in found.stdout
    document = json.loads(run_command(*words, "--json").stdout)
    for row in document["answers"]:
        assert row["low"] <= row["high"]
        assert row["statistic"] == kind
        assert row["standard_error"] > 0
    truths = [row["truth"] for row in document["answers"]]
    if kind == "histogram":
        assert sum(truths) == 60
    assert document["least_error_without_ciphertexts"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "sum"), "--kind is one of count-nonzero, histogram, mean"),
        (("--kind", "mean"), "a mean needs a delta above 0"),
        (("--devices", "0"), "devices must be"),
        (("--events", "4"), "at most one a tick"),
        (("--among", "61"), "--among must be at most --devices"),
        (("--encrypted", "61"), "encrypted must"),
        (("--epsilon", "x"), "epsilon must"),
        (("--confidence", "1"), "confidence must"),
        (("--collusion", "both"), "collusion must be one of none, one-server"),
        (("--kind", "mean", "--delta", "1e-3", "--collusion", "none"), "ask one server"),
    ],
)
def test_the_command_refuses_in_one_line(words, message):
    found = run_command(*SMALL, *words)
    assert (found.code, found.stdout) == (2, "")
    assert found.stderr.count("\n") == 1
    assert message in found.stderr


def test_without_the_extra_the_command_says_how_to_get_it():
    with mock.patch.dict(sys.modules, {"panprivacy.federated.elgamal": None}):
        found = run_command(*SMALL)
    assert found.code == 2
    assert "pip install 'panprivacy[federated]'" in found.stderr


def test_a_bar_is_shown_on_a_terminal_only():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        with mock.patch.object(sys, "stderr", stream), command._progress(3) as advance:
            advance()
        assert bool(stream.getvalue()) is shown
