"""What counters say about users is unbiased and strays as stated, by enumeration of all noise."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.statistics.incidence.decoder import SharedModel, StateModel
from panprivacy.statistics.incidence.linear_queries import States
from panprivacy.tables.cells.law import Law
from panprivacy.tables.decoders.circular import convolve, correlate
from panprivacy.tables.decoders.intervals import noise_quantile

# Circular sums


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=40), st.randoms())
def test_circular_sums_are_those_of_the_direct_sum(values, chance):
    size = len(values)
    pattern = [chance.uniform(-1, 1) for _ in values]
    convolved = [sum(values[y] * pattern[x - y] for y in range(size)) for x in range(size)]
    correlated = [sum(values[x] * pattern[x - j] for x in range(size)) for j in range(size)]
    one, other = np.array(values), np.array(pattern)
    assert convolve(one, other) == pytest.approx(convolved, abs=1e-9)
    assert correlate(one, other) == pytest.approx(correlated, abs=1e-9)


# Questions


# Cells with one user each

LAWS = {
    "flat": Law.flat(7, 1),
    "steep": Law.flat(3, 3),
    "biquadratic": Law.biquadratic(37, 1),
    "singer": Law.singer(13, 2),
    "spike": Law.spike(4, "1.5"),
    "geometric": Law.geometric(5, 1),
    "custom": Law.of([5, 1, 2, 1, 3]),
}
ON_SETS = [name for name, law in LAWS.items() if law.members is not None]
LOOKS = [(name, epoch) for name in LAWS for epoch in range(1 if name == "biquadratic" else 3)]
STATES = {name: [(0, 0), (1, 1), (0, 1, 2), (2, 1, 2)] for name in LAWS}
STATES["biquadratic"] = [(1,), (2,)]
STATES["singer"] = [(0, 0), (1, 1), (2, 1)]
"""The users' states in a few cells; more cells modulo 13 or 37 have very many outcomes."""


def noise_of(law, epoch):
    """The law of the noise, by direct sums over all noise of all epochs."""
    drawn = after = law.probabilities()
    for _ in range(epoch):
        after = sum(often * np.roll(after, value) for value, often in enumerate(drawn))
    return after


def histograms(law, states, epoch=0):
    """Every histogram that cells in these states can show, and how often."""
    noise, seen = noise_of(law, epoch), {(0,) * law.modulus: 1.0}
    for state in states:
        more = defaultdict(float)
        for histogram, chance in seen.items():
            for value, often in enumerate(np.roll(noise, state)):
                counts = (*histogram[:value], histogram[value] + 1, *histogram[value + 1 :])
                more[counts] += chance * often
        seen = more
    return np.array(list(seen)), np.array(list(seen.values()))


def moments(values, chances):
    mean = chances @ values
    return mean, chances @ (values - mean) ** 2


def states_of(law):
    return States(law.modulus, law.modulus - 1, signed=False)


def model_of(law, cells, epoch=0, universe=None):
    return StateModel(law, epoch, cells, universe or cells)


def questions_of(law):
    states = states_of(law)
    several = [states.at_least(1), states.at_least(2), states.cropped_sum(2), states.distinct()]
    several.append(states.cropped_moment(2, 2))
    return [*(states.exactly(state) for state in (0, 1, 2)), *several]


def truth_of(question, states):
    return sum(int(question.scores[state]) for state in states)


def variance_at(estimates, truth):
    """What the model states where the truth is known, without output noise."""
    at_truth = dataclasses.replace(estimates, values=np.asarray(float(truth)))
    return float(at_truth.deviations()) ** 2


@pytest.mark.parametrize(
    ("name", "states"), [(name, one) for name in ON_SETS for one in STATES[name]], ids=str
)
def test_named_counts_are_unbiased_and_stray_no_more_than_stated(name, states):
    law = LAWS[name]
    model, (counted, chances) = model_of(law, len(states)), histograms(law, states)
    for question in questions_of(law):
        truth, scores = truth_of(question, states), model.scores(question)
        values = [float(model.named(question, int(scores @ one), 0.0).values) for one in counted]
        mean, variance = moments(np.array(values), chances)
        assert mean == pytest.approx(truth, abs=1e-9)
        stated = variance_at(model.named(question, 0, 0.0), truth)
        if question.name.question == "exactly":
            assert variance == pytest.approx(stated, abs=1e-9)
        else:
            assert variance <= stated + 1e-9


