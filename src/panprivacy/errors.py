"""Everything the package raises on purpose.

    PanPrivacyError
    ├── InputError          an id, a delta or a file cannot be used
    ├── PlanError           the parameters cannot be met together
    │   └── NoiseError      a statistic so small that its answers would be noise
    ├── BudgetError         more privacy would be spent than was planned
    └── LostReleaseError    more users came than the plan can read

One thing is warned about: an epsilon so large that it protects nobody (WeakEpsilonWarning).

No message holds an id: it names the row and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar


class PanPrivacyError(Exception):
    """The base of every error the package raises on purpose."""


class InputError(PanPrivacyError, ValueError):
    """Input that cannot be used; nothing was counted and no state changed.

    Args:
        reason: what is wrong and what to do, without the offending value.
        row: position of the offending row, counting from 1, when one row is to blame.
        line: the line of a text on which that row begins, with all lines before it.
        file: which of several files it is in.
    """

    def __init__(
        self,
        reason: str,
        *,
        row: int | None = None,
        line: int | None = None,
        file: str | None = None,
    ) -> None:
        place = [] if file is None else [file]
        if row is not None:
            counted = "counting from 1" if line is None else f"line {line:,}"
            place.append(f"row {row:,} ({counted})")
        super().__init__(f"{', '.join(place)}: {reason}" if place else reason)
        self.reason = reason
        self.row = row

    def after(self, rows: int) -> InputError:
        """The same error seen from a stream in which `rows` rows came before this batch."""
        return self if self.row is None else InputError(self.reason, row=self.row + rows)


class PlanError(PanPrivacyError, ValueError):
    """Parameters that are out of range or cannot be met together; the message says what would."""


class NoiseError(PlanError):
    """A statistic whose answers would be noise; the message says what would do.

    `panprivacy.testing.allow_noise` allows it, for tests and audits.

    Args:
        reason: what is wrong and what to do.
        field: name of the argument to change; None where only a larger problem would do.
        error: the standard deviation of its answers, as a share of what the plan measures it by.
    """

    def __init__(self, reason: str, field: str | None, error: float) -> None:
        super().__init__(reason)
        self.field, self.error = field, error


_allowed: ContextVar[bool] = ContextVar("allowed", default=False)


@contextmanager
def allow_noise() -> Iterator[None]:
    """Allow statistics that are too small to be useful, within a block.

    Audits and tests make tables of a few cells, whose every outcome they can walk. Their answers
    are noise, so that constructors refuse them elsewhere. The guarantee is that of any table.

    >>> import panprivacy as pp
    >>> from panprivacy.testing import allow_noise
    >>> with allow_noise():
    ...     tiny = pp.DistinctCount(memory=1, epsilon=1)
    >>> tiny.plan.table.nbytes
    1
    """
    before = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(before)


def noise_allowed() -> bool:
    """Return whether statistics may be too small to be useful."""
    return _allowed.get()


class BudgetError(PanPrivacyError):
    """A release or statistic that the budget does not cover; nothing was spent."""


class LostReleaseError(PanPrivacyError):
    """A release was paid for, and what came out cannot be read: more users came than planned."""


class WeakEpsilonWarning(UserWarning):
    """An epsilon so large that it promises nearly nothing."""


def install(extra: str) -> str:
    """Return how to install an extra of the package."""
    return f"pip install '.[{extra}]' in a clone, or 'panprivacy[{extra}]'"


E = TypeVar("E", bound=BaseException)


def without_frames(error: E) -> E:
    """The same error, for who keeps it: its frames, and those of what led to it, hold ids."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
