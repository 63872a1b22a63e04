"""Our own class in programs that leave ids elsewhere, or answer by more than their counts.

The walk of outcomes sees none of them: they are refused by what they leave.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from panprivacy.audit.controls.control import Control, revealed_by_single
from panprivacy.audit.controls.programs import AnswerWithError, Program
from panprivacy.audit.exact.coins import EnumeratedCoins

_LOG = logging.getLogger(__name__)
_SEEN: list[int] = []


@functools.lru_cache
def _name(user: int) -> str:
    return f"user {user}"


def _list(users: Sequence[int]) -> None:
    _SEEN.extend(users)


def _cache(users: Sequence[int]) -> None:
    for user in users:
        _name(user)


def _file(users: Sequence[int]) -> None:
    with Path("users.txt").open("a") as file:
        file.writelines(f"{user}\n" for user in users)


def _log_line(users: Sequence[int]) -> None:
    _LOG.debug("counted %s", users)


def _warning(users: Sequence[int]) -> None:
    for user in users:
        warnings.warn(f"user {user} came", stacklevel=2)


class Leaving(Program):
    """Counts the users, and has something else done with them."""

    def __init__(self, coins: EnumeratedCoins, leave: Callable[[Sequence[int]], None]) -> None:
        super().__init__(coins)
        self._leave = leave

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Count the users, and leave something."""
        super().update(users)
        self._leave(users)


class RawBeyondTheTail(Program):
    """A program that publishes the table in place of an answer that looks like nonsense."""

    def release(self) -> AnswerWithError:
        """Return the noisy answer, and a hundred times the raw count if noise is far out."""
        ones = self._density.state()[-1].bit_count()  # the table is the last byte
        answer = self._density.release()
        return AnswerWithError(answer, 100 * ones if abs(answer.counts[0]) > _FAR else 0)


_FAR = 40


_refused = functools.partial(revealed_by_single, claimed=Fraction(1), releases=1)


def _leaving(name: str, says: str, leave: Callable[[Sequence[int]], None], refused: str) -> Control:
    return _refused(name, says, lambda coins: Leaving(coins, leave), refused=refused)


TRACES = (
    _leaving("module-list", "ids in a list of the module", _list, "the variable"),
    _leaving("function-cache", "ids in the cache of a function", _cache, "the variable"),
    _leaving("file", "ids in a file", _file, "the file"),
    _leaving("log-line", "ids in a log line", _log_line, "a log line"),
    _leaving("warning", "ids in a warning", _warning, "a warning"),
    _refused(
        "raw-beyond-the-tail",
        "the raw count beside an answer that noise took far out",
        RawBeyondTheTail,
        refused="an answer tells more than its counts",
    ),
)
