"""Fixtures that several modules take."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiled functions, so that not every program compiles them, and the tests take less time."""
    place = tmp_path_factory.mktemp("compiled")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(place)}
    subprocess.run([sys.executable, "-c", "import panprivacy.cli"], env=environment, check=True)
    return place
