"""Devices in Node, and what they are asked."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "clients" / "js"


def built():
    """The folder of the client; skips where it is not built."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node: apt-get install nodejs npm")
    if not (FOLDER / "dist" / "index.js").exists():
        pytest.skip("the client is not built: make client")
    return FOLDER


def lives(asked):
    """The answers of one process of Node to requests for parts of lives."""
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    words = ["node", str(built() / "test" / "lives.mjs")]
    ran = subprocess.run(
        words, input=lines, capture_output=True, text=True, check=True, timeout=300
    )
    assert ran.stderr == ""
    return [json.loads(line) for line in ran.stdout.splitlines()]
