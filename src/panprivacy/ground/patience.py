"""Progress on a terminal while plans are searched for, as for kernels that are compiled."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread

_SECONDS_UNSAID = 1.0
_SECONDS_BETWEEN = 0.5


class _ProgressLine:
    """A line on a terminal that says how long a search has run, and is erased at its end.

    Args:
        unsaid: seconds before the line appears.
    """

    def __init__(self, unsaid: float) -> None:
        self.plans = 0
        self._unsaid, self._start, self._width = unsaid, time.monotonic(), 0
        self._ended = Event()
        self._thread = Thread(target=self._show, name="panprivacy-progress", daemon=True)
        self._thread.start()

    def _show(self) -> None:
        wait = self._unsaid
        while not self._ended.wait(wait):
            seconds = time.monotonic() - self._start
            tried = f", {self.plans:,} tried" if self.plans else ""
            self._write(f"panprivacy: searching for the best plan, {seconds:.0f} s{tried}")
            wait = _SECONDS_BETWEEN
        if self._width:
            self._write("")
            self._write("")

    def _write(self, line: str) -> None:
        """Write over the line before it."""
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def end(self) -> None:
        """Erase the line."""
        self._ended.set()
        self._thread.join()


_running: ContextVar[_ProgressLine | None] = ContextVar("running", default=None)


@contextmanager
def searching(unsaid: float = _SECONDS_UNSAID) -> Iterator[None]:
    """Show progress on a terminal if a search takes longer than `unsaid` seconds.

    A search within another one is a plan that the outer one tries.
    """
    outer = _running.get()
    if outer is not None:
        yield
        outer.plans += 1
    elif sys.stderr is None or not sys.stderr.isatty():
        yield
    else:
        progress = _ProgressLine(unsaid)
        token = _running.set(progress)
        try:
            yield
        finally:
            _running.reset(token)
            progress.end()
