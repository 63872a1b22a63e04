"""Starting takes little time and memory, and kernels are compiled once, when they are first called.

Times are those of the processor, as shares of what a peer takes in the same run: importing NumPy
and Arrow, without which there is nothing to count.
"""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path
from unittest import mock

import pytest
import typer

import panprivacy
from panprivacy.cli import _COMMANDS, _ELSEWHERE
from panprivacy.ground import kernels as _kernels
from panprivacy.ground.kernels import kernel
from tests.commands import run_command

ROUNDS = 3
PATIENCE = 300
PEER = ["-c", "import numpy, pyarrow"]
HELP = ["-m", "panprivacy", "--help"]
NAMES = ["-c", "from panprivacy import DistinctCount, plan"]
MOST_HELP = 2.5
MOST_NAMES = 4
MOST_MEGABYTES = 150
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


class TestCost:
    @pytest.mark.long
    def test_the_help_takes_about_as_long_as_the_imports_it_spares(self):
        assert share_of_the_peer(HELP) < MOST_HELP

    @pytest.mark.long
    def test_the_interface_takes_a_few_times_as_long_at_most(self):
        assert share_of_the_peer(NAMES) < MOST_NAMES

    @pytest.mark.long
    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="read from /proc")
    def test_the_interface_takes_little_memory(self):
        shows = "print(next(l for l in open('/proc/self/status') if 'VmRSS' in l).split()[1])"
        printed, _ = told(f"{NAMES[1]}\n{shows}")
        assert int(printed) < MOST_MEGABYTES << 10

    @pytest.mark.long
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

    @pytest.mark.long
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
            if isinstance(node, ast.ImportFrom)
            and node.module.startswith("panprivacy.")
            and node.names[0].name not in panprivacy._FOLDERS
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


def _double(number):
    return number + number


COUNT = """
import sys, pyarrow as pa, panprivacy as pp
ids = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(bytes(16))])
named = pa.DictionaryArray.from_arrays(ids.cast(pa.int32()), ids)
for users in ids, pa.chunked_array([ids, ids]), named:
    count = pp.DistinctCount(epsilon=1, expected=3_000, deletions=True, bound=9)
    count.update(users, ids if len(users) == 2 else pa.chunked_array([ids, ids]))
print(sorted({"pandas"} & set(sys.modules)))
"""


@pytest.mark.long
def test_to_count_columns_of_arrow_imports_no_pandas():
    """It takes a second, which the first request of a service would wait."""
    pytest.importorskip("pandas")
    assert told(COUNT)[0] == "[]"


LISTS = """
import sys
import panprivacy as pp

for users in (["ada", "bob", ""], [1, 2, 2**63 - 1], ("grace",)):
    pp.DistinctCount(epsilon=1, expected=3_000).update(users)
print(sorted({"pandas"} & set(sys.modules)))
"""


@pytest.mark.long
def test_to_count_lists_of_few_users_imports_no_pandas():
    """It takes a quarter of a second, which the first update would wait."""
    pytest.importorskip("pandas")
    assert told(LISTS)[0] == "[]"


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
