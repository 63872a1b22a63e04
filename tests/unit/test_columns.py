"""Columns that are asked for: which there are, and how they are named in messages."""

from __future__ import annotations

import pytest

from panprivacy.errors import InputError, PlanError
from panprivacy.intake.sources.columns import (
    Column,
    Prefixes,
    StartError,
    check_columns,
    check_wanted,
    not_integers,
    parse_prefixes,
    show,
    show_all,
)


@pytest.mark.parametrize(
    ("text", "prefixes"), [("24:56", (24, 56)), ("1:1", (1, 1)), ("32:128", (32, 128))]
)
def test_prefixes_are_two_numbers_of_bits(text, prefixes):
    assert parse_prefixes(text) == Prefixes(*prefixes)


@pytest.mark.parametrize("text", ["", "24", "24:56:1", "0:56", "24:0", "33:56", "24:129", "x:y"])
def test_what_is_no_prefix(text):
    with pytest.raises(ValueError, match="is not how many bits to keep of IPv4:IPv6"):
        parse_prefixes(text)


def test_unless_told_all_bits_are_kept():
    assert Prefixes() == Prefixes(32, 128)
    for wrong in ({"ipv4": 33}, {"ipv6": 129}, {"ipv4": 0}):
        with pytest.raises(PlanError, match=next(iter(wrong))):
            Prefixes(**wrong)


def test_a_column_is_asked_for_once_and_is_of_one_kind():
    check_wanted([Column("a", integers=True), Column("b", address=Prefixes())])
    with pytest.raises(InputError, match="column 'a' is asked for twice"):
        check_wanted([Column("a"), Column("b"), Column("a", integers=True)])
    with pytest.raises(InputError, match="column 'a' cannot hold both whole numbers and IP"):
        check_wanted([Column("a", integers=True, address=Prefixes())])


def test_columns_are_found_in_the_order_asked_and_the_first_unless_any_is():
    wanted = [Column("b"), Column("a")]
    assert check_columns(wanted, ["a", "b", "c"]) == wanted
    assert check_columns([], ["a", "b"]) == [Column("a")]
    assert check_columns([], []) == []


def test_what_is_not_there_is_told_with_what_is():
    with pytest.raises(StartError, match="there is no column 'x'; the columns are 'a', 'b'"):
        check_columns([Column("a"), Column("x")], ["a", "b"])
    with pytest.raises(StartError, match="there is no column 'x'; ask for a field"):
        check_columns([Column("x")], ["a"], known="ask for a field")
    with pytest.raises(StartError, match="there are several columns 'a': rename all but one"):
        check_columns([Column("a")], ["a", "b", "a"])
    check_columns([Column("b")], ["a", "b", "a"])


def test_a_first_value_that_is_no_number_is_that_of_row_1():
    assert str(not_integers("a")).startswith("row 1 ")
    assert "column 'a' must hold whole numbers of at most 64 bits" in str(not_integers("a"))


def test_long_names_and_long_lists_are_cut():
    assert show("a" * 60) == repr("a" * 60)
    assert show("a" * 61) == repr("a" * 60 + "…")
    assert show_all("abc") == "'a', 'b', 'c'"
    names = [str(one) for one in range(1_021)]
    assert show_all(names[:20]).endswith("'19'")
    assert show_all(names[:21]).endswith("'19' and 1 more")
    assert show_all(names).endswith("'19' and 1,001 more")
