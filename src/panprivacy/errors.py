"""Everything the package raises on purpose.

    PanPrivacyError
    ├── InputError          an id, a delta or a file cannot be used
    ├── PlanError           the parameters cannot be met together
    ├── BudgetError         more privacy would be spent than was planned
    └── LostReleaseError    more users came than the plan can read

One thing is warned about: an epsilon so large that it protects nobody (WeakEpsilonWarning).

No message holds an id: it names the row and the reason.
"""

from __future__ import annotations

from typing import TypeVar


class PanPrivacyError(Exception):
    """The base of every error the package raises on purpose."""


class InputError(PanPrivacyError, ValueError):
    """Input that cannot be used; nothing was counted and no state changed.

    Args:
        reason: what is wrong and what to do, without the offending value.
        row: position of the offending row, counting from 1, when one row is to blame.
    """

    def __init__(self, reason: str, *, row: int | None = None) -> None:
        super().__init__(reason if row is None else f"row {row:,} (counting from 1): {reason}")
        self.reason = reason
        self.row = row

    def after(self, rows: int) -> InputError:
        """The same error seen from a stream in which `rows` rows came before this batch."""
        return self if self.row is None else InputError(self.reason, row=self.row + rows)


class PlanError(PanPrivacyError, ValueError):
    """Parameters that are out of range or cannot be met together; the message says what would."""


class BudgetError(PanPrivacyError):
    """A release or statistic that the budget does not cover; nothing was spent."""


class LostReleaseError(PanPrivacyError):
    """A release was paid for, and what came out cannot be read: more users came than planned."""


class WeakEpsilonWarning(UserWarning):
    """An epsilon so large that it promises nearly nothing."""


E = TypeVar("E", bound=BaseException)


def without_frames(error: E) -> E:
    """The same error, for who keeps it: its frames, and those of what led to it, hold ids."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error
