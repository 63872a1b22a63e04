"""Starting takes little time and memory, and kernels are compiled once, when they are first called.

Times are those of the processor, as shares of what a peer takes in the same run: importing NumPy
and Arrow, without which there is nothing to count.
"""

from __future__ import annotations

import ast
import inspect
import os
import pty
import shutil
import subprocess
import sys
import timeit
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from threading import Barrier
from unittest import mock

import numpy as np
import pytest
import typer
from numba import config, njit

import panprivacy
from panprivacy import _kernels
from panprivacy._kernels import Kernel, helper, inlined, instruction, kernel
from panprivacy.cli import _COMMANDS, _ELSEWHERE
from tests.commands import run_command

ROUNDS = 3
PATIENCE = 300
PEER = ["-c", "import numpy, pyarrow"]
HELP = ["-m", "panprivacy", "--help"]
NAMES = ["-c", "from panprivacy import DistinctCount, plan"]
MOST_HELP = 2.5
MOST_NAMES = 4
MOST_MEGABYTES = 150
MARK = "panprivacy: compiling its kernels"
COMPILE = "from panprivacy._kernels import wipe_stack; print(wipe_stack())"
WHERE = "from panprivacy._kernels import cache_folder; print(cache_folder(''))"
PLACES = ("HOME", "XDG_CACHE_HOME", "CACHE_DIRECTORY", "NUMBA_CACHE_DIR")
BARE = {name: value for name, value in os.environ.items() if name not in PLACES}


def share_of_the_peer(arguments):
    """How many times as long as the peer a fresh process takes: the least of rounds in turn."""
    rounds = [(measured(arguments), measured(PEER)) for _ in range(ROUNDS)]
    ours, peers = map(min, zip(*rounds, strict=True))
    return ours / peers


def measured(arguments):
    """What one process takes, with those that it becomes."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def told(program, *, path=None, **environment):
    """What a fresh process prints, and what it says on standard error."""
    places = {} if path is None else {"PYTHONPATH": str(path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**BARE, **places, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def told_on_a_terminal(program, **environment):
    """What a fresh process says on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**BARE, **{name: str(value) for name, value in environment.items()}},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
        assert process.wait(PATIENCE) == 0
    os.close(ours)
    return said.decode()


def _read(terminal):
    try:
        return os.read(terminal, 1 << 12)
    except OSError:  # nobody has it open any more
        return b""


@pytest.fixture
def frozen(tmp_path):
    """The package in a folder where nobody can write: a file is in the way of its caches."""
    package = tmp_path / "frozen" / "panprivacy"
    source = Path(panprivacy.__file__).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(one for one in package.rglob("*") if one.is_dir())]:
        (folder / "__pycache__").write_text("")
    return package.parent


class TestCost:
    def test_the_help_takes_about_as_long_as_the_imports_it_spares(self):
        assert share_of_the_peer(HELP) < MOST_HELP

    def test_the_interface_takes_a_few_times_as_long_at_most(self):
        assert share_of_the_peer(NAMES) < MOST_NAMES

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="read from /proc")
    def test_the_interface_takes_little_memory(self):
        shows = "print(next(l for l in open('/proc/self/status') if 'VmRSS' in l).split()[1])"
        printed, _ = told(f"{NAMES[1]}\n{shows}")
        assert int(printed) < MOST_MEGABYTES << 10

    def test_what_is_not_used_is_not_imported(self):
        unused = {"numba", "matplotlib", "rich", "sqlalchemy", "scipy"}
        printed, _ = told(f"{NAMES[1]}\nimport sys; print({unused} & {{*sys.modules}})")
        assert printed == "set()"

    def test_the_help_imports_no_library_that_counts(self):
        program = """
            import sys
            sys.argv[1:] = ["--help"]
            from panprivacy.cli import main
            try:
                main()
            finally:
                counting = {"numba", "matplotlib", "rich", "numpy", "pyarrow"}
                sys.stderr.write(str(counting & {*sys.modules}))
        """
        printed, said = told(inspect.cleandoc(program))
        assert "Commands:" in printed
        assert said == "set()"


