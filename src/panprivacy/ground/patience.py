"""What a terminal is told of plans that take seconds, as it is told of kernels."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SAYS = "panprivacy: searching for the best plan, which may take up to a minute\n"
_SECONDS_UNSAID = 1.0


class Searches:
    """The searches of a process."""

    def __init__(self) -> None:
        self._seconds, self._said = 0.0, False
        self._since: float | None = None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Tell a terminal, once, when all that was done within has taken more than a second.

        A search within another one only looks at the clock.
        """
        outermost = self._since is None
        since = self._since = time.monotonic() if self._since is None else self._since
        try:
            yield
        finally:
            seconds = self._seconds + time.monotonic() - since
            if outermost:
                self._seconds, self._since = seconds, None
            if seconds > _SECONDS_UNSAID and not self._said:
                self._said = True
                if sys.stderr is not None and sys.stderr.isatty():
                    sys.stderr.write(_SAYS)
                    sys.stderr.flush()


searches = Searches()
"""Those of this process."""
