"""The most likely histogram is possible, is the most likely one, and is nearer to the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import panprivacy as pp
from panprivacy.statistics.incidence.constrained import _nearest, most_likely
from panprivacy.statistics.incidence.decoder import StateModel
from panprivacy.tables.cells.law import Law
from panprivacy.tables.decoders.circular import convolve, correlate

LAWS = {
    "flat": Law.flat(31, 1),
    "biquadratic": Law.biquadratic(37, 1),
    "spike": Law.spike(20, 1),
    "geometric": Law.geometric(12, 1),
}


def users_in(states, modulus, cells):
    return np.bincount(np.arange(cells) % states, minlength=modulus).astype(float)


def up_to(states, law):
    return np.arange(law.modulus) < states


def model_of(law, cells):
    return StateModel(law, 0, cells, cells)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.floats(1, 1e6),
    st.integers(0, 5),
)
def test_the_nearest_histogram_is_possible_and_no_other_is_nearer(values, total, impossible):
    possible = np.arange(len(values) + impossible) < len(values)
    given_ = np.array([*values, *[1e6] * impossible])
    nearest = _nearest(given_, possible, total)
    assert nearest.min() >= 0
    assert not nearest[~possible].any()
    assert nearest.sum() == pytest.approx(total)
    off = (given_ - nearest)[possible]
    assert off.max() == pytest.approx(off[nearest[possible] > 0].max(), abs=1e-3)
    assert off[nearest[possible] > 0] == pytest.approx(off.max(), abs=1e-3)


@pytest.mark.parametrize("name", LAWS)
def test_without_noise_it_is_the_truth(name):
    law = LAWS[name]
    truth = users_in(5, law.modulus, 1_000_000)
    model = model_of(law, 1_000_000)
    likely = most_likely(model, convolve(truth, law.probabilities()), 0.0, up_to(9, law))
    assert likely == pytest.approx(truth, abs=2)


@pytest.mark.parametrize("name", LAWS)
def test_no_possible_histogram_makes_the_noised_counts_more_likely(name):
    """The slope of the likelihood is the same wherever there are users, and less elsewhere."""
    law, cells, noise = LAWS[name], 100_000, 800.0
    draw = np.random.default_rng(3)
    expected = convolve(users_in(3, law.modulus, cells), law.probabilities())
    counts = np.rint(draw.normal(expected, np.sqrt(expected + noise)))
    model = model_of(law, cells)
    possible = up_to(9, law)
    likely = most_likely(model, counts, noise, possible)
    guess = _nearest(model.entries(counts, noise).values, possible, cells)
    variances = convolve(guess, law.probabilities()) + noise
    rest = (counts - convolve(likely, law.probabilities())) / variances
    slopes = correlate(rest, law.probabilities())[possible]
    present = likely[possible] > 1
    assert 1 < present.sum() < 9
    assert slopes[present] == pytest.approx(slopes.max(), abs=1e-3 * np.abs(rest).max())


def errors_of(answer, truth):
    """Squared errors of the unbiased and of the constrained histogram, up to the bound."""
    tables = answer.to_pandas(), answer.to_pandas(constrained=True)
    states = [one[one["question"] == "exactly"] for one in tables]
    return [float(((one["value"].to_numpy() - truth) ** 2).sum()) for one in states]


@pytest.mark.long
@pytest.mark.parametrize("cells", [None, 1_000])
@pytest.mark.parametrize("law", [None, pp.Law.geometric(21, "0.9")])
def test_it_is_nearer_to_the_truth(law, cells):
    """The limit is more than 5 standard errors of 40 runs from what they are expected to be."""
    universe, bound = 4_000, 20
    budget = None if law is None else pp.Budget("0.9", "0.1")
    states = np.arange(universe) % 4
    truth = np.bincount(states, minlength=bound + 1)
    squares = []
    for _ in range(40):
        visits = pp.Incidence(
            universe=universe, bound=bound, epsilon=1, cells=cells, law=law, budget=budget
        )
        visits.update(np.arange(universe), states)
        squares.append(errors_of(visits.release(), truth))
    unbiased, constrained = np.sum(squares, axis=0)
    assert constrained < 0.9 * unbiased


def test_a_table_of_it_is_possible_and_within_its_intervals():
    visits = pp.Incidence(universe=5_000, cells=2_000, bound=9, epsilon=1, signed=True)
    visits.update(np.arange(3_000), np.arange(3_000) % 7 - 3)
    answer = visits.release()
    table = answer.to_pandas(constrained=True)
    assert table["argument"].tolist() == list(range(-9, 10))
    assert table["value"].sum() == pytest.approx(5_000)
    assert table["value"].min() >= 0
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    unbiased = answer.to_pandas()
    assert (table["low"] <= unbiased["low"]).all()
    assert (unbiased["high"] <= table["high"]).all()


def test_after_an_announced_intrusion_it_is_possible_too():
    visits = pp.Incidence(universe=5_000, bound=3, epsilon=6, intrusions=1)
    visits.update(np.arange(3_000))
    visits.announce_intrusion()
    table = visits.release().to_pandas(constrained=True)
    assert table["value"].sum() == pytest.approx(5_000)
    assert table["value"].tolist() == pytest.approx([2_000, 3_000, 0, 0], abs=1_500)


def test_it_needs_a_histogram_of_all_users():
    named = pp.Incidence(universe=100, bound=3, epsilon=1).release(exactly=1)
    with pytest.raises(pp.PlanError, match="nothing for the whole histogram"):
        named.to_arrow(constrained=True)
    hashed = pp.Incidence(expected=20_000, bound=3, epsilon=3).release()
    with pytest.raises(pp.PlanError, match="needs universe="):
        hashed.to_pandas(constrained=True)


def test_noise_beyond_all_users_leaves_a_possible_table():
    table = pp.Incidence(universe=10, bound=3, epsilon=1e-6).release().to_pandas(constrained=True)
    assert table["value"].sum() == pytest.approx(10)
    assert table["value"].min() >= 0
