"""What a killed process leaves behind ends soon; other processes go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from panprivacy.cluster.leftovers import descendants
from tests.service.running import wait_until

PARENT = """
import os, subprocess, sys, time
from panprivacy.cluster.leftovers import ended_with_this_process
child = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True)"
with ended_with_this_process():
    ran = subprocess.Popen([sys.executable, "-c", child + "; time.sleep(600)"])
    if sys.argv[1] == "stay":
        time.sleep(600)
    time.sleep(2.5)
"""
"""Starts a child, which starts a grandchild and prints its number."""


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.parametrize("end", ["killed", "over"])
def test_grandchildren_end_with_a_process_that_is_killed_and_when_the_block_is_over(end):
    stay = "stay" if end == "killed" else "leave"
    with (
        subprocess.Popen(["sleep", "600"]) as stranger,
        subprocess.Popen([sys.executable, "-c", PARENT, stay], stdout=subprocess.PIPE) as parent,
    ):
        try:
            grandchild = int(parent.stdout.readline())
            assert grandchild in descendants(os.getpid())
            children = descendants(parent.pid)
            if end == "killed":
                wait_until(lambda: noted(children, grandchild), 10.0)
                parent.send_signal(signal.SIGKILL)
            wait_until(lambda: not any(is_there(pid) for pid in children), 10.0)
            assert is_there(stranger.pid)
        finally:
            parent.kill()
            stranger.kill()


def noted(pids, sought):
    """Whether one of these processes has a file descriptor of another one."""
    for pid in pids:
        with suppress(OSError):  # the process ended, or closed one
            for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
                if f"Pid:\t{sought}\n" in entry.read_text():
                    return True
    return False


def test_a_process_descends_from_its_ancestors_and_from_nobody_else():
    with subprocess.Popen(["sleep", "600"]) as child:
        assert child.pid in descendants(os.getpid())
        assert os.getpid() not in descendants(os.getpid())
        assert not descendants(child.pid)
        child.kill()