class TestNames:
    def test_all_public_names_are_there(self):
        for name in panprivacy.__all__:
            assert getattr(panprivacy, name) is vars(panprivacy)[name]

    def test_they_are_listed_before_they_are_imported(self):
        printed, _ = told("import panprivacy as pp; print({*pp.__all__} <= {*dir(pp)})")
        assert printed == "True"

    def test_a_star_imports_them(self):
        printed, _ = told("from panprivacy import *; print(DistinctCount.__name__, plan.__name__)")
        assert printed == "DistinctCount plan"

    def test_their_modules_are_there_too(self):
        printed, _ = told("import panprivacy as pp; print(pp.errors.PlanError is pp.PlanError)")
        assert printed == "True"

    def test_each_has_one_home_and_the_types_say_the_same(self):
        tree = ast.parse(Path(panprivacy.__file__).read_text())
        typed = {
            node.module.removeprefix("panprivacy."): [one.name for one in node.names]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module.startswith("panprivacy.")
        }
        typed.pop("_version")
        assert typed == panprivacy._HOMES
        assert sorted(chain(*typed.values())) == panprivacy.__all__

    def test_another_name_is_refused(self):
        with pytest.raises(AttributeError, match="no attribute 'Distinct'"):
            panprivacy.Distinct  # noqa: B018

    @pytest.mark.parametrize("command", _COMMANDS)
    def test_the_help_says_of_a_command_what_it_says_of_itself(self, command):
        module = import_module(f"panprivacy.cli.{_ELSEWHERE.get(command, command)}")
        found = getattr(module, command)
        told = found.info.help if isinstance(found, typer.Typer) else inspect.getdoc(found)
        assert told.split("\n\n")[0] == _COMMANDS[command]


class TestCompiling:
    def test_it_is_said_on_a_terminal_once(self, tmp_path):
        first, second = (told_on_a_terminal(COMPILE, NUMBA_CACHE_DIR=tmp_path) for _ in range(2))
        assert first.strip() == f"{MARK}, once ..."
        assert second == ""

    def test_it_is_not_said_in_a_pipe_and_kept_in_a_named_folder(self, tmp_path):
        assert told(COMPILE, NUMBA_CACHE_DIR=tmp_path) == ("131072", "")
        assert [*tmp_path.rglob("*wipe_stack*.nbi")]

    def test_it_is_said_once_of_many_kernels(self, tmp_path):
        program = "from panprivacy import hashing; from panprivacy._kernels import wipe_stack\n"
        program += "wipe_stack(); hashing.hash_integers.made()"
        assert told_on_a_terminal(program, NUMBA_CACHE_DIR=tmp_path).count(MARK) == 1

    def test_threads_that_call_first_at_the_same_time_compile_once(self, monkeypatch):
        made = []
        monkeypatch.setattr(Kernel, "_make", lambda self: made.append(make(self)) or made[-1])
        doubled, barrier = kernel("int64(int64)")(_double), Barrier(8)

        def call(number):
            barrier.wait()
            return doubled(number)

        with ThreadPoolExecutor(8) as pool:
            assert [*pool.map(call, range(8))] == [2 * number for number in range(8)]
        assert len(made) == 1

    def test_arguments_of_other_types_are_refused(self):
        with pytest.raises(TypeError, match="No matching definition"):
            kernel("int64(int64)")(_double)(np.zeros(1))

    def test_what_a_kernel_calls_is_compiled_too(self):
        assert kernel("uint64(uint64)")(_calls)(np.uint64(12)) == 2 + 13 + 14

    def test_what_only_a_kernel_can_call_refuses_python(self):
        with pytest.raises(NotImplementedError, match="trailing_zeros is for kernels"):
            _zeros(np.uint64(12))

    def test_it_keeps_its_name_and_what_it_says(self):
        assert _more.__name__ == "_more"
        assert _more.__doc__ == "One more."

    def test_a_full_disk_does_not_keep_it_from_running(self, monkeypatch):
        def full(_folder):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(_kernels, "_kept_in", full)
        assert kernel("int64(int64)")(_double)(3) == 6

    def test_others_keep_what_they_compile_where_they_did(self):
        before = config.CACHE_DIR
        kernel("int64(int64)")(_double)(3)
        assert before == config.CACHE_DIR

    def test_a_call_takes_one_more_of_python_s(self):
        plain, ours = njit("int64(int64)")(_double), kernel("int64(int64)")(_double)
        kinds = (plain, ours)
        seconds = [min(timeit.repeat(partial(one, 1), number=500, repeat=400)) for one in kinds]
        assert seconds[1] < 6 * seconds[0], "the least of many short times, on a busy machine too"


make = Kernel._make


def _double(number):
    return number + number


@inlined
def _more(number):
    """One more."""
    return number + np.uint64(1)


@helper
def _two_more(number):
    return _more(_more(number))


