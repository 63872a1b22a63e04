"""Functions that are compiled on the first call, and cached on disk.

Importing numba takes longer than importing all the rest, so nothing here imports it before that.

| decorator | for |
|---|---|
| `kernel` | what Python calls |
| `inlined` | what a kernel calls, copied into it |
| `helper` | what a kernel calls, as a function of its own |
| `instruction` | what only LLVM can say, from `_intrinsics` |
"""

from __future__ import annotations

import functools
import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any

from panprivacy.ground.caching import PACKAGE, sources, user_folders, writable_folder

_MARKS = b"panprivacy.ground.kernels import", b"from numba"
"""Bytes in a file whose functions are compiled."""
_SAYS = "panprivacy: compiling its kernels, once: up to a minute of processor time\n"
_SAYS_EACH_TIME = (
    "panprivacy: compiling its kernels, at each start: up to a minute of processor time, as no "
    "folder that could keep them can be written; NUMBA_CACHE_DIR names one\n"
)
_BAR_WIDTH = 40
"""Characters of the progress bar."""

_compiling = RLock()
"""Held by the one thread that compiles; kernels see through to others, hence more than once."""

_kernels: list[Kernel] = []
"""All kernels of the modules that were imported."""


class Lazy(ABC):
    """A compiled form of a function, made on first use."""

    def __init__(self) -> None:
        self._made: Any = None

    def made(self) -> Any:
        """Return the compiled form; it is made once, by the first thread that needs it."""
        with _compiling:
            if self._made is None:
                self._made = self._make()
        return self._made

    @abstractmethod
    def _make(self) -> Any: ...


class InlinedFunction(Lazy):
    """A function that kernels call, and Python too: it is compiled for the types that come.

    Its attribute `plain` is the function as it stands, for numbers that no compiled type holds.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__()
        self.plain, self._options = function, options
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return (self._made or self.made())(*arguments)

    def _make(self) -> Any:
        from numba import njit  # noqa: PLC0415 - slow to import

        return njit(**self._options)(_with_made(self.plain))


class Kernel(InlinedFunction):
    """A function that Python calls with arguments of declared types."""

    def __init__(self, function: Callable[..., Any], signatures: tuple[str, ...]) -> None:
        super().__init__(function, nogil=True)
        self._signatures = signatures
        _kernels.append(self)

    def _make(self) -> Any:
        from numba import config, njit  # noqa: PLC0415 - slow to import

        function, options, types = _with_made(self.plain), self._options, [*self._signatures]
        folder = cache_folder(config.CACHE_DIR)
        with _reported(_SAYS if folder else _SAYS_EACH_TIME):
            if folder is None:
                return njit(types, **options)(function)
            try:
                with _cache_in(folder):
                    return njit(types, cache=True, **options)(function)
            except OSError:  # the disk may be full
                return njit(types, **options)(function)


class Instruction(Lazy):
    """A name out of `_intrinsics`, which kernels alone can call."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __call__(self, *_arguments: Any) -> Any:
        """Refuse: there is nothing that Python could run."""
        message = f"{self._name} is for kernels"
        raise NotImplementedError(message)

    def _make(self) -> Any:
        from panprivacy.ground import intrinsics  # noqa: PLC0415 - imports numba

        return getattr(intrinsics, self._name)


