"""Every type of column that Arrow can hand over is read right, or refused in one line."""

from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
import uuid
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import panprivacy as pp
from panprivacy.errors import InputError
from panprivacy.tables.ids import read_deltas, read_ids
from tests.unit.test_ids import read

UUIDS = [uuid.UUID(int=n << 64 | n) for n in (1, 2, 1)]
SIXTEEN = [one.bytes for one in UUIDS]
TEXTS, BYTES, NUMBERS = ["ada", "é", "ada"], [b"ada", "é".encode(), b"ada"], [7, 8, 7]
LONG = ["a" * 40, "b", "a" * 40]

IDS = {
    **{str(kind): (pa.array(NUMBERS, kind), NUMBERS) for kind in (
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    )},
    **{str(kind): (pa.array(TEXTS, kind), BYTES) for kind in (
        pa.string(), pa.large_string(), pa.string_view()
    )},
    **{str(kind): (pa.array(BYTES, kind), BYTES) for kind in (
        pa.binary(), pa.large_binary(), pa.binary_view()
    )},
    "long views": (pa.array(LONG, pa.string_view()), [one.encode() for one in LONG]),
    "fixed bytes": (pa.array(SIXTEEN, pa.binary(16)), SIXTEEN),
    "uuid": (pa.array(UUIDS), SIXTEEN),
    "list of UUIDs": (UUIDS, SIXTEEN),
    "window of uuid": (pa.array([UUIDS[1], *UUIDS, UUIDS[1]]).slice(1, 3), SIXTEEN),
    "dictionary of uuid": (
        pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(UUIDS[:2])), SIXTEEN
    ),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(TEXTS[:2], pa.string_view())), BYTES
    ),
    "dictionary of fixed bytes": (
        pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(SIXTEEN[:2], pa.binary(16))), SIXTEEN
    ),
    "dictionary of numbers": (
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.uint64()), pa.array(NUMBERS[:2])),
        NUMBERS,
    ),
    "runs of numbers": (pa.RunEndEncodedArray.from_arrays([1, 2, 3], NUMBERS), NUMBERS),
    "runs of texts": (
        pa.RunEndEncodedArray.from_arrays([9, 10, 11, 20], ["x", *TEXTS]).slice(8, 4).slice(1),
        [BYTES[0], BYTES[1], BYTES[2]],
    ),
    "runs of uuid": (
        pa.RunEndEncodedArray.from_arrays([2, 3, 9], pa.array(UUIDS)).slice(1, 3),
        [SIXTEEN[0], SIXTEEN[1], SIXTEEN[2]],
    ),
    "runs of a dictionary": (
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(TEXTS).dictionary_encode()), BYTES
    ),
    "runs of views": (
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(TEXTS, pa.string_view())), BYTES
    ),
    "Polars UUIDs": (pl.Series(UUIDS), SIXTEEN),
    "Polars texts as Object": (pl.Series(TEXTS, dtype=pl.Object), BYTES),
    "column of Polars UUIDs": (pl.DataFrame({"user": UUIDS})["user"], SIXTEEN),
    "Polars categories": (pl.Series(TEXTS, dtype=pl.Categorical), BYTES),
    "Polars bytes": (pl.Series(BYTES), BYTES),
    "pandas UUIDs": (pd.Series(UUIDS), SIXTEEN),
    "NumPy objects": (np.array(UUIDS, object), SIXTEEN),
    "NumPy texts": (np.array(TEXTS, np.dtypes.StringDType()), BYTES),
}  # fmt: skip


class Stored(pa.ExtensionType):
    """A type of which nobody but its maker knows what equal values are."""

    def __init__(self, storage):
        super().__init__(storage, "test.stored")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, _):
        return cls(storage)


def stored(values, kind):
    return pa.ExtensionArray.from_storage(Stored(kind), pa.array(values, kind))


def ids_of(kind, values):
    return pa.array(values, kind)


NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
REFUSED = {
    "addresses of objects": pa.array([b"8 bytes."], pa.binary(8)),
    "dictionary of addresses": pa.DictionaryArray.from_arrays(
        [0, 0], pa.array([b"8 bytes."], pa.binary(8))
    ),
    "Polars addresses by way of pyarrow": pl.Series(UUIDS).to_arrow(),
    "Polars objects": pl.Series([ipaddress.ip_address("192.0.2.1")], dtype=pl.Object),
    "Polars tuples": pl.Series([("a", "b")], dtype=pl.Object),
    "Polars Int128": pl.Series([7], dtype=pl.Int128),
    "Polars UInt128": pl.Series([7], dtype=pl.UInt128),
    "Polars decimals": pl.Series([decimal.Decimal(7)]),
    "Polars times": pl.Series([NOW]),
    "Polars arrays": pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2)),
    "Polars structs": pl.Series([{"user": 7}]),
    "Polars frame": pl.DataFrame({"user": [7]}),
    "pandas periods": pd.Series(pd.period_range("2026", periods=2, freq="D")),
    "null": pa.nulls(2),
    "bool": ids_of(pa.bool_(), [True]),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())),
    **{str(kind): ids_of(kind, [7.0]) for kind in (pa.float32(), pa.float64())},
    "float16": pa.array(np.array([7], np.float16)),
    **{str(kind): ids_of(kind, [decimal.Decimal(7)]) for kind in (
        pa.decimal32(5), pa.decimal64(10), pa.decimal128(38), pa.decimal256(50)
    )},
    **{str(kind): ids_of(kind, [7]) for kind in (
        *(pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.timestamp("s", "UTC")),
        *(pa.date32(), pa.duration("s")),
    )},
    "date64": ids_of(pa.date64(), [NOW.date()]),
    "intervals": pa.array([pa.MonthDayNano([1, 2, 3])]),
    **{str(kind): ids_of(kind, [[7]]) for kind in (
        *(pa.list_(pa.int64()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 1)),
        *(pa.list_view(pa.int64()), pa.large_list_view(pa.int64())),
    )},
    "struct": pa.array([{"user": 7}]),
    "map": ids_of(pa.map_(pa.string(), pa.int64()), [[("user", 7)]]),
    "dense union": pa.UnionArray.from_dense(
        pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([7])]
    ),
    "sparse union": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([7])]),
    "extension of numbers": stored([7], pa.int64()),
    "extension of texts": stored(["ada"], pa.string()),
    "extension of fixed bytes": stored(SIXTEEN[:1], pa.binary(16)),
    "dictionary of an extension": pa.DictionaryArray.from_arrays([0], stored([7], pa.int64())),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['"ada"'])),
    "opaque hugeint": pa.ExtensionArray.from_storage(
        pa.opaque(pa.binary(16), "hugeint", "DuckDB"), pa.array(SIXTEEN[:1], pa.binary(16))
    ),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int64(), [1]), pa.array([[7]], pa.list_(pa.int64(), 1))
    ),
    "dictionary of floats": pa.array([7.0]).dictionary_encode(),
    "dictionary of dates": ids_of(pa.date32(), [7]).dictionary_encode(),
    "runs of floats": pa.RunEndEncodedArray.from_arrays([2], [7.0]),
    "NumPy records": np.zeros(2, [("user", "i8")]),
    "NumPy bytes without a type": np.zeros(2, "V8"),
    "complex numbers": np.zeros(2, complex),
    "times": np.zeros(2, "m8[s]"),
}  # fmt: skip


@pytest.mark.parametrize("case", IDS)
def test_ids_of_this_type_are_read_right(case):
    users, expected = IDS[case]
    assert read(users) == expected


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("column", ["ids", "deltas", "groups"])
def test_a_column_of_this_type_is_refused_in_one_line(case, column):
    given = REFUSED[case]
    reads = {
        "ids": read_ids,
        "deltas": lambda column: read_deltas(column, len(column)),
        "groups": lambda column: groups().internals.memory.prepare(np.arange(len(column)), column),
    }
    with pytest.raises(InputError) as caught:
        reads[column](given)
    assert "\n" not in str(caught.value)
    assert "192.0.2.1" not in str(caught.value)


def groups(**options):
    return pp.Grouped(
        lambda epsilon: pp.DistinctCount(epsilon=epsilon, expected=(100, 1000)),
        ["ada", "7"],
        epsilon=Fraction(20),
        **options,
    )


@pytest.mark.parametrize("case", [*(one for one in REFUSED if one != "null"), "uuid"])
def test_groups_of_this_type_are_not_passed_over_as_others(case):
    """Else they would be left out in silence, and the answers would be of nobody."""
    given = REFUSED[case] if case in REFUSED else IDS[case][0]
    with pytest.raises(InputError, match="group"):
        groups(ignore_others=True).update(np.arange(len(given)), given)


@pytest.mark.parametrize("case", [
    *("runs of texts", "runs of a dictionary", "runs of views"),
    *("dictionary of views", "Polars categories"),
])  # fmt: skip
def test_groups_of_encoded_texts_are_matched(case):
    given, _ = IDS[case]
    found = groups(ignore_others=True).internals.memory.prepare(np.arange(3), given)
    assert found[0] is not None
    assert found[1] is None


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.uint64()])
def test_deltas_of_whole_numbers_are_read_right(kind):
    runs = pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([2, 3], kind))
    for deltas in (pa.array([2, 3, 3], kind), runs, pl.Series(pa.array([2, 3, 3], kind))):
        assert read_deltas(deltas, 3).tolist() == [2, 3, 3]


@pytest.mark.parametrize("column", ["ids", "deltas"])
def test_a_null_within_runs_is_refused_by_its_row(column):
    """Arrow counts no nulls in a column of runs."""
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 5], pa.array([7, None, 8]))
    read_column = read_ids if column == "ids" else lambda deltas: read_deltas(deltas, 5)
    with pytest.raises(InputError, match="null") as caught:
        read_column(runs)
    assert caught.value.row == 3


def test_users_of_a_polars_object_column_are_counted():
    """Each of 2,000 users comes ten times; as addresses of objects they would be 20,000."""
    users = [uuid.UUID(int=n % 2_000) for n in range(20_000)]
    program = pp.DistinctCount(epsilon=50, expected=(1_000, 100_000))
    program.update(pl.Series(users))
    assert program.release().value == pytest.approx(2_000, rel=0.2)
