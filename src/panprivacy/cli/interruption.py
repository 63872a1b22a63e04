"""Interruption of a count of a pipe, which still answers: its data does not come again.

The program then ends by the signal itself, as if it had not been caught: a shell reports 130 or
143, a script that runs the program stops as well, and systemd counts it as a clean stop.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Self

from panprivacy.intake.sources import Source

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Handler that ends a pipe at the first SIGINT or SIGTERM; the second ends the program at once.

    A file is not interrupted: it can be counted again. An ignored signal stays ignored, as in the
    background of a shell.

    Args:
        source: the input.
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
        if self._came is None:  # else a second signal must still end the drawing after the answer
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self._came is not None:
            _die(number)
        self._came = signal.Signals(number)
        self._source.stop()

    def end(self) -> None:
        """End the program by the signal that came, if any."""
        if self._came is None:
            return
        said = "the last answer is of what had come until then, and not complete"
        sys.stderr.write(f"panprivacy: ended by {self._came.name}: {said}\n")
        sys.stdout.flush()
        _die(self._came)


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
