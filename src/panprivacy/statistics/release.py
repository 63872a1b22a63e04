"""What leaves a statistic: answers with their intervals, each under its name.

Every release is a mapping of names to answers, or one such answer; both make the same table.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import pyarrow as pa

from panprivacy.errors import PanPrivacyError, PlanError

Label = str | int
"""Of a group."""

COLUMNS: Mapping[str, tuple[pa.DataType, str]] = {
    "statistic": (pa.string(), "what was counted: its name, or the one that `as` gives it"),
    "question": (pa.string(), 'what was asked of it, such as "exactly"'),
    "argument": (pa.int64(), "the number that belongs to the question; null if none does"),
    "arguments": (pa.string(), "all that belong to it, such as tau=10,power=2; else empty"),
    "group": (pa.string(), "the group of users; null if they are not counted by group"),
    "value": (pa.float64(), "the answer; null if it is lost"),
    "low": (pa.float64(), "lower end of the interval"),
    "high": (pa.float64(), "upper end of the interval; it may be infinite"),
    "confidence": (pa.float64(), "how often the interval holds the truth"),
    "epsilon": (pa.float64(), "the most that the release cost a user, in nats"),
    "note": (pa.string(), "what to beware of, such as an answer that is noise; else null"),
}
"""Of every table of answers, with their meaning."""


class Name(NamedTuple):
    """What an answer is called.

    Args:
        statistic: name of the statistic, or the label that was given to it.
        question: what was asked, such as "exactly" or "cropped_sum".
        arguments: what belongs to the question, by name.
        group: of users; None if they are not counted by group.
    """

    statistic: str
    question: str
    arguments: tuple[tuple[str, int], ...] = ()
    group: Label | None = None

    def __str__(self) -> str:
        """In words, such as "exactly 3"; without its group."""
        return " ".join([self.question.replace("_", " "), *self._numbers()])

    def _numbers(self) -> Iterator[str]:
        numbers = [str(number) for _, number in self.arguments]
        if numbers:
            yield "**".join(numbers)

    def under(self, statistic: str | None, group: Label | None) -> Name:
        """The same question of another statistic or group; None leaves either."""
        return self._replace(
            statistic=self.statistic if statistic is None else statistic,
            group=self.group if group is None else group,
        )

    @property
    def argument(self) -> int | None:
        """The first number of the question."""
        return self.arguments[0][1] if self.arguments else None

    def columns(self) -> dict[str, object]:
        """The columns of a row that say what it is about."""
        return {
            "statistic": self.statistic,
            "question": self.question,
            "argument": self.argument,
            "arguments": ",".join(f"{name}={number}" for name, number in self.arguments),
            "group": None if self.group is None else str(self.group),
        }


_UNNAMED = Name("", "")


@runtime_checkable
class Answer(Protocol):
    """What a release gives: one answer, or several by name."""

    def under(self, statistic: str | None = None, group: Label | None = None) -> Self:
        """The same under the name of a statistic, of a group, or both; None leaves a name."""

    def answers(self, most: int | None = None) -> Mapping[Name, Release | None]:
        """Each answer by its name; None for one that is lost.

        Args:
            most: of many states, so many that are nearest to 0; None for all.
        """


class Tabular(ABC):
    """Answers that can be shown as a table, with the columns of `COLUMNS`."""

    __slots__ = ()

    @abstractmethod
    def answers(self, most: int | None = None) -> Mapping[Name, Release | None]:
        """Each answer by its name; None for one that is lost.

        Args:
            most: of many states, so many that are nearest to 0; None for all.
        """

    @property
    def _named(self) -> Mapping[Name, Any]:
        return self.answers()

    def rows(self) -> list[dict[str, object]]:
        """A row for each answer; what is lost has no numbers."""
        return [
            {**dict.fromkeys(COLUMNS), **name.columns()} if one is None else one.to_dict()
            for name, one in self._named.items()
        ]

    def to_arrow(self) -> pa.Table:
        """A row for each answer."""
        return as_table(self.rows())

    def to_pandas(self) -> Any:  # pandas is not a dependency
        """The same as a pandas data frame."""
        return as_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        """A small table for a notebook."""
        titles = ("answer", "group", "value", "low", "high", "note")
        heads = "".join(f"<th>{title}</th>" for title in titles)
        rows = []
        for name, one in self.answers(_MOST_SHOWN).items():
            group = "" if name.group is None else escape(str(name.group))
            numbers = ("lost", "", "") if one is None else one.shown()
            note = escape((one and one.note) or "")
            told = escape(str(name)), group, *numbers, note
            cells = "".join(f"<td>{cell}</td>" for cell in told)
            rows.append(f"<tr>{cells}</tr>")
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


_MOST_SHOWN = 21
"""States of a histogram, where people look at it."""


def as_table(rows: Sequence[Mapping[str, object]], **first: pa.DataType) -> pa.Table:
    """Rows of answers as an Arrow table; other columns that they have come first."""
    columns = {**first, **{name: kind for name, (kind, _) in COLUMNS.items()}}
    return pa.Table.from_pylist(rows, pa.schema(list(columns.items())))


def as_frame(table: pa.Table) -> Any:
    """A table as a pandas data frame.

    Raises:
        PlanError: pandas is not there.
    """
    if find_spec("pandas") is None:
        message = "to_pandas needs pandas: pip install pandas, or take to_arrow"
        raise PlanError(message)
    return table.to_pandas()


@dataclass(frozen=True, slots=True)
class Release(Tabular):
    """A noised answer; it is public.

    >>> answer = Release(1234.5, 1100.0, 1400.0, 0.95, 0.1, ())
    >>> answer
    <Release 1,234 (1,100 to 1,400, 95 %)>
    >>> f"{answer:,.1f}", round(answer), float(answer)
    ('1,234.5', 1234, 1234.5)

    Args:
        value: the estimate, cut to the interval: noise may take it where no truth can be.
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

    def __post_init__(self) -> None:
        """Cut the estimate."""
        object.__setattr__(self, "value", min(max(self.value, self.low), self.high))

    def under(self, statistic: str | None = None, group: Label | None = None) -> Release:
        """The same answer under the name of a statistic, of a group, or both."""
        return replace(self, name=self.name.under(statistic, group))

    def answers(self, most: int | None = None) -> dict[Name, Release | None]:  # noqa: ARG002
        """This answer by its name."""
        return {self.name: self}

    def to_dict(self) -> dict[str, object]:
        """The columns of `COLUMNS`."""
        told = ("value", "low", "high", "confidence", "epsilon", "note")
        return {**self.name.columns(), **{name: getattr(self, name) for name in told}}

    def __float__(self) -> float:
        return self.value

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits) if digits is not None else round(self.value)

    def __format__(self, form: str) -> str:
        """The value in a form, or all of it where none is given."""
        return format(self.value, form) if form else str(self)

    def __str__(self) -> str:
        value, low, high = self.shown()
        note = "" if self.note is None else f"; {self.note}"
        return f"{value} ({low} to {high}, {100 * self.confidence:g} %{note})"

    def shown(self) -> tuple[str, str, str]:
        """Value and ends for people: whole where they count users, with digits where a share."""
        value, low, high = (
            shown_number(end, self.unit) for end in (self.value, self.low, self.high)
        )
        return value, low, high

    def __repr__(self) -> str:
        name = f"{self.name}: " if self.name.question else ""
        return f"<Release {name}{self}>"