_zeros = instruction("trailing_zeros")


def _calls(number):
    return _zeros(number) + _more(number) + _two_more(number)


COUNT = """
import sys, pyarrow as pa, panprivacy as pp
ids = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(bytes(16))])
named = pa.DictionaryArray.from_arrays(ids.cast(pa.int32()), ids)
for users in ids, pa.chunked_array([ids, ids]), named:
    count = pp.DistinctCount(epsilon=1, expected=10, deletions=True, bound=9)
    count.update(users, ids if len(users) == 2 else pa.chunked_array([ids, ids]))
print(sorted({"pandas"} & set(sys.modules)))
"""


def test_to_count_columns_of_arrow_imports_no_pandas():
    """It takes a second, which the first request of a service would wait."""
    pytest.importorskip("pandas")
    assert told(COUNT)[0] == "[]"


class TestReadiness:
    """A program that takes events has all kernels before the first one comes."""

    def test_all_kernels_are_made(self, monkeypatch):
        monkeypatch.setattr(_kernels, "_kernels", [kernel("int64(int64)")(_double)])
        _kernels.compile_kernels()
        assert [one._made is not None for one in _kernels._kernels] == [True]

    def test_run_is_ready_before_it_opens_its_input(self, monkeypatch):
        run = import_module("panprivacy.cli.run")
        monkeypatch.setattr(run, "compile_kernels", _stop)
        monkeypatch.setattr(run, "open_source", None)
        words = ["-", "--user", "id", "--stat", "distinct", "--epsilon", "1"]
        with pytest.raises(Stopped):
            run_command("run", *words)

    def test_serve_is_ready_before_it_listens(self, monkeypatch, tmp_path):
        server = import_module("panprivacy.service.server")
        config, engine = mock.Mock(), mock.Mock()
        config.server.directory, config.checkpoint = tmp_path, None
        engine.return_value.warm_up = _stop
        monkeypatch.setattr(server, "http_socket", None)
        monkeypatch.setattr(server, "LocalEngine", engine)
        with pytest.raises(Stopped):
            server.serve(config)


class Stopped(Exception):
    """A program came so far."""


def _stop():
    raise Stopped


class TestCache:
    def test_it_lies_beside_the_package(self):
        printed, _ = told(WHERE)
        assert Path(printed).parent == Path(panprivacy.__file__).parent / "__pycache__"

    def test_systemd_says_where_if_the_package_cannot_be_written(self, frozen, tmp_path):
        printed, _ = told(WHERE, path=frozen, CACHE_DIRECTORY=f"{tmp_path}:/elsewhere", HOME="/no")
        assert Path(printed).parent == tmp_path

    def test_the_desktop_says_where(self, frozen, tmp_path):
        printed, _ = told(WHERE, path=frozen, XDG_CACHE_HOME=tmp_path, HOME="/no")
        assert Path(printed).parent == tmp_path / "panprivacy"

    def test_it_lies_in_the_home_directory(self, frozen, tmp_path):
        printed, _ = told(WHERE, path=frozen, HOME=tmp_path)
        assert Path(printed).parent == tmp_path / ".cache" / "panprivacy"

    def test_a_relative_path_is_none(self, frozen, tmp_path):
        found = {"CACHE_DIRECTORY": "here", "XDG_CACHE_HOME": "there", "HOME": tmp_path}
        printed, _ = told(WHERE, path=frozen, **found)
        assert Path(printed).is_relative_to(tmp_path)

    def test_a_home_that_is_not_there_is_not_made(self, frozen, tmp_path):
        printed, _ = told(WHERE, path=frozen, HOME=tmp_path / "missing")
        assert printed == "None"
        assert not (tmp_path / "missing").exists()

    def test_each_version_has_its_own(self):
        assert _kernels.cache_folder("").name == f"kernels-{panprivacy.__version__}"

    def test_a_frozen_package_keeps_its_kernels_where_it_is_told(self, frozen, tmp_path):
        kept = tmp_path / "kept"
        kept.mkdir()
        for _ in range(2):
            assert told(COMPILE, path=frozen, CACHE_DIRECTORY=kept, HOME="/no") == ("131072", "")
        assert len([*kept.rglob("*wipe_stack*.nbi")]) == 1

    def test_without_any_folder_it_is_compiled_at_each_start(self, frozen):
        said = told_on_a_terminal(COMPILE, PYTHONPATH=frozen, HOME="/no")
        assert said.startswith(f"{MARK}, at each start")
