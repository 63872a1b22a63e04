"""Numbers of any library, and texts of numbers, are values."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.tables.ids import SharedColumn
from panprivacy.tables.numeric import read_values


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 3, 3]),
        np.array([1, 3, 3], np.float32),
        [1.0, 3.5, 3.5],
        ["1", " 3.5 ", "3e0"],
        [b"1", b"3", b"3.9"],
        pa.chunked_array([[1.5], [3, 3.0]]),
        pa.array(["1", "3", "3"]).dictionary_encode(),
        pa.array([1, 3, 3]).cast(pa.decimal128(30, 2)),
    ],
)
def test_numbers_and_texts_of_numbers_are_values(values):
    found = read_values(values)
    assert found.dtype == np.float64
    assert found.astype(int).tolist() == [1, 3, 3]


def test_a_column_that_several_statistics_count_is_read():
    assert read_values(SharedColumn(iter([1, 2.5]))).tolist() == [1, 2.5]
    assert read_values(pl.Series([0.5, -1e300])).tolist() == [0.5, -1e300]
    assert read_values([]).tolist() == []


def test_nan_and_infinity_are_numbers_here():
    found = read_values(["nan", "inf", "-inf"])
    assert math.isnan(found[0])
    assert found[1:].tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("bad", range(0, 100, 9))
def test_the_first_text_that_is_no_number_is_named(bad):
    texts = ["1"] * bad + ["x"] + ["2"] * 50 + ["y"]
    with pytest.raises(pp.InputError, match="not a number") as caught:
        read_values(texts)
    assert caught.value.row == bad + 1
    assert "x" not in caught.value.reason
