"""Current troubles and their reasons, in messages that show no state."""

from __future__ import annotations

import os
from collections.abc import Callable

from panprivacy.errors import PanPrivacyError
from panprivacy.service.journal import JOURNAL, Event


class Troubles:
    """Runner of tasks that may fail; it reports when one begins to fail and when it works again."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    @property
    def known(self) -> dict[str, str]:
        """The current troubles, by name."""
        return dict(self._reasons)

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Run a task; return None, or the reason if it fails, so that the caller can continue."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a thread that dies keeps nothing
            reason = f"failed with {type(error).__name__}"  # no message that could show a state
            if isinstance(error, PanPrivacyError):
                reason = str(error)
            elif isinstance(error, OSError) and error.errno:
                reason = os.strerror(error.errno)
            if self._reasons.get(what) != reason:
                JOURNAL.error(Event.trouble, what=what, reason=reason)
            self._reasons[what] = reason
            return reason
        if self._reasons.pop(what, None) is not None:
            JOURNAL.warning(Event.works_again, what=what)
        return None
