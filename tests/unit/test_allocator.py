"""Nothing of a block of Python or NumPy is left once it is freed, to its last byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from panprivacy_launcher import hardened

PATIENCE = 120
SCRIPT = """
import ctypes, json, sys
import numpy as np
from panprivacy.ground.hygiene.allocator import has_spare_words, leave_spare_words

if "with" in sys.argv:
    leave_spare_words()
    leave_spare_words()  # the second time changes nothing

P, N, python = ctypes.c_void_p, ctypes.c_size_t, ctypes.PyDLL(None)
ID, SIZES = b"Zq7Xw", [*range(8, 600), *range(60_000, 60_100)]


def function(name, result, *arguments):
    found = python[name]
    found.restype, found.argtypes = result, arguments
    return found


def allocated(domain):
    malloc = function(f"{domain}Malloc", P, N)
    calloc = function(f"{domain}Calloc", P, N, N)
    realloc = function(f"{domain}Realloc", P, P, N)
    yield from ((size, malloc(size)) for size in SIZES)
    yield from ((size, calloc(size, 1)) for size in SIZES)
    yield from ((3 * (size // 3), calloc(size // 3, 3)) for size in SIZES)
    yield from ((size, realloc(malloc(1), size)) for size in SIZES)
    yield from ((size, realloc(malloc(2 * size), size)) for size in SIZES)


def tails_left(domain):
    '''How often the end of a block is still there when the block is freed.'''
    free, left, tried = function(f"{domain}Free", None, P), 0, 0
    for size, block in allocated(domain):
        end = block + size - len(ID)
        ctypes.memmove(end, ID, len(ID))
        free(block)
        left += ctypes.string_at(end, len(ID)) == ID
        tried += 1
    return left, tried


def resized(before, size):
    found = np.empty(before, np.uint8)
    found.resize(size, refcheck=False)
    return found


def made(size):
    '''Arrays of a size, from each function of NumPy's allocator.'''
    yield np.empty(size, np.uint8)
    yield np.zeros(size, np.uint8)
    yield resized(1, size)
    yield resized(2 * size, size)


def tails_of_arrays():
    left = tried = 0
    for size in SIZES:
        for one in made(size):
            one[:-len(ID)], one[-len(ID):] = 0, np.frombuffer(ID, np.uint8)
            end = one.ctypes.data + size - len(ID)
            del one
            left += ctypes.string_at(end, len(ID)) == ID
            tried += 1
    return left, tried


grown = bytearray()
for size in range(10_000):
    grown += b"7"
assert bytes(grown) == 10_000 * b"7" and len([[]] * 100_000) == 100_000
tails = {domain: tails_left(domain) for domain in ("PyMem_Raw", "PyMem_", "PyObject_")}
tails["NumPy"] = tails_of_arrays()
json.dump({"spare": has_spare_words(), "tails": tails}, sys.stdout)
"""


def tails(*options):
    """How many ends of blocks were left, and of how many, of each domain of Python and of NumPy."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, *options],
        env=hardened(dict(os.environ)), capture_output=True, timeout=PATIENCE, check=True,
    )  # fmt: skip
    return json.loads(result.stdout)


def test_nothing_is_left_at_the_end_of_a_block():
    found = tails("with")
    assert found["spare"]
    arrays = found["tails"].pop("NumPy")
    assert {tuple(one) for one in found["tails"].values()} == {(0, 3460)}
    assert arrays == [0, 2768]


def test_without_spare_words_ends_are_left():
    found = tails()
    assert not found["spare"]
    assert all(left > 300 for left, _ in found["tails"].values())
