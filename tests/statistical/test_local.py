"""Frequencies, statistical queries and what is learned from them err as they say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from panprivacy.papers import local
from panprivacy.papers.local.frequencies import intervals
from tests.statistical.checks import OFF, accepted, centred, happens, rejected, spreads

USERS, RUNS = 2_000, 1_500
MATRIX = [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/4", "1/4", "1/2"]]
KINDS = {
    "response": local.RandomisedResponse(6, 2),
    "unary": local.UnaryEncoding(6, 2),
    "hadamard": local.HadamardResponse(6, 2),
    "hadamard, blocks": local.HadamardResponse(6, 4),
    "matrix": local.MatrixRandomiser(MATRIX, "0.7"),
}


def held(values):
    """What users hold: half of them the first value, the others any."""
    return np.where(np.arange(USERS) % 2, 0, np.arange(USERS) // 2 % values)


@pytest.fixture(scope="module", params=KINDS)
def answers(request):
    """Many surveys of the same users: estimates, and both ends, each [runs, values]."""
    randomiser = KINDS[request.param]
    values = held(randomiser.values)
    found = [randomiser.estimate(randomiser.randomise(values)) for _ in range(RUNS)]
    kept = np.array([(one.estimates, one.low, one.high) for one in found])
    return randomiser, np.bincount(values, minlength=randomiser.values), kept


@pytest.mark.long
def test_estimates_are_unbiased(answers):
    _, truth, kept = answers
    for value in (0, 1):
        errors = kept[:, 0, value] - truth[value]
        assert accepted(centred(errors))
        assert rejected(centred(errors + truth[value] * (OFF - 1)))


@pytest.mark.long
def test_they_err_as_much_as_is_stated(answers):
    randomiser, truth, kept = answers
    spread = randomiser._spread(
        randomiser._scores(randomiser.randomise(held(randomiser.values))), USERS
    )
    for value in (0, 1):
        errors = kept[:, 0, value] - truth[value]
        deviation = math.sqrt(spread.fixed[value] + spread.slope[value] * truth[value])
        assert accepted(spreads(errors, deviation, 1.03))  # what is plugged in is noisy
        assert rejected(spreads(errors, deviation * OFF, 1.03))
        assert rejected(spreads(errors, deviation / OFF, 1.03))


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say(answers):
    _, truth, kept = answers
    for value in (0, 1):
        low, high = kept[:, 1, value], kept[:, 2, value]
        inside = int(((low <= truth[value]) & (truth[value] <= high)).sum())
        assert accepted(happens(inside, RUNS, 0.945, 0.97))
        middle = (high + low) / 2
        half = (high - low) / 2 / OFF
        narrow = int((np.abs(middle - truth[value]) <= half).sum())
        assert rejected(happens(narrow, RUNS, 0.945, 0.97))


@pytest.mark.parametrize("holders", [0, 1, 10, 50, 100])
@pytest.mark.parametrize("kind", [local.RandomisedResponse, local.UnaryEncoding])
@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_few_users_are_covered_as_well(kind, holders, epsilon):
    """The exact coverage of an interval of 100 users, over all counts."""
    randomiser = kind(4, epsilon)
    if kind is local.UnaryEncoding:
        own, other = 0.5, float(randomiser.other)
    else:
        own, other = randomiser._own_and_other()
    law = np.convolve(binomial(holders, own), binomial(100 - holders, other))
    counts = np.zeros((101, 4), np.int64)
    counts[:, 0] = np.arange(101)
    covered = 0.0
    for chance, count in zip(law, counts, strict=True):
        low, high = intervals(randomiser._spread(count, 100), 100, 0.95)
        covered += chance * (low[0] <= holders <= high[0])
    assert covered >= 0.945


def binomial(trials, probability):
    """The law of so many coins."""
    counts = np.arange(trials + 1)
    ways = np.array([math.comb(trials, int(count)) for count in counts], float)
    return ways * probability**counts * (1 - probability) ** (trials - counts)


# Statistical queries


@pytest.mark.long
def test_all_answers_are_within_the_tolerance_as_often_as_they_say():
    """Hoeffding's bound is larger than what happens, and half as many users would be too few."""
    tolerance, failure, queries, runs = 0.2, 0.1, 2, 400
    each = local.users_needed(tolerance, 1, queries=queries, failure=failure)
    records = np.arange(queries * each) % 2
    late = 0
    deviations = []
    for _ in range(runs):
        oracle = local.LROracle(records, 1, domain=2)
        asked = local.StatisticalQueries(
            oracle, tolerance=tolerance, queries=queries, failure=failure
        )
        errors = [asked.ask(lambda held: held).value - 0.5 for _ in range(queries)]
        deviations += errors
        late += max(map(abs, errors)) > tolerance
    assert accepted(happens(runs - late, runs, 1 - failure, 1))
    # A user's bit has a deviation of 1/(2 tanh(1/2)): the plan asks for no more than it needs.
    assert accepted(spreads(np.array(deviations), 0.5 / math.tanh(0.5) / math.sqrt(each), 1.02))
    assert rejected(
        spreads(np.array(deviations), OFF * 0.5 / math.tanh(0.5) / math.sqrt(each), 1.02)
    )


@pytest.mark.long
def test_a_query_of_shares_is_answered_without_bias():
    records = np.linspace(0, 1, 3_000)
    errors = []
    for _ in range(400):
        oracle = local.LROracle(records, 4, domain=records)
        asked = local.StatisticalQueries(oracle, tolerance=0.2, queries=1, failure=1e-3)
        errors.append(asked.ask(lambda held: held**2).value - float((records**2).mean()))
    assert accepted(centred(np.array(errors)))
    assert rejected(centred(np.array(errors) + 0.3 / 3))


@pytest.mark.long
def test_what_is_learned_errs_little_more_than_the_best_rule():
    """Labels are wrong for 20 % of the users, and no rule of the class is right."""
    accuracy, failure, runs = 0.2, 0.1, 150
    cuts = [[2, 5, 8], [5]]
    users = local.users_to_learn(cuts, accuracy, 2, failure=failure)
    rng = np.random.default_rng(7)
    features = rng.integers(0, 10, (users, 2))
    labels = (features[:, 0] >= 6) ^ (rng.random(users) < 0.2)
    records = np.column_stack([features, labels])
    rules = [local.Stump(j, c, a) for j, tried in enumerate(cuts) for c in tried for a in (0, 1)]
    best = min(rule.errs(records).mean() for rule in rules)
    domain = list(itertools.product(range(10), range(10), (0, 1)))
    good = 0
    for _ in range(runs):
        oracle = local.LROracle(records, 2, domain=domain)
        learned = local.learn_stump(oracle, cuts, accuracy, failure=failure)
        good += learned.stump.errs(records).mean() <= best + accuracy
        assert learned.error.confidence == 1 - failure
    assert accepted(happens(good, runs, 1 - failure, 1))
    worst = max(rule.errs(records).mean() for rule in rules)
    assert worst > best + accuracy  # so that a learner that guesses would be found out
