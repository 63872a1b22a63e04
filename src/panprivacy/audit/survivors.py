"""What survives in a live object: everything that can be reached from it, as one value.

Two programs in which the same survives behave the same from there on, whatever came before. So
the audit need not walk what follows twice, and it need not believe that `state()` tells all.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Hashable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from threading import Lock
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any, Final

import numpy as np

_VALUES: Final = {NoneType, bool, int, float, complex, str, bytes, Fraction, Decimal}
_NAMES: Final = (np.generic, Enum, type, ModuleType, CodeType, BuiltinFunctionType)
_LOCK: Final = type(Lock())
_PROTOCOL: Final = 4
"""Of `pickle`, by which objects written in C say what they are made of."""


class Survivors:
    """Makes values of live objects; one object of this class for one audit.

    Args:
        public: an object that is looked through no further: the coins, which belong to the audit.
    """

    def __init__(self, public: object) -> None:
        self._public = public
        self._frozen: dict[int, tuple[object, Hashable]] = {}
        self._strangers = itertools.count()

    def of(self, thing: object) -> Hashable:
        """Everything that can be reached from `thing`."""
        return self._walk(thing, {})

    def _walk(self, thing: object, above: dict[int, int]) -> Hashable:
        """A value for `thing`; `above` has the place of each object that is being walked."""
        if thing is self._public:
            return "the coins"
        if _is_value(thing):
            return type(thing), thing
        if id(thing) in self._frozen:
            return self._frozen[id(thing)][1]
        if id(thing) in above:
            return "above", above[id(thing)]
        inside = {**above, id(thing): len(above)}
        value = self._parts(thing, lambda part: self._walk(part, inside))
        if _is_frozen(thing):
            self._frozen[id(thing)] = thing, value  # the object is kept, so that its id is too
        return value

    def _parts(self, thing: object, walk: Callable[[object], Hashable]) -> Hashable:
        """The parts of a container or an object."""
        kind = type(thing)
        if isinstance(thing, np.ndarray):
            held = walk(thing.tolist()) if thing.dtype.hasobject else thing.tobytes()
            return kind, thing.dtype.str, thing.shape, held
        if isinstance(thing, bytearray | memoryview):
            return kind, bytes(thing)
        if isinstance(thing, dict):
            pairs = tuple((walk(key), walk(value)) for key, value in thing.items())
            return kind, pairs, _attributes(thing, walk)
        if isinstance(thing, set | frozenset):
            return kind, frozenset(map(walk, thing))
        if isinstance(thing, list | tuple):
            return kind, tuple(map(walk, thing)), _attributes(thing, walk)
        return self._object(thing, walk)

    def _object(self, thing: object, walk: Callable[[object], Hashable]) -> Hashable:
        if isinstance(thing, _LOCK):
            return _LOCK, thing.locked()
        if isinstance(thing, MethodType):
            return MethodType, walk(thing.__func__), walk(thing.__self__)
        if isinstance(thing, FunctionType):
            cells = [cell.cell_contents for cell in thing.__closure__ or ()]
            return thing.__code__, walk(cells), walk(thing.__defaults__), walk(thing.__kwdefaults__)
        if not _hides(type(thing)):
            return type(thing), _attributes(thing, walk)
        try:
            return type(thing), walk(thing.__reduce_ex__(_PROTOCOL))
        except TypeError:  # it cannot be written down
            return type(thing), "unlike any other", next(self._strangers)


def _attributes(thing: Any, walk: Callable[[object], Hashable]) -> tuple[Hashable, ...]:
    """What an object holds in slots and in its dictionary, of all base classes."""
    kind: Any = type(thing)
    held = {name: getattr(thing, name) for name in _slots(kind) if hasattr(thing, name)}
    held.update(getattr(thing, "__dict__", {}))
    return tuple((name, walk(value)) for name, value in held.items())


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    return tuple(
        name
        for base in kind.__mro__
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    )


def _hides(kind: type) -> bool:
    """Whether objects of this class hold more than attributes, as those written in C do."""
    return kind.__basicsize__ > object.__basicsize__ + 8 * (len(_slots(kind)) + 2)


def _is_value(thing: object) -> bool:
    return type(thing) in _VALUES or isinstance(thing, _NAMES)


def _is_frozen(thing: object) -> bool:
    """Whether nothing that can be reached from `thing` can ever change."""
    if _is_value(thing):
        return True
    if isinstance(thing, np.ndarray):
        return not thing.flags.writeable and isinstance(thing.base, bytes | NoneType)
    if isinstance(thing, tuple | frozenset):
        return all(map(_is_frozen, thing))
    return _is_frozen_dataclass(thing)


def _is_frozen_dataclass(thing: Any) -> bool:
    parameters = getattr(type(thing), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or hasattr(thing, "__dict__"):
        return False
    return all(_is_frozen(getattr(thing, field.name)) for field in dataclasses.fields(thing))
