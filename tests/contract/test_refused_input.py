"""Input that cannot be used raises, names the row, shows no id and changes nothing."""

from __future__ import annotations

import itertools
import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import panprivacy as pp

from .doubles import SpyCoins
from .readers import each_form, reader_of_deltas, reader_of_ids

REFUSED_NUMBERS = {
    "a null in the middle": lambda ids: [*ids[:2], None, *ids[2:]],
    "a null in a later chunk": lambda ids: pa.chunked_array([ids, [*ids, None]]),
    "a missing value of pandas": lambda ids: pd.Series([*ids, None], dtype="Int64"),
    "a missing value of Polars": lambda ids: pl.Series([*ids, None]),
    "a null in a dictionary": lambda ids: pa.array([*ids, None]).dictionary_encode(),
    "floats": lambda ids: np.array(ids, float),
    "one float": lambda ids: [*ids, 0.5],
    "floats in pandas": lambda ids: pd.Series(ids, dtype=float),
    "dates": lambda ids: np.array(ids, "M8[s]"),
    "truth values": lambda ids: np.array(ids, bool),
    "complex numbers": lambda ids: np.array(ids, complex),
    "two dimensions": lambda ids: np.array([ids, ids]),
    "no dimension": lambda ids: np.array(ids[0]),
    "nested lists": lambda ids: [ids, ids],
    "records": lambda ids: [{"user": user} for user in ids],
    "a table": lambda ids: pd.DataFrame({"user": ids}),
    "one id": lambda ids: ids[0],
    "a mixture with texts": lambda ids: [*ids, str(ids[0])],
    "a number beyond 64 bits": lambda ids: [*ids, ids[0] << 64],
    "nothing": lambda ids: None,
}

REFUSED_TEXTS = {
    "a null in the middle": lambda texts: [*texts[:2], None, *texts[2:]],
    "a null in NumPy": lambda texts: np.array([*texts, None], object),
    "a null in a dictionary": lambda texts: pa.array([*texts, None]).dictionary_encode(),
    "a null behind a code": lambda texts: pa.DictionaryArray.from_arrays(
        pa.array([0, 1]), pa.array([texts[0], None])
    ),
    "a missing value of pandas": lambda texts: pd.Series([*texts, None]),
    "a missing category": lambda texts: pd.Series([*texts, None]).astype("category"),
    "a mixture with numbers": lambda texts: [*texts, 1],
    "half a surrogate pair": lambda texts: [*texts, texts[0] + "\ud800"],
    "nested lists": lambda texts: [texts, texts],
    "two dimensions": lambda texts: np.array([texts, texts]),
    "one text": lambda texts: texts[0],
    "one byte string": lambda texts: texts[0].encode(),
    "a dictionary": lambda texts: dict.fromkeys(texts, 1),
    "records": lambda texts: [{"user": text} for text in texts],
    "a dictionary of lists": lambda texts: pa.DictionaryArray.from_arrays(
        pa.array([0]), pa.array([texts])
    ),
}


def refuse(case, users, deltas=None):
    """Check that a batch is refused without a trace; return the error."""
    spy = SpyCoins()
    statistic = case.make(coins=spy)
    statistic.update(*case.rows(20))
    before = statistic.state(), list(spy.calls), statistic.ledger.spent
    with pytest.raises(pp.InputError) as caught:
        statistic.update(users, deltas)
    assert (statistic.state(), spy.calls, statistic.ledger.spent) == before
    return caught.value


def assert_silent(error, secrets):
    """No secret stands in the error or in its traceback."""
    shown = "".join([str(error), repr(error), error.reason, *traceback.format_exception(error)])
    assert not [secret for secret in secrets if str(secret) in shown or f"{secret:,}" in shown]


@each_form(
    REFUSED_NUMBERS,
    ["floats", "a null in a later chunk"],
    reader_of_ids,
    chosen=lambda case: case.counts_users,
)
def test_refused_numbers_leave_no_trace(case, form):
    ids = case.ids(5)
    assert_silent(refuse(case, REFUSED_NUMBERS[form](ids)), ids)


