"""Laws are as private as they say, and as accurate as theory says, up to their limits."""

from __future__ import annotations

import copy
import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.privacy.guarantee import exp_bounds
from panprivacy.tables.cells.difference_sets import biquadratic, point, residues, singer
from panprivacy.tables.cells.law import (
    _FAMILIES,
    _modulus,
    hit_and_miss,
    on_blocks,
    on_set,
    outside,
    size_of_frequencies,
)

MAKERS = [
    (pp.Law.flat, 3),
    (pp.Law.flat, 11),
    (pp.Law.flat, 1_019),
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
LARGEST = [(pp.Law.flat, 16_777_183), (pp.Law.spike, 1 << 24), (pp.Law.geometric, 1 << 24)]
EPSILONS = st.one_of(
    st.integers(-9, 4).map(lambda power: Fraction(10) ** power),
    st.fractions(Fraction(1, 1_000), 50, max_denominator=10**9),
    st.sampled_from([Fraction(n) for n in (20, 41, 42, 43, 1_000, 10**300)]),
)
SMALL = [make(modulus, 1) for make, modulus in MAKERS if modulus <= 1_019]
ON_SETS = [law for law in SMALL if law.members is not None]

# Privacy


def check_private(law, epsilon):
    """Decided in whole numbers and from the safe side of `e**epsilon`."""
    largest, smallest = int(law.weights.max()), int(law.weights.min())
    assert smallest >= 1
    assert law.ratio == Fraction(largest, smallest) <= exp_bounds(min(epsilon, Fraction(10**4)))[0]
    upper, lower = int((law.weights >> 32).sum()), int((law.weights & 0xFFFFFFFF).sum())
    assert (upper << 32) + lower <= 1 << 61
    assert law.within(epsilon)


@pytest.mark.parametrize(("make", "modulus"), MAKERS, ids=IDS)
@settings(max_examples=40)
@given(epsilon=EPSILONS)
def test_no_value_is_more_likely_than_epsilon_allows(make, modulus, epsilon):
    law = make(modulus, epsilon)
    check_private(law, epsilon)
    assert len(law.weights) == law.modulus == modulus


@pytest.mark.long
@pytest.mark.parametrize("epsilon", ["0.1", "1000"])
@pytest.mark.parametrize(("make", "modulus"), LARGEST, ids=lambda x: getattr(x, "__name__", x))
def test_the_largest_laws_are_as_private_as_small_ones(make, modulus, epsilon):
    check_private(make(modulus, epsilon), Fraction(epsilon))


@pytest.mark.parametrize("epsilon", ["0.1", "0.9", "4"])
@pytest.mark.parametrize(("make", "modulus"), MAKERS, ids=IDS)
def test_a_law_spends_nearly_all_of_its_epsilon(make, modulus, epsilon):
    law = make(modulus, epsilon)
    assert law.loss == pytest.approx(float(epsilon), abs=1e-5)
    assert not law.within(Fraction(epsilon) - Fraction(1, 10**4))


def test_whether_a_law_is_within_epsilon_is_decided_exactly():
    """The logarithm of 3 is 1.09861228866810969..."""
    law = pp.Law.of([3, 1, 1])
    assert law.within("1.0986122886681096914")
    assert not law.within("1.0986122886681096913")


def test_the_steepest_law_is_within_an_epsilon_beyond_reason():
    law = pp.Law.of([(1 << 61) - 1, 1])
    assert law.loss == pytest.approx(61 * math.log(2))
    assert law.within(10**6)
    assert law.within(1e300)
    assert law.within("42.3")
    assert not law.within("42.2")


@pytest.mark.parametrize("modulus", [2, 3, 50, 1_000])
@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_geometric_weights_fall_by_one_factor(modulus, epsilon):
    weights = pp.Law.geometric(modulus, epsilon).weights
    factors = weights[:-1] / weights[1:]
    assert factors == pytest.approx(math.exp(epsilon / (modulus - 1)), rel=1e-6)


# Accuracy


@pytest.mark.parametrize(
    ("law", "deviation"),
    [
        (pp.Law.flat(503, 1), 2.157),
        (pp.Law.biquadratic(101, 1), 1.900),
        (pp.Law.singer(121, 1), 1.922),
        (pp.Law.spike(503, 1), 13.08),
        (pp.Law.geometric(503, 1), 31.65),
    ],
    ids=repr,
)
def test_the_deviation_of_an_entry_is_that_of_theory(law, deviation):
    assert law.entry_deviation() == pytest.approx(deviation, rel=1e-3)


def votes(law):
    """The law of a cell's vote for an entry: all votes a row, for each distance of its state."""
    kernel = law.kernel()
    return np.array([np.roll(kernel, -state) for state in range(law.modulus)])


@pytest.mark.parametrize("law", [*SMALL, pp.Law.of([9, 1, 2, 5])], ids=repr)
def test_the_deviation_of_an_entry_is_the_average_over_all_states(law):
    table, probabilities = votes(law), law.probabilities()
    variances = table**2 @ probabilities - (table @ probabilities) ** 2
    assert law.entry_deviation() ** 2 == pytest.approx(variances.mean(), rel=1e-6)


CUSTOM = (
    st.lists(st.integers(1, 50), min_size=2, max_size=12)
    .map(pp.Law.of)
    .filter(lambda law: np.abs(law.spectrum()).min() > 0.01)
)


@given(st.one_of(st.sampled_from(SMALL), CUSTOM))
def test_the_kernel_votes_for_the_state_on_average(law):
    average = votes(law) @ law.probabilities()
    assert average == pytest.approx([1, *[0] * (law.modulus - 1)], abs=1e-7)


@pytest.mark.long
@given(st.sampled_from([3, 7, 11, 103, 1_019, 7_019]), st.floats(0.01, 12))
def test_the_spectrum_of_residues_is_flat_at_every_epsilon(modulus, epsilon):
    """The rounding of the weights is half a unit of 2**24."""
    tangent = math.tanh(epsilon / 2)
    spectrum = np.abs(pp.Law.flat(modulus, epsilon).spectrum())
    assert spectrum[0] == pytest.approx(1)
    expected = tangent * math.sqrt(modulus + 1) / (modulus - tangent)
    assert spectrum[1:] == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("law", ON_SETS, ids=repr)
def test_a_cell_is_hit_or_missed_as_often_as_the_law_says(law):
    indicator = np.zeros(law.modulus)
    indicator[law.members] = 1
    often = [law.probabilities() @ np.roll(indicator, -shift) for shift in range(law.modulus)]
    assert often[0] == pytest.approx(law.hit_and_miss()[0])
    assert often[1:] == pytest.approx([law.hit_and_miss()[1]] * (law.modulus - 1))


def test_only_a_law_on_a_difference_set_has_one():
    with pytest.raises(pp.PlanError, match="no difference set"):
        pp.Law.of([1, 2]).hit_and_miss()[0]


# What makes a law


@given(st.lists(st.integers(1, 1_000), min_size=2, max_size=20))
def test_any_weights_make_a_law(weights):
    law = pp.Law.of(weights)
    assert law.weights.tolist() == weights
    assert law.ratio == Fraction(max(weights), min(weights))
    assert law.probabilities() == pytest.approx(np.array(weights) / sum(weights))


@pytest.mark.parametrize(
    "weights",
    [[], [1], [1, 0], [1, -1], [1.5, 2], [2**61 + 1, 1], [True, 1], [[1, 2], [3, 4]]],
)
def test_weights_that_make_no_law_are_refused(weights):
    with pytest.raises(pp.PlanError):
        pp.Law.of(weights)


@pytest.mark.parametrize(
    "weights", [[2**61, 1], [2**60, 2**60, 1], [2**61] * 2, [2**61] * 4, [2**61] * 8]
)
def test_weights_may_add_up_to_no_more_than_two_to_the_61(weights):
    assert pp.Law.of([2**60, 2**60]).ratio == 1
    with pytest.raises(pp.PlanError, match=r"a sum of at most 2\*\*61"):
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
        (pp.Law.geometric, 1),
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


@pytest.mark.parametrize("make", [pp.Law.flat, pp.Law.spike, pp.Law.geometric])
def test_nobody_can_change_a_law_that_others_share(make):
    law = make(7, 1)
    assert make(7, 1) is law
    arrays = [law.weights] if law.members is None else [law.weights, law.members]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


# The text of a law


@given(
    st.sampled_from([maker for maker in MAKERS if maker[1] <= 1_019]),
    st.fractions("0.5", 2, max_denominator=100),
    st.integers(0, 10),
)
def test_the_text_of_a_law_determines_its_weights(maker, epsilon, steps):
    make, modulus = maker
    one, other = make(modulus, epsilon), make(modulus, epsilon + Fraction(steps, 10**8))
    same = np.array_equal(one.weights, other.weights)
    assert (str(one) == str(other)) <= same
    for law in (one, other):
        again = pp.Law.from_recipe(str(law))
        assert (again.name, again.made_of) == (law.name, law.made_of)
        assert np.array_equal(again.weights, law.weights)
        assert (again.members is None) == (law.members is None)


def test_the_text_tells_laws_of_one_modulus_and_the_same_extremes_apart():
    made = [make(7, 1) for make in (pp.Law.flat, pp.Law.singer, pp.Law.spike, pp.Law.geometric)]
    custom = [pp.Law.of(weights) for weights in ([3, 1, 1], [1, 3, 1], [3, 2, 1], [3, 3, 1])]
    assert len({str(law) for law in [*made, *custom]}) == 8


FAMILIES = {
    "flat 11 1": lambda: pp.Law.flat(11, 1),
    "biquadratic 37 3/10": lambda: pp.Law.biquadratic(37, 0.3),
    "singer 15 2 1/3": lambda: pp.Law.singer(15, "1/3"),
    "singer 13 3 2": lambda: pp.Law.singer(13, 2, 3),
    "block 4 7 1": lambda: pp.Law.block(4, 7, 1),
    "shaped 3 9 11 3 1": lambda: pp.Law.shaped(3, 9, 11, 3, 1),
    "shaped 3 9 14 3 2 1": lambda: pp.Law.shaped(3, 9, 14, 3, 1, below=2),
    "spike 20 1": lambda: pp.Law.spike(20, 1),
    "geometric 9 2": lambda: pp.Law.geometric(9, 2),
    "flat 7 42": lambda: pp.Law.flat(7, 100),
    "custom 3 1 1": lambda: pp.Law.of([3, 1, 1]),
}


@pytest.mark.parametrize("recipe", FAMILIES)
def test_a_recipe_makes_the_same_law(recipe):
    law, again = FAMILIES[recipe](), pp.Law.from_recipe(recipe)
    assert str(law) == str(again) == recipe
    assert np.array_equal(law.weights, again.weights)
    assert (law.name, law.modulus, law.ratio) == (again.name, again.modulus, again.ratio)


def test_every_family_has_a_recipe():
    assert {recipe.split()[0] for recipe in FAMILIES} == {*_FAMILIES, "custom"}


def test_weights_under_the_name_of_a_family_are_custom_ones():
    """Else a state would name another law than its own."""
    forged = pp.Law("flat", np.array([11, 1]))
    assert str(forged) == "custom 11 1"
    with pytest.raises(TypeError):
        pp.Law("flat", np.array([11, 1]), (11, 1))
    changed = dataclasses.replace(pp.Law.flat(7, 1), weights=np.array([3, 1, 1]))
    assert str(changed) == "custom 3 1 1"
    assert changed.members is None


@pytest.mark.parametrize(
    "recipe",
    [
        *("", " ", "flat", "flat 7", "flat 7 0", "flat 7 x", "flat 8 1", "flat 7 1 1", "flat  7 1"),
        *("flat seven 1", "flat 7.0 1", "flat -7 1", "flat 7 1e999999999", "flat 7 1/0"),
        *("custom", "custom 1", "custom 1 0", "custom 1 -1", "custom 1 x", "custom 1 1.5"),
        *("singer 15 1", "singer 15 4 1", "singer 15 0 1", "block 4 1", "block 4 4 1"),
        *("shaped 3 9 11 1", "shaped 10 9 11 3 1", "shaped 3 11 11 3 1", "shaped 3 9 11 11 1"),
        *("shaped 0 9 11 3 1", "shaped 3 9 11 0 1", "shaped 3 9 4609 3 1"),
        *("shaped 3 9 11 3 2 1", "shaped 3 9 14 3 -1 1", "shaped 3 9 14 3 1 1 1"),
        *("block 16777216 7 1", "spike 16777217 1", "geometric 99999999999999999999 1"),
        *("residues 7 1", "point 7 1", "Flat 7 1", "custom " + "9" * 5_000 + " 1"),
    ],
)
def test_what_is_no_recipe_is_refused(recipe):
    with pytest.raises(pp.PlanError):
        pp.Law.from_recipe(recipe)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(3)])
