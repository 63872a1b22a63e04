"""Checks of arguments: what is read, and what is refused by name."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.errors import PlanError
from panprivacy.ground.validation import (
    expected_range,
    hexadecimal,
    positive_fraction,
    positive_integer,
    proportion,
    truth,
    whole_number,
)


def test_a_tenth_spent_ten_times_is_one():
    account = pp.Ledger(1).open(Fraction(1))
    for _ in range(10):
        account.spend(positive_fraction(epsilon=0.1))
    assert account.spent == 1


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        (1e-9, Fraction(1, 10**9)),
        ("0.1", Fraction(1, 10)),
        ("1e-3", Fraction(1, 1_000)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.float64(0.1), Fraction(1, 10)),
        (np.float32(0.1), Fraction(1, 10)),
        (10**40, Fraction(10**40)),
    ],
    ids=repr,
)
def test_a_number_means_what_it_prints_as(value, exact):
    assert positive_fraction(epsilon=value) == exact


def test_an_integer_of_numpy_becomes_one_of_python():
    assert type(positive_fraction(epsilon=np.int64(3)).numerator) is int


REFUSED = [
    *(0, -1, 0.0, -0.5, Fraction(-1, 2), Decimal(0), "0", "-1"),
    *(float("nan"), float("inf"), Decimal("nan"), Decimal("sNaN"), Decimal("inf"), "nan", "inf"),
    *(np.float64("nan"), np.float64("inf"), np.float32("-inf")),
    *(True, False, np.bool_(True)),
    *("abc", "", "1/0", "1/-3", "1/3/5", "0,1", "1e400000000", b"1", None, [1], 1j, object),
    pytest.param(Fraction(10**5_000 + 1, 10**5_000), id="very long"),
]


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_what_is_not_a_positive_finite_number_is_refused_by_name(value):
    with pytest.raises(pp.PlanError, match=r"^epsilon must be a positive finite number$"):
        positive_fraction(epsilon=value)
    with pytest.raises(pp.PlanError, match=r"^epsilon must be"):
        pp.Ledger(value)


@pytest.mark.parametrize("value", [1, 2, 10**18, np.int8(3), np.uint64(2**62)], ids=repr)
def test_a_whole_number_is_read_as_an_int(value):
    assert positive_integer(cells=value) == int(value)
    assert type(positive_integer(cells=value)) is int


@pytest.mark.parametrize(
    "value", [0, -1, 1.0, "1", True, None, np.float64(2), Fraction(3)], ids=repr
)
def test_what_is_not_a_whole_number_is_refused_by_name(value):
    with pytest.raises(pp.PlanError, match=r"^cells must be a whole number of at least 1$"):
        positive_integer(cells=value)


@pytest.mark.parametrize("value", [0.5, 1e-300, Fraction(1, 3), np.float32(0.25)], ids=repr)
def test_a_proportion_is_read_as_a_float(value):
    assert proportion(confidence=value) == float(value)


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, float("nan"), True, "0.5", None], ids=repr)
def test_what_is_not_a_proportion_is_refused_by_name(value):
    with pytest.raises(pp.PlanError, match=r"^confidence must lie strictly between 0 and 1$"):
        proportion(confidence=value)


@pytest.mark.parametrize(
    ("expected", "pair"),
    [
        (5, (5, 5)),
        (1e6, (10**6, 10**6)),
        ((1, 2), (1, 2)),
        ([1, 1e3], (1, 1_000)),
        ((7, 7), (7, 7)),
    ],
    ids=repr,
)
def test_an_expected_number_is_a_range(expected, pair):
    assert expected_range(expected) == pair


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ((5, 1), "from low to high, not from 5 to 1"),
        ((1, 2, 3), "a pair"),
        ((), "a pair"),
        (0, "whole number"),
        ((0, 5), "whole number"),
        (1.5, "whole number"),
        (float("inf"), "whole number"),
        ("12", "whole number"),
        (None, "whole number"),
        (True, "whole number"),
    ],
    ids=repr,
)
def test_what_is_not_an_expected_range_is_refused_by_name(expected, message):
    with pytest.raises(pp.PlanError, match=f"^expected must .*{message}"):
        expected_range(expected)


ABSURD = {"1e401": "1e401", "long": 2**4000, "small": Fraction(1, 2**4000), "1/0": "1/0"}


@pytest.mark.parametrize("value", ABSURD.values(), ids=ABSURD)
def test_numbers_of_absurd_length_are_refused(value):
    with pytest.raises(PlanError, match=r"^epsilon must be a positive finite number$"):
        positive_fraction(epsilon=value)


def test_the_longest_numbers_that_are_taken():
    assert positive_fraction(epsilon="1e400") == 10**400
    assert positive_fraction(epsilon=Fraction(1, 2**3999)) == Fraction(1, 2**3999)


def test_whole_numbers_have_two_ends():
    assert [whole_number(2, 4, n=one) for one in (2, 3, 4)] == [2, 3, 4]
    with pytest.raises(PlanError, match=r"^n must be a whole number of at least 2$"):
        whole_number(2, 4, n=1)
    with pytest.raises(PlanError, match=r"^n must be at most 4$"):
        whole_number(2, 4, n=5)


def test_hexadecimal_digits_are_so_many_and_small():
    hexadecimal(2, key="00ff")
    for text in ("00f", "00fff", "00FF", "00fg", " 0ff"):
        with pytest.raises(PlanError, match=r"^key must be 2 bytes in lower-case hexadecimal"):
            hexadecimal(2, key=text)


def test_a_truth_is_no_number():
    assert truth(signed=True) is True
    assert truth(signed=False) is False
    for value in (1, 0, None, "True"):
        with pytest.raises(PlanError, match=r"^signed must be True or False$"):
            truth(signed=value)


def test_a_proportion_is_neither_none_nor_all():
    assert proportion(share=1e-300) == 1e-300
    for value in (0, 1, True, -0.1, "0.5"):
        with pytest.raises(PlanError, match=r"^share must lie strictly between 0 and 1$"):
            proportion(share=value)
