"""A count of a pipe that is told to stop still answers: what came through does not come again.

The program then ends by the signal itself, as if it had not been caught: a shell says 130 or 143,
a script that runs the program stops as well, and systemd takes it for a clean stop.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Self

from panprivacy.sources import Source

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Ends a pipe at the first SIGINT or SIGTERM; the second ends the program at once.

    A file is left alone: it can be counted again. A signal that is ignored stays so, as in the
    background of a shell.

    Args:
        source: what is counted.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._before = {
            number: handler
            for number in _SIGNALS
            if source.size is None and (handler := signal.getsignal(number)) != signal.SIG_IGN
        }
        self._came: signal.Signals | None = None

    def __enter__(self) -> Self:
        for number in self._before:
            signal.signal(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        if self._came is None:  # else a second one still has to end what is drawn after the answer
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self._came is not None:
            _die(number)
        self._came = signal.Signals(number)
        self._source.stop()

    def end(self) -> None:
        """End the program by the signal that came, if one did."""
        if self._came is None:
            return
        said = "the last answer is of what had come until then, and not complete"
        sys.stderr.write(f"panprivacy: ended by {self._came.name}: {said}\n")
        sys.stdout.flush()
        _die(self._came)


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
