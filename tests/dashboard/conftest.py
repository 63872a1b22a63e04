"""A configuration and a store, which nearly all tests of the dashboard take."""

import contextlib

import pytest

from panprivacy.service.config.loading import load
from panprivacy.service.dashboard import announcing, elements, frame, pages, parts, stream_page
from panprivacy.service.dashboard.board import Board
from panprivacy.service.outgoing.store import ReleaseStore
from tests.dashboard.page import Element, Page
from tests.dashboard.rows import CONFIG, HASHES, days, published


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "panprivacy.toml"
    path.write_text(CONFIG.format(**HASHES))
    return path


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(ReleaseStore(f"sqlite:///{tmp_path}/releases.sqlite")) as made:
        yield made


@pytest.fixture
def page(monkeypatch):
    """A page without a browser, on which all parts of the dashboard are drawn."""
    made = Page()
    for module in (announcing, elements, frame, pages, parts, stream_page):
        monkeypatch.setattr(module, "ui", made, raising=False)
    monkeypatch.setattr(elements, "TextElement", lambda tag, text: Element(made, tag, text))
    return made


@pytest.fixture
def board(store, file):
    """Two days of a stream that were published."""
    published(store, days(2))
    made = Board(load(file), file)
    made.follow()
    yield made
    made.close()
