"""The surviving state of a live object: everything that can be reached from it, as one value.

Two programs with the same surviving state behave the same from there on, for every history. So the
audit need not repeat the continuation, and need not trust that `state()` is complete.

Attributes, slots, containers and what functions have closed over are walked, with what is one
object and what are equal copies distinguished, and the variables of the classes of all of these.
Not covered: variables of modules and of other classes, and caches of functions.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import gc
import itertools
import logging
import operator
import warnings
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from threading import Lock
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GenericAlias,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any, Final

import numpy as np

_VALUES: Final = {NoneType, bool, int, float, complex, str, bytes, Fraction, Decimal}
_PLAIN: Final = {NoneType, bool, int, str, bytes}
_NAMES: Final = (np.generic, Enum, type, GenericAlias, ModuleType, CodeType, logging.Logger)
_COMPILED: Final = ("numba", "llvmlite", "typing")
"""Libraries whose objects hold code or types, and no data."""

_CACHE: Final[Any] = type(functools.cache(lambda: None))
_ON_THE_HEAP: Final = 1 << 9
"""Flag of the classes that are made at run time, whose variables can be set."""
_BARE: Final = {dict, list, tuple, set, frozenset}
_LOCK: Final = type(Lock())
_PROTOCOL: Final = 4
"""Version of the `pickle` protocol, by which objects written in C describe their contents."""

Walker = Callable[[object], Hashable]


class Survivors:
    """Makes fingerprints of live objects for one audit; its coins are looked through no further.

    Args:
        coins: coins of the audit.
        numbered: whether frozen things are told by a number, which is quicker to compare, and means
            something in this process alone.
    """

    def __init__(self, coins: object, *, numbered: bool = True) -> None:
        self._coins, self._numbered = coins, numbered
        self._frozen: dict[int, tuple[object, Hashable, dict[type, None]]] = {}
        self._classes: dict[type, tuple[list[Any], dict[str, Any]]] = {}
        self._kinds: dict[type, None] = {}  # of what the fingerprint has met, in order
        self._numbers: dict[Hashable, int] = {}
        self._strangers = itertools.count()

    def fingerprint(self, thing: object) -> Hashable:
        """Return everything that can be reached from `thing`, and the variables of all classes."""
        seen: dict[int, tuple[object, int]] = {}
        self._kinds = {}
        found = [self._walk(thing, seen)]
        watched: set[type] = set()
        while classes := [kind for kind in self._kinds if kind not in watched]:
            watched.update(classes)
            bases = dict.fromkeys(base for kind in classes for base in _ours(kind))
            variables = filter(None, map(self._variables, bases))
            found.extend(self._walk(each, seen) for each in variables)
        return tuple(found)

    def _variables(self, kind: type) -> dict[str, Any]:
        """Return the variables of a class, but for methods and descriptors."""
        values = list(vars(kind).values())
        before, found = self._classes.get(kind, ([], {}))
        if len(values) == len(before) and all(map(operator.is_, values, before)):
            return found
        found = {
            f"{kind.__qualname__}.{name}": value
            for name, value in vars(kind).items()
            if type(value) is not FunctionType  # as most are
            and not (callable(value) or hasattr(value, "__get__"))  # nor descriptors
            and not name.startswith(("__", "_abc_"))
        }
        self._classes[kind] = values, found
        return found

    def held(self, things: Iterable[object]) -> list[Hashable]:
        """Return everything that can be reached from each thing; a known thing is only named."""
        seen: dict[int, tuple[object, int]] = {}
        return [self._walk(thing, seen) for thing in things]

    def _walk(self, thing: object, seen: dict[int, tuple[object, int]]) -> Hashable:
        """Return a value for `thing`; `seen` has the earlier things, kept alive, by number."""
        kind: Any = type(thing)
        if _is_value(kind):
            return kind, thing if kind in _PLAIN else _canonical(thing)
        if thing is self._coins:
            return "the coins"
        if id(thing) in self._frozen:
            _, known, kinds = self._frozen[id(thing)]
            self._kinds.update(kinds)
            return known
        if _may_be_frozen(kind) and _is_frozen(
            thing
        ):  # whether it is one object or equal copies makes no difference
            before, self._kinds = self._kinds, {kind: None}
            parts = self._parts(thing, lambda part: self._walk(part, {}))
            if self._numbered:
                parts = "frozen", self._numbers.setdefault(parts, len(self._numbers))
            self._frozen[id(thing)] = thing, parts, self._kinds
            self._kinds = {**before, **self._kinds}
            return parts
        if id(thing) in seen:
            return "again", seen[id(thing)][1]
        seen[id(thing)] = thing, len(seen)
        self._kinds[kind] = None
        return self._parts(thing, lambda part: self._walk(part, seen))

    def _parts(self, thing: Any, walk: Walker) -> Hashable:
        """Return the class of a thing, what it is made of, and its attributes."""
        kind: Any = type(thing)
        built_on = _built_on(kind)
        if built_on is FunctionType:
            names = thing.__closure__, thing.__defaults__, thing.__kwdefaults__, thing.__dict__
            return thing.__code__, tuple(map(walk, names))
        if built_on is object:
            made_of: Hashable = self._written_down(thing, walk) if _hides(kind) else None
        elif built_on is dict:
            made_of = tuple([(walk(key), walk(value)) for key, value in thing.items()])
        elif built_on in _SEQUENCES:  # sets in the order of their walk
            made_of = tuple(map(walk, thing))
        elif built_on is np.ndarray:
            made_of = _array(thing, walk)
        elif built_on is memoryview:
            made_of = bytes(thing), walk(thing.obj)
        elif built_on is bytearray:
            made_of = bytes(thing)
        else:
            made_of = self._of_python(thing, walk)
        if kind in _BARE:
            return kind, made_of
        held = {**_in_slots(thing), **getattr(thing, "__dict__", {})}
        return kind, made_of, tuple([(name, walk(value)) for name, value in held.items()])

    def _of_python(self, thing: Any, walk: Walker) -> Hashable:
        """Return the contents of one of Python's own objects beside its attributes."""
        if isinstance(thing, MethodType):
            return walk(thing.__func__), walk(thing.__self__)
        if isinstance(thing, BuiltinFunctionType):
            return thing.__name__, walk(thing.__self__)
        if isinstance(thing, _LOCK):
            return thing.locked()
        return "empty" if thing == CellType() else walk(thing.cell_contents)

    def _written_down(self, thing: object, walk: Walker) -> Hashable:
        """Return the contents of an object written in C, as it describes them for pickling."""
        known: Any = copyreg.dispatch_table.get(type(thing))
        if isinstance(thing, _CACHE):  # it writes down its name only
            return tuple(thing.cache_info()), tuple(map(walk, gc.get_referents(thing)))
        try:
            with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # itertools
                made = known(thing) if known else thing.__reduce_ex__(_PROTOCOL)
        except (TypeError, ValueError, AttributeError):  # it cannot be written down, or asked
            return "unlike any other", next(self._strangers)
        if isinstance(made, str):
            return made
        items = [None if each is None else list(each) for each in made[3:5]]
        return tuple(map(walk, [*made[:3], *items]))


