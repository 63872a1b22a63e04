"""Room in memory: what a limit on the address space of a process leaves."""

from __future__ import annotations

import subprocess
import sys

_LIMITED = """
import re, resource
from pathlib import Path
from panprivacy.ground.room import check_room
size = int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + (32 << 20), -1))
for _ in range(20):
    check_room(16 << 20)
try:
    check_room(64 << 20)
except MemoryError as error:
    print(error)
    print(error.__suppress_context__)
check_room(16 << 20)
"""

_UNLIMITED = """
import re
from pathlib import Path
from panprivacy.ground.room import check_room
def sizes():
    status = Path("/proc/self/status").read_text()
    return [int(re.search(rf"{name}:\\s+(\\d+)", status)[1]) for name in ("VmSize", "VmRSS")]
sizes()
before = sizes()
answers = {check_room(64 << 20) for _ in range(4)}
print(answers, *(after - one < 16 << 10 for one, after in zip(before, sizes(), strict=True)))
"""


def _printed(program):
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_a_limit_leaves_can_be_had_again_and_again_and_no_more():
    assert _printed(_LIMITED) == "67,108,864 bytes of memory cannot be had\nTrue\n"


def test_nothing_is_refused_or_kept_without_a_limit():
    assert _printed(_UNLIMITED) == "{None} True True\n"
