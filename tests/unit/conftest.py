"""Fixtures that several modules take."""

import os

import pytest

from panprivacy.sources import text


@pytest.fixture
def blocks(monkeypatch):
    """Set the size of a raw block, in bytes."""

    def set_size(size):
        monkeypatch.setattr(text, "BLOCK_BYTES", size)

    return set_size


@pytest.fixture
def slow():
    """A pipe to write to by hand: its path, and a function that writes."""
    reading, writing = os.pipe()
    yield f"/dev/fd/{reading}", lambda data: os.write(writing, data)
    os.close(writing)
    os.close(reading)
