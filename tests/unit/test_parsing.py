"""Texts that name states, users and lengths of time."""

from __future__ import annotations

import pytest

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import (
    format_duration,
    parse_duration,
    parse_integer,
    parse_powers,
    parse_states,
    parse_users,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("15m", 900), ("12h", 43_200), ("1d", 86_400), ("2w", 1_209_600)],
)
def test_lengths_of_time(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1s"), (90, "90s"), (3_600, "1h"), (7_200, "2h"), (604_800, "1w"), (30 * 86_400, "30d")],
)
def test_a_length_of_time_is_written_in_the_longest_unit_that_fits(seconds, text):
    assert format_duration(seconds) == text
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "1", "-1d", "1.5d", "1 d", "²d", "1D", "0s"])
def test_what_is_no_length_of_time(text):
    with pytest.raises(ValueError, match="is not a length of time"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "states"),
    [("3", (3,)), ("0:2", (0, 1, 2)), ("-2:0,7", (-2, -1, 0, 7)), ("4:4", (4,))],
)
def test_states_are_read_as_lists_and_ranges(text, states):
    assert parse_states("exactly", text) == states


@pytest.mark.parametrize("text", ["", ",", "1:", ":1", "1.5", "1:2:3", "2:1", "a"])
def test_other_texts_name_no_states(text):
    with pytest.raises(PlanError, match="exactly must name states"):
        parse_states("exactly", text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        ("-7", -7),
        ("1_000", 1_000),
        ("1e6", 10**6),
        ("2.0", 2),
        (str(2**70 + 1), 2**70 + 1),
    ],
)
def test_whole_numbers_are_exact_and_may_have_an_exponent(text, number):
    assert parse_integer(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e-1", "nan", "inf", "1e999"])
def test_what_is_no_whole_number(text):
    with pytest.raises(ValueError, match="is not a whole number"):
        parse_integer(text)


def test_users_are_a_number_or_a_range():
    assert parse_users("1e3") == 1_000
    assert parse_users("10:1e6") == (10, 10**6)


@pytest.mark.parametrize("text", ["", ":", "1:", "1:2:3", "x", "1:1.5"])
def test_what_names_no_users(text):
    with pytest.raises(PlanError, match="expected must be a number of users, or LOW:HIGH"):
        parse_users(text)


def test_powers_are_pairs():
    assert parse_powers("moment", "10**2") == ((10, 2),)
    assert parse_powers("moment", "10**2,5**3") == ((10, 2), (5, 3))


@pytest.mark.parametrize("text", ["", "10", "10**", "10**2**3", "x**2", "10**2,"])
def test_what_names_no_powers(text):
    with pytest.raises(PlanError, match=r"^moment must name powers, such as"):
        parse_powers("moment", text)


def test_so_many_states_are_named_and_no_more():
    assert len(parse_states("exactly", "1:100000")) == 100_000
    for text in ("0:100000", "1:100000,7", f"0:{10**15}"):
        with pytest.raises(PlanError, match="at most 100,000 states; without it all are shown"):
            parse_states("exactly", text)
