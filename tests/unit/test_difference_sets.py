"""Difference sets are ones, also large ones, and exist exactly where theory says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.tables.cells import difference_sets
from panprivacy.tables.cells.difference_sets import DifferenceSet

MOST = 5_000
SETS = [
    *(difference_sets.residues(p) for p in (3, 7, 11, 103, 503, 100_003)),
    *(difference_sets.biquadratic(p) for p in (37, 101, 197, 677, 8_837, 324_901)),
    *(difference_sets.singer(v) for v in (7, 13, 15, 31, 40, 57, 121, 156, 364, 400)),
    *(difference_sets.singer(v) for v in (131_071, 88_573, 97_656, 137_257)),
    *(difference_sets.point(v) for v in (2, 3, 10, 100_000)),
]


def sieve(limit):
    """Whether each number below `limit` is prime."""
    prime = np.ones(limit, bool)
    prime[:2] = False
    for factor in range(2, int(limit**0.5) + 1):
        prime[2 * factor :: factor] = False
    return prime


PRIMES = set(np.flatnonzero(sieve(4 * MOST + 1_000)).tolist())
EXISTING = {
    "residues": {p for p in PRIMES if p % 4 == 3},
    "biquadratic": {n for b in range(1, 80, 2) for n in [4 * b * b + 1] if n in PRIMES},
    "singer": {(b**d - 1) // (b - 1) for b in (2, 3, 5, 7) for d in range(3, 20)},
}
FAMILIES = pytest.mark.parametrize("family", EXISTING)


@pytest.mark.parametrize("chosen", SETS, ids=lambda one: f"{one.family}({one.modulus})")
def test_a_difference_set_meets_every_shift_of_itself_equally_often(chosen):
    members = chosen.members()
    indicator = np.bincount(members, minlength=chosen.modulus)
    assert members.tolist() == np.flatnonzero(indicator).tolist()
    assert len(indicator) == chosen.modulus
    shared = np.rint(np.fft.ifft(np.abs(np.fft.fft(indicator)) ** 2).real).astype(int)
    assert shared[0] == chosen.size == len(members)
    assert set(shared[1:].tolist()) == {chosen.overlap}


@FAMILIES
def test_a_family_has_a_set_exactly_where_theory_says(family):
    make, found = getattr(difference_sets, family), set()
    for modulus in range(MOST):
        try:
            found.add(make(modulus).modulus)
        except pp.PlanError:
            continue
    assert found == {modulus for modulus in EXISTING[family] if modulus < MOST}


@FAMILIES
@pytest.mark.parametrize("wrong", [561, 1_105, 2_465, 6_601, 99 * 99])
def test_numbers_that_resemble_primes_are_refused(family, wrong):
    with pytest.raises(pp.PlanError):
        getattr(difference_sets, family)(wrong)


@given(st.integers(3, MOST))
def test_the_next_set_is_the_smallest_of_its_family_within_a_factor_of_four(least):
    def smallest(numbers, least=least):
        return min((n for n in numbers if least <= n <= 4 * least), default=None)

    def modulus(chosen):
        return None if chosen is None else chosen.modulus

    assert modulus(difference_sets.next_residues(least)) == smallest(EXISTING["residues"])
    found = modulus(difference_sets.next_biquadratic(least))
    assert found == smallest(EXISTING["biquadratic"] - {5})
    for base in (2, 3, 5, 7):
        spaces = {(base**degree - 1) // (base - 1) for degree in range(3, 20)}
        assert modulus(difference_sets.next_singer(least, base)) == smallest(spaces)


@given(st.one_of(st.integers(3, 50), st.integers(3, 1 << 22)))
def test_the_sets_to_choose_from_are_large_enough_near_and_differ_in_density(least):
    offered = difference_sets.with_modulus(least)
    assert all(least <= chosen.modulus <= 4 * least for chosen in offered)
    assert difference_sets.next_residues(least) in offered
    assert len({chosen.size / chosen.modulus for chosen in offered}) == len(offered)


def test_no_recurrence_is_offered_that_takes_seconds_to_search_for():
    assert difference_sets.next_singer(131_072, 2).modulus == 262_143
    assert difference_sets.next_singer(262_144, 2) is None


def test_primes_are_those_that_a_sieve_leaves():
    following = None
    for number in range(4 * MOST + 999, -1, -1):
        prime = number in PRIMES
        following = number if prime else following
        assert difference_sets.is_prime(number) == prime
        if number < 2 * MOST:
            assert difference_sets.next_prime(number) == following


def test_the_overlap_of_a_set_that_cannot_be_is_no_whole_number():
    assert DifferenceSet("point", 8, 1).overlap == 0
    assert DifferenceSet("residues", 13, 6).overlap.denominator > 1
