"""The command `panprivacy federated simulate`."""

from __future__ import annotations

import io
import json
import sys
from unittest import mock

import pytest

from panprivacy.cli import federated as command
from tests.commands import run_command

SMALL = ("federated", "simulate", "--devices", "60", "--ticks", "3", "--encrypted", "4")


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
    begin, *pairs = SMALL[:2], *zip(SMALL[2::2], SMALL[3::2], strict=True)
    others = [one for name, value in pairs if name not in words for one in (name, value)]
    found = run_command(*begin, *others, *words)
    assert (found.code, found.stdout) == (2, "")
    assert found.stderr.count("\n") == 1
    assert message in found.stderr


def test_where_a_module_is_missing_the_command_names_it():
    with mock.patch.dict(sys.modules, {"panprivacy.devices.federated.elgamal": None}):
        found = run_command(*SMALL)
    assert found.code == 2
    assert "cannot import panprivacy.devices.federated.elgamal: " in found.stderr


def test_a_bar_is_shown_on_a_terminal_only():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        with mock.patch.object(sys, "stderr", stream), command._progress(3) as advance:
            advance()
        assert bool(stream.getvalue()) is shown
