"""What a device keeps and sends: bytes that are read back, or refused with a reason."""

from __future__ import annotations

from fractions import Fraction

import pytest

from panprivacy.audit.ideal import KEY
from panprivacy.devices.federated.histogram import DeviceHistogram
from panprivacy.devices.federated.messages import REPORT_ID_BYTES, DeviceState, Report, report_bytes
from panprivacy.devices.federated.promise import Promise
from panprivacy.devices.federated.task import Task
from panprivacy.errors import InputError

PROMISE = Promise(epsilon=Fraction(2))
TASK, OTHER = (
    Task(
        version=1,
        id=name * 16,
        kind=DeviceHistogram.planned(PROMISE, most=2),
        promise=PROMISE,
        horizon=5,
        key=KEY.hex(),
    )
    for name in ("00", "01")
)
NAME = bytes(range(REPORT_ID_BYTES))
ROW = bytes(3 * TASK.entry_bytes)
REPORT = Report(NAME, ROW).to_bytes(TASK)
STATE = DeviceState(TASK.digest, True, 2**40, NAME, b"row")


def test_a_state_is_the_same_again():
    for done in (False, True):
        state = STATE._replace(done=done)
        assert DeviceState.read(bytes(state)) == state
    assert bytes(STATE)[:5] == b"PPDS\x01"
    assert DeviceState.read(bytes(STATE._replace(row=b""))).row == b""


def test_a_report_is_the_same_again():
    assert Report.read(REPORT, TASK) == Report(NAME, ROW)
    assert REPORT[:5] == b"PPDR\x01"
    assert len(REPORT) == report_bytes(TASK)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "this is no report of a device"),
        (REPORT[:36], "this is no report of a device"),
        (bytes(STATE), "this is no report of a device"),
        (bytearray(REPORT), "this is no report of a device"),
        (REPORT[:4] + b"\x02" + REPORT[5:], "the report has version 2, and this program knows 1"),
        (REPORT[:-1], "too long or too short for its task"),
        (REPORT + b"x", "too long or too short for its task"),
        (Report(NAME, ROW).to_bytes(OTHER), "the report is for another task"),
    ],
)
def test_what_is_no_report_is_refused(data, says):
    with pytest.raises(InputError, match=says):
        Report.read(data, TASK)


@pytest.mark.parametrize("cut", [0, 36, 37, 61])
def test_a_state_that_is_cut_off_is_none(cut):
    with pytest.raises(InputError, match="this is no state of a device"):
        DeviceState.read(bytes(STATE)[:cut])


def test_a_state_is_done_or_not():
    damaged = bytearray(bytes(STATE))
    damaged[37] = 2
    with pytest.raises(InputError, match="this is no state of a device"):
        DeviceState.read(bytes(damaged))
