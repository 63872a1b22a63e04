"""Counters, experts and lists err and cost as they say, on the coins of production.

Each assertion on a correct program fails once in a million runs (`checks.FALSE_ALARM`).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from panprivacy.papers.online import ListUpdate, MultiCounter, PrivateExperts
from tests.contract.doubles import SpyCoins
from tests.statistical import checks


def errors(counters, horizon, every, requests):
    """The errors of the last answers, independent from counter to counter."""
    program = MultiCounter(counters, horizon, epsilon=1, every=every)
    program.run(requests)
    true = np.bincount(requests[: program.answered], minlength=counters)
    return program, program.values - true


@pytest.mark.parametrize("horizon", [30, 999])
def test_counts_err_as_predicted(horizon):
    requests = np.arange(horizon) % 7
    program, found = errors(2_000, horizon, 3, requests)
    deviation = math.sqrt(program._kept.last.numbers[0])
    assert deviation == pytest.approx(program.predicted_error(), rel=0.5)
    assert checks.accepted(checks.centred(found))
    assert checks.accepted(checks.spreads(found, deviation, slack=1.05))
    assert checks.rejected(checks.spreads(found, deviation / checks.OFF, slack=1.05))
    low, high = program.interval(0.9)
    assert (low >= 0).all()  # so those of counts of 0 hold more often
    reach = (high - program.values)[program.values > 0].max()
    held = int((np.abs(found) <= reach).sum())
    assert checks.accepted(checks.happens(held, program.n, 0.88, 0.93))
    assert checks.rejected(checks.happens(held, program.n, 0.97, 1.0))


@pytest.mark.slow
def test_ten_thousand_counters_err_as_bounded_over_a_million_steps():
    n, steps = 10_000, 1_000_000
    draws = np.random.default_rng(3).zipf(1.3, steps) % n
    program = MultiCounter(n, steps, epsilon=1, coins=SpyCoins(4))
    largest = 0.0
    bound, most = program.largest_error(1 - 1e-6), (steps // program.every) * program.every
    for start in range(0, steps, 100 * program.every):
        program.run(draws[start : start + 100 * program.every])
        true = np.bincount(draws[: program.answered], minlength=n)
        assert start + 100 * program.every - program.answered <= 100 * program.every
        largest = max(largest, float(np.abs(program.values - true).max()))
    assert program.answered == most
    assert 1.2 * program.predicted_error() < largest <= bound
    error = math.sqrt(np.mean((program.values - true) ** 2))
    assert error == pytest.approx(math.sqrt(program._kept.last.numbers[0]), rel=0.05)
    drawn = sum(program._coins.sizes("discrete_laplace"))
    assert drawn <= 4 * (math.log2(n) + 1) * steps + 2 * program._kept._memory.cells.size


def test_the_bound_of_the_largest_error_is_no_farther_than_a_few_deviations():
    program = MultiCounter(100, 10_000, epsilon=1)
    assert program.largest_error() < 12 * program.predicted_error()
    program = MultiCounter(1, 1, epsilon=1)
    falls = math.exp(-1)
    reach = math.floor(program.largest_error(0.9))  # of one noise of birth and one of closing
    law = (1 - falls) / (1 + falls) * falls ** np.abs(np.arange(-200, 201))
    both = np.convolve(law, law)
    beyond = both[np.abs(np.arange(-400, 401)) > reach].sum()
    assert beyond <= 0.1


def exact_exponent(noise, chances, theta, n, place=0):
    """`E exp(theta (max Z - Z_i))` of n independent noises of a law, by their largest."""
    below = np.cumsum(chances) ** (n - 1)
    largest = np.diff(below, prepend=0)  # of the others
    total = 0.0
    for value, chance in zip(noise, chances, strict=True):
        total += chance * (largest * np.exp(theta * np.maximum(noise - value, 0))).sum()
    return total


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("scale", [40, 200])
def test_the_exponent_of_the_largest_noise_is_bounded(n, scale):
    """By the exact law of the answers of one round: one noise, as nobody sees an open round."""
    experts = PrivateExperts(n, 1, unit="advice", epsilon=1, perturbation=scale)
    noise = np.arange(-60, 61)
    law = np.exp(-np.abs(noise.astype(float)))
    exact = exact_exponent(noise, law / law.sum(), 1 / scale, n)
    assert 1 < exact <= math.exp(experts._strays()[0] / scale)


def adversary(rounds, n, generator):
    """Rounds in which the leader of exact counts is wrong, whenever it is the first of two."""
    mistakes = np.zeros((rounds, n), bool)
    counts = np.zeros(n)
    for row in mistakes:
        row[:] = generator.random(n) < 0.2
        row[counts.argmin()] = True
        counts += row
    return mistakes


@pytest.mark.parametrize("unit", ["advice", "round"])
def test_experts_make_no_more_mistakes_than_is_proved(unit):
    """Student's t of 11 degrees is above 10 with a probability of 4e-7.

    Runs differ by 25 of 1,200 mistakes: experts that make 1.6 times as many are found.
    """
    rounds, n, runs = 3_000, 4, 12
    mistakes = adversary(rounds, n, np.random.default_rng(6))
    best = int(mistakes.sum(axis=0).min())
    made = []
    for _ in range(runs):
        experts = PrivateExperts(n, rounds, unit=unit, epsilon=2)
        followed = experts.run(mistakes)
        made.append(mistakes[np.arange(rounds), followed].sum())
    most = np.mean(made) + 10 * np.std(made, ddof=1) / math.sqrt(runs)
    assert most <= experts.bound(best)
    assert most < 0.7 * rounds
    exact = np.concatenate([[0], np.cumsum(mistakes, axis=0)[:-1].argmin(axis=1)])
    assert mistakes[np.arange(rounds), exact].mean() > 0.9  # who follows exact counts fails


@pytest.mark.long
def test_lists_cost_no_more_than_is_proved():
    """Runs differ by 3.4 % of a cost: means of six are eight deviations from each bound."""
    n, steps, runs = 20, 20_000, 6
    generator = np.random.default_rng(8)
    requests = generator.zipf(1.5, steps) % n
    counts = np.sort(np.bincount(requests, minlength=n))[::-1]
    best = int(counts @ np.arange(1, n + 1))
    found = []
    for _ in range(runs):
        shelf = ListUpdate(n, steps, epsilon=1)
        found.append(shelf.serve(requests).sum())
    assert best < np.mean(found) < best + shelf.bound() / 2
    assert np.mean(found) < 0.8 * (n + 1) / 2 * steps  # of an order that stays as it is
