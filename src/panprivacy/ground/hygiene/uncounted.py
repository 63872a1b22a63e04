"""A cache of results that does not count its calls.

`functools.lru_cache` counts: in a function that an update calls, its counters tell how many updates
there were, which is nobody's to know where only a group with rows is updated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Final, ParamSpec, TypeVar

_MOST: Final = 1024

P = ParamSpec("P")
T = TypeVar("T")


def uncounted(function: Callable[P, T]) -> Callable[P, T]:
    """Keep up to 1,024 results of a function of public arguments, given by position."""
    known: dict[Hashable, T] = {}

    @functools.wraps(function)
    def looked_up(*arguments: P.args, **named: P.kwargs) -> T:
        try:  # no test whether it is there: hashing a fraction takes microseconds
            return known[arguments]
        except KeyError:
            found = function(*arguments, **named)
        if len(known) >= _MOST:
            known.clear()
        known[arguments] = found
        return found

    return looked_up
