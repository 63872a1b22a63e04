"""The log of the service for its operator: a line for each event, on standard error.

No id may get into it. So an event is one of a few constant texts, its details are values of a few
keys, and everything that this process logs passes here. The message of a library is left out, as it
may quote the data that the library worked on.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

import structlog
from structlog.processors import LogfmtRenderer
from structlog.typing import EventDict, WrappedLogger

_MOST_CHARACTERS: Final = 1_000
_AS_PAIRS: Final = LogfmtRenderer()


class Event(StrEnum):
    """The events that can be logged."""

    listening = "listening"
    waiting_for_broker = "waits for the broker"
    waiting_for_ray = "waits for Ray, which does not answer in time; start_patience says how long"
    starting = "shards are being started, which can take a minute"
    nobody_may = "there are no tokens: over HTTP nobody can send or read anything"
    visits_alone = "there are no tokens: over HTTP nobody can read anything, or send but visits"
    new_tokens = "takes over the tokens of its configuration; all else of it at the next start"
    no_new_tokens = "cannot take over the tokens of its configuration"
    promise = "each window has a guarantee"
    begun_before = "this window was begun before: who is in all of them loses epsilon so many times"
    waiting = (
        "there is a checkpoint: bring its identity to panprivacy restore, "
        "or give it up with panprivacy serve --fresh"
    )
    goes_on = "goes on from its checkpoint: what came later may be missing"
    stood_still = "the service stood still, or its clock was set: the window is not complete"
    clock_back = "the clock was set back: the open window lasts until it has passed its end"
    clock_right = "the clock is where it was before it was set back"
    announced = "an intrusion was announced: the state may be seen once more"
    answer_lost = "the answer of a window is lost"
    answers_again = "windows have answers again"
    not_published = "an answer is not published again"
    trouble = "does not work"
    works_again = "works again"
    refused_lines = "log lines are not counted"
    lost_lines = "a block of log lines is lost"
    refused_message = "a message, or a part of one, is not counted"
    lost_messages = "messages of a queue are lost: the window is not complete"
    fenced = "another process goes on as this shard, or soon may; this one ends"
    input_ended = "standard input is read no further"
    request_failed = "a request failed; please report it"
    library = "a library complains"
    nameless = "an event that has no constant text"


KEYS: Final[Mapping[str, type]] = {
    "where": str,
    "stream": str,
    "guarantee": str,
    "begun": int,
    "losses": int,
    "window_end": datetime,
    "written": datetime,
    "seconds": int,
    "what": str,
    "reason": str,
    "error": str,
    "library": str,
    "place": str,
    "shard": str,
    "shards": int,
}
"""Keys that an event may have, with the types of their values."""


class Journal(Protocol):
    """A log of events: a warning informs the operator, an error is for the operator to mend."""

    def warning(self, event: Event, **values: str | int | datetime) -> object:
        """Log an event that the operator should know."""

    def error(self, event: Event, **values: str | int | datetime) -> object:
        """Log an error that the operator should mend."""


class _Line(str):
    """A line that has passed the list of keys."""

    __slots__ = ()


def write_to_stderr() -> None:
    """Write all that this process logs to stderr, in lines; journald adds the time.

    A key that is not on the list is left out from now on. Otherwise it is an error, so that tests
    find it. `logging` keeps this switch, for the errors of its own that it prints with their data.
    """
    logging.raiseExceptions = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def _only_what_is_listed(_logger: WrappedLogger, _method: str, told: EventDict) -> EventDict:
    """Drop or refuse events and keys that are not listed: this keeps ids out."""
    event = told.pop("event", None)
    listed = {
        key: value
        for key, value in told.items()
        if key in KEYS and isinstance(value, KEYS[key]) and not isinstance(value, bool)
    }
    refused = sorted(told.keys() - listed.keys())
    if not isinstance(event, Event):
        event, refused = Event.nameless, [*refused, "event"]
    if refused and logging.raiseExceptions:
        message = f"the journal takes an Event, and values as in KEYS; not this {refused[0]}"
        raise TypeError(message)
    return {"event": event, **listed}


def _single_line(_logger: WrappedLogger, _method: str, told: EventDict) -> EventDict:
    """Cut very long values, and replace unprintable characters by spaces."""
    lines = {}
    for key, value in told.items():
        text = str(value)
        cut = text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
        lines[key] = "".join(each if each.isprintable() else " " for each in cut)
    return lines


def _line(logger: WrappedLogger, method: str, told: EventDict) -> _Line:
    """Return the event, followed by its values as `key=value`."""
    event = told.pop("event")
    return _Line(f"{event} {_AS_PAIRS(logger, method, told)}".rstrip())


class _Lines(logging.Formatter):
    """Formatter of all handlers: passes lines of the journal; of others, only their origin."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without a traceback, which quotes data."""
        line = record.msg
        if not isinstance(line, _Line):
            kind = record.exc_info[0] if record.exc_info else None
            told = {
                "event": Event.library,
                "library": record.name,
                "place": f"{record.module}:{record.lineno}",
                "error": record.levelname if kind is None else kind.__name__,
            }
            line = _line(None, "", _single_line(None, "", told))
        return f"panprivacy: {line}"


JOURNAL: Final[Journal] = structlog.wrap_logger(
    logging.getLogger("panprivacy.service"),
    processors=[_only_what_is_listed, _single_line, _line],
    wrapper_class=structlog.stdlib.BoundLogger,
)
