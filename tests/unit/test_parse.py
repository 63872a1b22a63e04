"""Texts that name states, users and lengths of time."""

from __future__ import annotations

import pytest

from panprivacy._parse import parse_duration, parse_states
from panprivacy.errors import PlanError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("15m", 900), ("12h", 43_200), ("1d", 86_400), ("2w", 1_209_600)],
)
def test_lengths_of_time(text, seconds):
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
