"""Fixtures that several modules take."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyrage
import pytest

from panprivacy.intake.sources import text


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


@pytest.fixture
def keys(tmp_path):
    """The identity, as a file, and its recipient."""
    identity = pyrage.x25519.Identity.generate()
    path = tmp_path / "identity.txt"
    path.write_text(f"{identity}\n")
    return path, str(identity.to_public())


@pytest.fixture
def shards(tmp_path):
    """Three files of 1,000 users each, who come twice; a column of groups."""
    files = []
    for number in range(3):
        path = tmp_path / f"shard{number}.csv"
        users = range(1_000 * number, 1_000 * number + 1_000)
        rows = [f"{user},{'ab'[user % 2]}\n" for user in users for _ in range(2)]
        path.write_text("who,group\n" + "".join(rows))
        files.append(path)
    return files
