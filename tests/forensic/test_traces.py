"""Nothing is left of small batches either, whose arrays NumPy keeps for reuse, nor of groups."""

from __future__ import annotations

import subprocess

import numpy as np
import pyarrow as pa
import pytest

from panprivacy import SystemCoins

from .memory import Needles, needs_administrator
from .test_memory import (
    HARDENED,
    IDS,
    NOTHING,
    PLAIN,
    STAT,
    Canaries,
    arrow_bytes,
    csv_lines,
    found,
    is_waiting,
    started,
    texts,
    wait_until,
    write_all,
)

pytestmark = [
    pytest.mark.slow,
    needs_administrator,
]

SMALL = 100


def narrow_numbers():
    """A few ids of 32 bits; searched for are two neighbours, as they came and widened."""
    drawn = np.frombuffer(SystemCoins().key(4 * SMALL), np.uint32) >> np.uint32(1)
    wide = drawn.astype("<i8")
    pairs = np.column_stack([wide[:-1], wide[1:]]).astype("<i8").view(np.uint8).reshape(-1, 16)
    found_narrow = drawn.astype("<i4")
    quads = np.column_stack([found_narrow[i : SMALL - 3 + i] for i in range(4)])
    narrow = np.ascontiguousarray(quads).view(np.uint8).reshape(-1, 16)
    return Canaries(pa.array(drawn.astype(np.int32)), Needles.of(pairs, narrow))


def left(program, data, canaries, folder, *options):
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    words = ["-", "--user", "id", *STAT, *options]
    with started(program, words, folder, **streams) as process:
        write_all(process.stdin, data)
        wait_until(lambda: is_waiting(process, process.stdin))
        return found(process, canaries, folder)


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "written"
    place.mkdir()
    return place


def test_nothing_is_left_of_a_few_narrow_numbers(folder):
    canaries = narrow_numbers()
    data = arrow_bytes(canaries.table())
    assert left(HARDENED, data, canaries, folder, "--format", "arrow") == NOTHING


def test_without_hardening_they_are_found(folder):
    canaries = narrow_numbers()
    in_memory, *_ = left(
        PLAIN, arrow_bytes(canaries.table()), canaries, folder, "--format", "arrow"
    )
    assert in_memory > 0


@pytest.mark.parametrize("options", [[], ["--window", "1h"]])
def test_nothing_is_left_of_groups(options, folder):
    canaries = texts()
    table = canaries.table()
    pages = pa.array(["home", "help", "elsewhere", "shop"] * (IDS // 4))
    data = csv_lines(table).replace(b"delta\n", b"page\n", 1)
    lines = data.splitlines()[1:]
    rows = [line[:-1] + page.encode() for line, page in zip(lines, pages.to_pylist(), strict=True)]
    grouped = b"id,page\n" + b"\n".join(rows) + b"\n"
    words = ["--format", "csv", "--by", "page", "--groups", "home,help,shop", "--ignore-others"]
    assert left(HARDENED, grouped, canaries, folder, *words, *options) == NOTHING