@functools.cache
def _ours(kind: type) -> tuple[type, ...]:
    """Return a class and its bases, as far as they are written in Python and can change."""
    return tuple(
        base
        for base in kind.__mro__
        if base.__flags__ & _ON_THE_HEAP and base.__module__.split(".")[0] not in _COMPILED
    )


def _array(array: Any, walk: Walker) -> Hashable:
    """Return an array, and the memory that it is a view of."""
    held = walk(array.tolist()) if array.dtype.hasobject else array.tobytes()
    start = array.ctypes.data - array.base.ctypes.data if isinstance(array.base, np.ndarray) else 0
    layout = array.dtype.str, array.shape, array.strides, array.flags.writeable
    return layout, held, start, walk(array.base)


def _in_slots(thing: Any) -> dict[str, Any]:
    """Return the values in the slots of an object; its own `__getattr__` may do anything."""
    kind: Any = type(thing)
    held = {}
    for name in _slots(kind):
        try:  # `suppress` takes longer than all the rest
            held[name] = object.__getattribute__(thing, name)
        except AttributeError:
            continue
    return held


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    return tuple(
        name
        for base in kind.__mro__
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    )


@functools.cache
def _hides(kind: type) -> bool:
    """Return whether objects of this class hold more than attributes, as those written in C do."""
    pointers = len(_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ > 0 or kind.__basicsize__ > object.__basicsize__ + 8 * pointers


_SEQUENCES: Final = (list, tuple, set, frozenset)
_OTHERS: Final = (FunctionType, dict, *_SEQUENCES, np.ndarray, memoryview, bytearray)
_OF_PYTHON: Final = (MethodType, BuiltinFunctionType, _LOCK, CellType)


@functools.cache
def _built_on(kind: type) -> type:
    """Return the class with more than attributes that a class is built on; `object` if none."""
    return next((one for one in (*_OTHERS, *_OF_PYTHON) if issubclass(kind, one)), object)


def _canonical(value: Any) -> Hashable:
    """Return a value that no other number equals: 0.0 is not -0.0, and 1.0 not 1.00."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, Fraction):  # whose own hash takes long
        return value.as_integer_ratio()
    return value.as_tuple() if isinstance(value, Decimal) else value


@functools.cache
def _is_value(kind: type) -> bool:
    """Return whether objects of this class are identified by equality."""
    named = issubclass(kind, _NAMES) or kind.__module__.split(".")[0] in _COMPILED
    return kind in _VALUES or named


@functools.cache
def _may_be_frozen(kind: Any) -> bool:
    """Return whether some objects of this class can never change."""
    parameters = getattr(kind, "__dataclass_params__", None)
    holds = parameters is not None and parameters.frozen and not kind.__dictoffset__
    return _is_value(kind) or issubclass(kind, np.ndarray) or kind in {tuple, frozenset} or holds


def _is_frozen(thing: Any) -> bool:
    """Return whether nothing that can be reached from `thing` can ever change."""
    kind: Any = type(thing)
    if not _may_be_frozen(kind):
        return False
    if _is_value(kind):
        return True
    if issubclass(kind, np.ndarray):
        return not thing.flags.writeable and isinstance(thing.base, bytes)
    if kind in {tuple, frozenset}:
        return all(map(_is_frozen, thing))
    return all(_is_frozen(getattr(thing, field.name)) for field in dataclasses.fields(thing))