@pytest.mark.parametrize("name", ON_SETS)
def test_a_cell_counts_up_to_a_constant_each_set_that_its_value_is_in(name):
    """So the range of its scores, which the output noise covers, is how far it moves a count."""
    law = LAWS[name]
    member = np.isin(np.arange(law.modulus), law.members)
    for question in questions_of(law):
        weights = model_of(law, 4).scores(question)
        direct = [sum(np.roll(question.scores[::-1], x + 1)[member]) for x in range(law.modulus)]
        assert len(set((weights - direct).tolist())) == 1


@pytest.mark.parametrize("name", ON_SETS)
def test_some_states_stray_as_far_as_named_counts_state(name):
    law = LAWS[name]
    model = model_of(law, 1)
    for question in questions_of(law):
        worst = 0.0
        for state in range(law.modulus):
            counted, chances = histograms(law, (state,))
            values = (
                counted @ model.scores(question) / (law.hit_and_miss()[0] - law.hit_and_miss()[1])
            )
            _, variance = moments(values, chances)
            stated = variance_at(model.named(question, 0, 0.0), truth_of(question, (state,)))
            worst = max(worst, variance / stated if stated > 1e-12 else 0.0)
        assert worst == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "epoch", "states"),
    [(*look, one) for look in LOOKS for one in STATES[look[0]]],
    ids=str,
)
def test_answers_from_the_histogram_are_unbiased_and_stray_as_stated(name, epoch, states):
    """The stated variance is estimated too: it is right where the histogram is as expected."""
    law, signal = LAWS[name], 1e-6 if epoch else 1e-8
    model, (counted, chances) = model_of(law, len(states), epoch), histograms(law, states, epoch)
    entries = np.array([model.entries(one, 0.0).values for one in counted])
    mean, variance = moments(entries, chances)
    assert mean == pytest.approx(np.bincount(states, minlength=law.modulus), abs=signal)
    stated = model.entries(chances @ counted, 0.0).constant
    assert variance == pytest.approx(stated, rel=1e-6, abs=signal)
    for question in questions_of(law):
        values = np.array(
            [float(model.from_histogram(question, one, 0.0).values) for one in counted]
        )
        mean, variance = moments(values, chances)
        assert mean == pytest.approx(truth_of(question, states), abs=signal)
        stated = model.from_histogram(question, chances @ counted, 0.0)
        assert variance == pytest.approx(float(stated.constant), rel=1e-6, abs=signal)
        if question.name.question == "exactly":
            assert values == pytest.approx(entries[:, question.name.argument], abs=signal)


@pytest.mark.parametrize(("name", "epoch"), LOOKS)
def test_output_noise_adds_the_squares_of_what_each_count_moves(name, epoch):
    """Less what their mean moves: the number of cells is known without noise."""
    law = LAWS[name]
    model, still = model_of(law, 50, epoch), np.zeros(law.modulus)
    for question in questions_of(law):
        base = float(model.from_histogram(question, still, 3.0).values)
        moved = [
            model.from_histogram(question, one, 3.0).values - base for one in np.eye(law.modulus)
        ]
        stated = float(model.from_histogram(question, still, 3.0).output)
        assert stated == pytest.approx(3 * float(np.square(moved).sum()))
        assert stated == pytest.approx(model.histogram_noise(question, 3.0))
        assert sum(moved) == pytest.approx(0, abs=1e-6)
        if question.name.question == "exactly":
            assert model.entries(still, 3.0).output[0] == pytest.approx(stated)


@pytest.mark.parametrize("name", ON_SETS)
def test_output_noise_on_a_named_count_is_amplified_by_one_over_the_contrast(name):
    law = LAWS[name]
    model = model_of(law, 50)
    for question in questions_of(law):
        moved = model.named(question, 1, 3.0).values - model.named(question, 0, 3.0).values
        stated = float(model.named(question, 0, 3.0).output)
        assert stated == pytest.approx(3 * float(moved) ** 2) == model.named_noise(3.0)


