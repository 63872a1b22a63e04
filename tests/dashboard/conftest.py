"""A configuration and a store, which nearly all tests of the dashboard take."""

import contextlib

import pytest

from panprivacy.service.outgoing.store import ReleaseStore
from tests.dashboard.rows import CONFIG, HASHES


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "panprivacy.toml"
    path.write_text(CONFIG.format(**HASHES))
    return path


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(ReleaseStore(f"sqlite:///{tmp_path}/releases.sqlite")) as made:
        yield made
