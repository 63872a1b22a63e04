"""A count of a pipe that is told to stop answers what came until then, and ends by the signal."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pyarrow as pa
import pyrage
import pytest

from panprivacy.statistics.contribution import read_parts
from tests.service.running import PLAIN, shared

PATIENCE = 60
COUNT = ("--user", "id", "--stat", "distinct,expected=10:100000", "--epsilon", "20")
SCHEDULES = {
    "once": (),
    "every": ("--every", "600", "--releases", "9"),
    "window": ("--window", "3650d"),
}


@pytest.fixture
def started():
    """Start `panprivacy run`."""
    with contextlib.ExitStack() as last:
        yield lambda *words: last.enter_context(shared().piped(["run", *words]))


def send(process, data):
    """Write to the program, and wait until it has read all."""
    process.stdin.write(data)
    process.stdin.flush()
    unread = b"\1"
    until = time.monotonic() + PATIENCE
    while struct.unpack("i", unread.ljust(4, b"\0"))[0] and time.monotonic() < until:
        time.sleep(0.01)
        unread = fcntl.ioctl(process.stdin.fileno(), termios.FIONREAD, b"\0" * 4)
    time.sleep(0.2)  # the reader takes what it has read to its queue, or waits for more


def wait_until_idle(process):
    """Wait until its threads have slept for a while: what was sent has been counted."""
    asleep, until = 0, time.monotonic() + PATIENCE
    while asleep < 10 and time.monotonic() < until:
        time.sleep(0.01)
        asleep = asleep + 1 if states_of_threads(process) <= {"S"} else 0


def states_of_threads(process):
    threads = Path(f"/proc/{process.pid}/task").glob("*/stat")
    return {one.read_text().rpartition(")")[2].split()[0] for one in threads}


def ended(process, number):
    """What a program printed that a signal ended, and the one line that it said."""
    process.send_signal(number)
    printed, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == -number
    (line,) = said.decode().splitlines()
    assert line.startswith(f"panprivacy: ended by {number.name}: ")
    return printed.decode(), line


def rows(count):
    return "".join(f"user {n}\n" for n in range(count)).encode()


@pytest.mark.parametrize(
    ("schedule", "number"),
    [("once", signal.SIGINT), ("every", signal.SIGTERM), ("window", signal.SIGTERM)],
)
def test_it_answers_what_came(started, schedule, number):
    process = started("-", "--format", "csv", *COUNT, *SCHEDULES[schedule], "--json")
    send(process, b"id\n" + rows(700) + b"half a ro")
    wait_until_idle(process)
    printed, line = ended(process, number)
    document = json.loads(printed)  # one answer, once
    assert document["answers"][0]["value"] == pytest.approx(700, abs=60)
    assert document["interrupted"] is True
    assert "not complete" in line
    if schedule == "window":
        assert document["window"]["complete"] is False


@pytest.mark.parametrize("how", ["signal", "bad row"])
def test_a_contribution_says_that_not_all_was_counted(started, tmp_path, how):
    key, part = pyrage.x25519.Identity.generate(), tmp_path / "x.part"
    sealed = "--contribute", part, "--recipient", str(key.to_public())
    process = started("-", "--format", "csv", *COUNT, *sealed)
    send(process, b"id\n" + rows(70) + b"one,too many\n" * (how == "bad row"))
    if how == "signal":
        ended(process, signal.SIGTERM)
    else:
        process.communicate(timeout=PATIENCE)
    (told,) = read_parts(pyrage.decrypt(part.read_bytes(), [key]))
    assert told.told.complete is False


@pytest.mark.long
def test_what_was_read_and_not_yet_counted_is_counted(started):
    """Several batches wait in the queue, and one in the parser, when the signal comes."""
    process = started(
        "-", "--format", "csv", *COUNT[:2], "--stat", "distinct", *COUNT[-2:], "--json"
    )
    count = 1_500_000
    table = b"id\n" + b"".join(b"%d\n" % n for n in range(count))
    send(process, table)
    (answer,) = json.loads(ended(process, signal.SIGTERM)[0])["answers"]
    assert answer["value"] == pytest.approx(count, rel=0.05)


@pytest.mark.long
def test_an_arrow_stream_is_ended_as_well(started):
    table = pa.table({"id": [f"user {n}" for n in range(700)]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    process = started("-", "--format", "arrow", *COUNT, "--json")
    send(process, sink.getvalue()[:-8])  # without the mark of its end
    wait_until_idle(process)
    (answer,) = json.loads(ended(process, signal.SIGTERM)[0])["answers"]
    assert answer["value"] == pytest.approx(700, abs=60)


def test_the_text_is_printed_once(started):
    process = started("-", "--format", "csv", *COUNT, "--window", "3650d")
    send(process, b"id\n" + rows(9))
    printed, _ = ended(process, signal.SIGINT)
    assert printed.splitlines()[0].endswith("UTC (partial)")
    assert printed.count("Guarantee") == 1


@pytest.mark.long
def test_a_second_signal_ends_it_without_an_answer(started):
    process = started("-", "--format", "csv", *COUNT, "--json")
    send(process, b"id\n" + rows(9))
    # Stopped, it gets both signals before it can answer.
    process.send_signal(signal.SIGSTOP)
    wait_until_stopped(process)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    printed, said = process.communicate(timeout=PATIENCE)
    assert process.returncode in (-signal.SIGINT, -signal.SIGTERM)
    assert (printed, said) == (b"", b"")


def wait_until_stopped(process):
    """Each of its threads: one that goes on could take a signal before the others are there."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if states_of_threads(process) == {"T"}:
            return
    raise TimeoutError


@pytest.mark.long
def test_a_file_that_is_interrupted_has_no_answer(started, tmp_path):
    path = tmp_path / "visits.csv"
    with path.open("wb") as file:
        file.write(b"id\n")
        for n in range(150):
            file.write(rows(20_000).replace(b"user", b"%d" % n))
    process = started(path, *COUNT, "--json")
    wait_until_open(process, path)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert (printed, said) == (b"", b"")


def wait_until_open(process, path):
    until = time.monotonic() + PATIENCE
    folder = Path(f"/proc/{process.pid}/fd")
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if any(one.readlink() == path for one in folder.iterdir()):
                return
    raise TimeoutError


@pytest.mark.long
def test_an_ignored_signal_stays_ignored():
    """So a run in the background of a shell outlives the interrupt of what is before it."""
    command = [*PLAIN, "run", "-", "--format", "csv", *COUNT, "--json"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen(command, **streams) as process:
        signal.signal(signal.SIGINT, before)
        send(process, b"id\n" + rows(9))
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(rows(700), timeout=PATIENCE)
    assert (process.returncode, said) == (0, b"")
    document = json.loads(printed)
    assert document["answers"][0]["value"] == pytest.approx(700, abs=60)
    assert "interrupted" not in document


# Somebody has seen the memory


@pytest.mark.long
def test_an_announced_intrusion_takes_effect_while_the_pipe_is_silent(started):
    window = SCHEDULES["window"]
    process = started("-", "--format", "csv", *COUNT, "--intrusions", "1", *window, "--json")
    send(process, b"id\n" + rows(700))
    for expected in ("announced 1 of 1 intrusions; the state may be seen", "nothing was announced"):
        process.send_signal(signal.SIGUSR1)
        assert expected in process.stderr.readline().decode()
    send(process, b"".join(b"other %d\n" % n for n in range(700)))
    wait_until_idle(process)
    printed, _ = ended(process, signal.SIGTERM)
    (answer,) = json.loads(printed)["answers"]
    assert answer["value"] == pytest.approx(1_400, abs=120)
