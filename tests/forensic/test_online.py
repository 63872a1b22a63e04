"""No number of a counter, and no mistake of an expert, is left once its step is counted.

A program counts 4,000 events among 60,000 counters, each as it comes or all in a run, and is then
held still. Its memory, registers and files are searched for every pair of events that follow each
other, as 16 bytes: one occurs by chance among a million such pairs of numbers below 2**16 with
probability 1e-3. The same program that keeps its events shows that the search finds them.
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
PROGRAM = """
import os, sys
import numpy as np
import panprivacy as pp
from panprivacy.hygiene.protection import protect

protect()
taken = bytearray(int(sys.argv[1]))
place = memoryview(taken)
while len(place):
    place = place[os.readv(0, [place]):]
events = np.frombuffer(taken, np.int64)
program = KIND(COUNTERS, 2 * len(events), epsilon=1, every=1_000)
half = len(events) // 2
if HOW == "run":
    program.run(events)
else:
    for start in range(0, len(events), 10):
        program.count(events[start : start + 10])
        program.step()
kept = events.copy() if HOW == "keep" else None
events[:] = 0
del events
state = program.state()
os.write(1, len(state).to_bytes(8, "little") + state + b"end")
os.read(0, 1)
"""


@needs_administrator
@pytest.mark.parametrize(
    ("kind", "how"), [("MultiCounter", "run"), ("ListUpdate", "count"), ("MultiCounter", "keep")]
)
def test_events_are_gone_once_they_are_counted(kind, how):
    events = 30_000 + np.random.default_rng(5).permutation(COUNTERS - 30_000)[:EVENTS]
    needles = Needles.of(pieces([pair.tobytes() for pair in pairs(events)], window=16))
    text = PROGRAM.replace("KIND", f"pp.online.{kind}").replace("COUNTERS", str(COUNTERS))
    process = subprocess.Popen(
        [sys.executable, "-c", f"HOW = {how!r}\n{text}", str(events.nbytes)],
        env=hardened(dict(os.environ)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        process.stdin.write(events.tobytes())
        process.stdin.flush()
        size = int.from_bytes(process.stdout.read(8), "little")
        state = process.stdout.read(size)
        assert process.stdout.read(3) == b"end"
        found = search_process(process.pid, needles) + search_registers(process.pid, needles)
        assert (found > 0) is (how == "keep")
        assert needles.found_in(np.frombuffer(state, np.uint8)) == 0
    finally:
        process.kill()
        process.communicate()


def pairs(events):
    """Each event with the next one, but for those that any count has."""
    both = np.stack([events[:-1], events[1:]], axis=1).astype(np.int64)
    return both[np.abs(np.diff(both, axis=1)[:, 0]) > 1]
