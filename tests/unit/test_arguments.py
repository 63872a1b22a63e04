"""What every statistic takes beside its sizes: the ends of each, and words for what is wrong."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import pytest

import panprivacy as pp
from panprivacy.statistics.arguments import (
    MOST_INTRUSIONS,
    MOST_RELEASES,
    instance,
    request,
    shared_key,
)


def test_the_ends_of_releases_and_intrusions_are_taken():
    least, most = request("1/3"), request(2, MOST_RELEASES, MOST_INTRUSIONS)
    assert (least.epsilon, least.releases, least.intrusions) == (Fraction(1, 3), 1, 0)
    assert (most.epsilon, most.releases, most.intrusions) == (2, 10**9, 100)
    assert least.budget is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((0,), "epsilon"),
        ((1, 0), "releases"),
        ((1, 10**9 + 1), "releases"),
        ((1, 1, -1), "intrusions"),
        ((1, 1, 101), "intrusions"),
        ((1, 1, 0, Fraction(1, 2)), "budget must be a Budget"),
    ],
)
def test_what_lies_beyond_them_is_refused_by_its_name(given, named):
    with pytest.raises(pp.PlanError, match=named):
        request(*given)


def test_an_object_of_a_class_or_none_is_handed_on():
    ledger = pp.Ledger(1)
    assert instance(pp.Ledger, ledger=ledger) is ledger
    assert instance(pp.Ledger, ledger=None) is None


@pytest.mark.parametrize("given", [0, "", False, pp.Ledger])
def test_what_is_no_object_of_the_class_is_refused_though_it_is_nothing(given):
    with pytest.raises(pp.PlanError, match="ledger must be a Ledger"):
        instance(pp.Ledger, ledger=given)


def test_shards_make_the_same_key_of_the_same_bytes():
    given = bytes(range(16))
    assert shared_key(given, 40) == hashlib.shake_256(given).digest(40)
    assert shared_key(given + b"x", 40) == hashlib.shake_256(given + b"x").digest(40)
    assert shared_key(None, 40) is None
    assert shared_key(given, 0) == b""


@pytest.mark.parametrize("given", [b"", bytes(15), "0123456789abcdef", bytearray(16)])
def test_a_key_that_is_short_or_no_bytes_is_refused(given):
    with pytest.raises(pp.PlanError, match="16 random bytes or more"):
        shared_key(given, 40)
