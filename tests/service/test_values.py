"""Lengths of time of a configuration, and in which of its tables something is wrong."""

from __future__ import annotations

import pytest

from panprivacy.errors import InputError, PlanError
from panprivacy.service.config.values import DAY, ConfigError, in_table, seconds


def test_a_length_of_time_is_read_up_to_the_most():
    assert seconds(DAY, window="24h") == DAY
    assert seconds(DAY, window="1s") == 1
    with pytest.raises(PlanError, match=r"^window must be at most 1d$"):
        seconds(DAY, window="86401s")
    with pytest.raises(PlanError, match=r"^every must be at most 1,000d$"):
        seconds(1_000 * DAY, every="200w")


@pytest.mark.parametrize("text", ["", "1", "0s", "1.5h", "9" * 5_000 + "w"])
def test_what_is_no_length_of_time(text):
    with pytest.raises(PlanError, match="window must be a length of time, such as 30s, 15m"):
        seconds(DAY, window=text)


def told(error, *tables):
    def failing(rest):
        if not rest:
            raise error
        with in_table(*rest[0]):
            failing(rest[1:])

    with pytest.raises(ConfigError) as raised:
        failing(tables)
    assert raised.value.__suppress_context__
    return raised.value


def test_tables_within_tables_are_put_together():
    found = told(ConfigError(("stat", 1), "wrong", "bound"), ("streams",), ("visits", 2))
    assert (found.table, found.reason, found.key) == (
        ("streams", "visits", 2, "stat", 1),
        "wrong",
        "bound",
    )


@pytest.mark.parametrize("error", [PlanError("wrong"), InputError("wrong")])
def test_an_error_without_a_table_is_of_this_one(error):
    found = told(error, ("syslog", 0))
    assert (found.table, found.reason, found.key, str(found)) == (
        ("syslog", 0),
        "wrong",
        None,
        "wrong",
    )


def test_too_much_memory_is_an_error_of_its_table():
    assert told(MemoryError(), ("stat", 0)).reason == "this takes more memory than there is"


def test_other_errors_are_faults():
    with pytest.raises(KeyError), in_table("stat"):
        raise KeyError("fault")