@pytest.mark.parametrize(("chosen", "tau"), [(residues(7), 1), (residues(11), 3), (point(5), 4)])
def test_a_counter_is_outside_of_the_set_as_often_as_its_weights_say(chosen, tau, epsilon):
    weights = on_blocks(chosen, tau, epsilon).weights.tolist()
    inside = np.isin(np.arange(len(weights)) // tau, chosen.members())
    chances = [
        1 - Fraction(sum(weight for x, weight in enumerate(weights) if shifted[x]), sum(weights))
        for shifted in (np.roll(inside, -state) for state in range(len(weights)))
    ]
    assert (min(chances), max(chances)) == outside(chosen, tau, epsilon)
    assert chances[0] == min(chances)


@pytest.mark.parametrize("epoch", [0, 1, 2, 5])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(3)])
@pytest.mark.parametrize(
    "chosen", [residues(11), biquadratic(37), biquadratic(101), singer(13), point(2), point(5)]
)
def test_a_counter_hits_the_set_as_often_as_its_noise_added_up_says(chosen, epsilon, epoch):
    law = on_set(chosen, epsilon).probabilities()
    noise = law
    for _ in range(epoch):
        noise = [sum(noise[x - y] * law[y] for y in range(len(law))) for x in range(len(law))]
    at = [sum(noise[x - state] for x in chosen.members()) for state in range(len(law))]
    assert hit_and_miss(chosen, epsilon, epoch) == pytest.approx((at[0], np.mean(at[1:])))


