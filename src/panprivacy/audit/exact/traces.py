"""Traces of a program outside of its state, and leaks of its answers beyond their counts.

A child process runs the program on a stream, another one on the neighbour. Both draw the same, and
the noise of a release is such that the same counts come out. The traces that a program leaves in
files, lines, warnings, variables of modules and caches of functions must then be the same, and so
must its answers: every difference comes from the rows.

The noise is tried near, and far beyond what the audit walks. What is not seen: what libraries
written in C keep, what other processes are told, and what is left only for one id or one count that
is not tried.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import hashlib
import io
import itertools
import logging
import os
import stat
import sys
import sysconfig
import tempfile
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fcntl import F_GETFL, fcntl
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.exact.children import RaisedError, in_a_child
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.survivors import Survivors
from panprivacy.audit.streams import RELEASE, EventStream, take
from panprivacy.errors import PlanError, allow_noise
from panprivacy.ground.kernels import compile_kernels

Make = Callable[[EnumeratedCoins], Any]
Traces = list[list[str]]
"""Each place and its content, abbreviated; in the order of discovery."""


class LeakError(PlanError):
    """A program reveals more than its state and its counts."""


_PATTERNS: Final = 8
"""Ways for draws to come out: each the first outcome, the last, or in six ways mixed."""

_TARGETS: Final = (0, 3, -3, 100, -100, 10**6, -(10**6))
"""The counts of all releases, in tails."""

SAYS_MORE: Final = (
    "an answer tells more than its counts: with the same counts it is not always the same; compute "
    "all of it from the noised counts"
)

_ANSWER: Final = "answer"

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS: Final = (
    "os.exec", "os.link", "os.mkdir", "os.posix_spawn", "os.putenv", "os.remove", "os.rename",
    "os.rmdir", "os.setxattr", "os.spawn", "os.symlink", "os.system", "os.truncate", "os.utime",
    "socket.bind", "socket.connect", "socket.sendmsg", "socket.sendto", "sqlite3.connect",
    "subprocess.Popen", "syslog.syslog",
)  # fmt: skip
"""Events that Python reports (PEP 578) and other processes can observe, beside `open`."""

_CLOCKS: Final = {
    "created", "msecs", "relativeCreated", "process", "processName", "thread", "threadName",
    "taskName", "_ray_timestamp_ns",
}  # fmt: skip
"""Fields of a log record that depend on the writer and the time.

