"""No number of a counter, and no mistake of an expert, is left once its step is counted.

A program counts 4,000 events among 60,000 counters, each as it comes or all in a run, and is then
held still. Its memory, registers and files are searched for every pair of events that follow each
other, as 16 bytes: one occurs by chance among a million such pairs of numbers below 2**16 with
probability 1e-3. Of experts the search is for any 16 bytes of a row that told who was wrong: a byte
that is not zero is True to NumPy, so each mistake is a random one. The same programs that keep what
they were told show that the search finds it.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from panprivacy_launcher import hardened

from .memory import Needles, needs_administrator, pieces, search_process, search_registers

EVENTS, COUNTERS = 4_000, 60_000
ROUNDS, EXPERTS = 500, 64
COUNTING = """
told = np.frombuffer(taken, np.int64)
program = pp.online.KIND(COUNTERS, 2 * len(told), epsilon=1, every=1_000)
if HOW == "one":
    for start in range(0, len(told), 10):
        program.count(told[start : start + 10])
        program.step()
else:
    program.run(told)
""".replace("COUNTERS", str(COUNTERS))
FOLLOWING = """
told = np.frombuffer(taken, bool).reshape(-1, EXPERTS)
program = pp.online.PrivateExperts(EXPERTS, len(told), unit="round", epsilon=1)
if HOW == "one":
    for row in told:
        program.round(row)
    del row
else:
    program.run(told)
""".replace("EXPERTS", str(EXPERTS))
PROGRAM = """
import os, sys
import numpy as np
import panprivacy as pp
from panprivacy.ground.hygiene.protection import protect

protect()
taken = bytearray(int(sys.argv[1]))
place = memoryview(taken)
while len(place):
    place = place[os.readv(0, [place]):]
BODY
kept = told.copy() if HOW == "keep" else None
taken[:] = bytes(len(taken))
del told
state = program.state()
os.write(1, len(state).to_bytes(8, "little") + state + b"end")
os.read(0, 1)
"""


@pytest.mark.long
@needs_administrator
@pytest.mark.parametrize(
    ("kind", "how"), [("MultiCounter", "run"), ("ListUpdate", "one"), ("MultiCounter", "keep")]
)
def test_events_are_gone_once_they_are_counted(kind, how):
    events = 30_000 + np.random.default_rng(5).permutation(COUNTERS - 30_000)[:EVENTS]
    needles = Needles.of(pieces([pair.tobytes() for pair in pairs(events)], window=16))
    found, in_state = left_of(events.tobytes(), COUNTING.replace("KIND", kind), how, needles)
    assert (found > 0) is (how == "keep")
    assert in_state == 0


@pytest.mark.long
@needs_administrator
@pytest.mark.parametrize("how", ["run", "one", "keep"])
def test_mistakes_are_gone_once_their_round_has_ended(how):
    mistakes = np.random.default_rng(6).integers(0, 256, (ROUNDS, EXPERTS), np.uint8)
    needles = Needles.of(pieces([row.tobytes() for row in mistakes], window=16))
    found, in_state = left_of(mistakes.tobytes(), FOLLOWING, how, needles)
    assert (found > 0) is (how == "keep")
    assert in_state == 0


def left_of(told, body, how, needles):
    """How many needles are left in a program that was told something, and in its state."""
    program = f"HOW = {how!r}\n{PROGRAM.replace('BODY', body)}"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(len(told))],
        env=hardened(dict(os.environ)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        process.stdin.write(told)
        process.stdin.flush()
        size = int.from_bytes(process.stdout.read(8), "little")
        state = np.frombuffer(process.stdout.read(size), np.uint8)
        assert process.stdout.read(3) == b"end"
        found = search_process(process.pid, needles) + search_registers(process.pid, needles)
        return found, needles.found_in(state)
    finally:
        process.kill()
        process.communicate()


def pairs(events):
    """Each event with the next one, but for those that any count has."""
    both = np.stack([events[:-1], events[1:]], axis=1).astype(np.int64)
    return both[np.abs(np.diff(both, axis=1)[:, 0]) > 1]