@pytest.mark.parametrize(("users", "cells"), [((0, 1, 1, 2), 2), ((1, 2, 2), 1), ((2, 0, 1), 2)])
@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("name", ["flat", "steep", "singer", "spike", "geometric"])
def test_a_sample_is_unbiased_and_strays_no_more_than_stated(name, epoch, users, cells):
    """The histogram states the variance of a cropped sum, and named counts that of most, above."""
    law, samples = LAWS[name], list(combinations(users, cells))
    model = model_of(law, cells, epoch, universe=len(users))
    seen = defaultdict(float)
    for sample in samples:
        for histogram, often in zip(*histograms(law, sample, epoch), strict=True):
            seen[tuple(histogram)] += often / len(samples)
    counted, chances = np.array(list(seen)), np.array(list(seen.values()))
    for question in questions_of(law):
        truth = truth_of(question, users)
        values = [float(model.from_histogram(question, one, 0.0).values) for one in counted]
        mean, variance = moments(np.array(values), chances)
        stated = variance_at(model.from_histogram(question, chances @ counted, 0.0), truth)
        assert mean == pytest.approx(truth, abs=1e-6)
        assert variance <= stated * (1 + 1e-6)
        if not question.name.question.startswith("cropped"):
            assert variance == pytest.approx(stated, rel=1e-6)
        if question.name.question == "exactly" and law.members is not None and not epoch:
            sums = counted @ model.scores(question)
            named = [float(model.named(question, int(count), 0.0).values) for count in sums]
            mean, variance = moments(np.array(named), chances)
            assert mean == pytest.approx(truth)
            assert variance == pytest.approx(variance_at(model.named(question, 0, 0.0), truth))


# Intervals


@pytest.mark.long
@given(
    st.sampled_from(["flat", "biquadratic", "singer", "spike"]),
    st.integers(1, 10**6),
    st.one_of(st.just(1.0), st.floats(1, 1_000)),
    st.floats(0, 1),
    st.floats(0.5, 10**6),
    st.floats(0.5, 0.999),
)
def test_an_interval_holds_the_estimate_and_grows_with_confidence(
    name, cells, larger, share, noise, confidence
):
    law, universe = LAWS[name], math.ceil(cells * larger)
    model = model_of(law, cells, universe=universe)
    question = questions_of(law)[1]
    count = round(
        cells * (law.hit_and_miss()[1] + share * (law.hit_and_miss()[0] - law.hit_and_miss()[1]))
    )
    estimates = model.named(question, count, noise)
    low, high = estimates.intervals(confidence, float(universe))
    lower, higher = estimates.intervals((1 + confidence) / 2, float(universe))
    value = float(np.clip(estimates.values, 0, universe))
    assert 0 <= lower <= low <= value <= high <= higher <= universe


@pytest.mark.long
@given(
    st.sampled_from(["flat", "biquadratic", "spike"]),
    st.floats(1, 50),
    st.floats(0.2, 0.8),
    st.floats(0.8, 0.999),
)
def test_an_interval_ends_a_step_beyond_where_the_estimate_becomes_surprising(
    name, larger, share, confidence
):
    law, cells = LAWS[name], 10**6
    model = model_of(law, cells, universe=math.ceil(cells * larger))
    count = round(
        cells * (law.hit_and_miss()[1] + share * (law.hit_and_miss()[0] - law.hit_and_miss()[1]))
    )
    estimates = model.named(questions_of(law)[1], count, 0.0)
    quantile, step = noise_quantile(confidence, 0.0), estimates.step
    low, high = estimates.intervals(confidence, math.inf)
    for end, inner in ((low, low + step), (high, high - step)):
        reach = quantile * math.sqrt(variance_at(estimates, inner))
        assert abs(inner - float(estimates.values)) == pytest.approx(reach, rel=1e-6), end


def test_an_unlimited_bound_reaches_as_many_deviations_as_the_confidence_asks():
    law = LAWS["flat"]
    estimates = model_of(law, 1_000).from_histogram(questions_of(law)[1], np.full(7, 150), 0.0)
    reach = noise_quantile(0.95, 0.0) * float(estimates.deviations())
    assert estimates.bound(0.95, 1) == pytest.approx(float(estimates.values) + reach)
    assert estimates.bound(0.95, -1) == pytest.approx(float(estimates.values) - reach)


# Cells that users share


def shared_law(law, loads, epoch):
    """The law of a cell's value, by direct sums over Poisson numbers of users in each state."""
    after, size = noise_of(law, epoch), law.modulus
    for state, load in loads.items():
        moved = np.zeros(size)
        for users in range(60):
            chance = math.exp(-load) * load**users / math.factorial(users)
            moved += chance * np.roll(after, users * state)
        after = moved
    return after