@pytest.mark.parametrize("weights", [[1, 1], [1, 2**61 - 1]])
def test_the_fewest_and_the_largest_weights_are_taken(weights):
    assert pp.Law.of(weights).weights.tolist() == weights


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1], "2 to 2**24 whole weights of at least 1"),
        ([1, 0], "weight"),
        (np.array([1, 0]), "2 to 2**24 whole weights"),
        (np.array([1.0, 1.0]), "2 to 2**24 whole weights"),
        (np.array([[1, 1], [1, 1]]), "2 to 2**24 whole weights"),
        ([1, 2**61], "a sum of at most 2**61"),
        ([2**61 + 1, 1], "weight"),
        ([2**60, 2**60, 1], "a sum of at most 2**61"),
        ([2**61] * 5, "a sum of at most 2**61"),
    ],
)
def test_other_weights_are_refused_in_words(weights, said):
    make = pp.Law.of if isinstance(weights, list) else lambda given: pp.Law("custom", given)
    with pytest.raises(pp.PlanError) as refused:
        make(weights)
    assert said in str(refused.value)


def test_moduli_go_up_to_two_to_the_24():
    assert _modulus(1 << 24) == 1 << 24
    assert _modulus(2) == 2
    for modulus in (1, (1 << 24) + 1):
        with pytest.raises(pp.PlanError, match=r"^modulus must"):
            _modulus(modulus)
    with pytest.raises(pp.PlanError, match=r"^q must"):
        pp.Law.block(1 << 22, 7, 1)
    with pytest.raises(pp.PlanError, match=r"^tau must"):
        pp.Law.block(0, 3, 1)


