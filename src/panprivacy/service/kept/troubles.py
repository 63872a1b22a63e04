"""What does not work at the moment, and why, in words that show no state."""

from __future__ import annotations

import os
from collections.abc import Callable

from panprivacy.errors import PanPrivacyError
from panprivacy.service.journal import JOURNAL, Event


class Troubles:
    """Does things that may fail, and tells when one begins to fail and when it works again."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    @property
    def known(self) -> dict[str, str]:
        """What does not work at the moment, by what it is."""
        return dict(self._reasons)

    def attempt(self, what: str, work: Callable[[], None]) -> str | None:
        """Do something; None, or the reason if it fails: whoever calls goes on."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a thread that dies keeps nothing
            reason = f"failed with {type(error).__name__}"  # no words that could show a state
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
