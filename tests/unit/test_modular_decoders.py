"""What counters say about users, by exact enumeration of the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.decoders import SharedModel, StateModel, States
from panprivacy.decoders.circular import convolve, correlate

LAWS = [
    pp.Law.flat(7, 1),
    pp.Law.singer(13, 1),
    pp.Law.spike(5, 2),
    pp.Law.geometric(6, 1),
    pp.Law.of([9, 1, 2, 5]),
]
SET_LAWS = [law for law in LAWS if law.members is not None]
USERS = [0, 1, 1, 3]
"""The states of four users, one in each cell."""


def states_of(law, *, signed=False):
    bound = (law.modulus - 1) // (2 if signed else 1)
    return States(law.modulus, bound, signed)


def questions(law):
    states = states_of(law)
    return [states.exactly(1), states.at_least(2), states.cropped_sum(2), states.distinct()]


def model(law, epoch=0, universe=4):
    return StateModel(law, epoch, len(USERS), universe, states_of(law).possible())


def noised_cells(law, epoch=0):
    """Every value of each cell, and its probability: the cells are independent."""
    noise = law.probabilities()
    for _ in range(epoch):
        noise = convolve(noise, law.probabilities())
    return [np.roll(noise, state) for state in USERS]


def mean_and_variance(read, law, epoch=0):
    """Of a statistic that is a sum over cells plus a constant: read from one-cell histograms."""
    empty = float(read(np.zeros(law.modulus)).values)
    votes = np.array([float(read(row).values) - empty for row in np.eye(law.modulus)])
    laws = noised_cells(law, epoch)
    means = [float(cell @ votes) for cell in laws]
    squares = [float(cell @ votes**2) for cell in laws]
    variance = sum(square - mean**2 for square, mean in zip(squares, means, strict=True))
    return empty + sum(means), variance


def truth(question):
    return float(question.scores[USERS].sum())


@pytest.mark.parametrize("epoch", [0, 1, 2])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_answers_from_the_histogram_are_unbiased(law, epoch):
    reader = model(law, epoch)
    for question in questions(law):
        mean, _ = mean_and_variance(lambda o, q=question: reader.whole(q, o, 0.0), law, epoch)
        assert mean == pytest.approx(truth(question), abs=1e-6)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_stated_variance_is_unbiased_where_nothing_cuts_it(law):
    """From the histogram: the state's variance is linear in the counts, so its mean can be read."""
    reader = model(law)
    expected = sum(noised_cells(law))
    for question in questions(law):
        _, variance = mean_and_variance(lambda o, q=question: reader.whole(q, o, 0.0), law)
        assert float(reader.whole(question, expected, 0.0).constant) == pytest.approx(variance)


@pytest.mark.parametrize("law", SET_LAWS, ids=str)
def test_named_answers_are_unbiased_and_their_variance_is_not_understated(law):
    reader = model(law)
    for question in questions(law):
        weights = reader.scores(question)

        def read(histogram, question=question, weights=weights):
            return reader.named(question, float(histogram @ weights), 0.0)

        mean, variance = mean_and_variance(read, law)
        assert mean == pytest.approx(truth(question), abs=1e-6)
        stated = read(sum(noised_cells(law)))
        assert stated.deviations() ** 2 >= variance - 1e-6
        if question.kind == "exactly":
            assert stated.deviations() ** 2 == pytest.approx(variance)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_all_entries_agree_with_their_questions(law):
    reader = model(law)
    expected = sum(noised_cells(law))
    entries = reader.entries(expected, 3.0)
    for state in range(law.modulus):
        one = reader.whole(states_of(law).exactly(state), expected, 3.0)
        assert entries.values[state] == pytest.approx(float(one.values), abs=1e-6)
        assert entries.constant[state] == pytest.approx(float(one.constant), abs=1e-6)
        assert entries.output[state] == pytest.approx(float(one.output))


@pytest.mark.parametrize("law", SET_LAWS, ids=str)
def test_the_range_of_the_scores_is_how_far_a_cell_moves_a_count(law):
    for question in questions(law):
        weights = model(law).scores(question)
        member = np.isin(np.arange(law.modulus), law.members)
        direct = [
            sum(int(g) for j, g in enumerate(question.scores) if member[(value - j) % law.modulus])
            for value in range(law.modulus)
        ]
        assert len({weight - exact for weight, exact in zip(weights, direct, strict=True)}) == 1
        assert np.ptp(weights) == max(direct) - min(direct)