@dataclass(frozen=True, slots=True)
class Lost:
    """What stands in the place of answers that are lost, as `LostReleaseError` says.

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


class Named(Tabular, Mapping[Name, A_co]):
    """Answers by name."""

    @functools.cached_property
    def _named(self) -> Mapping[Name, Any]:
        return self.answers()

    def __getitem__(self, name: Name) -> A_co:
        return self._named[name]

    def __iter__(self) -> Iterator[Name]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)


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

    def __repr__(self) -> str:
        shown = self.answers(_MOST_SHOWN)
        rest = ", ..." if len(shown) < len(self) else ""
        return f"<Answers {'; '.join(f'{name}: {one}' for name, one in shown.items())}{rest}>"


_FAR = 2
"""An interval that lies by such a factor outside of the planned range is said to: nearer by, errors
are hardly larger than planned."""


def note_on(
    low: float,
    high: float,
    planned: tuple[float, float] = (0.0, math.inf),
    unit: str = "users",
    caveat: str | None = None,
) -> str | None:
    """What to beware of in an answer, a sentence each; None if nothing.

    Guarantee: it costs no privacy. It is a function of an interval that is released and of the
    public plan alone, so whoever reads the answer could write it.

    Args:
        low: lower end of the interval.
        high: its upper end; it may be infinite.
        planned: the lowest and the highest answer that the plan is made for.
        unit: of all of these.
        caveat: what all answers of the plan say.
    """
    return "; ".join(filter(None, (_on_interval(low, high, planned, unit), caveat))) or None


def _on_interval(low: float, high: float, planned: tuple[float, float], unit: str) -> str | None:
    """Whether an answer is noise, or not what was planned for."""
    least, most = planned
    ends = [shown_number(end, unit) for end in planned]
    told = f"range of {' to '.join(ends)}" if ends[0] != ends[1] else f"number of {ends[0]}"
    if low <= 0 < high and high >= least:
        return "more noise than signal: the interval reaches down to 0"
    if _FAR * high < least:
        return f"below the planned {told}: the error is a larger share of the answer"
    if low > _FAR * most or (math.isinf(high) and math.isfinite(most)):
        return f"beyond the planned {told}: plan for more, next time"
    return None


_WITH_DIGITS = "share", "events per"


def shown_number(value: float, unit: str) -> str:
    """A number for people: whole where it counts users, with digits where it is a share or mean."""
    if not math.isfinite(value):
        return "inf"
    digits = 4 if unit.startswith(_WITH_DIGITS) else 0
    return f"{round(value, digits) + 0.0:,.{digits}f}"  # what rounds to -0 is 0
