"""What leaves an object by its public names, and whether it was paid for.

Two objects are made alike, with the same coins, and are fed different events. What differs between
what they give away depends on their states.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from panprivacy.errors import PanPrivacyError
from panprivacy.papers.local import LROracle, RandomisedResponse
from panprivacy.statistics.comparing import Comparisons
from panprivacy.statistics.entry import Cases, CatalogueEntry
from panprivacy.statistics.internals import Internals, Resumable
from panprivacy.statistics.private import Private
from panprivacy.testing import SeededCoins

from .reachable import attributes

LIVE = (Resumable, Private, Internals, LROracle, Comparisons)
"""What is handed out as it is, and is looked at by itself."""

LOOKS = {"state", "unsealed"}
"""What is the intrusion itself; who unseals has the identity."""

OF_MEMORY = {"kept", "now", "sums"}
"""The state itself, in the internals."""

UNPAID = {"with_noise", "fresh_noise", "contributed"}
"""What the rest of the package pays for before it calls it, and noise alone, in the internals."""

PARTS = "memory", "windows", "contributions", "releasing"
"""The internals of a program."""
CONTRIBUTES = {"contribute", "contribute_cells", "parts"}
"""What is paid for as a release, and is a look: no noise is added to what leaves."""
PAID_BEFORE = {
    "Stepwise": {"release"},
    "StepwiseReleasing": {"release"},
    "ChangeTriggered": {"check"},
    "MovingReleasing": {"check"},
    "StepCounter": {"step", "run", "round", "serve"},
    "PrivateExperts": {"choice", "values"},  # what the last round told
    "Comparisons": {"moved"},
}
"""What is paid for when the object is made, by the name of a class."""

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda one, _: one.add(1),
    "after": lambda one, _: one.after({}),
    "answer": lambda one, _: one.answer(one.reading(), np.ones(one.reading().size, np.int64)),
    "announcing": lambda one, _: _entered(one.announcing()),
    "apply": lambda one, life: one.apply(one.prepare(*life.more)),
    "ask": lambda one, _: one.ask(RandomisedResponse(2, 1)),
    "catch_up": lambda one, _: one.catch_up(one.now, one.plan.request.intrusions),
    "check_parts": lambda one, _: one.check_parts("sums"),
    "check_plans": lambda one, _: one.check_plans([one.plan]),
    "check_state": lambda one, life: one.check_state(life.blank()),
    "began_in": lambda one, life: one.began_in(life.blank()),
    "contributed": lambda one, _: one.contributed(one.reading()),
    "count": lambda one, _: one.count([1]),
    "earlier": lambda one, life: one.earlier(life.blank(), 0, 0),
    "expect": lambda one, _: one.expect(one.expects),
    "fresh_noise": lambda one, _: _noise(one),
    "go_on_from": lambda one, _: one.go_on_from(0.5),
    "initialise": lambda one, _: one.initialise(one.sizes, one.plan),
    "moved": lambda one, _: one.moved(0.0, Fraction(1, 2)),
    "parts": lambda one, _: [(part.told, part.body) for part in one.parts("sums")],
    "prepare": lambda one, life: one.prepare(*life.more),
    "query": lambda one, _: one.query({}),
    "reached": lambda one, _: one.reached({}),
    "rerandomise": lambda one, _: _rerandomised(one),
    "resume": lambda one, life: one.resume(life.blank()),
    "round": lambda one, _: one.round(np.zeros(one.n, bool)),
    "run": lambda one, _: one.run(np.zeros((1, one.n), bool) if hasattr(one, "unit") else [1]),
    "serve": lambda one, _: one.serve([1]),
    "spent": lambda one, _: one.spent([0]),
    "update": lambda one, life: one.update(*life.more),
    "with_noise": lambda one, _: one.with_noise(one.reading()),
}
"""How a method is called that needs arguments, or gives what cannot be compared."""

QUIET = {
    "absolute_margin", "after", "answer", "began_in", "bound",
    "check_parts", "check_plans", "check_release", "check_state", "check_steps",
    "check_threshold", "costs", "delta", "earlier", "interval",
    "largest_error", "loss", "lost", "noise", "of_release", "of_releases", "predicted_error",
    "predicted_variances", "prepare", "query", "reached", "reading",
    "spent", "state", "shows_range", "unread",
}  # fmt: skip
"""Methods that change nothing: all are called of one pair."""


@dataclass
class Life:
    """How an object is made and fed.

    Args:
        make: takes coins.
        events: of the first object, and of the second one.
        more: what both are given when something is fed later.
        feed: gives an object events.
        spent: what it has cost so far; taken from what holds the budget before a call.
        calls: how its own methods are called, as in `CALLS`.
        left: names that say again what has left, or do what was paid for when it was made.
    """

    make: Callable[[Any], Any]
    events: tuple[Any, Any]
    more: Any
    feed: Callable[[Any, Any], None] = lambda one, events: one.update(*events)
    spent: Callable[[Any], Callable[[], Any]] = lambda one: lambda ledger=one.ledger: ledger.spent
    calls: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    left: Collection[str] = ()

    def pair(self) -> list[tuple[Any, Watching]]:
        """Two objects of different states."""
        made = []
        for events in self.events:
            coins = Watching()
            one = self.make(coins)
            self.feed(one, events)
            made.append((one, coins))
        return made

    def blank(self) -> bytes:
        """The state of one to which nothing has happened."""
        return self.make(Watching()).state()


class Watching(SeededCoins):
    """Seeded coins that count noise."""

    def __init__(self) -> None:
        super().__init__(1)
        self.drawn = 0

    def bernoulli(self, probability, size):
        self.drawn += size
        return super().bernoulli(probability, size)

    def categorical(self, weights, size):
        self.drawn += size
        return super().categorical(weights, size)

    def discrete_laplace(self, scale, size):
        self.drawn += size
        return super().discrete_laplace(scale, size)


@dataclass
class Given:
    """What came of a name of both objects.

    Args:
        values: each in a form that can be compared.
        paid: whether both have spent something.
        noised: whether both have drawn something.
    """

    values: list[object] = field(default_factory=list)
    paid: bool = True
    noised: bool = True


def leaks(life: Life) -> list[str]:
    """The public names that give away something of the state, for nothing or without noise."""
    quiet = life.pair()
    if type(quiet[0][0]).__repr__ is not object.__repr__:
        assert len({repr(one) for one, _ in quiet}) == 1
    inner = PARTS if isinstance(quiet[0][0], Private) else ()
    parts = [lambda one: one, *(attrgetter(f"internals.{name}") for name in inner)]
    return [name for part in parts for name in leaks_of(life, part)]


def leaks_of(life: Life, part: Callable[[Any], Any]) -> list[str]:
    """The same of one part of it."""
    quiet, found = life.pair(), []
    one = part(quiet[0][0])
    allowed = set() if one is quiet[0][0] else OF_MEMORY | UNPAID
    for name in public_names(one):
        pair = quiet if name in QUIET or not callable_of(one, name) else life.pair()
        given = called(pair, name, life, part)
        if name == "state":
            assert given.values[0] != given.values[1], "the states are to differ"
        if given.values[0] != given.values[1] and not (
            name in life.left or declared(one, name, given, allowed)
        ):
            found.append(name)
    return found


def declared(one: object, name: str, given: Given, allowed: set[str]) -> bool:
    """Whether what differs may leave."""
    before = {name for base in type(one).__mro__ for name in PAID_BEFORE.get(base.__name__, ())}
    if name in LOOKS | allowed or name in before:
        return True
    return given.paid and (given.noised or name in CONTRIBUTES)


def public_names(one: object) -> list[str]:
    """What can be said of an object, but for constants of its class."""
    named = [name for name in dir(one) if not name.startswith("_")]
    return [name for name in named if isinstance_of_instance(one, name)]


def isinstance_of_instance(one: object, name: str) -> bool:
    """Whether a name is a method, a property or an attribute of the object itself."""
    static = inspect.getattr_static(type(one), name, None)
    constant = (type, str, int, bool, tuple, frozenset, Mapping, classmethod, staticmethod)
    return static is None or not isinstance(static, (*constant, Cases, CatalogueEntry))


def callable_of(one: object, name: str) -> bool:
    """Whether a name is a method."""
    return callable(inspect.getattr_static(type(one), name, None))


def called(
    pair: list[tuple[Any, Watching]], name: str, life: Life, part: Callable[[Any], Any]
) -> Given:
    """Call a method of a part of both objects, or read an attribute of both."""
    given = Given()
    for whole, coins in pair:
        one, spent, drawn = part(whole), life.spent(whole), coins.drawn
        before = spent()
        try:
            if not callable_of(one, name):
                value = getattr(one, name)
            elif call := life.calls.get(name) or CALLS.get(name):
                value = call(one, life)
            else:
                value = _alone(one, name)
            given.values.append(told(value))
        except PanPrivacyError as error:  # a refusal is an answer too
            given.values.append((type(error), str(error)))
        given.paid &= spent() > before
        given.noised &= coins.drawn > drawn
    return given


def _alone(one: object, name: str) -> Any:
    """Call a method that needs nothing but numbers: 1 for each."""
    method = getattr(one, name)
    given = inspect.signature(method).parameters.values()
    optional = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [each for each in given if each.default is each.empty and each.kind not in optional]
    if any(each.annotation not in {"int", "float"} for each in needed):
        pytest.fail(f"say in CALLS of {Path(__file__).name} how `{name}` is called")
    return method(*[1] * len(needed))


def told(value: Any) -> object:
    """A value in a form that can be compared."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, Fraction, np.generic)):
        return value
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Mapping):
        return [(told(key), told(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [told(one) for one in value]
    if isinstance(value, (*LIVE, AbstractContextManager, SeededCoins)) or callable(value):
        return type(value).__name__
    parts = attributes(value)
    return type(value).__name__, [(name, told(one)) for name, one in parts.items()]


def _entered(context: AbstractContextManager[Any]) -> None:
    with context:
        pass


def _noise(memory: Any) -> Any:
    """What an announced intrusion adds, where one is planned."""
    return memory.fresh_noise(memory.now) if memory.plan.request.intrusions else None


def _rerandomised(memory: Any) -> None:
    noise = _noise(memory)
    if noise is not None:
        memory.rerandomise(memory.now, noise)