def test_a_sample_is_scaled_up_and_its_variance_counted():
    law, cells, universe = LAWS[0], 4, 40
    all_of_them = StateModel(law, 0, cells, cells, states_of(law).possible())
    sample = StateModel(law, 0, cells, universe, states_of(law).possible())
    question, counts = states_of(law).exactly(1), np.arange(7.0)
    whole, part = (one.whole(question, counts, 1.0) for one in (all_of_them, sample))
    assert part.values == pytest.approx(10 * whole.values)
    share = 0.5  # of users in the state: the sampling variance of a finite population
    sampling = universe**2 * share * (1 - share) / cells * (universe - cells) / (universe - 1)
    stated = part.slope * share * universe + part.curve * (share * universe) ** 2
    assert stated == pytest.approx(sampling)


# Intervals


@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-6])
def test_intervals_hold_the_value_and_every_truth_that_is_not_surprising(confidence):
    answer = model(LAWS[0], universe=400).whole(states_of(LAWS[0]).exactly(1), [0] * 7, 1.0)
    low, high = answer.intervals(confidence, 1e9)
    assert low <= max(float(answer.values), 0) <= high
    wider = answer.intervals((1 + confidence) / 2, 1e9)
    assert wider[0] <= low < high <= wider[1]


# Questions


@given(st.integers(1, 12), st.booleans())
def test_questions_count_every_state_by_its_definition(bound, signed):
    states = States(29, bound, signed)
    for state in range(-bound if signed else 0, bound + 1):
        at = state % 29
        assert states.values()[at] == state
        assert states.possible()[at]
        assert states.distinct().scores[at] == (state != 0)
        for other in range(1, bound + 1):
            assert states.exactly(other).scores[at] == (state == other)
            assert states.at_least(other).scores[at] == (state >= other)
            assert states.cropped_sum(other).scores[at] == min(max(state, 0), other)
    assert states.possible().sum() == (2 * bound + 1 if signed else bound + 1)


@pytest.mark.parametrize(
    ("kind", "state"),
    [("exactly", 6), ("exactly", -1), ("at_least", 0), ("at_least", 6), ("cropped_sum", 0)],
)
def test_states_beyond_the_bound_cannot_be_asked_for(kind, state):
    with pytest.raises(pp.PlanError, match=kind):
        getattr(States(11, 5, signed=False), kind)(state)


# Shared cells


def expected_histogram(law, cells, loads):
    """The expected number of cells of each value, when each state has so many users a cell."""
    states = np.zeros(law.modulus)
    for state, load in loads.items():
        states[state] = load
    exponent = np.fft.fft(states) - states.sum()
    return cells * np.fft.ifft(law.spectrum() * np.exp(exponent)).real


@pytest.mark.parametrize(
    "loads", [{1: 0.1}, {1: 0.5, 3: 0.25}, {2: 1.0, 4: 1.0}, {1: 3.0}], ids=str
)
@pytest.mark.parametrize("law", LAWS[:2], ids=str)
def test_collisions_are_undone_below_a_load_of_pi(law, loads):
    shared = SharedModel(law, 0, 1_000)
    entries = shared.entries(expected_histogram(law, 1_000, loads), 0.0)
    for state in range(1, law.modulus):
        assert entries.values[state] == pytest.approx(1_000 * loads.get(state, 0), abs=1e-6)
    distinct = shared.whole(states_of(law).distinct(), expected_histogram(law, 1_000, loads), 0.0)
    assert float(distinct.values) == pytest.approx(1_000 * sum(loads.values()))


def test_the_strain_grows_with_load_and_noise_and_falls_with_cells():
    law = LAWS[0]
    strains = [
        SharedModel(law, 0, 10**6).strain(0, 0),
        SharedModel(law, 0, 10**5).strain(0, 0),
        SharedModel(law, 0, 10**5).strain(1, 0),
        SharedModel(law, 0, 10**5).strain(1, 1e5),
        SharedModel(law, 1, 10**5).strain(1, 1e5),
    ]
    assert strains == sorted(strains)
    assert strains[1] == pytest.approx(10 * strains[0])
    assert strains[2] == pytest.approx(math.exp(2) * strains[1])


# Sums over shifts


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=40))
def test_circular_sums_are_those_of_the_definition(pairs):
    values, pattern = (np.array(column, float) for column in zip(*pairs, strict=True))
    places = range(len(values))
    convolved = [sum(values[y] * pattern[(x - y) % len(values)] for y in places) for x in places]
    correlated = [sum(values[x] * pattern[(x - j) % len(values)] for x in places) for j in places]
    assert convolve(values, pattern) == pytest.approx(np.array(convolved), abs=1e-6)
    assert correlate(values, pattern) == pytest.approx(np.array(correlated), abs=1e-6)
