"""Tables of shards of different users, joined to one sketch."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from tests.unit.test_sketch import published

SURE = 1 - 1e-9


def shards(*starts, **given):
    """A joined sketch of shards of 2,000 users each, which begin there."""
    several = {f"shard {number}": np.arange(start, start + 2_000)
               for number, start in enumerate(starts)}  # fmt: skip
    return pp.join({name: published(ids, epsilon=12, **given) for name, ids in several.items()})


class TestAnswers:
    @pytest.mark.parametrize(
        "given",
        [{}, {"expected": (500, 50_000)}, {"expected": None, "universe": 40_000},
         {"expected": None, "universe": 40_000, "cells": 30_000}],
    )  # fmt: skip
    def test_shards_are_counted_together(self, given):
        monday, tuesday = shards(0, 10_000, **given), shards(1_000, 10_500, **given)
        both = pp.overlap(monday, tuesday)
        for answer, truth in [
            (both.intersection(confidence=SURE), 2_500),
            (both.union(confidence=SURE), 5_500),
            ((monday - tuesday).count(confidence=SURE), 1_500),
        ]:
            assert answer.low < truth < answer.high < 3 * truth
        rate = both.return_rate(confidence=SURE)
        assert 0.2 < rate.low < 0.625 < rate.high < 0.95

    def test_the_error_is_that_of_independent_shards(self):
        one = (shards(0, 10_000) & shards(1_000, 11_000)).count()
        alone = [
            (published(np.arange(2_000), epsilon=12) & published(np.arange(1_000, 3_000),
             epsilon=12)).count()
            for _ in range(2)
        ]  # fmt: skip
        expected = np.hypot(*(each.standard_error for each in alone))
        assert one.standard_error == pytest.approx(expected, rel=0.3)

    def test_a_shard_that_is_full_and_one_that_is_empty_are_read_each_by_itself(self):
        """Tables that were read as one would count too few."""
        ids = np.arange(6_000)
        joined = [pp.join({"a": published(ids, epsilon=12), "b": published([], epsilon=12)})
                  for _ in range(2)]  # fmt: skip
        answer = (joined[0] & joined[1]).count(confidence=SURE)
        assert answer.low < 6_000 < answer.high < 8_000

    def test_the_order_of_shards_does_not_matter(self):
        eu, us = published([1, 2]), published([3])
        assert pp.join({"us": us, "eu": eu}) == pp.join({"eu": eu, "us": us})


class TestBytes:
    def test_a_joined_sketch_is_read_as_it_was_written(self):
        joined = shards(0, 10_000)
        assert pp.Sketch.read(joined.to_bytes()) == joined
        assert [one.name for one in joined.shards] == ["shard 0", "shard 1"]
        assert joined.known()["cells"] == 2 * published([1]).layout.cells
        (said,) = joined.guarantee.conditions
        assert said.startswith("it holds for a user of one shard")
        alone = published([1], epsilon=12).guarantee
        assert joined.guarantee == alone.on_condition(said)

    def test_names_of_streams_that_differ_are_left_out(self):
        monday = datetime(2026, 1, 5, tzinfo=UTC)
        parts = {name: published([1]).named(stream=name, start=monday) for name in ("a", "b")}
        joined = pp.join(parts)
        assert (joined.front.stream, joined.front.start) == (None, monday)


class TestRefused:
    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            (
                {"key": b"another key than that"},
                "shard us has another addressing key than shard eu: make",
            ),
            ({"epsilon": 3}, "shard us has another absent"),
            ({"covers": "publication"}, "shard us has another absent"),
            ({"expected": None, "universe": 3_000}, "hashed cells, or a universe"),
        ],
    )
    def test_another_design(self, changed, said):
        with pytest.raises(InputError, match=said):
            pp.join({"eu": published([1]), "us": published([2], **changed)})

    def test_another_window(self):
        first, second = (published([1]).named(start=datetime(2026, 1, day, tzinfo=UTC))
                         for day in (5, 6))  # fmt: skip
        with pytest.raises(InputError, match="shard us has another window than shard eu"):
            pp.join({"eu": first, "us": second})

    def test_one_shard_twice_or_alone_or_joined(self):
        one = published([1])
        with pytest.raises(InputError, match="shard us is shard eu once more"):
            pp.join({"eu": one, "us": one})
        with pytest.raises(InputError, match="shard us is shard eu once more"):
            pp.join({"a": published([2]), "eu": one, "us": pp.Sketch.read(one.to_bytes())})
        with pytest.raises(InputError, match="join 2 to 256 sketches"):
            pp.join({"eu": one})
        with pytest.raises(InputError, match="shard us is joined of shards already"):
            pp.join({"eu": one, "us": shards(0, 10_000)})
        with pytest.raises(InputError, match="a name of 1 to 64 bytes"):
            pp.join({"": one, "us": published([1])})

    def test_sketches_of_other_shards_are_not_compared(self):
        one, other = published([1]), published([2])
        left = pp.join({"eu": one, "us": other})
        for right in (pp.join({"eu": published([1]), "asia": published([2])}), published([1])):
            with pytest.raises(InputError, match="sketch 2 is of other shards than sketch 1"):
                pp.overlap(left, right)

    def test_many_windows_of_shards(self):
        weeks = [shards(0, 10_000) for _ in range(13)]
        with pytest.raises(InputError, match="compare 12 sketches of several shards at most"):
            pp.overlap(*weeks).union()
