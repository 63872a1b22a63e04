"""JSON value by value: what is wrong is said as it is, and only of the fields that are wanted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.errors import InputError
from panprivacy.intake.sources import Column
from panprivacy.intake.sources.json_values import (
    column_of,
    events_of,
    named,
    parse_json,
    read_values,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@pytest.mark.long
@given(VALUES, st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(max_size=4), st.none()))
def test_no_other_field_matters(other, user):
    lines = json.dumps({"o": other, "user": user}).encode() + b"\n"
    if isinstance(user, str) and any(0xD800 <= ord(letter) < 0xE000 for letter in user):
        with pytest.raises(InputError, match="not UTF-8"):
            read_values(lines, [Column("user")])
        return
    (found,) = read_values(lines, [Column("user")])["user"].to_pylist()
    if isinstance(user, int):
        assert found % 2**64 == user % 2**64
    else:
        assert found == (None if user is None else user.encode())


def test_a_field_of_a_field_is_found_unless_one_has_the_whole_name():
    assert named(parse_json(b'{"a": {"b": {"c": 1}}}'), "a.b.c") == 1
    assert named(parse_json(b'{"a": {"b": 1}, "a.b": 2}'), "a.b") == 2
    assert named(parse_json(b'{"a": 1}'), "a.b") is None
    with pytest.raises(InputError, match="the field 'a' occurs twice"):
        named(parse_json(b'{"a": {"b": 1}, "a": {"b": 2}}'), "a.b")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[1] 2", ": there is more text behind it"),
        (b'{"a": 1,}', ": there is a comma behind the last value"),
        (b"[1, ]", ": there is a comma behind the last value"),
        (b"[" * 100_000, ": it is nested too deep"),
        (b"[1", ""),
        (b"", ""),
    ],
)
def test_what_is_wrong(text, reason):
    with pytest.raises(InputError) as refused:
        parse_json(text)
    assert str(refused.value) == reason


def test_the_row_of_a_value_is_named():
    with pytest.raises(InputError) as refused:
        column_of(parse_json(b'{"user": ["a", 1.5]}'), Column("user"))
    assert refused.value.row == 2


@pytest.mark.parametrize(
    ("text", "events"), [(b'[{}, {"a": 1}]', 2), (b'{"a": [1, "b"]}', 2), (b"{}", 1), (b"[]", 0)]
)
def test_events_are_counted(text, events):
    assert events_of(parse_json(text)) == events
