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
        """What was asked."""

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
    groups = dict.fromkeys(str(name.group) for name in known if name.group is not None)
    listed = list(groups or dict.fromkeys(map(str, known)))
    more = ", ..." if len(listed) > _MOST_LISTED else ""
    there = f"{', '.join(listed[:_MOST_LISTED])}{more}" if listed else "none"
    message = f"no answer is called that; {'groups' if groups else 'answers'} there are: {there}"
    raise KeyError(message)
