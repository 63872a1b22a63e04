"""Fixtures that several modules take."""

from __future__ import annotations

import shutil

import pytest
from numba import config

from panprivacy.cli import run
from panprivacy.ground.kernels import cache_folder, compile_kernels
from panprivacy.service import server

COMPILING = run, server
"""What they import has all kernels that a program compiles before its first batch."""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiled kernels, so that not every program compiles them, and the tests take less time."""
    compile_kernels()
    kept, place = cache_folder(config.CACHE_DIR), tmp_path_factory.mktemp("compiled")
    shutil.copytree(kept, place / kept.name)
    return place