Ray adds a clock to those of the whole process.
"""

_MADE_BY_PYTHON: Final = {
    "__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__",
    "__path__", "__spec__", "__warningregistry__",
}  # fmt: skip
"""Variables of a module that Python makes; warnings are noted when they are given."""


@dataclass(slots=True)
class PlannedCoins(EnumeratedCoins):
    """Coins that come out as planned: by a pattern, and the noise of releases as it was ordered.

    Args:
        pattern: one of `_PATTERNS` ways to come out.
        ordered: noise of all releases, 0 where there is no more.
    """

    pattern: int = 0
    ordered: list[int] = field(default_factory=list)

    def _choose(self, law: Sequence[Fraction]) -> int:
        """Return the planned outcome of one draw."""
        possible = [index for index, weight in enumerate(law) if weight]
        self.tossed += 1
        if self.pattern < 2:
            return possible[-self.pattern]
        mixed = hashlib.sha256(f"{self.pattern} {self.tossed}".encode()).digest()
        return possible[int.from_bytes(mixed) % len(possible)]

    def _draw_noise(self, law: Sequence[Fraction], size: int) -> NDArray[np.int64]:
        if not self.publishing:  # it stays in the state
            return np.array([self._choose(law) for _ in range(size)], np.int64) - len(law) // 2
        drawn = [self.ordered.pop(0) if self.ordered else 0 for _ in range(size)]
        return np.array(drawn, np.int64)


def check_traces(
    make: Make, pairs: Iterable[tuple[EventStream, EventStream]], coins: EnumeratedCoins
) -> str | None:
    """Refuse a program that leaves a trace of its rows outside its state.

    Tried is the pair of streams that differ in most steps.

    Returns:
        Why the program has to be refused unless its loss is infinite: an answer tells more than its
        counts; None if none does.

    Raises:
        LeakError: something else is not the same after a stream and after its neighbour.
        ChildError: a process of the check ended, so there is no result.
    """
    pair = max(pairs, key=_differing_steps)
    runs = [(pattern, tails * coins.tail) for tails in _TARGETS for pattern in range(_PATTERNS)]

    def plan(run: int, ordered: Sequence[int] = ()) -> PlannedCoins:
        return PlannedCoins(
            coins.addressing_key, coins.tail, coins.state_tail,
            pattern=runs[run][0], ordered=[*ordered],
        )  # fmt: skip

    planned = [plan(run) for run in range(len(runs))]
    try:
        found: list[Any] = [in_a_child(_raw_counts, make, stream, planned) for stream in pair]
    except RaisedError:
        return None  # it fails, or has no such counts: the walk says so
    if [*map(len, found[0]["raw"])] != [*map(len, found[1]["raw"])]:
        return None
    for each in found:
        _import(each["imported"])  # or else they would be new in each child, and slow
    compile_kernels()  # here, once: numba writes files
    traces: list[Any] = []
    for stream, each in zip(pair, found, strict=True):
        targets = [(raw, target) for raw, (_, target) in zip(each["raw"], runs, strict=True)]
        ordered = [[target - count for count in raw] for raw, target in targets]
        planned = [plan(run, noise) for run, noise in enumerate(ordered)]
        try:
            traces.append(in_a_child(_traces, make, stream, planned))
        except RaisedError as error:
            why = str(error).splitlines()[-1]
            return f"it fails where a release has much noise ({why}): answer for any noise"
    return _compare_traces(*traces)


def _compare_traces(first: Any, second: Any) -> str | None:
    """Raise `LeakError` at the first place where two lists of traces differ, but for answers.

    These are compared where they have the same counts, which ordered noise sees to: but not if it
    is drawn in another way, as a point of a group, and then the walk sees all of it.
    """
    answers = [[trace for trace in traces if trace[0] == _ANSWER] for traces in (first, second)]
    others = [[trace for trace in traces if trace[0] != _ANSWER] for traces in (first, second)]
    for one, other in itertools.zip_longest(*others, fillvalue=None):
        if one != other:
            place = (one or other or [""])[0]
            message = (
                f"something of the rows is left in {place}: after a stream and its neighbour it "
                "is not the same, though answers are; keep it in state(), or do not keep it"
            )
            raise LeakError(message)
    pairs = zip(*answers, strict=True)
    if any(one != other for one, other in pairs if one[-1] == other[-1]):
        return SAYS_MORE
    return None


def _import(names: Iterable[str]) -> None:
    for name in names:
        with suppress(ImportError):
            import_module(name)


def _differing_steps(pair: tuple[EventStream, EventStream]) -> int:
    return sum(repr(one) != repr(other) for one, other in zip(*pair, strict=True))


def _raw_counts(make: Make, stream: EventStream, planned: Iterable[PlannedCoins]) -> dict[str, Any]:
    """Return the counts of all releases of each run, without noise, and the modules imported."""
    before = {*sys.modules}
    _Listener()  # or else others would hear this run
    raw = [
        [int(count) for answer in _lived(make, stream, coins)[1] for count in answer.counts]
        for coins in planned
    ]
    return {"raw": raw, "imported": [name for name in sys.modules if name not in before]}


@allow_noise()
def _lived(make: Make, stream: EventStream, coins: PlannedCoins) -> tuple[Any, list[Any]]:
    """Return a statistic at the end of a stream, and its answers."""
    statistic, answers = make(coins), []
    for step in stream:
        coins.publishing = step == RELEASE
        answer = take(statistic, step)
        answers += [answer] if coins.publishing else []
    return statistic, answers


def _traces(make: Make, stream: EventStream, planned: Sequence[PlannedCoins]) -> Traces:
    """Return all traces that runs of a program leave in this process and outside of it."""
    said, answers = _Listener(), []
    for coins in planned:
        statistic, given = _lived(make, stream, coins)
        walk = Survivors(coins, numbered=False)
        answers += [
            [_ANSWER, _short(walk.fingerprint(answer)), repr(tuple(map(int, answer.counts)))]
            for answer in given
        ]
    traces = answers + said.heard()
    found = sorted(_variables(make, statistic), key=lambda one: not isinstance(one[1], _CONTAINERS))
    held = Survivors(None, numbered=False).held(value for _, value in found)
    named = zip(found, held, strict=True)
    return traces + [[f"the variable {name}", _short(one)] for (name, _), one in named]


_CONTAINERS: Final = (list, dict, set, bytearray, np.ndarray, type(functools.cache(lambda: None)))
"""Walked first, so that they are named, and not what leads to them."""


def _short(thing: Hashable) -> str:
    return hashlib.sha256(repr(thing).encode(errors="backslashreplace")).hexdigest()


# What is written


class _Listener:
    """Notes what a process writes, from now on until it ends.

    Other processes may write to its output and to logs that it has open, so it gets its own.
    """

    def __init__(self) -> None:
        self._heard: Traces = []
        self._folder, self._builtins = Path.cwd(), {**vars(builtins)}
        self._paths: dict[str, None] = {}
        files = [one for one in _open_files() if one[0] not in {1, 2}]
        logs = {f"the open file {name}": number for number, name, _, is_log in files if is_log}
        outputs = {"the output": 1, "the output of errors": 2, **logs}
        self._streams = {name: _redirected(number) for name, number in outputs.items()}
        self._open = {name: end for _, name, end, is_log in files if not is_log}
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(os.dup(number), "wb", 0), write_through=True)
            for number in (1, 2)
        )
        warnings.simplefilter("always")
        warnings.showwarning = self._warning
        logging.disable(logging.NOTSET)
        for logger in [logging.root, *logging.root.manager.loggerDict.values()]:
            if isinstance(logger, logging.Logger):
                logger.setLevel(1)
                logger.disabled = False
        vars(logging)["Logger"].handle = lambda _, record: self._record(record)
        self._listens = True
        sys.addaudithook(self._event)

    def heard(self) -> Traces:
        """Return everything that was written, by channel."""
        self._listens = False
        written = [
            [f"the file {path}", _short(Path(path).read_bytes())]
            for path in self._paths
            if Path(path).is_file()
        ]
        grown = [
            [f"the open file {name}", str(end)]
            for _, name, end, _ in _open_files()
            if name in self._open
        ]
        lines = [
            [name, _short(os.pread(number, os.fstat(number).st_size, 0))]
            for name, number in self._streams.items()
        ]
        return [
            *self._heard,
            *written,
            *grown,
            *lines,
            *self._process(),
        ]

    def _process(self) -> Traces:
        """Return the state that Python has for the process, in no module that a program names."""
        before, after = self._builtins, vars(builtins)
        changed = {name: one for name, one in after.items() if before.get(name) is not one}
        threads = sorted(one.name for one in threading.enumerate())
        context = {one.name: value for one, value in contextvars.copy_context().items()}
        held = Survivors(None, numbered=False).held([changed, context])
        os.umask(mask := os.umask(0))
        return [
            ["the environment", _short(repr(os.environ))],
            ["the folder of the process", os.path.relpath(Path.cwd(), self._folder)],
            ["the mask of new files", str(mask)],
            ["the names of threads", _short(tuple(threads))],
            ["the variables of builtins", _short(held[0])],
            ["the variables of the context", _short(held[1])],
        ]

    def _warning(self, message: Any, category: Any, *_: Any, **__: Any) -> None:
        self._heard.append(["a warning", _short((str(message), category.__qualname__))])

    def _record(self, record: logging.LogRecord) -> None:
        told = {name: value for name, value in vars(record).items() if name not in _CLOCKS}
        self._heard.append(["a log line", _short(*Survivors(None, numbered=False).held([told]))])

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._listens:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = any(letter in mode for letter in "wax+") if mode else flags & _WRITES
            if writes and not isinstance(path, int):
                place = os.path.relpath(os.fsdecode(path))
                self._paths[place] = None
                self._heard.append([f"the file {place}", ""])
        elif event.startswith(_EVENTS):
            self._heard.append([f"what {event} does", _short(arguments)])


def _redirected(number: int) -> int:
    """Make a descriptor write to a file that has no name."""
    held, name = tempfile.mkstemp()
    Path(name).unlink()
    os.dup2(held, number)
    return held


def _open_files() -> Iterator[tuple[int, str, int, bool]]:
    """Yield each file open for writing: descriptor, name, length, and whether only for writing."""
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - the numbers alone
        try:
            info, name = os.fstat(number), str(Path(f"/proc/self/fd/{number}").readlink())
            mode = fcntl(number, F_GETFL) & os.O_ACCMODE
        except OSError:  # the listing's own
            continue
        if stat.S_ISREG(info.st_mode) and mode != os.O_RDONLY:
            yield number, name, info.st_size, mode == os.O_WRONLY


# What is kept


def _variables(make: Make, statistic: Any) -> Iterator[tuple[str, Any]]:
    """Yield the variables of the program's modules and of their classes, by name."""
    for module, names in _namespaces(make, statistic):
        for name, value in list(names.items()):
            if name not in _MADE_BY_PYTHON:
                yield f"{module}.{name}", value
                if isinstance(value, type) and value.__module__ == module:
                    held = {key: each for key, each in vars(value).items() if key != "__weakref__"}
                    yield f"{module}.{name}", held


