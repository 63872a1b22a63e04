"""Kernels: how they are compiled, where they are kept, and what they refuse."""

from __future__ import annotations

import ast
import os
import pty
import re
import shutil
import subprocess
import sys
import timeit
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Thread

import numpy as np
import pytest
from llvmlite import ir
from numba import config, njit, types
from numba.extending import intrinsic

import panprivacy
from panprivacy.ground import kernels as _kernels
from panprivacy.ground.kernels import (
    Kernel,
    cache_folder,
    helper,
    inlined,
    instruction,
    kernel,
    source_digest,
    wipe_stack,
)
from tests.unit.test_startup import BARE, PATIENCE, _double, told

MARK = "panprivacy: compiling its kernels"


COMPILE = "from panprivacy.ground.kernels import wipe_stack; print(wipe_stack())"


WHERE = "from panprivacy.ground.kernels import cache_folder; print(cache_folder(''))"


PACKAGE = Path(panprivacy.__file__).parent


ADDRESSES = """
import numpy as np
from panprivacy.tables.addressing import Hashed
from panprivacy.tables.ids import IntegerIds
print(*Hashed(1 << 20, bytes(16)).slots([IntegerIds(np.arange(3))]))
"""


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


class TestCompiling:
    @pytest.mark.long
    def test_it_is_said_on_a_terminal_once(self, tmp_path):
        first, second = (told_on_a_terminal(COMPILE, NUMBA_CACHE_DIR=tmp_path) for _ in range(2))
        assert first.strip() == f"{MARK}, once: up to a minute of processor time"
        assert second == ""

    @pytest.mark.long
    def test_it_is_said_in_a_pipe_once_and_kept_in_a_named_folder(self, tmp_path):
        said = f"{MARK}, once: up to a minute of processor time\n"
        assert told(COMPILE, NUMBA_CACHE_DIR=tmp_path) == ("131072", said)
        assert told(COMPILE, NUMBA_CACHE_DIR=tmp_path) == ("131072", "")
        assert [*tmp_path.rglob("*wipe_stack*.nbi")]

    @pytest.mark.long
    def test_it_is_said_once_of_many_kernels(self, tmp_path):
        program = "from panprivacy.tables import hashing\n"
        program += "from panprivacy.ground.kernels import wipe_stack\n"
        program += "wipe_stack(); hashing.hash_integers.made()"
        assert told_on_a_terminal(program, NUMBA_CACHE_DIR=tmp_path).count(MARK) == 1

    @pytest.mark.long
    def test_a_terminal_has_a_progress_bar_the_first_time(self, tmp_path):
        program = "from panprivacy.ground.kernels import compile_kernels\ncompile_kernels()"
        program = f"import panprivacy.tables.slices\n{program}"
        first, second = (told_on_a_terminal(program, NUMBA_CACHE_DIR=tmp_path) for _ in range(2))
        line, bar = first.strip().splitlines()[0], first.splitlines()[-1]
        assert line.startswith(MARK)
        assert re.fullmatch(r"\[#{40}\] (\d+) of \1", bar)
        assert second == ""

    @pytest.mark.long
    def test_a_pipe_has_a_line_and_no_bar(self, tmp_path):
        program = "import panprivacy.tables.slices\n"
        program += "from panprivacy.ground.kernels import compile_kernels; compile_kernels()"
        _, said = told(program, NUMBA_CACHE_DIR=tmp_path)
        assert said == f"{MARK}, once: up to a minute of processor time\n"

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

        monkeypatch.setattr(_kernels, "_cache_in", full)
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


def _written(folder, name, source):
    """A folder with one file."""
    path = folder / name
    path.parent.mkdir(parents=True)
    path.write_text(source)
    return folder


def _altered(source):
    """The source of the hash with one word of one inlined function changed."""
    changed = source.replace("fold(product ^ _SECRET_0,", "fold(product ^ _SECRET_1,")
    assert changed != source
    return changed


def _foreign(path, modules):
    """Constants that functions of a file use and that come from a file without kernels."""
    tree = ast.parse(path.read_text())
    imports = [one for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
    foreign = {
        name.asname or name.name
        for one in imports
        if (one.module or "").startswith("panprivacy") and one.module not in modules
        for name in one.names
    }
    compiled = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
        and {"kernel", "inlined", "helper"} & _names(one.decorator_list)
    ]
    return foreign & _names([statement for one in compiled for statement in one.body])


def _names(nodes):
    """All names that some nodes use."""
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