def kernel(*signatures: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Compile a function when it is first called, for types such as "void(uint8[::1], int64)".

    Other threads run while it does: a caller that shares an array with one locks it, as for NumPy.
    """
    return lambda function: Kernel(function, signatures)


def inlined(function: Callable[..., Any]) -> InlinedFunction:
    """Copy a function into the kernels that call it."""
    return InlinedFunction(function, inline="always")


def helper(function: Callable[..., Any]) -> InlinedFunction:
    """Compile a function for the kernels that call it."""
    return InlinedFunction(function)


def instruction(name: str) -> Instruction:
    """Take a function from `_intrinsics` for the kernels that call it."""
    return Instruction(name)


def read_only(kind: str) -> str:
    """Return an array of this type in a signature; it may be read-only, as Arrow's."""
    return f"Array({kind}, 1, 'C', readonly=True)"


def compile_kernels() -> None:
    """Make all kernels of what was imported ready, before there are any ids or requests.

    Who compiles in the middle of a batch has the caller wait for it, with ids in memory.
    A terminal gets a progress bar, if anything is compiled.
    """
    progress = _Progress(len(_kernels))
    try:
        for done, one in enumerate(_kernels, 1):
            one.made()
            progress.show(done)
    finally:
        progress.end()


def _with_made(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, with the lazy names it uses replaced by their compiled forms."""
    names = function.__globals__
    code = function.__code__
    lazy = {name: names[name] for name in code.co_names if isinstance(names.get(name), Lazy)}
    made = {name: one.made() for name, one in lazy.items()}
    return FunctionType(code, {**names, **made}, function.__name__)


# Where they are kept


@functools.cache
def cache_folder(named: str) -> Path | None:
    """Return the first folder that can be written, or None; NUMBA_CACHE_DIR is the first choice.

    Its name has the version and the digest of all sources that kernels may be compiled from.
    Numba itself compares the file of a kernel only, and not the files of functions that it inlines.
    """
    return writable_folder(_folders(named), "kernels", source_digest(PACKAGE))


def source_digest(package: Path) -> str:
    """Return a digest of all files of a package that have kernels, or parts of kernels.

    It reads every file once a process, when the first kernel is needed: about 20 milliseconds.
    """
    digest = hashlib.blake2b(digest_size=8)
    for source in sources(package):
        if any(mark in source for mark in _MARKS):
            digest.update(b"%d " % len(source) + source)
    return digest.hexdigest()


def _folders(named: str) -> Iterator[Path]:
    """Yield the named cache folder, that of the package, and those of the user."""
    if named:
        yield Path(named)
    yield PACKAGE / "__pycache__"
    yield from user_folders()


@contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Make numba cache its compiled code in this folder meanwhile; other caches are unchanged."""
    from numba import config  # noqa: PLC0415 - slow to import

    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


# What is said


@contextmanager
def _reported(words: str) -> Iterator[None]:
    """Report when numba compiles a function, which it does not if it is cached."""
    from numba.core import event  # noqa: PLC0415 - slow to import

    class Teller(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            _compiled.append(event.kind)
            _say(words)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Teller()):
        yield


_compiled: list[str] = []
"""One entry for each function that this process has compiled."""


@functools.cache
def _say(words: str) -> None:
    """Write a line to standard error, once a process: in a notebook and in a log too."""
    if sys.stderr is not None:
        sys.stderr.write(words)
        sys.stderr.flush()


class _Progress:
    """A bar on a terminal, for the kernels that are ready; it appears once something is compiled.

    Args:
        kernels: the number of kernels.
    """

    def __init__(self, kernels: int) -> None:
        self._kernels, self._before, self._drawn = kernels, len(_compiled), False

    def show(self, done: int) -> None:
        """Draw the bar with so many kernels ready."""
        if len(_compiled) == self._before or sys.stderr is None or not sys.stderr.isatty():
            return
        bar = ("#" * (_BAR_WIDTH * done // self._kernels)).ljust(_BAR_WIDTH, "-")
        sys.stderr.write(f"\r[{bar}] {done} of {self._kernels}")
        sys.stderr.flush()
        self._drawn = True

    def end(self) -> None:
        """Begin a new line, if there is a bar."""
        if self._drawn:
            sys.stderr.write("\n")


# The stack

_zero_stack = instruction("zero_stack")


@kernel("int64()")
def wipe_stack() -> int:
    """Overwrite what functions that have returned left on this thread's stack and in its registers.

    The last values that a parser or a kernel handled lie there for as long as the thread waits.
    """
    return _zero_stack()
