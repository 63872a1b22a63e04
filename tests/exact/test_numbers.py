"""Exponentials and logarithms of fractions are right to far more digits than floats have."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import pytest

from panprivacy.audit.exact.numbers import CLOSE, exp, ln, short_exp

E_100 = Decimal(
    "2.7182818284590452353602874713526624977572470936999595749669676277240766303535475945713821785251664274"
)


def test_the_exponential_of_one_is_e():
    assert abs(exp(Fraction(1)) / Fraction(E_100) - 1) < Fraction(1, 10**58)
    assert exp(Fraction(0)) == 1


@pytest.mark.parametrize(
    "exponent", [Fraction(1, 3), Fraction(-7, 2), Fraction(200), Fraction(-200)]
)
def test_exponentials_multiply(exponent):
    product = exp(exponent) * exp(-exponent)
    assert abs(product - 1) < CLOSE**1 / 10**20
    assert float(exp(exponent)) == pytest.approx(math.exp(exponent), rel=1e-14)


@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(-7, 2), Fraction(90), Fraction(-90)])
def test_a_short_exponential_is_close_and_short(exponent):
    short = short_exp(exponent)
    assert 0 < abs(short / exp(exponent) - 1) < CLOSE
    odd = short.numerator >> ((short.numerator & -short.numerator).bit_length() - 1)
    assert odd.bit_length() <= 113
    assert short.denominator & (short.denominator - 1) == 0


def test_logarithms_undo_exponentials():
    for exponent in (Fraction(1, 10**6), Fraction(-3), Fraction(2_000)):
        assert ln(exp(exponent)) == pytest.approx(float(exponent), rel=1e-15)
    assert ln(math.inf) == math.inf
    assert ln(1.0) == 0


def test_the_context_of_decimals_is_left_alone():
    before = getcontext().prec
    exp(Fraction(1, 7))
    ln(Fraction(22, 7))
    assert getcontext().prec == before
