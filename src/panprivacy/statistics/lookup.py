"""Answers are found by their names, or by a part of one that says which is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar


class Called(Protocol):
    """A name that has parts, as `Name` has them."""

    @property
    def group(self) -> object:
        """The group of users."""

    @property
    def statistic(self) -> str:
        """The name of the statistic."""

    @property
    def question(self) -> str:
        """The question that was asked."""

    @property
    def argument(self) -> int | None:
        """The first number of the question."""


N = TypeVar("N", bound=Called)

_MOST_LISTED: Final = 10
"""Names in a message."""

_PARTS: Final[tuple[Callable[[Called], object], ...]] = (
    lambda name: name,
    lambda name: name.group,
    lambda name: name.statistic,
    str,
    lambda name: name.question,
    lambda name: name.argument,
)
"""What an answer may be called by; the first that fits counts."""


def find(names: Iterable[N], wanted: object) -> list[N]:
    """Return the names of which this is the group, statistic, question or number.

    Args:
        names: of all answers.
        wanted: a name, or a part of it.

    Raises:
        KeyError: no name has such a part; says which groups or answers there are.
    """
    known = list(names)
    for part in _PARTS:
        found = [name for name in known if wanted is not None and part(name) == wanted]
        if found:
            return found
    message = f"no answer is called that; {_there(known)}"
    raise KeyError(message)


def _there(names: list[N]) -> str:
    """Return the keys of answers: their groups, or else statistics, or else questions."""
    kinds = {
        "groups": dict.fromkeys(str(name.group) for name in names if name.group is not None),
        "statistics": dict.fromkeys(name.statistic for name in names),
        "answers": dict.fromkeys(map(str, names)),
    }
    if len(kinds["statistics"]) < 2:
        del kinds["statistics"]
    kind = next((kind for kind, listed in kinds.items() if listed), "answers")
    listed = list(kinds[kind])
    more = ", ..." if len(listed) > _MOST_LISTED else ""
    there = f"{', '.join(listed[:_MOST_LISTED])}{more}" if listed else "none"
    return f"{kind} there are: {there}"
