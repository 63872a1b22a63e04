"""The journal: what is on its list is told in a line, and nothing else gets in."""

from __future__ import annotations

import io
import logging
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

from panprivacy.service.journal import JOURNAL, KEYS, Event, write_to_stderr

CANARY = "canary@example.org"
END = datetime(2026, 1, 6, tzinfo=UTC)


@pytest.fixture
def written(monkeypatch):
    """What the program has written so far, in lines, once it is set up as for production."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.NOTSET)
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    write_to_stderr()
    return lambda: stderr.getvalue().splitlines()


def test_an_event_is_a_line_with_its_values(written):
    JOURNAL.error(Event.trouble, what="checkpoint", reason='the disk "a" is full')
    JOURNAL.warning(Event.goes_on, stream="a", window_end=END)
    JOURNAL.warning(Event.nobody_may)
    assert written() == [
        r'panprivacy: does not work what=checkpoint reason="the disk \"a\" is full"',
        f'panprivacy: {Event.goes_on} stream=a window_end="2026-01-06 00:00:00+00:00"',
        "panprivacy: there are no tokens: over HTTP nobody can send or read anything",
    ]


def test_a_value_is_cut_and_stays_on_its_line(written):
    JOURNAL.error(Event.trouble, what="a\nb\x1b[2J\u2028c", reason="x" * 5_000)
    (line,) = written()
    assert line.startswith('panprivacy: does not work what="a b [2J c" reason=xxx')
    assert line.isprintable()
    assert len(line) < 1_100


REFUSED = [
    {"user": CANARY},
    {"ids": [CANARY]},
    {"row": 7},
    {"stream": CANARY.encode()},
    {"stream": 7},
    {"begun": True},
    {"begun": np.int64(7)},
    {"reason": ValueError(CANARY)},
    {"exc_info": True},
    {"positional_args": (CANARY,)},
    {"stack_info": True},
]


@pytest.mark.parametrize("values", REFUSED, ids=str)
def test_what_is_not_listed_is_an_error_where_it_is_developed(values):
    (name,) = values
    with pytest.raises(TypeError, match=f"not this {name}"):
        JOURNAL.error(Event.trouble, **values)


@pytest.mark.parametrize("values", REFUSED, ids=str)
def test_what_is_not_listed_is_left_out_where_it_runs(values, written):
    try:
        {}[CANARY]
    except KeyError:
        JOURNAL.error(Event.trouble, what="checkpoint", **values)
    assert written() == ["panprivacy: does not work what=checkpoint"]


def test_a_text_with_data_is_no_event(written, monkeypatch):
    for tell in (
        JOURNAL.error,
        JOURNAL.warning,
        JOURNAL.exception,
        JOURNAL.bind(user=CANARY).error,
    ):
        tell(f"a row of {CANARY} is bad")
    JOURNAL.error("%s is bad", CANARY)
    assert written() == ["panprivacy: an event that has no constant text"] * 5
    monkeypatch.setattr(logging, "raiseExceptions", True)
    with pytest.raises(TypeError, match="not this event"):
        JOURNAL.error(f"a row of {CANARY} is bad")


@pytest.mark.parametrize("name", ["asyncio", "uvicorn.error", "sqlalchemy.pool", JOURNAL.name, ""])
def test_of_what_others_log_no_word_is_told(name, written):
    logger = logging.getLogger(name)
    try:
        {}[CANARY]
    except KeyError:
        logger.exception("%s failed", CANARY, stack_info=True)
    logger.warning(f"{CANARY}\nfailed", extra={"user": CANARY})  # noqa: G004
    logger.warning("%d", CANARY)  # which cannot be formatted
    first, *others = written()
    assert first.startswith("panprivacy: a library complains library=")
    assert first.endswith("error=KeyError")
    assert [line.rpartition(" ")[2] for line in others] == ["error=WARNING"] * 2
    assert CANARY not in " ".join([first, *others])


def test_nothing_that_can_be_told_is_called_like_an_id():
    assert not KEYS.keys() & {"id", "ids", "user", "users", "row", "rows", "body", "line", "delta"}
