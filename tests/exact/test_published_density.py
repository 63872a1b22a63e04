"""The density estimators of the papers lose what they claim, to the last digit, and no more."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import RELEASE, EnumeratedCoins, exact_loss
from panprivacy.papers.published import (
    ContinuousDensity,
    DworkDensity,
    DworkRothDensity,
    OptBernDensity,
    PPDSDensity,
    loss_of_bias,
)
from panprivacy.papers.published.redrawn import CellLaws

KINDS = {
    "dwork": (DworkDensity, {}),
    "dwork and roth": (DworkRothDensity, {}),
    "two steps": (ContinuousDensity, {"grid": 2}),
    "five steps": (ContinuousDensity, {"grid": 5}),
    "optimal bits": (OptBernDensity, {}),
}

HISTORIES = {
    "is seen": ([[0]], [[]]),
    "is released and comes": ([RELEASE, [0]], [RELEASE, []]),
    "comes around a release": ([[0], RELEASE, [0]], [[], RELEASE, []]),
    "comes before a release": ([[0], RELEASE], [[], RELEASE]),
    "comes again after a look": ([[0], [0], RELEASE], [[], [0], RELEASE]),
    "comes again around releases": (
        [[0], RELEASE, [0], RELEASE, [0]],
        [[], RELEASE, [], RELEASE, []],
    ),
    "comes between releases": ([RELEASE, [0], RELEASE], [RELEASE, [], RELEASE]),
    "comes later": ([[0], RELEASE, [0], RELEASE], [[], RELEASE, [0], RELEASE]),
    "returns between releases": (
        [[0], RELEASE, [0], RELEASE],
        [[0], RELEASE, [], RELEASE],
    ),
}


def made(name, epsilon, releases=2, universe=1, budget=None):
    kind, sizes = KINDS[name]
    arguments = {"universe": universe, "epsilon": epsilon, "releases": releases, "budget": budget}
    return lambda coins: kind(coins=coins, **arguments, **sizes)


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("name", KINDS)
def test_each_keeps_its_claim(name, history):
    loss = exact_loss(made(name, 1), *HISTORIES[history], coins=EnumeratedCoins(tail=6))
    assert loss.within(1)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 3])
@pytest.mark.parametrize("name", KINDS)
def test_each_loses_all_that_it_claims(name, epsilon):
    """On one of two histories: a 1 that was seen, or a 0 that the user leaves unlikely."""
    histories = "is released and comes", "comes around a release"
    coins = EnumeratedCoins(tail=8)
    found = [
        float(exact_loss(made(name, epsilon, 1), *HISTORIES[one], coins=coins)) for one in histories
    ]
    assert max(found) == pytest.approx(float(epsilon), rel=1e-6)
    assert max(found) <= epsilon


@pytest.mark.parametrize("name", ["dwork", "dwork and roth"])
def test_two_releases_lose_all_that_is_claimed_where_the_user_comes_anew(name):
    """The bound for zeros is a sum over releases: each sees a bit of its own."""
    budget = pp.Budget(state="0.5", release="0.2")
    make = made(name, 1, 2, budget=budget)
    claimed = make(None).plan.laws.loss(Fraction(1, 5), 2)
    history = HISTORIES["comes again around releases"]
    loss = exact_loss(make, *history, coins=EnumeratedCoins(tail=8))
    assert float(loss) == pytest.approx(float(claimed), rel=1e-9)
    assert loss.within(claimed)


@pytest.mark.parametrize("bias", [Fraction(1, 40), Fraction(1, 10), Fraction(2, 5)])
def test_a_bias_loses_what_its_formula_says(bias):
    """Printed is epsilon for a bias of epsilon/4 (Dwork et al.), and of epsilon (R1)."""
    state = loss_of_bias(bias)
    make = made("dwork", state + 1, 1, budget=pp.Budget(state=state, release=1))
    loss = exact_loss(make, [[0]], [[]])
    assert float(loss) == pytest.approx(-math.log(1 - 2 * bias), rel=1e-12)
    assert loss.within(state)
    assert loss.within(bias) is False, "the textbook calls it so"


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2)])
def test_the_printed_bias_uses_half_of_the_loss_that_it_is_allotted(epsilon):
    assert 0.5 < float(loss_of_bias(epsilon / 4) / epsilon) < 0.58


# Every pair of short histories against the formula: the attack


SCHEDULES = [
    steps
    for length in (2, 3, 4, 5)
    for steps in product(("come", "again", RELEASE), repeat=length)
    if 1 <= steps.count(RELEASE) <= 2 and steps.count("again")
]
"""What happens: the user comes in both streams, in the larger one only, or there is a release."""


@pytest.mark.parametrize(
    ("absent", "present"),
    [
        ((1, 1), (1, 3)),
        ((1, 1), (9, 11)),
        ((2, 1), (1, 2)),
        ((3, 2), (1, 9)),
        ((3, 2, 1), (1, 2, 3)),
        ((8, 2, 1, 1), (1, 1, 2, 8)),
    ],
)
@pytest.mark.parametrize("release", [0.1, 1.0, 4.0])
def test_no_history_loses_more_than_the_formula_and_one_loses_it(absent, present, release):
    """Over 200 pairs of histories, all looks, and answers from below to above all values."""
    laws = CellLaws(absent, present)
    worst = {1: 0.0, 2: 0.0}
    for steps in SCHEDULES:
        count = steps.count(RELEASE)
        worst[count] = max(worst[count], float(worst_ratio(laws, steps, release)))
    for count, found in worst.items():
        assert found == pytest.approx(float(laws.loss(Fraction(str(release)), count)), rel=1e-9)


def worst_ratio(laws, steps, release):
    """The largest log ratio over the moments of a look, what it shows, and all answers."""
    values = np.arange(laws.top + 1)
    answers = np.exp(-release * np.abs(values[:, None] - values[None, :]) / laws.top)
    worst = 0.0
    for look in range(len(steps) + 1):
        larger, smaller = (
            joint(laws, steps, look, answers, also) for also in (("come", "again"), ("come",))
        )
        worst = max(worst, float(np.abs(np.log(larger / smaller)).max()))
    return worst


def joint(laws, steps, look, answers, comes):
    """The likelihood of what the look shows and of each pair of answers, up to a factor.

    The law of (cell now, value seen, answers so far) is carried from step to step.
    """
    absent, present = (np.array(law, float) for law in laws.probabilities())
    law = absent[:, None]
    for time, step in enumerate((*steps, None)):
        if time == look:
            law = law[:, None, :] * np.eye(len(absent))[:, :, None]
            law = law.reshape(len(absent), -1)
        if step == RELEASE:
            law = law[:, :, None] * answers[:, None, :]
            law = law.reshape(len(absent), -1)
        elif step in comes:
            law = present[:, None] * law.sum(axis=0)
    return law.sum(axis=0)


# Samples


def test_a_sample_at_a_public_level_keeps_its_claim_however_often_a_user_comes():
    """Printed, the level and the redraws of a full sample tell of 20 appearances (D3)."""

    def make(coins):
        return PPDSDensity(universe=3, cells=2, epsilon=Fraction(1, 5), coins=coins)

    for times in (1, 5, 20):
        loss = exact_loss(make, [[0]] * times, [[]] * times)
        assert loss.within(Fraction(1, 5))
    assert make(None).plan.cells == 1


def test_who_is_not_in_the_sample_loses_nothing():
    def make(coins):
        return DworkDensity(universe=4, cells=2, epsilon=1, coins=coins)

    found = [exact_loss(make, [[user]], [[]]).epsilon for user in range(4)]
    assert sorted(map(bool, found)) == [False, False, True, True]
