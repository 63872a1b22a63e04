"""A terminal is told of searches that take more than a second, once; a file is told nothing."""

from __future__ import annotations

import io
import sys

import pytest

from panprivacy.ground import patience
from panprivacy.ground.patience import Searches
from panprivacy.tables.cells import shapes
from panprivacy.tables.cells.shapes import Shape


class Terminal(io.StringIO):
    """What is written to it is read by somebody."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "lines"), [(Terminal(), 1), (io.StringIO(), 0)])
def test_a_terminal_is_told_once_when_searches_take_long(monkeypatch, stream, lines):
    seconds = iter([0.0, 0.6, 5.0, 5.3, 6.0, 6.2, 7.0, 9.0])
    monkeypatch.setattr(patience.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(sys, "stderr", stream)
    searches, told = Searches(), []
    for _ in range(4):
        with searches.counted():
            pass
        told.append(stream.getvalue().count("searching"))
    assert told == [0, 0, lines, lines]


def test_a_search_within_another_one_counts_once_and_may_tell(monkeypatch):
    seconds, stream = iter([0.0, 0.6, 0.7, 5.0, 5.2, 5.5]), Terminal()
    monkeypatch.setattr(patience.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(sys, "stderr", stream)
    searches, told = Searches(), []
    with searches.counted():
        with searches.counted():
            pass
        told.append(stream.getvalue())
    with searches.counted():  # 0.7 seconds before it
        with searches.counted():
            pass
        told.append(stream.getvalue())
    assert told == ["", ""]
    assert "searching" in stream.getvalue()


def test_a_process_without_standard_error_searches_too(monkeypatch):
    seconds = iter([0.0, 2.0])
    monkeypatch.setattr(patience.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(sys, "stderr", None)
    with Searches().counted():
        pass


def test_the_search_for_a_shape_is_counted(monkeypatch):
    seconds, stream = iter([0.0, 1.5]), Terminal()
    monkeypatch.setattr(patience.time, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(shapes, "searches", Searches())
    assert len(Shape(3, 9, 23, 5).members()) == 5
    assert "searching" in stream.getvalue()
