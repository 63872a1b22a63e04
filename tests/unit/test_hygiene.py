"""Every finding of `panprivacy doctor` both ways, and what `protect` really does."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from panprivacy.ground.hygiene import doctor, protection
from panprivacy.ground.hygiene.doctor import Measure, findings
from panprivacy.ground.hygiene.protection import protect
from tests.commands import run_command

PATIENCE = 120
KEPT = "what is freed is kept by"
KEY = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"
PROTECTED = """
import ctypes, json, resource, sys
from pathlib import Path

import numpy as np
from panprivacy.ground.hygiene.doctor import findings
from panprivacy.ground.hygiene.protection import protect

protect()
held = [np.ones(1 << 20) for _ in range(32)]  # 256 MiB, far beyond what may be locked
fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
document = {
    "owner": Path("/proc/self/maps").stat().st_uid,
    "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "locked": int(fields["VmLck"].split()[0]),
    "findings": {one.name: one.ok for one in findings()},
    "sum": sum(map(np.sum, held)),
}
json.dump(document, sys.stdout)
"""


def finding(name):
    return next(one for one in findings() if one.name == name)


@pytest.fixture
def files(monkeypatch):
    """Has the kernel's files say what a test wants; others are read as they are."""
    said, read = {}, doctor._text
    monkeypatch.setattr(doctor, "_text", lambda path: said.get(path, read(path)))
    return said


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The usual places of keys: a home, and a current folder."""
    home, here = tmp_path / "home", tmp_path / "here"
    for folder in (home / ".config" / "age", home / ".age", here):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    monkeypatch.setattr(
        doctor, "_KEY_FOLDERS", [one for one in doctor._KEY_FOLDERS if not one.startswith("/")]
    )
    return SimpleNamespace(home=home, here=here)


HEADER = "Filename\tType\tSize\tUsed\tPriority\n"
SWAP = f"{HEADER}/swäp\tfile\t1048572\t0\t-2\n"


@pytest.mark.parametrize(
    ("swaps", "locked", "ok", "says"),
    [
        (SWAP, False, False, "memory may be written to swap"),
        (SWAP, True, True, "memory is locked"),
        (HEADER, False, True, "there is no swap"),
        ("", False, True, "there is no swap"),
    ],
)
def test_swap(swaps, locked, ok, says, files, monkeypatch):
    files["/proc/swaps"] = swaps
    monkeypatch.setattr(doctor, "_is_locked", lambda: locked)
    assert (finding("swap").ok, finding("swap").says) == (ok, says)


def test_a_page_that_a_library_locks_is_not_all_memory():
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    if doctor._LIBC.mlock(ctypes.c_void_p(address), mmap.PAGESIZE):
        pytest.skip("not even a page can be locked here")
    assert doctor._locked_kibibytes() > 0
    assert not doctor._is_locked()


@pytest.mark.parametrize(
    ("states", "swaps", "ok"),
    [
        ("freeze mem disk\n", SWAP, False),
        ("freeze mem disk\n", HEADER, True),
        ("freeze mem\n", SWAP, True),
        ("", SWAP, True),
    ],
)
def test_hibernation(states, swaps, ok, files):
    files.update({"/sys/power/state": states, "/proc/swaps": swaps})
    assert finding("hibernation").ok == ok


@pytest.mark.parametrize(
    ("scope", "ok", "word"),
    [
        ("", False, "does not restrict"),
        ("0\n", False, "does not restrict"),
        ("1\n", True, "parent"),
        ("2\n", True, "only an administrator"),
        ("3\n", True, "nobody"),
    ],
)
def test_tracing(scope, ok, word, files):
    files["/proc/sys/kernel/yama/ptrace_scope"] = scope
    assert finding("ptrace scope").ok == ok
    assert word in finding("ptrace scope").says


@pytest.mark.parametrize(("state", "ok"), [(0, True), (1, True), (5, False), (-1, False)])
def test_clock(state, ok, monkeypatch):
    monkeypatch.setattr(doctor, "_LIBC", SimpleNamespace(adjtimex=lambda record: state))
    assert doctor._clock().ok == ok


@pytest.mark.parametrize(
    ("dumpable", "limit", "ok"), [(0, 0, True), (1, 0, False), (0, 1, False), (2, -1, False)]
)
def test_dumps(dumpable, limit, ok, monkeypatch):
    monkeypatch.setattr(doctor, "_LIBC", SimpleNamespace(prctl=lambda *_: dumpable))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert doctor._dumps().ok == ok


@pytest.mark.parametrize(
    ("overwrites", "blocks", "spare", "pool", "says"),
    [
        (True, 0, True, "system", "freed memory is overwritten"),
        (False, 0, True, "system", f"{KEPT} the C library"),
        (True, 9, True, "system", f"{KEPT} Python"),
        (True, 0, False, "system", f"{KEPT} Python"),
        (True, 0, True, "mimalloc", f"{KEPT} Arrow"),
        (False, 9, False, "mimalloc", f"{KEPT} the C library and Python and Arrow"),
    ],
)
def test_allocators(overwrites, blocks, spare, pool, says, monkeypatch):
    monkeypatch.setattr(doctor, "has_spare_words", lambda: spare)
    monkeypatch.setattr(doctor, "_free_overwrites", lambda: overwrites)
    monkeypatch.setattr(sys, "getallocatedblocks", lambda: blocks)
    arrow = SimpleNamespace(default_memory_pool=lambda: SimpleNamespace(backend_name=pool))
    monkeypatch.setattr(doctor, "pa", arrow)
    assert (doctor._allocator().ok, doctor._allocator().says) == (says.startswith("freed"), says)


def probes(times, **settings):
    """How often a process with these settings finds that a freed block is overwritten."""
    script = (
        "from panprivacy.ground.hygiene.doctor import _free_overwrites\n"
        f"print(sum(_free_overwrites() for _ in range({times})))"
    )
    environment = {**os.environ, "GLIBC_TUNABLES": "", **settings}
    result = subprocess.run(
        [sys.executable, "-c", script],
        env=environment, capture_output=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    return int(result.stdout)


@pytest.mark.parametrize(
    ("tunables", "found"),
    [
        ("glibc.malloc.perturb=165:glibc.malloc.tcache_count=0", 1000),
        ("glibc.malloc.perturb=165", 0),  # small blocks are kept aside as they are
        ("glibc.malloc.tcache_count=0", 0),
    ],
)
def test_the_probe_of_the_c_library_is_always_right(tunables, found):
    """The block may be handed out again before it is looked at, and is then filled with 90."""
    assert probes(1000, GLIBC_TUNABLES=tunables, PYTHONMALLOC="malloc") == found


def test_a_key_in_no_place(places):
    (places.home / "notes.txt").write_text("nothing")
    assert finding("sealing key").ok


@pytest.mark.parametrize("folder", ["home", "home/.age", "home/.config/age", "here"])
def test_a_key_is_found_and_not_shown(folder, places):
    place = places.home.parent / folder
    (place / "keys.txt").write_text(f"# created: today\n{KEY}\n")
    found = finding("sealing key")
    assert not found.ok
    assert found.says == f"an age identity lies in {place}"
    for options in ([], ["--json"]):
        result = run_command("doctor", *options)
        assert result.code == 1
        assert "AGE-SECRET" not in result.stdout + result.stderr
        assert "keys.txt" not in result.stdout + result.stderr


def test_what_is_no_small_file_is_passed_over(places):
    """None of them is waited for, and the key behind them is found."""
    os.mkfifo(places.home / "a-pipe")
    (places.home / "b-folder").mkdir()
    (places.home / "b-folder" / "deep").write_text(KEY)
    (places.home / "c-loop").symlink_to("c-loop")
    (places.home / "d-terminal").symlink_to("/dev/zero")
    (places.home / "e-large").write_bytes(KEY.encode() + bytes(1 << 16))
    (places.home / "f-kernel").symlink_to("/proc/kmsg")  # reading it waits for a message
    with (places.home / "g-huge").open("wb") as huge:
        huge.truncate(1 << 40)
    assert finding("sealing key").ok
    (places.home / "z-key").write_text(KEY)
    assert not finding("sealing key").ok


@pytest.mark.skipif(os.geteuid() == 0, reason="an administrator can read every file")
def test_what_cannot_be_read_is_passed_over(places):
    (places.home / "key").write_text(KEY)
    (places.home / "key").chmod(0)
    (places.home / ".age").chmod(0)
    assert finding("sealing key").ok


def test_an_error_of_one_file_does_not_hide_the_next(places, monkeypatch):
    for name in ("a", "b"):
        (places.home / name).write_text(KEY)
    read = Path.read_bytes

    def refuse(path):
        if path.name == "a":
            raise PermissionError
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert not finding("sealing key").ok


def test_a_user_without_a_home_is_looked_after_too(places, monkeypatch):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["nobody"])
    assert finding("sealing key").ok
    (places.here / "key").write_text(KEY)
    assert not finding("sealing key").ok


def test_a_home_of_any_bytes_can_be_shown(places, monkeypatch):
    home = os.fsencode(places.home) + b"\xff :smile: [red]"
    os.mkdir(home)  # noqa: PTH102 - no text names it
    (Path(os.fsdecode(home)) / "key").write_text(KEY)
    monkeypatch.setenv("HOME", os.fsdecode(home))
    assert finding("sealing key").says.endswith("\\xff :smile: [red]")
    assert ":smile: [red]" in " ".join(run_command("doctor").stdout.split())


def test_the_name_of_a_process_can_be_any_bytes(monkeypatch):
    read = Path.read_bytes

    def renamed(path, *_, encoding, errors="strict"):
        return (b"Name:\t\xff\xc3\n" + read(path)).decode(encoding, errors)

    monkeypatch.setattr(Path, "read_text", renamed)
    assert int(doctor._status("Pid")) == os.getpid()


def test_other_systems_are_told_that_nothing_is_protected(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    for module in (doctor, protection):
        monkeypatch.setattr(module, "_LIBC", None)
    set_limits = []
    monkeypatch.setattr(resource, "setrlimit", lambda *limit: set_limits.append(limit))
    protect()
    assert set_limits == [(resource.RLIMIT_CORE, (0, 0))]
    assert [(one.name, one.ok) for one in findings()] == [("system", False)]
    assert run_command("doctor").code == 1


GOOD = Measure("clock", ok=True, says="right", fix="wind it")
BAD = Measure("swap", ok=False, says="on", fix="swapoff -a")


@pytest.mark.parametrize(("found", "code"), [([GOOD], 0), ([GOOD, BAD], 1)])
def test_text_and_json_agree(found, code, monkeypatch):
    module = sys.modules["panprivacy.cli.doctor"]  # the package has a function of this name
    monkeypatch.setattr(module, "findings", lambda: found)
    text, machine = run_command("doctor"), run_command("doctor", "--json")
    assert text.code == machine.code == code
    lines = [line.split() for line in text.stdout.splitlines()]
    for line, one, told in zip(lines, found, json.loads(machine.stdout)["findings"], strict=False):
        assert line == ["ok" if one.ok else "NO", one.name, one.says]
        assert told == {
            "name": one.name, "ok": one.ok, "says": one.says, "fix": None if one.ok else one.fix
        }  # fmt: skip
    assert json.loads(machine.stdout)["ok"] == (code == 0)
    assert ("To mend swap: swapoff -a." in text.stdout) == (code == 1)
    assert "wind it" not in text.stdout


def protected(*before):
    """What a process finds after `protect`."""
    result = subprocess.run(
        [*before, sys.executable, "-c", PROTECTED],
        capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr.decode()
    document = json.loads(result.stdout)
    assert document["sum"] == 32 << 20
    assert document["core"] == [0, 0]
    assert document["dumpable"] == 0
    assert document["owner"] == 0
    assert document["findings"]["dumps"]
    return document


def can_lock():
    return os.geteuid() == 0 and int(doctor._status("CapEff"), 16) >> 14 & 1


@pytest.mark.long
@pytest.mark.skipif(not can_lock(), reason="memory cannot be locked here")
def test_memory_is_locked_where_it_is_allowed():
    document = protected()
    assert document["locked"] > 256 << 10
    assert document["findings"]["swap"]


@pytest.mark.long
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="no setpriv to give up a capability"
)
def test_with_a_limit_nothing_is_locked_and_memory_can_be_had():
    drop = 'ulimit -l 64 && exec setpriv --bounding-set=-ipc_lock,-sys_resource "$@"'
    assert protected("sh", "-c", drop, "sh")["locked"] == 0


@pytest.mark.parametrize(
    ("most", "limit"), [(resource.RLIM_INFINITY, resource.RLIM_INFINITY), (0, 0), (1 << 40, 0)]
)
def test_a_limit_is_lifted_or_rules_locking_out(most, limit, monkeypatch):
    """With a large limit, all memory could be locked now, and an allocation fail later."""
    done = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 16, most))
    monkeypatch.setattr(resource, "setrlimit", lambda *limit: done.append(limit))
    monkeypatch.setattr(protection, "_LIBC", SimpleNamespace(mlockall=done.append))
    protection._lock_memory()
    assert done == [(resource.RLIMIT_MEMLOCK, (limit, most)), 7]