def _namespaces(make: Make, statistic: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the modules that a program's code names, and those that these name, with variables."""
    closed = [
        cell.cell_contents
        for cell in getattr(make, "__closure__", None) or ()
        if cell != CellType()
    ]
    kinds = [kind for kind in type(statistic).__mro__ if kind is not object]
    inner = [value for kind in kinds for value in vars(kind).values()]
    things = [make, getattr(make, "func", None), *closed, *kinds, *inner]
    packages = {"panprivacy", *map(_package, things)} - sys.stdlib_module_names
    seen = set()
    while things:
        for names in _where(things.pop()):
            if id(names) not in seen and _is_of_program(names, packages):
                seen.add(id(names))
                things += names.values()
                yield str(names.get("__name__")), names


def _where(thing: Any) -> Iterator[dict[str, Any]]:
    """Yield the variables of the module of a thing, and of those that its code imports."""
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
    imported = {name}
    if isinstance(thing, FunctionType):
        yield thing.__globals__  # of a module that may have no name
        imported |= _names_in(thing.__code__)
    for each in imported - {"__main__"}:  # examples may be run with that name, too
        if isinstance(each, str) and isinstance(module := sys.modules.get(each), ModuleType):
            yield vars(module)


def _names_in(code: CodeType) -> set[str]:
    """Return the names that a piece of code, and the code within it, uses."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return {*code.co_names}.union(*map(_names_in, inner))


def _is_of_program(names: Mapping[str, Any], packages: set[str]) -> bool:
    """Return whether variables belong to the program, or to no installed library and not Python."""
    package, path = str(names.get("__name__")).partition(".")[0], names.get("__file__")
    if package in packages:
        return True
    return package not in sys.stdlib_module_names and not str(path).startswith(_LIBRARIES)


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", None)).partition(".")[0]


_LIBRARIES: Final = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
