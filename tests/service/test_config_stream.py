"""What a table of a stream says together: what fits, and what is refused with its place."""

from __future__ import annotations

from fractions import Fraction

import pyrage
import pytest

from panprivacy.errors import PlanError
from panprivacy.service.config.stream import IdKind, StdinConfig, StreamConfig, SyslogConfig
from panprivacy.service.config.values import ConfigError

OVERLAP = {"name": "overlap", "expected": 1_000}
RECIPIENT = str(pyrage.x25519.Identity.generate().to_public())
DISTINCT = {"name": "distinct", "expected": "10:1000"}


def stream(**changes):
    plain = {"stat": (DISTINCT,), "epsilon": Fraction(2), "window": "1d"}
    return StreamConfig(**{**plain, **changes})


@pytest.mark.parametrize(
    "fits",
    [
        {},
        {"releases": 4, "every": "7h"},
        {"releases": 2, "every": "23h"},
        {"ids": IdKind.addresses, "prefix": "24:56"},
        {"by": "page", "groups": ("a", "b"), "per_user": 2, "ignore_others": True},
        {"retries": 0},
        {"stat": (OVERLAP,), "key": "drawn once, public", "keep_tables": "52w"},
        {"stat": (OVERLAP, DISTINCT), "by": "page", "groups": ("a", "b")},
        {"retries": 1_000_000},
        {"stdin": StdinConfig(format="ndjson")},
        {
            "syslog": (SyslogConfig(listen="udp://127.0.0.1:5140", mode=0o777),),
            "user": "remote_addr",
        },
    ],
)
def test_what_fits_together_is_taken(fits):
    stream(**fits).check()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"window": "1y"}, "window must be a length of time"),
        ({"zone": "Nowhere"}, "zone"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
        ({"retries": -1}, "retries must be a whole number of at least 0"),
        ({"retries": 1_000_001}, "retries must be at most 1,000,000"),
        ({"every": "1h"}, "every needs releases of at least 2"),
        ({"every": "1d", "releases": 2}, "every must be shorter than the window"),
        ({"every": "8h", "releases": 4}, "every and releases do not fit: 3 times every must be"),
        ({"moves": 0.5}, "moves needs every"),
        ({"stat": (OVERLAP,), "key": "short"}, "key must be 16 characters or more"),
        ({"stat": (OVERLAP,), "keep_tables": "long"}, "keep_tables must be a length of time"),
        ({"keep_tables": "52w"}, "key and keep_tables are for overlap"),
        ({"key": "a key of 16 characters"}, "key and keep_tables are for overlap"),
        ({"stat": (OVERLAP,), "releases": 2}, "overlap publishes one table at the end"),
        ({"stat": (OVERLAP,), "intrusions": 1}, "no intrusion can be announced"),
        ({"stat": (OVERLAP,), "contribute": RECIPIENT}, "leave out contribute"),
        ({"prefix": "24:56"}, 'prefix is for ids = "addresses"'),
        ({"ids": IdKind.addresses, "prefix": "24"}, "prefix must be how many bits to keep of IPv4"),
        ({"by": "page"}, "by and groups go together"),
        ({"groups": ("a",)}, "by and groups go together"),
        ({"per_user": 2}, "per_user and ignore_others are for by and groups"),
        ({"ignore_others": True}, "per_user and ignore_others are for by and groups"),
        ({"by": "page", "groups": ("a", "")}, "groups must not be empty texts"),
        ({"contribute": "age1", "releases": 2}, "contribute hands out each window"),
        ({"contribute": "age1"}, "contribute must be a public key of age"),
        ({"stdin": StdinConfig(format="parquet")}, "format must be one of"),
        ({"stdin": StdinConfig(format="lines")}, "pattern"),
        ({"stdin": StdinConfig(format="ndjson", pattern="(?P<user>.)")}, "pattern"),
        (
            {"syslog": (SyslogConfig(listen="udp://127.0.0.1:1", mode=0o1000),)},
            "mode must be at most 511",
        ),
        (
            {"stat": ({"name": "density", "universe": 9},)},
            'ids must be "integers": with a universe',
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_words(wrong, says):
    with pytest.raises(PlanError, match=says):
        stream(**wrong).check()


def test_the_place_of_a_statistic_is_told():
    with pytest.raises(ConfigError) as raised:
        stream(stat=(DISTINCT, {"name": "distinct", "bound": 3})).check()
    assert raised.value.table == ("stat", 1)
    with pytest.raises(ConfigError) as raised:
        stream(stdin=StdinConfig(format="parquet")).check()
    assert raised.value.table == ("stdin",)


def test_lengths_are_seconds():
    assert stream(window="2h").window_seconds == 7_200
    assert stream().every_seconds is None
    assert stream(every="3m").every_seconds == 180


def test_who_counts_is_user_unless_told():
    named = [one.name for one in stream().columns(stream().make_counting()).wanted()]
    assert named == ["user"]
    config = stream(user="id", ids=IdKind.integers)
    (user,) = config.columns(config.make_counting()).wanted()
    assert (user.name, user.integers, user.address) == ("id", True, None)


def test_the_first_group_alone_counts_as_each_group_does():
    grouped = stream(by="page", groups=("a", "b", "c"), per_user=2)
    alone = grouped.of_first_group()
    each, one = grouped.make_counting(), alone.make_counting()
    assert (each.groups, one.groups) == (("a", "b", "c"), ("a",))
    fronts = [counting.members["a"].internals.memory.front for counting in (each, one)]
    assert fronts[0] == fronts[1]
    assert stream().of_first_group() == stream()
