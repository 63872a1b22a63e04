"""Sketches are read as docs/sketch-format.md says, with nothing of the package."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from fractions import Fraction
from pathlib import Path

import pytest

import panprivacy as pp

FOLDER = Path(__file__).parent / "sketches"
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
WORD = 2**64
S0, S1 = 0x2D358DCCAA6C78A5, 0x8BB84B93962EACC9


def read(data):
    """The text of a sketch, and its bits."""
    assert data[:8] == b"PPSKETCH"
    body, digest = data[:-32], data[-32:]
    assert hashlib.sha256(body).digest() == digest
    (length,) = struct.unpack("<I", data[8:12])
    text, table = json.loads(body[12 : 12 + length]), body[12 + length :]
    assert text["format"] == 1
    cells = text["levels"] * text["cells_per_level"]
    assert len(table) == (cells + 7) // 8
    return text, [table[cell // 8] >> cell % 8 & 1 for cell in range(cells)]


def fold(a, b):
    return (a * b >> 64) ^ a * b % WORD


def hash_word(word, k0, k1):
    return fold(fold(word ^ k0, k1 | 1) ^ S0, word ^ S1 ^ k1)


def hash_of(user, key):
    k0, k1 = (int.from_bytes(half, "little") for half in (key[:8], key[8:]))
    digits = user.removeprefix("-")
    number = int(user) if digits.isascii() and digits.isdigit() else None
    if number is not None and str(number) == user and -(2**63) <= number < WORD:
        return hash_word(number % WORD, k0, k1)
    data, state = user.encode(), k0
    for start in range(0, len(data) - 8, 8):
        state = fold(state ^ int.from_bytes(data[start : start + 8], "little"), k1 | 1) ^ k0
    last = int.from_bytes(data[-8:], "little")
    return hash_word(last ^ state, k0 ^ len(data) * S1 % WORD, k1)


def cell_of(user, key, levels, cells_per_level):
    hashed = hash_of(user, key)
    zeros = (hashed & -hashed).bit_length() - 1 if hashed else 64
    return min(zeros, levels - 1) * cells_per_level + (hashed * cells_per_level >> 64)


def empty(text, bits):
    absent, present = (float(Fraction(text[name])) for name in ("absent", "present"))
    return [(present - bit) / (present - absent) for bit in bits]


def users_of(values):
    return math.log(sum(values) / len(values)) / math.log(1 - 1 / len(values))


@pytest.fixture
def opened():
    return [read((FOLDER / f"{day}.sketch").read_bytes()) for day in ("monday", "tuesday")]


@pytest.mark.parametrize("layout", ANSWERS["cells"], ids=lambda one: f"{one['levels']} levels")
def test_users_have_the_cells_of_the_vector(layout, opened):
    key = bytes.fromhex(opened[0][0]["key"])
    assert len(layout["users"]) > 5
    found = {user: cell_of(user, key, layout["levels"], layout["cells_per_level"])
             for user in layout["users"]}  # fmt: skip
    assert found == layout["users"]


def test_the_key_is_made_of_what_was_given(opened):
    given = ANSWERS["key"].encode()
    assert {text["key"] for text, _ in opened} == {hashlib.shake_256(given).hexdigest(16)}


def test_the_estimates_are_those_of_the_vector_and_of_the_package(opened):
    first, second = (empty(*one) for one in opened)
    union = users_of([one * other for one, other in zip(first, second, strict=True)])
    found = {"monday": users_of(first), "tuesday": users_of(second), "union": union}
    found["intersection"] = found["monday"] + found["tuesday"] - union
    assert found == pytest.approx(ANSWERS["estimates"], rel=1e-9)
    compared = pp.overlap(*(pp.Sketch.read(FOLDER / f"{day}.sketch") for day in
                            ("monday", "tuesday")))  # fmt: skip
    for name in "union", "intersection":
        answer = getattr(compared, name)(confidence=1 - 1e-6)
        assert answer.estimate == pytest.approx(found[name], abs=ANSWERS["within"])
        assert answer.low < ANSWERS["truth"][name] < answer.high


def test_users_of_a_window_are_ones_more_often(opened):
    """The cells are those that the package wrote: its users stand out of the noise."""
    key = bytes.fromhex(opened[0][0]["key"])
    for (text, bits), users in zip(opened, (range(2_000), range(1_000, 3_000)), strict=True):
        cells = {cell_of(str(user), key, 1, text["cells_per_level"]) for user in users}
        share = sum(bits[cell] for cell in cells) / len(cells)
        present = float(Fraction(text["present"]))
        assert abs(share - present) < 5 * math.sqrt(present * (1 - present) / len(cells))
        others = set(range(len(bits))) - cells
        assert sum(bits[cell] for cell in others) / len(others) < present / 2


def test_the_package_writes_the_bytes_that_it_reads():
    for day in "monday", "tuesday":
        data = (FOLDER / f"{day}.sketch").read_bytes()
        assert pp.Sketch.read(data).to_bytes() == data
