"""Laws are as private as they say, and as accurate as theory says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.cells import difference_sets
from panprivacy.cells.law import on_set
from panprivacy.guarantee import exp_bounds

EPSILONS = ["0.000001", "0.1", "0.9", "1", "2", "20", "42", "1000", 1e300]
MAKERS = [
    (pp.Law.flat, 3),
    (pp.Law.flat, 11),
    (pp.Law.flat, 100_003),
    (pp.Law.biquadratic, 37),
    (pp.Law.biquadratic, 8_837),
    (pp.Law.singer, 7),
    (pp.Law.singer, 121),
    (pp.Law.singer, 9_841),
    (pp.Law.spike, 2),
    (pp.Law.spike, 1_000),
    (pp.Law.geometric, 2),
    (pp.Law.geometric, 503),
    (pp.Law.geometric, 100_000),
]
IDS = [f"{make.__name__}({modulus})" for make, modulus in MAKERS]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("make", "modulus"), MAKERS, ids=IDS)
def test_no_value_is_more_likely_than_epsilon_allows(make, modulus, epsilon):
    law = make(modulus, epsilon)
    exact = min(Fraction(epsilon), Fraction(100))
    assert Fraction(int(law.weights.max()), int(law.weights.min())) <= exp_bounds(exact)[0]
    assert law.within(epsilon)
    assert law.weights.min() >= 1
    assert sum(law.weights.tolist()) <= 2**62
    assert len(law.weights) == law.modulus == modulus


@pytest.mark.parametrize("epsilon", ["0.1", "0.9", "4"])
@pytest.mark.parametrize(("make", "modulus"), MAKERS, ids=IDS)
def test_a_law_spends_nearly_all_of_its_epsilon(make, modulus, epsilon):
    law = make(modulus, epsilon)
    assert law.loss == pytest.approx(float(epsilon), abs=1e-5)
    assert not law.within(Fraction(epsilon) - Fraction(1, 10**4))


@pytest.mark.parametrize(
    ("law", "deviation"),
    [
        (pp.Law.flat(503, 1), 2.157),
        (pp.Law.biquadratic(101, 1), 1.900),
        (pp.Law.singer(121, 1), 1.922),
        (pp.Law.spike(503, 1), 13.08),
        (pp.Law.geometric(503, 1), 31.65),
    ],
    ids=str,
)
def test_the_deviation_of_an_entry_is_that_of_theory(law, deviation):
    assert law.entry_deviation() == pytest.approx(deviation, rel=1e-3)


@pytest.mark.parametrize("modulus", [11, 103, 503, 7_019])
def test_the_spectrum_of_residues_is_flat(modulus):
    tangent = math.tanh(0.5)
    flat = tangent * math.sqrt(modulus + 1) / (modulus - tangent)
    assert np.abs(pp.Law.flat(modulus, 1).spectrum()[1:]) == pytest.approx(flat, rel=1e-5)


@pytest.mark.parametrize(("make", "modulus"), [pair for pair in MAKERS if 7 <= pair[1] <= 1_000])
def test_the_kernel_votes_for_the_state_on_average(make, modulus):
    law = make(modulus, 1)
    kernel, probabilities = law.kernel(), law.probabilities()
    votes = [probabilities @ np.roll(kernel, shift) for shift in range(modulus)]
    assert votes == pytest.approx([1, *[0] * (modulus - 1)], abs=1e-7)


@given(st.lists(st.integers(1, 1_000), min_size=2, max_size=20))
def test_any_weights_make_a_law(weights):
    law = pp.Law.of(weights)
    assert law.ratio == Fraction(max(weights), min(weights))
    assert law.probabilities() == pytest.approx(np.array(weights) / sum(weights))


@pytest.mark.parametrize("weights", [[], [1], [1, 0], [1, -1], [1.5, 2], [2**61, 1], [True, 1]])
def test_weights_that_make_no_law_are_refused(weights):
    with pytest.raises(pp.PlanError):
        pp.Law.of(weights)


@pytest.mark.parametrize(
    ("make", "modulus"),
    [
        (pp.Law.flat, 13),
        (pp.Law.flat, 15),
        (pp.Law.biquadratic, 17),
        (pp.Law.biquadratic, 65),
        (pp.Law.singer, 8),
        (pp.Law.spike, 1),
        (pp.Law.spike, 2**24 + 1),
        (pp.Law.geometric, 1.5),
    ],
)
def test_a_modulus_that_has_no_such_law_is_refused(make, modulus):
    with pytest.raises(pp.PlanError):
        make(modulus, 1)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, "x", None])
def test_an_epsilon_that_is_none_is_refused(epsilon):
    with pytest.raises(pp.PlanError, match="epsilon"):
        pp.Law.flat(11, epsilon)


def test_weights_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        pp.Law.flat(11, 1).weights[0] = 5


def test_the_text_of_a_law_tells_its_weights():
    assert str(pp.Law.of([3, 1, 1])) == "custom modulo 3, weights [3, 1, 1]"
    law = pp.Law.flat(11, 1)
    high, low = int(law.weights.max()), int(law.weights.min())
    assert str(law) == f"flat modulo 11, weights {high} to {low}"


def test_only_a_law_on_a_difference_set_has_one():
    with pytest.raises(pp.PlanError, match="no difference set"):
        pp.Law.of([1, 2]).hit()


# Difference sets

SETS = [
    *(difference_sets.residues(p) for p in (3, 7, 11, 103, 503)),
    *(difference_sets.biquadratic(p) for p in (37, 101, 197, 677)),
    *(difference_sets.singer(v) for v in (7, 13, 15, 31, 40, 57, 121, 156, 364, 400)),
    *(difference_sets.point(v) for v in (2, 3, 10)),
]


@pytest.mark.parametrize("chosen", SETS, ids=lambda one: f"{one.family}({one.modulus})")
def test_a_difference_set_meets_every_shift_of_itself_equally_often(chosen):
    members = set(chosen.members().tolist())
    assert len(members) == chosen.size
    for shift in range(1, chosen.modulus):
        moved = {(member + shift) % chosen.modulus for member in members}
        assert len(members & moved) == chosen.overlap


@pytest.mark.parametrize("chosen", SETS, ids=lambda one: f"{one.family}({one.modulus})")
def test_a_cell_is_hit_or_missed_as_often_as_the_law_says(chosen):
    law = on_set(chosen, Fraction(1))
    indicator = np.zeros(chosen.modulus)
    indicator[law.members] = 1
    often = [law.probabilities() @ np.roll(indicator, -shift) for shift in range(chosen.modulus)]
    assert often[0] == pytest.approx(law.hit())
    assert often[1:] == pytest.approx([law.miss()] * (chosen.modulus - 1))


@settings(deadline=None)
@given(st.integers(3, 5_000))
def test_the_sets_to_choose_from_are_large_enough_and_not_much_larger(least):
    sizes = [chosen.modulus for chosen in difference_sets.of_at_least(least)]
    assert min(sizes) >= least
    assert max(sizes) <= 4 * least


def test_primes_are_those_of_a_sieve():
    sieve = np.ones(2_000, bool)
    sieve[:2] = False
    for factor in range(2, 45):
        sieve[2 * factor :: factor] = False
    primes = [number for number in range(2_000) if difference_sets.is_prime(number)]
    assert primes == np.flatnonzero(sieve).tolist()
    assert [difference_sets.next_prime(n) for n in (2, 8, 24, 114)] == [2, 11, 29, 127]
