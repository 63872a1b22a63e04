"""What a statistic is told, as records: the only place where a size is declared and explained.

A field is a type with its bounds and its meaning. From these come the checks of the library, the
texts of `--stat`, the keys of a configuration, the front of a state, and the tables of the docs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, ClassVar, Self, SupportsIndex, get_type_hints

import msgspec
from msgspec import Meta

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users, parse_integer, parse_users
from panprivacy.ground.patience import searching
from panprivacy.ground.validation import MOST_BYTES, expected_range, truth, whole_number
from panprivacy.statistics.plan import Plan
from panprivacy.tables.planning.learning import (
    MOST_LEARNED,
    WORD,
    LearnedBound,
    LearnedRange,
    LearnedUsers,
)
from panprivacy.tables.planning.request import Request

MOST = 1 << 62

Whole = SupportsIndex | float
"""What is taken for a whole number, for type checkers: 1e6 is one."""

ManyUsers = Whole | str | tuple[Whole, Whole] | list[int] | list[float]
"""What is taken for a number of users, or a range of them."""

FieldReader = Callable[[str, object], object]
"""From the name of a field and what was given for it to its value, or `PlanError`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record, as people meet it.

    Args:
        name: of the field.
        required: whether it has to be given.
        default: what holds without it.
        says: its meaning, as half a sentence.
        form: how it is written, such as "N" or "LOW:HIGH"; empty for what is true or not.
        example: a number, a text or a truth as it may be given; None if there is none.
        read: checks what was given.
        parse: reads it from a text.
    """

    name: str
    required: bool
    default: object
    says: str
    form: str
    example: object
    read: FieldReader
    parse: Callable[[str], object]

    def value(self, given: object) -> object:
        """Return the given value, checked; None if there is none and none is required."""
        if given is None and not self.required and self.default is None:
            return None
        return self.read(self.name, given)


def integer(says: str, most: int = MOST, least: int = 1, *, example: int | None = None) -> Meta:
    """A field that is a whole number from `least` to `most`."""
    return custom_field(functools.partial(_integer, least, most), "N", says, example)


def flag(says: str) -> Meta:
    """A field that is true or not."""
    return custom_field(lambda name, value: truth(**{name: value}), "", says, example=False)


def flag_or(word: str, says: str) -> Meta:
    """A field that is true or not, or one word."""
    form = f"true or {word}"
    parse = functools.partial(_parse_truth_or, word)
    return custom_field(functools.partial(_truth_or, word), form, says, example=False, parse=parse)


def users(says: str, example: int | str) -> Meta:
    """A field that is a number of users, or a range of them."""
    return custom_field(_users, "N or LOW:HIGH", says, example)


def learned_users(says: str, example: int | str) -> Meta:
    """The same, or a range that windows learn."""
    return custom_field(_learned_users, "N, LOW:HIGH or learn", says, example)


def learned_bound(says: str, most: int, example: int) -> Meta:
    """A field that is a bound from 1 to `most`, or one that windows learn."""
    read = functools.partial(_learned_bound, most)
    return custom_field(read, "N or learn", says, example, parse=_parse_bound)


def custom_field(
    read: FieldReader,
    form: str,
    says: str,
    example: object = None,
    parse: Callable[[str], object] | None = None,
) -> Meta:
    """A field that a function of its own reads."""
    extra = {"form": form, "read": read, "example": example, "parse": parse}
    return Meta(description=says, extra=extra)


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Named values, each checked by its own field."""

    what: ClassVar[str] = "sizes"
    """What the fields are called together."""

    @classmethod
    def fields(cls) -> Mapping[str, Field]:
        """The fields by name, in order."""
        return _fields(cls)

    @classmethod
    def read(cls, owner: str, given: Mapping[str, object]) -> Self:
        """Check what was given by name.

        Args:
            owner: whose record it is, for messages.
            given: plain values: whole numbers, truths, lists; texts where a field has a form.

        Raises:
            PlanError: a name too many, one too few, or a value out of range.
        """
        entries = cls.fields()
        for name in given:
            if name not in entries:
                raise PlanError(_unknown(owner, name, list(entries), cls.what))
        for entry in entries.values():
            if entry.required and given.get(entry.name) is None:
                message = f"{owner} needs {entry.name}=: {entry.says}"
                raise PlanError(message)
        return cls(**{name: entries[name].value(value) for name, value in given.items()})

    @classmethod
    def parse(cls, owner: str, texts: Mapping[str, str]) -> dict[str, object]:
        """Return the parsed texts, for `read`; names that are no fields are left for it to refuse.

        Raises:
            PlanError: a text is no value of its field.
        """
        entries, values = cls.fields(), dict[str, object](texts)
        for name, text in texts.items():
            if name in entries:
                try:
                    values[name] = entries[name].parse(text)
                except ValueError as error:
                    message = f"{owner}, {name}=: {error}"
                    raise PlanError(message) from None
        return values

    def plain(self) -> dict[str, object]:
        """The fields that are not as they are without being given, as JSON can write them."""
        return {
            entry.name: _plain(value)
            for entry in self.fields().values()
            if (value := getattr(self, entry.name)) != entry.default
        }


