"""Compiled kernels, kept by what they do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numba
import numpy as np
from numba.core import caching


def keep_kernels_by_content(folder: Path) -> None:
    """Keep each kernel in a folder of its content, so that only what a mutant changes is compiled.

    numba would compile all kernels of a changed file again, and none of another file, though it
    may have taken over a changed function.
    """
    from panprivacy.ground.kernels import Kernel  # noqa: PLC0415 - of the copy

    make = Kernel._make
    caching._SourceFileBackedLocatorMixin.get_source_stamp = lambda _: 0  # noqa: SLF001

    def made(kernel: Any) -> Any:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder / _content(kernel))
        try:
            return make(kernel)
        finally:
            numba.config.CACHE_DIR = before

    Kernel._make = made


def _content(kernel: Any) -> str:
    """A hash of the code of a kernel, of what it calls, and of the numbers that both name."""
    digest = hashlib.sha256(np.__version__.encode() + numba.__version__.encode())
    for part in with_called(kernel):
        options = getattr(part, "_options", None), getattr(part, "_signatures", None)
        digest.update(repr((options, getattr(part, "_name", ""))).encode())
        if hasattr(part, "plain"):
            digest.update(
                repr(list(_said_by(part.plain.__code__, part.plain.__globals__))).encode()
            )
    return digest.hexdigest()[:32]


def with_called(part: Any) -> list[Any]:
    """A kernel and all parts that it calls, each once."""
    found: dict[int, Any] = {}
    left = [part]
    while left:
        one = left.pop()
        if id(one) in found:
            continue
        found[id(one)] = one
        if hasattr(one, "plain"):
            names = one.plain.__globals__
            called = (names.get(name) for name in _names(one.plain.__code__))
            left += [
                other for other in called if type(other).__module__ == "panprivacy.ground.kernels"
            ]
    return list(found.values())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _said_by(code: CodeType, names: dict[str, Any]) -> Iterator[object]:
    yield code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _said_by(constant, names)
        else:
            yield constant
    for name in code.co_names:
        value = names.get(name)
        if isinstance(value, np.ndarray):
            yield name, value.dtype.str, value.shape, value.tobytes()
        elif isinstance(value, (int, float, str, tuple, np.generic)):
            yield name, value
        else:
            yield name, getattr(value, "__name__", type(value).__name__)
