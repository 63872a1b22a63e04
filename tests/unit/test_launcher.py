"""The launcher starts the command line anew, once, with an allocator that keeps nothing.

Most tests put a stand-in before the package, which tells how it was started: the launcher imports
nothing else, and the stand-in starts in no time.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy_launcher
from panprivacy_launcher import hardened

OURS = [
    "glibc.malloc.perturb=165",
    "glibc.malloc.tcache_count=0",
    "glibc.malloc.mmap_threshold=33554432",
    "glibc.malloc.trim_threshold=268435456",
]
SCRIPT = str(Path(sys.executable).parent / "panprivacy")
MODULE = [sys.executable, "-m", "panprivacy"]
WITHOUT = [sys.executable, "-c", "from panprivacy.cli import main; main()"]
PATIENCE = 120
CLEAN = {name: value for name, value in os.environ.items() if name not in hardened({})}
"""The environment of the tests, should they themselves be started hardened."""

STAND_IN = {
    "__init__.py": "",
    "__main__.py": "from panprivacy_launcher import main\nmain()\n",
    "ground/hygiene/protection.py": "def protect(): pass\n",
    "cli.py": """
import json, os, sys

def main():
    words = [os.fsencode(word).hex() for word in sys.argv[1:]]
    tells = {"words": words, "stdin": sys.stdin.read(), "environment": dict(os.environ)}
    tells["dev_mode"] = sys.flags.dev_mode
    json.dump(tells, sys.stdout)
    sys.exit(7)
