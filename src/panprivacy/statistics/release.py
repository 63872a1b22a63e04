"""What leaves a statistic: answers with their intervals, each under its name.

Every release is a mapping of names to answers, or one such answer; both make the same table.
"""

from __future__ import annotations

import functools
import math
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, overload, runtime_checkable

from panprivacy.errors import PanPrivacyError
from panprivacy.statistics.frames import MOST_SHOWN, NUMBERS, Rows, Tabular, as_text
from panprivacy.statistics.lookup import find
from panprivacy.statistics.notes import format_number
from panprivacy.statistics.totals import total_of

Label = str | int
"""Of a group."""


class Name(NamedTuple):
    """The name of an answer.

    Args:
        statistic: name of the statistic, or the label that was given to it.
        question: what was asked, such as "exactly" or "cropped_sum".
        arguments: what belongs to the question, by name.
        group: of users; None if they are not counted by group.
    """

    statistic: str
    question: str
    arguments: tuple[tuple[str, int | float], ...] = ()
    group: Label | None = None

    def __str__(self) -> str:
        """Return the name in words, such as "exactly 3"; without its group."""
        return " ".join([self.question.replace("_", " "), *self._numbers()])

    def _numbers(self) -> Iterator[str]:
        numbers = [_written(number) for _, number in self.arguments]
        if numbers:
            yield (" to " if self.arguments[0][0] in _ENDS else "**").join(numbers)

    def under(self, statistic: str | None, group: Label | None) -> Name:
        """The same question of another statistic or group; None leaves either."""
        return self._replace(
            statistic=self.statistic if statistic is None else statistic,
            group=self.group if group is None else group,
        )

    @property
    def argument(self) -> int | None:
        """The first number of the question, if it is whole."""
        first = self.arguments[0][1] if self.arguments else None
        return first if isinstance(first, int) else None

    def columns(self) -> dict[str, object]:
        """The columns of a row that say what it is about."""
        return {
            "statistic": self.statistic,
            "question": self.question,
            "argument": self.argument,
            "arguments": ",".join(f"{name}={_written(number)}" for name, number in self.arguments),
            "group": None if self.group is None else str(self.group),
        }


_ENDS = "low", "first"
"""The first argument of a question about a range."""


def _written(number: float) -> str:
    """Return a number of a question, without digits after the point where it is whole."""
    return str(number) if isinstance(number, int) else f"{number:.12g}"


_UNNAMED = Name("", "")


@runtime_checkable
class Answer(Protocol):
    """The result of a release: one answer, or several by name."""

    def under(self, statistic: str | None = None, group: Label | None = None) -> Self:
        """The same under the name of a statistic, of a group, or both; None leaves a name."""

    def answers(self, most: int | None = None) -> Mapping[Name, Release | None]:
        """Each answer by its name; None for one that is lost.

        Args:
            most: of many states, so many that are nearest to 0; None for all.
        """


