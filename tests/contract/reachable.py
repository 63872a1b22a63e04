"""What an intruder finds: every value that can be reached from a live object.

The walk knows a few kinds of values and containers and the classes of the package. Everything
else (generators, functions, views of foreign memory, classes of others) is reported as it is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from threading import Lock
from types import MemberDescriptorType, NoneType

import numpy as np

from panprivacy.statistics.statistic import Statistic

VALUES = {bool, int, float, str, bytes, Fraction, NoneType, np.uint64, np.ndarray}
SEQUENCES = {list, tuple, set, frozenset}
LOCK = type(Lock())

PARTS = "memory", "windows", "contributions", "releasing"
"""The internals of a statistic."""

DECLARED = {
    "_known", "account", "addressing", "cells", "coins", "compared", "first_plan", "kept", "ledger",
    "name", "plan", "sizes", "slice",
}  # fmt: skip
"""The attributes of the parts of a statistic."""

MAY_HOLD_BYTES = {
    "kept.key",
    "kept.arrays[0]",
    "addressing._weights",  # the key of a published moment
    "addressing._starts",  # where each level begins: of the plan alone
    "cells.scores",  # what a cell counts for: of the plan alone
}
MAY_HOLD_BYTES |= {
    f"{plan}.law.{name}{base}"
    for plan in ("plan", "first_plan", "cells")
    for name in ("weights", "members")
    for base in ("", ".base")
}
MAY_DEPEND_ON_ROWS = {"kept.arrays[0]"}


def attributes(thing: object) -> dict[str, object]:
    """What an object holds in slots and in its dictionary, of all base classes."""
    slots = [
        name
        for base in type(thing).__mro__
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    ]
    held = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return {**held, **getattr(thing, "__dict__", {})}


def held(root: object) -> dict[str, object]:
    """What an object holds; of a statistic, what its parts do, but for each other and records."""
    found = attributes(root)
    internals = found.pop("internals", None)
    each = [getattr(internals, name) for name in PARTS] if internals else []
    return found | {
        name: child
        for part in each
        for name, child in attributes(part).items()
        if not any(child is other for other in each) and not isinstance(child, type)
    }


def leaves(root: object) -> dict[str, object]:
    """Every value reachable from `root`, by its path."""
    return {
        f"{name}{path}": value for name, child in held(root).items() for path, value in _walk(child)
    }


def _walk(thing: object) -> Iterator[tuple[str, object]]:
    children = _children(thing)
    if children is None or isinstance(thing, np.ndarray):
        yield "", thing
    for name, child in children or ():
        for path, value in _walk(child):
            yield f"{name}{path}", value


def _children(thing: object) -> list[tuple[str, object]] | None:
    """The parts of a container or of an object of the package; None for a value."""
    kind = type(thing)
    if kind is np.ndarray:
        return [] if thing.base is None else [(".base", thing.base)]
    if kind in VALUES:
        return None
    if kind is dict:
        return [*_numbered(thing), *((f"[{key!r}]", value) for key, value in thing.items())]
    if kind in SEQUENCES:
        return _numbered(thing)
    if kind is LOCK:
        return [(".locked", thing.locked())]
    if kind.__module__.startswith(("panprivacy.", "tests.contract.test_new_statistic")):
        return [(f".{name}", child) for name, child in attributes(thing).items()]
    return None


def _numbered(things) -> list[tuple[str, object]]:
    return [(f"[{index}]", thing) for index, thing in enumerate(things)]


def undeclared(
    statistic: object, declared: set[str] = DECLARED, may_hold_bytes: set[str] = MAY_HOLD_BYTES
) -> set[str]:
    """Paths that no statistic may have, and values of kinds that it may not hold."""
    found = leaves(statistic)
    strangers = {path for path in found if path.split(".")[0].split("[")[0] not in declared}
    foreign = {path for path, value in found.items() if type(value) not in VALUES}
    raw = {path for path, value in found.items() if isinstance(value, (bytes, np.ndarray))}
    return strangers | foreign | (raw - may_hold_bytes)


def differences(one: object, other: object) -> set[str]:
    """The paths at which two objects hold different values."""
    first, second = leaves(one), leaves(other)
    shared = first.keys() & second.keys()
    changed = {path for path in shared if not _same(first[path], second[path])}
    return changed | (first.keys() ^ second.keys())


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and bool(np.array_equal(one, other))


def hidden(live: Callable[[int], Statistic]) -> set[str]:
    """Where a statistic keeps more than its plan, its state and its budget.

    Args:
        live: makes a statistic and leads it through the same public events every time, with the
            same coins, over batches of so many rows.
    """
    few, many = live(10), live(1_000)
    return undeclared(many) | (differences(few, many) - MAY_DEPEND_ON_ROWS)


def holds(value: object, canary: int) -> bool:
    """Whether a value is or shows the id: as a number, in digits or in binary."""
    if isinstance(value, np.ndarray):
        if value.dtype == np.int64:  # bytes of two small numbers in a row may look like an id
            return str(canary).encode() in value.tobytes() or bool((value == canary).any())
        return holds(value.tobytes(), canary)
    if isinstance(value, bytes):
        return str(canary).encode() in value or canary.to_bytes(8, "little") in value
    return str(canary) in value if isinstance(value, str) else value == canary


def package_globals() -> dict[str, str]:
    """What the modules of the package hold in plain variables and in caches."""
    return {
        f"{module_name}.{name}": str(value.cache_info().currsize) if cached else repr(value)
        for module_name, module in sys.modules.items()
        if module_name.startswith("panprivacy")
        for name, value in vars(module).items()
        if (cached := isinstance(value, functools._lru_cache_wrapper))
        or (not name.startswith("__") and type(value) in {*VALUES, *SEQUENCES, dict, bytearray})
    }
