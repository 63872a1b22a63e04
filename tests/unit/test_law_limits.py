"""Laws at their limits: any epsilon, the largest moduli, and what theory says of the spectrum."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.guarantee import exp_bounds

SMALL = [
    (pp.Law.flat, 7),
    (pp.Law.flat, 1_019),
    (pp.Law.biquadratic, 101),
    (pp.Law.singer, 121),
    (pp.Law.spike, 2),
    (pp.Law.spike, 1_000),
    (pp.Law.geometric, 2),
    (pp.Law.geometric, 1_000),
]
LARGEST = [(pp.Law.flat, 16_777_183), (pp.Law.spike, 1 << 24), (pp.Law.geometric, 1 << 24)]
EPSILONS = st.one_of(
    st.integers(-9, 4).map(lambda power: Fraction(10) ** power),
    st.fractions(Fraction(1, 1_000), 50, max_denominator=10**9),
    st.sampled_from([Fraction(n) for n in (20, 41, 42, 43, 1_000)]),
)


def check_private(law, epsilon):
    """Decided in whole numbers and from the safe side of `e**epsilon`."""
    largest, smallest = int(law.weights.max()), int(law.weights.min())
    assert smallest >= 1
    assert law.ratio == Fraction(largest, smallest) <= exp_bounds(min(epsilon, Fraction(10**4)))[0]
    upper, lower = int((law.weights >> 32).sum()), int((law.weights & 0xFFFFFFFF).sum())
    assert (upper << 32) + lower <= 1 << 61
    assert law.within(epsilon)


@settings(deadline=None)
@given(st.sampled_from(SMALL), EPSILONS)
def test_no_value_is_more_likely_than_any_epsilon_allows(maker, epsilon):
    make, modulus = maker
    check_private(make(modulus, epsilon), epsilon)


@pytest.mark.parametrize("epsilon", ["0.1", "1000"])
@pytest.mark.parametrize(("make", "modulus"), LARGEST, ids=lambda x: getattr(x, "__name__", x))
def test_the_largest_laws_are_as_private_as_small_ones(make, modulus, epsilon):
    check_private(make(modulus, epsilon), Fraction(epsilon))


@settings(deadline=None)
@given(st.sampled_from([3, 7, 11, 103, 1_019]), st.floats(0.01, 12))
def test_the_spectrum_of_residues_is_flat_at_every_epsilon(modulus, epsilon):
    """The rounding of the weights is half a unit of 2**24."""
    tangent = math.tanh(epsilon / 2)
    spectrum = np.abs(pp.Law.flat(modulus, epsilon).spectrum())
    assert spectrum[0] == pytest.approx(1)
    expected = tangent * math.sqrt(modulus + 1) / (modulus - tangent)
    assert spectrum[1:] == pytest.approx(expected, rel=2e-5)


def votes(law):
    """The law of a cell's vote for an entry: all votes a row, for each distance of its state."""
    kernel = law.kernel()
    return np.array([np.roll(kernel, -state) for state in range(law.modulus)])


@settings(deadline=None)
@given(st.lists(st.integers(1, 50), min_size=2, max_size=12))
def test_the_kernel_of_any_law_votes_for_the_state_on_average(weights):
    law = pp.Law.of(weights)
    assume(np.abs(law.spectrum()).min() > 0.01)
    average = votes(law) @ law.probabilities()
    assert average == pytest.approx([1, *[0] * (law.modulus - 1)], abs=1e-9)


@pytest.mark.parametrize(
    "law",
    [*(make(modulus, 1) for make, modulus in SMALL), pp.Law.of([9, 1, 2, 5])],
    ids=str,
)
def test_the_deviation_of_an_entry_is_the_average_over_all_states(law):
    table, probabilities = votes(law), law.probabilities()
    variances = table**2 @ probabilities - (table @ probabilities) ** 2
    assert law.entry_deviation() ** 2 == pytest.approx(variances.mean(), rel=1e-6)


@settings(deadline=None)
@given(
    st.sampled_from([maker for maker in SMALL if maker[0] is not pp.Law.geometric]),
    st.fractions("0.5", 2, max_denominator=100),
    st.integers(0, 10),
)
def test_the_text_of_a_law_on_a_set_determines_its_weights(maker, epsilon, steps):
    make, modulus = maker
    one, other = make(modulus, epsilon), make(modulus, epsilon + Fraction(steps, 10**8))
    assert (str(one) == str(other)) == np.array_equal(one.weights, other.weights)


def test_the_text_tells_families_of_one_modulus_apart():
    laws = [pp.Law.flat(7, 1), pp.Law.singer(7, 1), pp.Law.spike(7, 1), pp.Law.geometric(7, 1)]
    assert len({str(law) for law in laws}) == len(laws)


@pytest.mark.parametrize("modulus", [2, 3, 50, 1_000])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_geometric_weights_fall_by_one_factor(modulus, epsilon):
    weights = pp.Law.geometric(modulus, epsilon).weights
    factors = weights[:-1] / weights[1:]
    assert factors == pytest.approx(math.exp(epsilon / (modulus - 1)), rel=1e-6)


def test_whether_a_law_is_within_epsilon_is_decided_exactly():
    """The logarithm of 3 is 1.09861228866810969..."""
    law = pp.Law.of([3, 1, 1])
    assert law.within("1.0986122886681096914")
    assert not law.within("1.0986122886681096913")


def test_the_steepest_law_is_within_an_epsilon_beyond_reason():
    law = pp.Law.of([(1 << 61) - 1, 1])
    assert law.loss == pytest.approx(61 * math.log(2))
    assert law.within(10**6)
    assert law.within("42.3")
    assert not law.within("42.2")


def test_weights_may_add_up_to_no_more_than_two_to_the_61():
    assert pp.Law.of([1 << 60, 1 << 60]).ratio == 1
    with pytest.raises(pp.PlanError, match=r"a sum of at most 2\*\*61"):
        pp.Law.of([1 << 60, 1 << 60, 1])


@pytest.mark.parametrize("make", [pp.Law.flat, pp.Law.spike, pp.Law.geometric])
def test_nobody_can_change_a_law_that_others_share(make):
    law = make(7, 1)
    assert make(7, 1) is law
    arrays = [law.weights] if law.members is None else [law.weights, law.members]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