""",
}


@pytest.fixture
def stand_in(tmp_path):
    """A folder with a package that tells how it was started, and exits with 7."""
    package = tmp_path / "stand in" / "panprivacy"
    (package / "ground/hygiene").mkdir(parents=True)
    for name, text in STAND_IN.items():
        (package / name).write_text(text)
    return package.parent


def run(program, *, path=None, environment=(), **options):
    """Run it to its end; it must come to one."""
    places = {} if path is None else {"PYTHONPATH": str(path)}
    return subprocess.run(
        program,
        env={**CLEAN, **places, **dict(environment)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )


def told(program, stand_in, **options):
    """What the stand-in tells."""
    result = run(program, path=stand_in, **options)
    assert result.stderr == b""
    assert result.returncode == 7
    return json.loads(result.stdout)


names = st.text("abcGLIBC_.", min_size=1, max_size=20)
tunables = st.lists(
    st.one_of(
        st.tuples(names, names).map("=".join),
        st.sampled_from([*OURS, "", "=", "=1", "glibc.malloc.perturb", "glibc.malloc.perturb=0"]),
        st.sampled_from(["a=", "a=b=c", "glibc.malloc.tcache_count=7", "glibc.malloc.arena_max=1"]),
    ),
    max_size=6,
)
environments = st.builds(
    lambda others, ours, given: {**others, **ours, **given},
    st.dictionaries(names, st.text(max_size=5), max_size=4),
    st.dictionaries(
        st.sampled_from(["PYTHONMALLOC", "LD_BIND_NOW", "ARROW_DEFAULT_MEMORY_POOL"]),
        st.sampled_from(["", "debug", "mimalloc", "1"]),
    ),
    st.one_of(st.just({}), tunables.map(lambda some: {"GLIBC_TUNABLES": ":".join(some)})),
)


@pytest.mark.long
@given(environments)
def test_other_variables_are_kept_and_ours_win(environment):
    made = hardened(environment)
    settings = {
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "LD_BIND_NOW": "1",
        "GLIBC_TUNABLES": made["GLIBC_TUNABLES"],
    }
    assert made == {**environment, **settings}


@given(tunables)
def test_of_a_tunable_there_is_one_value_and_nothing_spoils_the_others(given):
    made = hardened({"GLIBC_TUNABLES": ":".join(given)})["GLIBC_TUNABLES"].split(":")
    assert made[-4:] == OURS
    names_of_ours = {one.partition("=")[0] for one in OURS}
    well_formed = [one for one in given if one.count("=") == 1 and all(one.split("="))]
    others = [one for one in well_formed if one.partition("=")[0] not in names_of_ours]
    assert made[:-4] == others


@given(environments)
def test_a_hardened_environment_stays_as_it_is(environment):
    assert hardened(hardened(environment)) == hardened(environment)


WORDS = [b"two words", "prénom 名".encode(), b"\xff\xfe", b"", b"--", b"-x", b"'\"$(true)\n"]


@pytest.mark.parametrize(
    "program",
    [[SCRIPT], MODULE, [sys.executable, "-X", "dev", "-m", "panprivacy"]],
    ids=["script", "module", "developer mode"],
)
def test_arguments_input_and_exit_code_pass_through(program, stand_in):
    tells = told([*program, *WORDS], stand_in, input=b"a line\n" * 100_000)
    assert [bytes.fromhex(word) for word in tells["words"]] == WORDS
    assert tells["stdin"] == "a line\n" * 100_000
    assert tells["dev_mode"] == ("dev" in program)
    assert hardened(tells["environment"]) == tells["environment"]


def test_a_relative_path_starts_it_too(stand_in):
    here = Path(SCRIPT).parent
    tells = told([f"./{Path(SCRIPT).name}", "word"], stand_in, cwd=here, stdin=subprocess.DEVNULL)
    assert tells["words"] == [b"word".hex()]


def test_a_child_that_inherits_the_variables_starts_anew_as_well(stand_in):
    """A child could have lost the settings: the mark of its parent does not count."""
    inherited = {"PANPRIVACY_PROCESS": "1", "PYTHONMALLOC": "debug"}
    tells = told(MODULE, stand_in, environment=inherited, stdin=subprocess.DEVNULL)
    assert tells["environment"]["PYTHONMALLOC"] == "malloc"


def test_who_takes_a_setting_back_does_not_make_it_start_forever(stand_in):
    (stand_in / "sitecustomize.py").write_text(
        "import os\n"
        "os.environ['ARROW_DEFAULT_MEMORY_POOL'] = 'mimalloc'\n"
        "os.environ['STARTS'] = os.environ.get('STARTS', '') + 'x'\n"
    )
    tells = told(MODULE, stand_in, stdin=subprocess.DEVNULL)
    assert tells["environment"]["STARTS"] == "xx"
    assert tells["environment"]["ARROW_DEFAULT_MEMORY_POOL"] == "mimalloc"


@pytest.mark.parametrize("program", ["", "/nowhere/python"])
def test_without_a_program_to_start_it_refuses(program, monkeypatch, capsys):
    """No ids are read by a process that is not hardened."""
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.delenv("PANPRIVACY_PROCESS", raising=False)
    with pytest.raises(SystemExit) as stop:
        panprivacy_launcher.main()
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("panprivacy: cannot start anew with a clean allocator: ")
    assert said.count("\n") == 1


def findings(program, **options):
    """What `doctor` finds, by name, as JSON; and its exit code, which must agree."""
    result = run([*program, "doctor", "--json"], **options)
    said = result.stderr.splitlines()
    assert [line for line in said if not line.startswith(b"WARNING: ld.so")] == []  # of what it got
    document = json.loads(result.stdout)
    found = {one["name"]: one for one in document["findings"]}
    assert document["ok"] == all(one["ok"] for one in found.values())
    assert result.returncode == int(not document["ok"])
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "environment"),
    [
        ([SCRIPT], {}),
        (MODULE, {"GLIBC_TUNABLES": "glibc.malloc.perturb=0:glibc.malloc.tcache_count=7"}),
        (
            [sys.executable, "-X", "dev", "-m", "panprivacy"],
            {
                "GLIBC_TUNABLES": "glibc.malloc.perturb:a=b=c",
                "MALLOC_PERTURB_": "0",
                "PYTHONMALLOC": "debug",
                "LD_BIND_NOW": "",
                "ARROW_DEFAULT_MEMORY_POOL": "mimalloc",
            },
        ),
    ],
    ids=["nothing", "tunables", "everything"],
)
def test_doctor_finds_the_settings_on_whatever_was_set_before(program, environment):
    found = findings(program, environment=environment)
    assert found["allocator"]["ok"]
    assert found["dumps"]["ok"]


@pytest.mark.long
def test_doctor_says_what_is_off_without_the_launcher():
    found = findings(WITHOUT)
    assert not found["allocator"]["ok"]
    assert not found["dumps"]["ok"]
    for kept in ("the C library", "Python", "Arrow"):
        assert kept in found["allocator"]["says"]


@pytest.mark.long
@pytest.mark.parametrize("flag", ["-E", "-I"])
def test_doctor_says_that_python_does_not_read_its_variables(flag):
    found = findings([sys.executable, flag, "-m", "panprivacy"])
    assert found["allocator"]["says"] == "what is freed is kept by Python"
    assert flag in found["allocator"]["fix"]
    assert found["dumps"]["ok"]


FREES = """
import ctypes, resource
from ctypes import c_size_t, c_void_p

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
libc = ctypes.CDLL(None)
libc.malloc.restype = c_void_p
size = 16 << 20
block, behind = libc.malloc(c_size_t(size)), libc.malloc(c_size_t(1 << 20))
ctypes.memset(block, 0x3C, size)
libc.free(c_void_p(block))
print(ctypes.string_at(block, size).count(bytes([0x3C] * 16)))
"""


def test_a_large_block_is_overwritten_and_not_given_back_as_it_is():
    """Runs are counted: the allocator's pointers in a free block may hold any byte."""
    program = [sys.executable, "-c", FREES]
    assert run(program, environment=hardened({})).stdout == b"0\n"
    assert run(program).returncode == -signal.SIGSEGV  # the control: the kernel has it


@pytest.mark.long
def test_an_interrupt_ends_it_as_any_program():
    """A shell says 130; what came through the pipe is answered first."""
    program = [
        *MODULE, "run", "-", "--format", "csv", "--user", "id", "--stat", "distinct",
        "--epsilon", "1", "--releases", "1000", "--every", "0.05", "--json",
    ]  # fmt: skip
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with contextlib.ExitStack() as last:
        # What runs in the background ignores interrupts, and so would what it starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        last.callback(signal.signal, signal.SIGINT, before)
        process = last.enter_context(subprocess.Popen(program, **streams))
        last.callback(process.kill)
        process.stdin.write(b"id\nsomebody\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(b"{")
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGINT
        assert b'"interrupted": true' in printed.splitlines()[-1]
        assert said.startswith(b"panprivacy: ended by SIGINT: ")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
@pytest.mark.parametrize("entry", ["panprivacy_launcher", "panprivacy"])
def test_on_other_systems_one_line_says_what_to_do(platform, entry):
    program = f"import sys; sys.platform = {platform!r}; import {entry}; {entry}.main()"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert found.returncode in {1, 2}
    last = found.stderr.splitlines()[-1]
    assert "on macOS and Windows take a container or WSL" in last
