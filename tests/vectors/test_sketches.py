"""Sketches are read as docs/sketch-format.md says; a reader of that page alone is in this file."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.cluster.routing import Router
from panprivacy.tables.addressing import Sampled
from panprivacy.tables.ids import read_ids

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
    bits = []
    for shard in text.get("shards", [text]):
        cells = text["levels"] * shard["cells_per_level"]
        own, table = table[: (cells + 7) // 8], table[(cells + 7) // 8 :]
        bits += [own[cell // 8] >> cell % 8 & 1 for cell in range(cells)]
    assert not table
    return text, bits


def fold(a, b):
    return (a * b >> 64) ^ a * b % WORD


def hash_word(word, k0, k1):
    return fold(fold(word ^ k0, k1 | 1) ^ S0, word ^ S1 ^ k1)


def hash_of(user, key):
    k0, k1 = words(key)
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


def words(key):
    return [int.from_bytes(half, "little") for half in (key[:8], key[8:])]


def image_of(user, universe, key):
    """The place of a user of a universe in the permutation of all of them."""
    k0, k1 = words(key)
    both = max(8, (universe - 1).bit_length())
    low = both // 2
    high = both - low

    def rounded(x, i):
        c0, c1 = i * 0x9E3779B97F4A7C15 % WORD, i * 0xD1B54A32D192ED03 % WORD
        return fold(x ^ k0 ^ c0, (k1 ^ c1) | 1)

    while True:
        left, right = user >> low, user % 2**low
        for i in (0, 2, 4, 6):
            left ^= rounded(right, i) % 2**high
            right ^= rounded(left, i + 1) % 2**low
        user = left * 2**low + right
        if user < universe:
            return user


def shard_of(user, shards, routing):
    """The shard of a hashed user of a cluster, and the number that the user is there."""
    number = hash_of(user, routing)
    return number * shards >> 64, number


def dealt(user, shards, routing):
    """The shard of a user of a universe, and the number that the user is there."""
    rounds, place = divmod(user, shards)
    turn = hash_word(rounds, *words(routing)) * shards >> 64
    return (place + turn) % shards, rounds


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


@pytest.mark.parametrize("one", ANSWERS["permutations"], ids=lambda one: str(one["universe"]))
def test_users_of_a_universe_have_the_images_of_the_vector(one, opened):
    key = bytes.fromhex(opened[0][0]["key"])
    universe = one["universe"]
    assert {user: image_of(int(user), universe, key) for user in one["image"]} == one["image"]
    if universe < 1_000:
        images = {image_of(user, universe, key) for user in range(universe)}
        assert images == set(range(universe))


def test_users_of_a_sample_have_the_cells_of_the_vector_and_are_read_off_it():
    text, bits = read((FOLDER / "sample.sketch").read_bytes())
    key, cells, told = bytes.fromhex(text["key"]), text["cells_per_level"], ANSWERS["sample"]
    assert (text["universe"], cells) == (told["universe"], told["cells"])
    found = {user: image_of(int(user), text["universe"], key) for user in told["users"]}
    assert {user: cell if cell < cells else None for user, cell in found.items()} == told["users"]
    came = {image_of(user, text["universe"], key) for user in range(3_000)}
    assert 0.9 < share_of_ones(bits, came) <= 1
    assert share_of_ones(bits, set(range(cells)) - came) < 0.1
    users = text["universe"] * (1 - sum(empty(text, bits)) / cells)
    sketch = pp.Sketch.read(FOLDER / "sample.sketch")
    answer = (sketch | sketch).count()
    assert answer.estimate == pytest.approx(users, rel=1e-9)
    assert users == pytest.approx(3_000, abs=300)


def share_of_ones(bits, cells):
    within = [bits[cell] for cell in cells if cell < len(bits)]
    return sum(within) / len(within)


def test_users_of_a_cluster_are_ones_of_their_shards():
    text, bits = read((FOLDER / "cluster.sketch").read_bytes())
    key, routing = (bytes.fromhex(text[name]) for name in ("key", "routing"))
    sizes = [one["cells_per_level"] for one in text["shards"]]
    assert [one["name"] for one in text["shards"]] == ["0", "1", "2"]
    assert sum(sizes) == text["cells_per_level"]
    came = set()
    for user in range(ANSWERS["cluster"]["truth"]):
        shard, number = shard_of(str(user), 3, routing)
        came.add(sum(sizes[:shard]) + cell_of(str(number), key, 1, sizes[shard]))
    assert share_of_ones(bits, came) > 0.9
    assert share_of_ones(bits, set(range(len(bits))) - came) < 0.1


def test_users_are_routed_and_dealt_as_the_vector_says():
    text, _ = read((FOLDER / "cluster.sketch").read_bytes())
    routing = bytes.fromhex(text["routing"])
    found = {user: shard_of(user, 3, routing)[0] for user in ANSWERS["routed"]}
    assert found == ANSWERS["routed"]
    found = {user: dealt(int(user), 3, routing)[0] for user in ANSWERS["dealt"]}
    assert found == ANSWERS["dealt"]


def test_what_the_page_says_is_what_the_package_does():
    key, routing = bytes(range(16)), b"routing of 16 by"
    for universe in (3, 300, 70_001):
        users = np.arange(0, universe, max(universe // 50, 1))
        (cells,) = Sampled(universe, universe - 1, key).slots(read_ids(users))
        expected = [image_of(user, universe, key) for user in users.tolist()]
        assert cells.tolist() == [one if one < universe - 1 else -1 for one in expected]
    router = Router(5, routing, numbered=True)
    assert router.shards_of(range(99)).tolist() == [dealt(u, 5, routing)[0] for u in range(99)]


def test_the_package_writes_the_bytes_that_it_reads():
    for day in "monday", "tuesday", "sample", "cluster":
        data = (FOLDER / f"{day}.sketch").read_bytes()
        assert pp.Sketch.read(data).to_bytes() == data