def test_events_of_no_counter_leave_no_trace(counting_case):
    ids = counting_case.ids(5)
    for form in REFUSED_NUMBERS.values():
        assert_silent(refuse(counting_case, form(ids)), ids)


@each_form(
    REFUSED_TEXTS,
    ["half a surrogate pair", "a null behind a code"],
    reader_of_ids,
    chosen=lambda case: case.takes_bytes,
)
def test_refused_texts_leave_no_trace(case, form):
    error = refuse(case, REFUSED_TEXTS[form](["canary-1", "canary-2", "canary-3"]))
    assert "canary" not in "".join([str(error), *traceback.format_exception(error)])


def test_records_keyed_by_id_leave_no_trace(bytes_case):
    error = refuse(bytes_case, [{"canary-1": 3}, {"canary-2": 5}])
    assert "canary" not in str(error)


def test_texts_have_no_place_in_a_universe(universe_case):
    error = refuse(universe_case, ["canary-1", "canary-2"])
    assert "canary" not in str(error)
    assert "DistinctCount" in str(error)


def test_an_id_outside_of_the_universe_is_refused_by_row(universe_case):
    ids, universe = universe_case.ids(5), universe_case.universe
    forms = list, np.array, pa.array, lambda ids: pa.chunked_array([ids[:3], ids[3:]])
    strangers = universe, universe + 12_345, -7_777_777
    for form, stranger in itertools.product(forms, strangers):
        error = refuse(universe_case, form([*ids, stranger]))
        assert error.row == 6
        assert_silent(error, [*ids, stranger])


def test_the_last_id_of_the_universe_is_taken(universe_case):
    universe_case.make().update([0, universe_case.universe - 1])


def test_a_null_is_refused_by_row(users_case):
    ids = users_case.ids(5)
    assert refuse(users_case, [*ids, None]).row == 6
    assert refuse(users_case, pa.chunked_array([ids, [None, *ids]])).row == 6
    assert "row 6 " in str(refuse(users_case, [*ids, None, *ids, None]))


def test_a_delta_that_cannot_be_counted_is_refused_by_row(case):
    ids = case.ids(5)
    for delta in case.refused_deltas:
        error = refuse(case, ids, [1, 1, delta, 1, delta])
        assert error.row == 3
        assert_silent(error, ids)


REFUSED_DELTAS = {
    "too few": [1, 1, 1, 1],
    "too many": [1, 1, 1, 1, 1, 1],
    "none": [],
    "floats in a list": [1.0, 1.0, 1.0, 1.0, 1.0],
    "a null": [1, 1, None, 1, 1],
    "truth values": [True, True, True, True, True],
    "texts": ["1", "1", "1", "1", "1"],
    "nested lists": [[1, 1, 1, 1, 1]],
    "two dimensions": np.ones((5, 1), np.int64),
    "floats": np.ones(5),
    "one delta": 1,
    "a number beyond 63 bits": [2**63, 1, 1, 1, 1],
}


@each_form(REFUSED_DELTAS, ["too few", "floats"], reader_of_deltas)
def test_deltas_that_do_not_fit_are_refused(case, form):
    ids = case.ids(5)
    assert_silent(refuse(case, ids, REFUSED_DELTAS[form]), ids)


def test_a_delta_beyond_63_bits_is_not_a_deletion(deletions_case):
    refuse(deletions_case, deletions_case.ids(1), np.array([2**64 - 1], np.uint64))


def test_good_rows_of_a_refused_batch_are_not_counted(case):
    """Every row before the bad one is valid, and still nothing of the batch is counted."""
    ids = case.ids(500)
    if case.counts_users:
        refuse(case, [*ids, None])
    if case.refused_deltas or not case.counts_users:
        refuse(case, ids, [*[1] * 499, case.refused_deltas[0]])