LOADS = [{}, {1: 0.5}, {1: 0.3, 2: 0.1, 3: 0.7}, {1: 1.5, 4: 1.2}, {2: 3.0}]


@pytest.mark.parametrize("loads", LOADS, ids=str)
@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("name", ["flat", "geometric", "custom"])
def test_shared_cells_tell_how_many_users_are_in_each_state(name, epoch, loads):
    law, cells = LAWS[name], 10**6
    model = SharedModel(law, epoch, cells)
    histogram = cells * shared_law(law, loads, epoch)
    users = np.zeros(law.modulus)
    for state, load in loads.items():
        users[state % law.modulus] += cells * load
    entries = model.entries(histogram, 0.0)
    assert entries.values[1:] == pytest.approx(users[1:], abs=1e-3)
    for question in questions_of(law)[1:]:
        answer = float(model.from_histogram(question, histogram, 0.0).values)
        assert answer == pytest.approx(float(question.scores[1:] @ users[1:]), abs=1e-2)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("name", ["flat", "geometric", "custom"])
def test_the_variances_of_a_crowd_are_those_of_its_mean_histogram(name, epoch):
    """They are told without a transform of the histogram."""
    law, cells, noise = LAWS[name], 10**6, 30.0
    model = SharedModel(law, epoch, cells)
    crowds = [(0.0, 1), (0.3 * cells, 1), (1.9 * cells, law.modulus // 2), (0.9 * cells, 3)]
    for question in questions_of(law)[1:]:
        found = list(model.crowd_variances(question, crowds, noise))
        for (users, state), variances in zip(crowds, found, strict=True):
            histogram = cells * shared_law(law, {state: users / cells}, epoch)
            read = model.from_histogram(question, histogram, noise)
            wanted = float(read.constant), float(read.output)
            assert variances == pytest.approx(wanted, rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("load", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("name", ["flat", "geometric", "custom"])
@pytest.mark.parametrize(("cells", "noise"), [(10_000, 20.0), (100_000, 0.0)])
def test_the_strain_is_the_relative_variance_of_the_spectrum_when_all_are_in_one_state(
    cells, noise, name, epoch, load
):
    """As if the cells' part were variance also where the spectrum is 1."""
    law = LAWS[name]
    power = np.abs(np.fft.fft(shared_law(law, {1: load}, epoch))[1:]) ** 2
    relative = (1 / cells + law.modulus * noise / cells**2) / power
    spectrum = SharedModel(law, epoch, cells).spectrum
    assert spectrum.strain(load, noise) == pytest.approx(relative.mean(), rel=1e-6)
    assert spectrum.strain(1e6, noise) > 1e100  # a load beyond all reason


# Levels of counters


def expected_ones(model, modulus, hit, miss, users):
    """The expected number of ones of each level, by the law of the users that meet in a cell."""
    empty = [1.0]  # how often so many uniform nonzero numbers add up to 0: after, unless before
    for _ in range(users):
        empty.append((1 - empty[-1]) / (modulus - 1))
    shares = 0.5 ** np.minimum(np.arange(1, model.levels + 1), model.levels - 1)
    ones, met = [], range(users + 1)
    for share in shares / model.cells_per_level:
        often = [math.comb(users, x) * share**x * (1 - share) ** (users - x) for x in met]
        zero = float(np.dot(often, empty))
        ones.append(model.cells_per_level * (1 - hit * zero - miss * (1 - zero)))
    return np.array(ones)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("users", [0, 1, 30, 300])
@pytest.mark.parametrize("bound", [1, 2, 6, 40])
def test_the_number_of_users_left_is_read_from_the_expected_counts(bound, users, epoch):
    wanted = {"epsilon": 2, "expected": (10, 500), "memory": 512, "intrusions": epoch}
    plan = pp.DistinctCount(deletions=True, bound=bound, **wanted).plan
    law, model = plan.law, plan.model(epoch)
    assert law.modulus > bound
    hit = noise_of(law, epoch)[law.members].sum()
    miss = (len(law.members) - hit) / (law.modulus - 1)
    ones = expected_ones(model, law.modulus, hit, miss, users)
    assert abs(model.estimate(ones) - users) <= max(0.02 * float(model.deviation(users)), 1e-6)
