"""What each test reaches of the modules that have mutants."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants.kernels import with_called
from benchmarks.mutants.modules import TESTS

_STARTS_A_PROGRAM = {"subprocess.Popen", "os.fork", "os.posix_spawn"}


class Recorder:
    """The lines that each test reaches, and those that were reached for it and others at once.

    It is made before anything of the package is imported: lines are recorded by context, which is a
    test, a fixture, or a function that keeps what it returned, and each says which others it uses.
    """

    def __init__(self, measured: Any) -> None:
        self._measured, self._context = measured, ""
        self._uses: dict[str, set[str]] = {}
        self._seconds: dict[str, float] = {}
        self._kernels: dict[str, dict[int, Any]] = {}
        self._programs: set[str] = set()
        self._failed: set[str] = set()
        self._record_caches()
        from panprivacy.ground.kernels import InlinedFunction  # noqa: PLC0415 - of the copy

        call, recorder = InlinedFunction.__call__, self

        def called(part: Any, *arguments: Any) -> Any:
            recorder._kernels.setdefault(recorder._context, {})[id(part)] = part
            return call(part, *arguments)

        InlinedFunction.__call__ = called
        sys.addaudithook(self._heard)

    def _heard(self, event: str, _: Any) -> None:
        if event in _STARTS_A_PROGRAM:
            self._programs.add(self._context)

    def _record_caches(self) -> None:
        """Have what is found in a cache count as computed by whoever asks for it."""
        cached_property, cached = functools.cached_property, functools.lru_cache

        def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:  # noqa: FBT001, FBT002
            if callable(maxsize):
                return lru_cache()(maxsize)
            return lambda function: _Cached(function, cached(maxsize, typed), self)

        class Property(cached_property):
            def __get__(self, instance: Any, owner: Any = None) -> Any:
                if instance is None:
                    return self
                with recorder.shared(f"kept {self.func.__module__}.{self.func.__qualname__}"):
                    return super().__get__(instance, owner)

            def __set__(self, instance: Any, value: Any) -> None:
                vars(instance)[self.attrname] = value

        recorder = self
        functools.lru_cache, functools.cached_property = lru_cache, Property
        functools.cache = lru_cache(None)

    def uses(self, context: str) -> None:
        """Have what is done now use what was done in another context."""
        self._uses.setdefault(self._context, set()).add(context)

    @contextmanager
    def shared(self, context: str) -> Iterator[None]:
        """What is done for whoever asks first, and used by others."""
        self.uses(context)
        before = self._context
        self._enter(context)
        try:
            yield
        finally:
            self._enter(before)

    def _enter(self, context: str) -> None:
        self._context = context
        self._measured.switch_context(context)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Record a test."""
        fixtures = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
        self._uses[item.nodeid] = {
            f"fixture {name}"
            for name, defined in fixtures.items()
            if defined[-1].scope != "function"
        }
        self._enter(item.nodeid)
        begun = time.perf_counter()
        result = yield
        self._seconds[item.nodeid] = time.perf_counter() - begun
        self._enter("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Record a fixture that several tests use."""
        if fixturedef.scope == "function":
            return (yield)
        with self.shared(f"fixture {fixturedef.argname}"):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See which fail."""
        if report.failed:
            self._failed.add(report.nodeid)

    def found(self) -> dict[str, Any]:
        """By the name of the test, None of those that fail, and what is reached before them all."""
        lines = self._lines()
        tests: dict[str, Any] = {}
        for test, seconds in self._seconds.items():
            used = self._used_by(test)
            tests[test] = (
                None
                if test in self._failed
                else {
                    "seconds": round(seconds, 4),
                    "programs": bool(self._programs & used),
                    "lines": _joined(lines.get(context, {}) for context in used),
                }
            )
        before = _joined(lines.get(context, {}) for context in self._used_by(""))
        return {"collecting": before, "tests": tests}

    def _used_by(self, test: str) -> set[str]:
        """A test, and what it shares with others."""
        found: set[str] = set()
        left = [test]
        while left:
            context = left.pop()
            if context not in found:
                found.add(context)
                left += self._uses.get(context, ())
        return found

    def _lines(self) -> dict[str, dict[str, set[int]]]:
        """By context and file."""
        found: dict[str, dict[str, set[int]]] = {}
        package = Path("src/panprivacy").resolve()
        data = self._measured.get_data()
        for file in data.measured_files():
            name = Path(file).relative_to(package).as_posix()
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    found.setdefault(context, {}).setdefault(name, set()).add(line)
        for context, parts in self._kernels.items():
            for part in (one for kernel in parts.values() for one in with_called(kernel)):
                if hasattr(part, "plain"):
                    code = part.plain.__code__
                    name = Path(code.co_filename).resolve().relative_to(package).as_posix()
                    reached = {line for _, _, line in code.co_lines() if line}
                    if name in TESTS:
                        found.setdefault(context, {}).setdefault(name, set()).update(reached)
        return found


def _joined(some: Iterable[dict[str, set[int]]]) -> dict[str, list[int]]:
    joined: dict[str, set[int]] = {}
    for one in some:
        for file, lines in one.items():
            joined.setdefault(file, set()).update(lines)
    return {file: sorted(lines) for file, lines in joined.items()}


class _Cached:
    """A function that keeps what it returned, as those of `functools`."""

    def __init__(self, function: Any, cached: Any, recorder: Recorder) -> None:
        functools.update_wrapper(self, function)
        self._context = f"kept {function.__module__}.{function.__qualname__}"
        self._recorder = recorder

        def computed(*arguments: Any, **named: Any) -> Any:
            with recorder.shared(self._context):
                return function(*arguments, **named)

        self._cached = cached(computed)
        self.cache_clear, self.cache_info = self._cached.cache_clear, self._cached.cache_info

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self._recorder.uses(self._context)
        return self._cached(*arguments, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)