@dataclass(frozen=True, slots=True)
class Release(Tabular):
    """A noised answer; it is public.

    >>> answer = Release(1234.5, 1100.0, 1400.0, 0.95, 0.1, ())
    >>> answer
    <Release 1,234 (1,100 to 1,400, 95 %)>
    >>> f"{answer:,.1f}", round(answer), float(answer)
    ('1,234.5', 1234, 1234.5)

    Args:
        value: the estimate, cut to the interval: noise may take it where no truth can be. To sum
            or average answers take `estimate`, or `total()`.
        low: lower end of the confidence interval.
        high: upper end; infinite where the counts do not bound it.
        confidence: probability that the interval covers the truth, over all noise, sampling and
            hashing.
        epsilon: the most that this release cost each user, in nats, on top of the state. The ledger
            is charged less where state and releases together cost less than their sum.
        counts: the noised counts; `value`, `low` and `high` are functions of them and of public
            parameters.
        name: what it answers.
        unit: what it counts, such as "users".
        note: what to beware of, as `note_on` has it; None if nothing.
        estimate: the estimate before it is cut: it may be below 0, or above the largest truth. NaN
            for the value.
        standard_error: standard deviation of the estimate, where the truth is as estimated; NaN if
            it is not known.
        bias: by how much the mean of the estimate may differ from the truth; 0 if it has none.
    """

    value: float
    low: float
    high: float
    confidence: float
    epsilon: float
    counts: tuple[int, ...] = field(repr=False)
    name: Name = _UNNAMED
    unit: str = "users"
    note: str | None = None
    estimate: float = math.nan
    standard_error: float = math.nan
    bias: float = 0.0

    def __post_init__(self) -> None:
        """Cut the value."""
        if math.isnan(self.estimate):
            object.__setattr__(self, "estimate", self.value)
        object.__setattr__(self, "value", min(max(self.value, self.low), self.high))

    def under(self, statistic: str | None = None, group: Label | None = None) -> Self:
        """The same answer under the name of a statistic, of a group, or both."""
        return replace(self, name=self.name.under(statistic, group))

    def answers(self, most: int | None = None) -> dict[Name, Release | None]:  # noqa: ARG002
        """This answer by its name."""
        return {self.name: self}

    def to_dict(self) -> dict[str, object]:
        """The columns of `COLUMNS`."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        known = {name: None if math.isnan(number) else number for name, number in numbers.items()}
        return {**self.name.columns(), **known, "note": self.note}

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        """The value without its digits after the point, as `int` of a number has it."""
        return int(self.value)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits) if digits is not None else round(self.value)

    def __format__(self, form: str) -> str:
        """The value in a form, or all of it where none is given."""
        return format(self.value, form) if form else str(self)

    def __str__(self) -> str:
        value, low, high = self.formatted()
        note = "" if self.note is None else f"; {self.note}"
        return f"{value} ({low} to {high}, {100 * self.confidence:g} %{note})"

    def formatted(self) -> tuple[str, str, str]:
        """Value and ends for people: whole where they count users, with digits where a share."""
        value, low, high = (
            format_number(end, self.unit) for end in (self.value, self.low, self.high)
        )
        return value, low, high

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name.question else ""
        return f"<Release {name}{self}>"


@dataclass(frozen=True, slots=True)
class Lost:
    """The placeholder for answers that are lost; see `LostReleaseError`.

    Args:
        names: of the answers.
    """

    names: tuple[Name, ...]

    def under(self, statistic: str | None = None, group: Label | None = None) -> Lost:
        """The same under the name of a statistic, of a group, or both."""
        return Lost(tuple(name.under(statistic, group) for name in self.names))

    def answers(self, most: int | None = None) -> dict[Name, Release | None]:  # noqa: ARG002
        """Nothing by each name."""
        return dict.fromkeys(self.names)


A_co = TypeVar("A_co", bound=Release | None, covariant=True)


class Named(Tabular, Rows, Generic[A_co]):
    """Answers by name, as a mapping has them; `answers["home"]` finds those of a group.

    It is no `Mapping` to `isinstance`: what makes a data frame of one would take each name for a
    column.
    """

    @functools.cached_property
    def _named(self) -> Mapping[Name, Any]:
        return self.answers()

    @overload
    def __getitem__(self, name: Name) -> A_co: ...

    @overload
    def __getitem__(self, name: Label) -> Any: ...

    def __getitem__(self, name: Name | Label) -> Any:
        """Return an answer by its name, or by a part of it that says which one is meant.

        Args:
            name: a `Name`; or a group, the name of a statistic, the words of a question such as
                "exactly 3", or its number, whichever of them there is.

        Returns:
            The answer, None if it is lost; of a part that several answers have, all of these.

        Raises:
            KeyError: no answer is called that; says what there is.
        """
        if isinstance(name, Name) and name in self._named:
            return self._named[name]
        found = find(self._named, name)
        if len(found) == 1:
            return self._named[found[0]]
        return Answers(self._named[one] or Lost((one,)) for one in found)

    def get(self, name: Name | Label, default: Any = None) -> Any:
        """The same as `answers[name]`, or another value where no answer is called that."""
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return self.get(name, self) is not self  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Name]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def keys(self) -> KeysView[Name]:
        """The names."""
        return self._named.keys()

    def values(self) -> ValuesView[A_co]:
        """The answers; None for one that is lost."""
        return self._named.values()

    def items(self) -> ItemsView[Name, A_co]:
        """Each name with its answer."""
        return self._named.items()

    def total(self, *, confidence: float = 0.95) -> Release:
        """Return the sum of all answers, with an interval for the sum.

        It follows from the answers, so that it costs nothing. Different statistics and groups have
        independent noise; answers of one table are summed as if all its noise went the same way.

        Args:
            confidence: probability that the interval covers the sum of the truths.

        Raises:
            PanPrivacyError: an answer is lost, or they are of several questions.
        """
        tables = (((name.statistic, name.group), one) for name, one in self.items())
        total: Release = total_of(tables, confidence)  # type: ignore[assignment]
        return total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Named, Mapping)) and dict(self.items()) == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __float__(self) -> float:
        return float(self._lone())

    def __int__(self) -> int:
        return int(self._lone())

    def __round__(self, digits: int | None = None) -> float:
        return round(self._lone(), digits)

    def __format__(self, form: str) -> str:
        """The value of the only answer in a form, or all answers where none is given."""
        return format(self._lone(), form) if form else str(self)

    def _lone(self) -> Release:
        """The only answer, of which a number is made."""
        found = list(self._named.values())
        if len(found) != 1 or found[0] is None:
            what = "a lost answer" if len(found) == 1 else f"{len(found):,} answers"
            message = f"{what} cannot be one number: choose one, as answers[...] does"
            raise TypeError(message)
        return found[0]

    def __str__(self) -> str:
        """A table for people, which says how many more answers there are."""
        lines = list(self.table_lines())
        hidden = len(self) - len(lines) + 1
        return as_text(lines) + (f"\n... and {hidden:,} more" if hidden else "")

    def __repr__(self) -> str:
        shown = self.answers(MOST_SHOWN)
        rest = ", ..." if len(shown) < len(self) else ""
        several = len({name.statistic for name in shown}) > 1
        each = (
            f"{_titled(name, several=several)}: {'lost' if one is None else one}"
            for name, one in shown.items()
        )
        return f"<{type(self).__name__} {'; '.join(each)}{rest}>"


def _titled(name: Name, *, several: bool) -> str:
    """A name in words, with its group, and its statistic where there are several."""
    title = str(name) if not several or name.statistic == str(name) else f"{name.statistic} {name}"
    return title if name.group is None else f"{title} of {name.group}"


class Answers(Named[Release | None]):
    """The answers of one moment, by name; None for one that is lost, as `LostReleaseError` says.

    Args:
        parts: the releases of which it consists; no two answers of them have one name.
    """

    def __init__(self, parts: Iterable[Answer]) -> None:
        self._parts = tuple(parts)

    def under(self, statistic: str | None = None, group: Label | None = None) -> Answers:
        """The same answers under the name of a statistic, of a group, or both."""
        return Answers(part.under(statistic, group) for part in self._parts)

    def answers(self, most: int | None = None) -> dict[Name, Release | None]:
        """Each answer by its name.

        Args:
            most: of many states, so many that are nearest to 0; None for all.
        """
        return {name: one for part in self._parts for name, one in part.answers(most).items()}

    def where(self, **wanted: object) -> Answers:
        """Those whose names have these parts, such as `group="home"`.

        Raises:
            PanPrivacyError: names have no such part.
        """
        parts = (*Name._fields, "argument")
        if not wanted.keys() <= set(parts):
            message = f"answers are chosen by {', '.join(parts)}"
            raise PanPrivacyError(message)
        return Answers(
            Lost((name,)) if one is None else one
            for name, one in self._named.items()
            if all(getattr(name, part) == value for part, value in wanted.items())
        )

    def only(self) -> Release:
        """The one answer that there is.

        Raises:
            PanPrivacyError: there are several or none, or it is lost.
        """
        found = list(self._named.values())
        if len(found) != 1 or found[0] is None:
            message = f"there are {len(found)} answers, and this wants one that is not lost"
            raise PanPrivacyError(message)
        return found[0]

    @property
    def lost(self) -> bool:
        """Whether an answer is missing."""
        return any(one is None for one in self._named.values())

    @property
    def counts(self) -> tuple[int, ...]:
        """The noised counts of all, each once."""
        each = {id(one.counts): one.counts for one in self._named.values() if one is not None}
        return tuple(count for counts in each.values() for count in counts)
