"""What some plans can and others cannot: each ability has one caller, which asks for it.

A caller says `isinstance(plan, Sided)`; what a plan must have, `Plan` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from panprivacy.statistics.drawing import Drawing, UserStates
from panprivacy.statistics.overlaps.sketch import Sketch
from panprivacy.statistics.release import Name, Release
from panprivacy.tables.planning.learning import StateRange


@runtime_checkable
class Sided(Protocol):
    """A plan of two streams, whose rows say which one they are of."""

    @property
    def sides(self) -> tuple[str, str]:
        """The labels of the two streams in a column."""


@runtime_checkable
class Demonstrable(Protocol):
    """A plan that knows the exact answer, for a demonstration and for tests."""

    def truth(self, name: Name, states: UserStates, last: UserStates) -> float:
        """Return the exact answer, from exact states.

        Args:
            name: of the answer.
            states: of the users that came; where there are two streams, in each of them. Where
                events are counted by their value, the value of each event.
            last: delta of each of them.
        """


@runtime_checkable
class Detailed(Protocol):
    """A plan with facts beside the truth of a demonstration."""

    def facts(self, states: UserStates) -> list[str]:
        """Return what else the exact states say."""


@runtime_checkable
class SeveralUnits(Protocol):
    """A plan whose answers have several units, by what is asked."""

    def unit_of(self, question: str) -> str:
        """Return the unit of the answers to a question."""


@runtime_checkable
class Drawable(Protocol):
    """A plan whose table tells of users, so that a picture makes some up."""

    @property
    def drawing(self) -> Drawing:
        """The made-up users and the values of cells."""


@runtime_checkable
class Ranging(Protocol):
    """A plan whose answers may say how far states reach, for the next window."""

    def shows_range(self, query: Any) -> bool:
        """Whether answers to this say how far states reach."""

    def reached(self, answers: Mapping[Name, Release | None], epoch: int) -> StateRange | None:
        """Return the largest distance of states from 0, by the answers; None if unknown."""


@runtime_checkable
class TablePublishing(Protocol):
    """A plan whose release is its table, which takes a place of its own wherever answers wait."""

    @property
    def blank_sketch(self) -> Sketch:
        """A sketch of the size of all that it publishes, of nobody and without a key."""


@runtime_checkable
class UserCounting(Protocol):
    """A plan whose answer says how many users there are, for the next window."""

    def synthetic_users(self, answer: float) -> tuple[float, int]:
        """Return the synthetic population of an answer: the number of users, and their state."""


@runtime_checkable
class Searched(Protocol):
    """A plan whose law was found by a search, not by a formula."""

    @property
    def searched_law(self) -> str:
        """The parameters of the law.

        It stands in the front of a state, so another machine whose search ends elsewhere refuses
        the state, and does not misread it.
        """


@runtime_checkable
class Growing(Protocol):
    """A plan whose errors may grow with each announced intrusion."""

    @property
    def growth(self) -> float | None:
        """The factor by which each multiplies the error of modular counters; None for others."""


@runtime_checkable
class Overloaded(Protocol):
    """A plan whose release may be unreadable though its noise is small."""

    @property
    def readable(self) -> bool:
        """Whether a release can be read of as many users as are planned for."""


def searched_law(planned: object) -> str:
    """Return the parameters of a law that was found by a search; empty for one from formulas."""
    # Each state asks this, and to ask a protocol takes longer than to make the rest of a header.
    found: str = getattr(planned, "searched_law", "")
    return found


def unit_of_answers(plan: Any, question: str) -> str:
    """Return the unit of the answers of a plan to a question."""
    return plan.unit_of(question) if isinstance(plan, SeveralUnits) else str(plan.unit)


def caution(planned: object) -> str | None:
    """Return the caution before an intrusion into modular counters is announced; else None."""
    growth = planned.growth if isinstance(planned, Growing) else None
    if growth is None:
        return None
    return (
        "each announced intrusion adds noise to every counter, and makes the error about "
        f"{growth:.2g} times larger: a fresh table errs less, such as a new window"
    )