@pytest.mark.parametrize(
    ("name", "taken", "refused"),
    [
        ("modulus", [4], [1, 4_609]),
        ("bound", [2, 9], [0, 10]),
        ("threshold", [1, 2], [0, 3]),
        ("size", [1, 9], [0, 10]),
        ("below", [0, 7], [-1, 8]),
    ],
)
def test_a_shape_is_taken_between_its_ends(name, taken, refused):
    base = {"threshold": 1, "bound": 2, "modulus": 10, "size": 3, "epsilon": 1, "below": 0}
    for value in taken:
        pp.Law.shaped(**{**base, name: value})
    for value in refused:
        with pytest.raises(pp.PlanError, match=name):
            pp.Law.shaped(**{**base, name: value})


def test_a_law_of_no_use_beyond_e_to_the_42_is_that_of_42():
    for make in (pp.Law.spike, pp.Law.geometric):
        assert make(5, 42).weights.tolist() == make(5, 1_000).weights.tolist()


def test_geometric_weights_are_as_large_as_they_fit():
    made = pp.Law.geometric(5, 1).weights
    assert made[-1] == 1 << 24
    assert made[0] == math.floor((1 << 24) * math.e)
    assert made.tolist() == sorted(made.tolist(), reverse=True)
    steep = pp.Law.geometric(5, 42).weights
    assert steep[0] == 2**61 // 5
    assert steep[-1] == int(2**61 / (5 * math.exp(42))) + 1


def test_how_a_law_shows_itself():
    flat = pp.Law.flat(7, 1)
    assert repr(flat) == "<Law flat modulo 7, loss 1>"
    assert flat.hit_and_miss()[0] == pytest.approx(3 * math.e / (3 * math.e + 4), rel=1e-6)
    assert flat.hit_and_miss()[1] == pytest.approx((3 - flat.hit_and_miss()[0]) / 6)
    assert flat.probabilities().sum() == pytest.approx(1)
    assert flat.within(1)
    assert not flat.within("0.999999")
    assert flat.within(10**6)
    assert copy.deepcopy(flat) is flat


@pytest.mark.parametrize("chosen", [residues(503), biquadratic(677), singer(364), point(100)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1_000), Fraction(1), Fraction(9)])
def test_all_frequencies_of_a_law_on_a_difference_set_have_one_size(chosen, epsilon):
    law = on_set(chosen, epsilon)
    sizes = np.abs(law.spectrum()[1 : chosen.modulus // 2 + 1])
    assert sizes == pytest.approx(size_of_frequencies(chosen, epsilon), rel=1e-9)
    assert law.spectrum_sizes() == size_of_frequencies(chosen, epsilon)
    assert pp.Law.of(law.weights.tolist()).spectrum_sizes() == pytest.approx(sizes, rel=1e-9)
