"""Compiled functions, cached on disk where a folder can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function once and cache it; without a writable folder, compile it at each start."""

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(*signatures, cache=True, **options)(function)
        except RuntimeError:
            return njit(*signatures, **options)(function)

    return compiled
