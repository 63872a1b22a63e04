"""The slices of one table, each published by the shard that has it."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.cluster.routing import Router
from panprivacy.errors import InputError, PlanError, allow_noise

KEY, ROUTING = b"public, but the same for all windows", b"sixteen letters!"
SURE = 1 - 1e-9


def slices(users, shards=3, key=KEY, **given):
    """What the shards of a window contribute."""
    sizes = {"epsilon": 12, "expected": 5_000, **given}
    router = Router(shards, ROUTING, numbered="universe" in given)
    dealt = router.shards_of(users)
    found = []
    for shard in range(shards):
        with allow_noise():
            one = pp.OverlapSketch(**sizes, key=key, slice_=router.slice(shard))
        one.update(users[dealt == shard])
        found.append(one.contribute())
    return found


@pytest.mark.parametrize(
    "given",
    [{}, {"expected": (500, 50_000)}, {"expected": None, "universe": 20_011},
     {"expected": None, "universe": 20_011, "cells": 15_000}],
)  # fmt: skip
def test_windows_of_slices_are_compared(given):
    one, two = (
        pp.merge(slices(np.arange(start, start + 4_000), **given), confidence=SURE)
        for start in (0, 2_000)
    )
    assert one.low < 4_000 < one.high < 8_000
    both = pp.overlap(one.sketch, two.sketch)
    shared = both.intersection(confidence=SURE)
    assert shared.low < 2_000 < shared.high < 4_000
    assert both.return_rate(confidence=SURE).low < 0.5 < both.return_rate(confidence=SURE).high


def test_a_joined_table_has_the_cells_and_the_noise_of_one_table():
    joined = pp.merge(slices(np.arange(4_000))).sketch
    whole = pp.OverlapSketch(epsilon=12, expected=5_000, key=KEY).release().sketch
    assert joined.layout == whole.layout
    assert joined.key == whole.key
    assert joined.guarantee == whole.guarantee
    assert joined.front.routing == ROUTING.hex()
    assert [one.name for one in joined.shards] == ["0", "1", "2"]
    assert pp.Sketch.read(joined.to_bytes()) == joined


def test_the_order_of_shards_does_not_matter():
    parts = slices(np.arange(100), shards=12)
    names = [one.name for one in pp.merge(parts[::-1]).sketch.shards]
    assert names == [f"{shard:02d}" for shard in range(12)]


def test_a_contribution_is_what_is_published_and_its_slice_is_wiped():
    made = pp.OverlapSketch(
        epsilon=12, expected=5_000, key=KEY, slice_=Router(1, ROUTING, numbered=False).slice(0)
    )
    contributed = made.contribute()
    sketch = pp.merge([contributed]).sketch
    assert sketch.table in contributed
    with pytest.raises(pp.PanPrivacyError, match="wiped"):
        made.contribute()


class TestRefused:
    def test_a_slice_that_is_missing_or_damaged_or_of_another_key(self):
        parts, other = slices(np.arange(100)), slices(np.arange(100), key=b"another public key")
        with pytest.raises(InputError, match="these are missing: 3"):
            pp.merge(parts[:2])
        with pytest.raises(InputError, match="different addressing keys"):
            pp.merge([*parts[:2], other[2]])
        with pytest.raises(InputError, match="damaged"):
            pp.merge([*parts[:2], parts[2][:-1] + b"?"])

    def test_the_table_of_another_slice(self):
        first, second, third = slices(np.arange(100), expected=None, universe=1_000)
        cut = third.index(b"PPSKETCH")
        with pytest.raises(InputError, match="damaged"):
            pp.merge([first, second, third[:cut] + first[first.index(b"PPSKETCH") :]])

    def test_tables_of_shards_that_have_no_slices(self):
        one = pp.OverlapSketch(epsilon=12, expected=5_000, key=KEY)
        with pytest.raises(PlanError, match="publish that of each shard, and join the sketches"):
            one.contribute()
        assert one.release().sketch is not None
