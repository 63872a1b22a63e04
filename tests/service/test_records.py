"""What is kept of a release: the columns of what everybody may read."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from panprivacy.errors import PanPrivacyError
from panprivacy.service.outgoing.records import (
    FIELDS,
    MOMENT,
    NULLABLE,
    DatabaseError,
    Entry,
    Published,
    StoreError,
)


def test_a_published_answer_has_the_columns_that_are_described():
    names = [field.name for field in dataclasses.fields(Published)]
    assert names == list(FIELDS)
    assert {name for name, kind in Published.__annotations__.items() if "None" in kind} == NULLABLE


@pytest.mark.parametrize("name", FIELDS)
def test_each_column_has_the_type_of_its_field_and_says_what_it_is(name):
    kind, says = FIELDS[name]
    of = {
        "str": pa.string(),
        "datetime": MOMENT,
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
    }
    assert kind == of[Published.__annotations__[name].removesuffix(" | None")]
    assert says
    assert not says.endswith(".")


def test_times_are_in_utc_to_a_microsecond():
    assert (MOMENT.tz, MOMENT.unit) == ("UTC", "us")


def test_what_a_database_says_is_an_error_of_the_store():
    assert issubclass(DatabaseError, StoreError)
    assert issubclass(StoreError, PanPrivacyError)


def test_what_is_paid_cannot_be_changed():
    entry = Entry("visits", None, None, 1, 0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.epsilon = 0
    assert entry.payer == ""