class Sizes(Record, frozen=True):
    """The problem size of a statistic; a subclass has the name of the statistic as tag."""

    most_memory: ClassVar[int] = 1 << 26
    """Bytes of table, at most, where nobody says."""
    published: ClassVar[bool] = False
    """Whether the table itself is published, to be combined with others of its key."""

    def plan(self, request: Request) -> Plan:
        """Choose the plan of a statistic of these sizes.

        Raises:
            PlanError: they do not go together, or no signal would be left.
        """
        raise NotImplementedError

    def planned(self, request: Request) -> Plan:
        """The same plan; equal sizes and requests share one."""
        return _planned(self, replace(request, releases=self.steps or request.releases))

    @property
    def steps(self) -> int | None:
        """The number of releases that the sizes cover, one at the end of each step: the horizon.

        None where a request says how many there are.
        """
        return getattr(self, "horizon", None)

    def ticks(self, releases: int) -> int:
        """Return the number of ended steps after `releases` releases; 0 if there are no steps."""
        return releases if self.steps else 0

    @property
    def learned(self) -> Mapping[str, LearnedRange]:
        """The values that windows learn, by the name of the field."""
        given = {name: getattr(self, name) for name in self.fields()}
        return {name: one for name, one in given.items() if isinstance(one, LearnedRange)}

    def within(self, memory: int) -> Self:
        """The same with so many bytes of table at most, where memory is to be had for accuracy."""
        return msgspec.structs.replace(self, memory=memory) if self.takes_memory() else self

    def without_deltas(self) -> Self:
        """The same where each event counts once: then no state is below 0, if nobody says so."""
        if "below" not in self.fields() or getattr(self, "signed", False):
            return self
        return msgspec.structs.replace(self, below=getattr(self, "below", None) or 0)

    def takes_memory(self) -> bool:
        """Whether it can be told how much memory there is: its cells are not counted already."""
        return "memory" in self.fields() and getattr(self, "cells", None) is None


class Query(Record, frozen=True):
    """The parameters of a release; most statistics have one question, and none."""

    what: ClassVar[str] = "questions"


@functools.lru_cache(maxsize=128)
def _planned(sizes: Sizes, request: Request) -> Plan:
    with searching():
        plan = sizes.plan(request)
    if plan.table.nbytes > MOST_BYTES:
        message = (
            f"a table of {plan.table.nbytes / 1e9:,.0f} GB is too large, at most "
            f"{MOST_BYTES / 1e9:,.0f} GB may be: plan for fewer users or cells"
        )
        raise PlanError(message)
    return plan


@functools.cache
def _fields(record: type[Record]) -> Mapping[str, Field]:
    hints = get_type_hints(record, include_extras=True)
    return {
        field.name: _field(field, hints[field.name]) for field in msgspec.structs.fields(record)
    }


def _field(field: msgspec.structs.FieldInfo, hint: Any) -> Field:
    (meta,) = (one for one in hint.__metadata__ if isinstance(one, Meta))
    extra: Mapping[str, Any] = meta.extra or {}
    default = None if field.required else field.default
    read, form, says = extra["read"], extra["form"], meta.description or ""
    example, parse = extra["example"], extra["parse"] or _PARSERS.get(form, str)
    return Field(field.name, field.required, default, says, form, example, read, parse)


def _integer(least: int, most: int, name: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer():  # 1e6 is meant as a whole number
        value = int(value)
    return whole_number(least, most, **{name: value})


def _users(name: str, value: object) -> Users:
    """One number where one was given: it may mean another thing than a range of one number."""
    if _is_learned(value):
        message = f"{name} cannot be learned here: more than the most that may come lose an answer"
        raise PlanError(message)
    given = parse_users(value) if isinstance(value, str) else value
    low, high = expected_range(given)
    return (low, high) if isinstance(given, tuple | list) else high


def _learned_users(name: str, value: object) -> Users:
    """The same, or the range of the first of some windows."""
    if isinstance(value, str) and _is_learned(value):
        return LearnedUsers.parse(value, name)
    return value if isinstance(value, LearnedRange) else _users(name, value)


def _learned_bound(most: int, name: str, value: object) -> int | LearnedBound:
    """One bound, or the smallest that windows may have and that of the first."""
    if not _is_learned(value):
        return _integer(1, most, name, value)
    given = LearnedBound.parse(value, name) if isinstance(value, str) else value
    ends, widest = expected_range(given, name), min(most, MOST_LEARNED)
    low, high = (_integer(1, widest, f"{name}=learn", end) for end in ends)
    return LearnedBound((low, high))


def _parse_bound(text: str) -> object:
    return text if _is_learned(text) else parse_integer(text)


def _is_learned(value: object) -> bool:
    said = isinstance(value, str) and value.partition(":")[0] == WORD
    return said or isinstance(value, LearnedRange)


def _parse_truth(text: str) -> bool:
    if text not in {"true", "false"}:
        message = f"{text!r} is neither true nor false"
        raise ValueError(message)
    return text == "true"


def _truth_or(word: str, name: str, value: object) -> object:
    if value == word:
        return word
    try:
        return truth(**{name: value})
    except PlanError as error:
        message = f'{error}, or "{word}"'
        raise PlanError(message) from None


def _parse_truth_or(word: str, text: str) -> object:
    if text == word:
        return word
    try:
        return _parse_truth(text)
    except ValueError:
        message = f"{text!r} is neither true, false nor {word}"
        raise ValueError(message) from None


_PARSERS: Mapping[str, Callable[[str], object]] = {"N": parse_integer, "": _parse_truth}
"""Of the forms that are not read as texts anyway."""


def _unknown(owner: str, name: str, known: list[str], what: str) -> str:
    close = get_close_matches(name, known, 1)
    if not known:
        return f"{owner} has no {name}=: it takes no {what}"
    hint = f"did you mean {close[0]}=?" if close else f"its {what} are {', '.join(known)}"
    return f"{owner} has no {name}=: {hint}"


def _plain(value: object) -> object:
    """Return the value in a form that JSON can write."""
    if isinstance(value, LearnedBound):  # a range of users is one besides, a pair no bound
        return ":".join([WORD, *map(str, value)])
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
