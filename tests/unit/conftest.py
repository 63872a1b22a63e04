"""Fixtures that several modules take."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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


@pytest.fixture
def visits(tmp_path):
    """A file of 3,000 users, each four times, as texts and as numbers."""
    numbers = np.tile(np.arange(3_000), 4)
    table = pa.table({"name": [f"user {n}" for n in numbers], "number": numbers})
    path = tmp_path / "visits.parquet"
    pq.write_table(table, path)
    return path
