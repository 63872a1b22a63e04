"""The bytes of a published table, and what is refused."""

from __future__ import annotations

import hashlib
import json
import struct
from datetime import UTC, datetime
from fractions import Fraction

import msgspec
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.statistics.overlaps.sketch import SketchFront
from tests.unit.test_sketch import KEY, published


class TestBytes:
    def test_a_sketch_is_read_as_it_was_written(self, tmp_path):
        sketch = published([1, 2, 3]).named(
            stream="visits", group="home", start=datetime(2026, 1, 5, tzinfo=UTC)
        )
        assert pp.Sketch.read(sketch.to_bytes()) == sketch
        sketch.write(tmp_path / "monday.sketch")
        assert pp.Sketch.read(tmp_path / "monday.sketch") == sketch
        with pytest.raises(FileExistsError):
            sketch.write(tmp_path / "monday.sketch")
        assert "visits home 2026-01-05" in repr(sketch)

    @pytest.mark.parametrize("cut", [0, 5, 12, 40, 500, -1])
    def test_one_that_is_cut_off_is_refused(self, cut):
        with pytest.raises(InputError):
            pp.Sketch.read(published([1]).to_bytes()[:cut])

    @pytest.mark.parametrize("place", [0, 9, 30, 300, 900, -40, -1])
    def test_one_that_is_damaged_is_refused(self, place):
        data = bytearray(published([1]).to_bytes())
        data[place] ^= 1
        with pytest.raises(InputError):
            pp.Sketch.read(bytes(data))

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("format", 2),
            ("levels", 0),
            ("levels", 2),
            ("cells_per_level", 1 << 40),
            ("key", "zz"),
            ("key", "00" * 65),
            ("absent", "2/1"),
            ("absent", "1/0"),
            ("absent", "nan"),
            ("present", "1/1000000000"),
            ("epsilon", "-1"),
            ("epsilon", "9" * 200),
            ("unseen", "100"),
            ("covers", "nothing"),
            ("start", "yesterday"),
            ("start", "2026-01-01T00:00:00"),
            ("end", "2025-01-01T00:00:00Z"),
            ("universe", 10**400),
            ("universe", 5),
            ("levels", 6_000),
            ("present", "1/10000000000"),
            ("key", "00 11"),
            ("stream", "a\nb"),
            ("group", 10**1_200),
            ("more", 1),
        ],
    )
    def test_what_no_sketch_says_is_refused(self, field, value):
        sketch = published([1])
        front = json.loads(msgspec.json.encode(sketch.front))
        whole = {**front, "start": "2026-01-01T00:00:00Z", field: value}
        with pytest.raises(InputError) as refused:
            pp.Sketch.read(packed(whole, sketch.table))
        assert "\n" not in str(refused.value)

    def test_its_text_says_all_that_is_needed_to_read_it(self):
        sketch = published([1, 2])
        assert packed(json.loads(msgspec.json.encode(sketch.front)), sketch.table)
        front = sketch.front
        assert bytes.fromhex(front.key) == hashlib.shake_256(KEY).digest(16)
        assert 0 < Fraction(front.absent) < Fraction(front.present) < 1
        assert set(SketchFront.__struct_fields__) == {
            "format", "made_by", "levels", "cells_per_level", "universe", "key", "absent",
            "present", "epsilon", "unseen", "covers", "stream", "statistic", "group", "start",
            "end", "shards", "routing",
        }  # fmt: skip

    def test_a_row_of_a_table_has_its_bytes(self):
        sketch = published([1]).named(stream="visits")
        table = pa.table(sketch)
        assert table["stream"].to_pylist() == ["visits"]
        assert table["epsilon"].to_pylist() == [4.0]
        assert pp.Sketch.read(table["sketch"][0].as_py()) == sketch


def packed(front, table):
    """The bytes of a sketch, written without the package."""
    text = json.dumps(front).encode()
    body = b"PPSKETCH" + struct.pack("<I", len(text)) + text + table
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize("releases", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [4, 8, 16])
def test_what_a_sketch_says_of_crashes_bounds_what_its_plan_says(epsilon, releases):
    told = {"epsilon": epsilon, "expected": 1_000, "releases": releases}
    state = pp.OverlapSketch(**told)
    planned, said = state.guarantee, state.release().sketch.guarantee
    assert 0 < planned.crash <= said.crash == said.unseen_loss.epsilon
    assert releases > 1 or said.crashed(3).epsilon >= planned.crashed(3).epsilon
    tables = pp.OverlapSketch(**told, covers="publication").release().sketch
    assert tables.guarantee.crash == 0