make = Kernel._make


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

    def test_each_version_and_source_has_its_own(self):
        digest = source_digest(PACKAGE)
        assert cache_folder("").name == f"kernels-{panprivacy.__version__}-{digest}"

    @pytest.mark.parametrize(
        ("name", "source", "changes"),
        [
            ("deep/one.py", "from panprivacy.ground.kernels import inlined\nONE = 2", True),
            ("instructions.py", "from numba.extending import intrinsic\nONE = 2", True),
            ("other.py", "ONE = 2", False),
            ("notes.txt", "from panprivacy.ground.kernels import inlined", False),
        ],
    )
    def test_the_digest_is_of_files_with_kernels(self, tmp_path, name, source, changes):
        before = _written(tmp_path / "before", name, source)
        after = _written(tmp_path / "after", name, source.replace("2", "3") + "\n")
        assert (source_digest(before) != source_digest(after)) is changes

    def test_kernels_take_constants_from_files_with_kernels_only(self):
        files = [path for path in PACKAGE.rglob("*.py") if "kernels import" in path.read_text()]
        modules = {
            ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files
        }
        assert len(modules) > 20
        foreign = [(path.name, one) for path in files for one in _foreign(path, modules)]
        assert foreign == []

    def test_kernels_of_other_sources_are_removed_a_day_after_their_last_use(self, tmp_path):
        old, recent, other = (tmp_path / name for name in ("kernels-0", "kernels-1", "others-0"))
        for folder in (old, recent, other):
            folder.mkdir()
            (folder / "one.nbi").write_text("")
        for folder in (old, other):
            os.utime(folder, (0, 0))
        told(WHERE, NUMBA_CACHE_DIR=tmp_path, HOME="/no")
        cache_folder(str(tmp_path))
        assert sorted(tmp_path.iterdir()) == [cache_folder(str(tmp_path)), recent, other]

    @pytest.mark.long
    def test_a_changed_function_counts_in_the_kernels_of_other_files(self, tmp_path):
        """The file of the kernel stays as it is, as do its date and the folder of the cache."""
        package, kept = tmp_path / "panprivacy", tmp_path / "kept"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        found = [told(ADDRESSES, path=tmp_path, NUMBA_CACHE_DIR=kept)[0]]
        hashing = package / "tables/hashing.py"
        hashing.write_text(_altered(hashing.read_text()))
        found += [told(ADDRESSES, path=tmp_path, NUMBA_CACHE_DIR=kept)[0] for _ in range(2)]
        assert found[0] != found[1] == found[2]

    @pytest.mark.long
    def test_a_frozen_package_keeps_its_kernels_where_it_is_told(self, frozen, tmp_path):
        kept = tmp_path / "kept"
        kept.mkdir()
        runs = [told(COMPILE, path=frozen, CACHE_DIRECTORY=kept, HOME="/no") for _ in range(2)]
        assert [done for done, _ in runs] == ["131072"] * 2
        assert [said.count(MARK) for _, said in runs] == [1, 0]
        assert len([*kept.rglob("*wipe_stack*.nbi")]) == 1

    @pytest.mark.long
    def test_without_any_folder_it_is_compiled_at_each_start(self, frozen):
        said = told_on_a_terminal(COMPILE, PYTHONPATH=frozen, HOME="/no")
        assert said.startswith(f"{MARK}, at each start")


STACK_MARK = 0xC7


MARKED_BYTES = 60 << 10


TAKEN_BYTES = 64 << 10
"""The part next to the caller stays unmarked: what returns and waits may lie there."""


@intrinsic
def _mark_stack(_context):
    def generate(_context, builder, _signature, _arguments):
        byte, size, bit = ir.IntType(8), ir.IntType(64), ir.IntType(1)
        piece = builder.alloca(ir.ArrayType(byte, TAKEN_BYTES))
        start = builder.bitcast(piece, byte.as_pointer())
        fill = builder.module.declare_intrinsic("llvm.memset", (byte.as_pointer(), size))
        builder.call(fill, [start, byte(STACK_MARK), size(MARKED_BYTES), bit(1)])
        return builder.ptrtoint(start, size)

    return types.int64(), generate


@njit
def mark_stack():
    """Leave marks on the stack; where they lie."""
    return _mark_stack()


def marks_left(after):
    """How many marks another thread sees on the stack of one that called `after` and waits."""
    places, marked, seen = [], Event(), Event()

    def work():
        places.append(mark_stack())
        after()
        marked.set()
        seen.wait(PATIENCE)

    mark_stack()  # compiled by now
    thread = Thread(target=work)
    thread.start()
    try:
        assert marked.wait(PATIENCE)
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:
            memory.seek(places[0])
            stack = np.frombuffer(memory.read(MARKED_BYTES), np.uint8)
    finally:
        seen.set()
        thread.join()
    assert stack.size == MARKED_BYTES
    return np.count_nonzero(stack == STACK_MARK)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_the_stack_is_overwritten():
    assert marks_left(lambda: None) > MARKED_BYTES // 2
    assert marks_left(wipe_stack) == 0
