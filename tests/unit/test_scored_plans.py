"""Scores of counters: unbiased after any number of intrusions, and rounded to whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.soft.scored_plans import (
    Rise,
    Tents,
    Votes,
    _Unrounded,
    promising,
    scored_split,
    votes_of,
)
from panprivacy.tables.planning.request import Request, budgets, noise_variance
from panprivacy.tables.planning.room import sets_of

EPSILON = Fraction(4)


@pytest.fixture(scope="module")
def recipe():
    return Tents(sets_of(13, 1)[0], 1, 3, 2)


def test_tents_leave_out_whoever_is_under_one(recipe):
    question = recipe.question()
    assert len(question) == recipe.modulus
    assert question[0] == pytest.approx(0)
    assert question[1] == pytest.approx(0)
    assert question[3] == pytest.approx(0)
    assert question[4] == pytest.approx(1 / 3)
    assert question[6] == pytest.approx(1)
    assert question[-1] == pytest.approx(1 / 3)
    assert question.min() >= -1e-12
    assert question.max() <= 1 + 1e-12
    assert recipe.countable_states().all()


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_the_mean_score_of_a_counter_says_what_is_asked_of_its_state(recipe, epoch):
    votes = votes_of(recipe, EPSILON, 1_000, epoch)
    law = recipe.law(EPSILON).weights / recipe.law(EPSILON).weights.sum()
    noise = np.fft.ifft(np.fft.fft(law) ** (epoch + 1)).real
    means = np.array([noise @ np.roll(votes.scores, -state) for state in range(recipe.modulus)])
    asked = votes.absent + votes.contrast * recipe.question()
    assert np.abs(means - asked).max() <= votes.bias + 1e-6
    assert 1_000 * votes.bias <= np.sqrt(1_000 * votes.variance) / 32


@pytest.mark.parametrize("epoch", [0, 1])
def test_no_state_strays_more_than_is_said_and_some_state_does(recipe, epoch):
    votes = votes_of(recipe, EPSILON, 1_000, epoch)
    law = recipe.law(EPSILON).weights / recipe.law(EPSILON).weights.sum()
    noise = np.fft.ifft(np.fft.fft(law) ** (epoch + 1)).real
    turned = np.array([np.roll(votes.scores, -state) for state in range(recipe.modulus)])
    variances = turned.astype(float) ** 2 @ noise - (turned @ noise) ** 2
    assert variances.max() == pytest.approx(votes.variance)
    absent = recipe.question() == 0
    assert variances[absent].max() <= votes.below * (1 + 1e-9)


def test_the_error_of_an_unrounded_score_has_the_noise_of_the_release_in_it(recipe):
    unrounded = _Unrounded.of(recipe, EPSILON, 0)
    budget = Budget(EPSILON, Fraction(1, 10))
    law = recipe.law(EPSILON).weights / recipe.law(EPSILON).weights.sum()
    turned = np.array([np.roll(unrounded.votes, -state) for state in range(recipe.modulus)])
    assert turned @ law == pytest.approx(unrounded.question, abs=1e-9)
    told = recipe.countable_states()
    spread = (turned**2 @ law - (turned @ law) ** 2)[told].max()
    output = noise_variance(float(np.ptp(unrounded.votes)), budget)
    for cells in (1, 1_000):
        expected = np.sqrt(cells * spread + output) / cells
        assert unrounded.error(cells, budget, recipe) == pytest.approx(expected, rel=0.05)


def test_scores_are_whole_numbers_within_their_range(recipe):
    votes = Votes.of(recipe, EPSILON, 1_000, 0)
    assert votes.scores.dtype == np.int64
    assert votes.range == votes.scores.max() - votes.scores.min()
    assert votes.variance == max(votes.below, votes.above)
    assert votes.in_part


def test_equal_recipes_share_their_scores(recipe):
    again = Tents(recipe.chosen, 1, 3, 2)
    assert votes_of(again, EPSILON, 1_000, 0) is votes_of(recipe, EPSILON, 1_000, 0)


def test_a_rise_needs_room_for_one_more_width_unless_it_begins_later():
    assert Rise(3, 2, 10).values == 13
    assert Rise(3, 2, 10, first=1).values == 10


def test_a_split_tells_how_far_scores_reach(recipe):
    budget = Budget(Fraction(3), Fraction(1))
    votes = votes_of(recipe, budget.state, 1_000, 0)
    split = scored_split(recipe, budget, 1_000, 0)
    assert split.contrast == pytest.approx(votes.contrast / votes.range)
    assert split.budget == budget
    assert split.noise_variance > 0


def test_the_promising_budgets_have_the_one_that_is_best_once_scores_are_rounded(recipe):
    cells = 100_000
    spendings = budgets(Request(Fraction(1)))

    def error(budget):
        votes = votes_of(recipe, budget.state, cells, 0)
        return (cells * votes.variance + noise_variance(votes.range, budget)) / votes.contrast**2

    found = promising(recipe, spendings, cells, 0)
    assert min(spendings, key=error) in found
    assert len(found) < len(spendings) / 2
