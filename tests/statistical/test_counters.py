"""Running counts err as predicted, at every step, and their intervals hold the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.continual import METHODS, Counter
from panprivacy.privacy.coins import SystemCoins
from panprivacy.tables.counters.running import Running, Sum

from .checks import OFF, accepted, centred, happens, rejected

NAMED = {
    **{name: {"method": name} for name in METHODS if name != "delayed"},
    "tree": {"method": "tree", "pan_private": False},
    "exposed": {"pan_private": False},
    "open": {"open_steps": True},
    "endless": {"horizon": None},
}
SEEN = [name for name in NAMED if name not in {"tree", "exposed"}]
RUNS = 5_000
SKEWED = 1.3
"""Of the square of a Laplace error, over as many runs, the tails are those of a normal variable
with so much more deviation, at least as far as they matter."""
QUICK = {"mixed_radix"}
LEVELS = [0.5, 0.9, 0.95, 0.99]


class FastCoins:
    """Noise of the laws that tests of the samplers check, from a generator of NumPy."""

    def __init__(self):
        self._generator = np.random.default_rng()

    def bernoulli(self, probability, size):
        return (self._generator.random(size) < float(probability)).astype(np.uint8)

    def categorical(self, weights, size):
        assert len(set(weights)) == 1
        return self._generator.integers(0, len(weights), size).astype(np.uint32)

    def discrete_laplace(self, scale, size):
        drawn = self._generator.geometric(-math.expm1(-1 / scale), (2, size))
        return drawn[0] - drawn[1]

    def discrete_gaussian(self, variance, size):
        return np.rint(self._generator.normal(0, math.sqrt(variance), size)).astype(np.int64)


def counted(name, loss, steps, runs=RUNS, *, coins=FastCoins, look=0, bound=3):
    """The errors of all runs, [runs, steps], and their variances and fourth cumulants, [steps].

    Errors of segments are those of the sum that has left.
    """
    arguments = {"horizon": steps, **NAMED[name]}
    by_rho = METHODS[arguments.get("method", "mixed_radix")].by_rho
    counter = Counter(**arguments, bound=bound, **{"rho" if by_rho else "epsilon": loss})
    mechanism, source = counter._kept.mechanism, coins()
    amounts = np.random.default_rng(1).integers(0, bound + 1, steps)
    sums, errors = np.cumsum(amounts), np.empty((runs, steps))
    if name == "segments":
        length = mechanism.radices[0]
        ends = np.arange(1, steps + 1) // length * length
        sums = np.concatenate([[0], sums])[ends]
    for run in range(runs):
        running = Running(mechanism, source)
        parts = [running.run(amounts[:look])] if look else []
        if look:
            running.rerandomise()
        parts.append(running.run(amounts[look:]))
        errors[run] = np.concatenate([part.values for part in parts]) - sums
    variances = np.concatenate([part.variances for part in parts])
    fourths = np.concatenate([part.fourths for part in parts])
    left = variances > 0
    return errors[:, left], variances[left], fourths[left], mechanism.grain


def spreads(errors, variances, fourths):
    """The p-value of the largest deviation of a mean square, over all steps."""
    deviations = np.sqrt((fourths + 2 * variances**2) / len(errors))
    z = np.abs((errors**2).mean(0) - variances) / deviations
    return min(1.0, len(variances) * math.erfc(z.max() / SKEWED / math.sqrt(2)))


def spreads_together(errors, variances):
    """The p-value of the mean over all steps of the squares over what they should be."""
    ratios = (errors**2 / variances).mean(1)
    z = (ratios.mean() - 1) / ratios.std() * math.sqrt(len(ratios))
    return math.erfc(abs(z) / SKEWED / math.sqrt(2))


def check_errors(errors, variances, fourths):
    ends = range(0, errors.shape[1], max(errors.shape[1] // 20, 1))
    assert all(accepted(len(ends) * centred(errors[:, step])) for step in ends)
    assert accepted(spreads(errors, variances, fourths))
    assert accepted(spreads_together(errors, variances))
    for factor in (OFF**2, OFF**-2):
        assert rejected(spreads(errors, variances * factor, fourths * factor**2))
        assert rejected(spreads_together(errors, variances * factor))


def held(found, step, level, shrunk=1.0):
    """How many intervals hold the truth, after making them smaller by a factor."""
    errors, variances, fourths, grain = found
    answer = Sum(0.0, variances[step], fourths[step], grain=grain)
    errors, (_, high) = errors[:, step], answer.interval(level)  # the other half is cut off at 0
    return int((np.abs(errors) <= high / shrunk + 1e-6).sum())


def check_intervals(found, steps, levels):
    for step in steps:
        for level in levels:
            assert accepted(happens(held(found, step, level), RUNS, level - 0.005, level + 0.02))
            assert rejected(happens(held(found, step, level, shrunk=OFF), RUNS, level, 1))


def check(name, steps, **how):
    found = counted(name, Fraction(1, 4), steps, look=steps * 2 // 3 if name in SEEN else 0, **how)
    check_errors(*found[:3])
    last = found[0].shape[1] - 1
    if name == "response":  # of a coarse grain
        for level in LEVELS:
            assert accepted(happens(held(found, last, level), RUNS, level, 1))
            assert rejected(happens(held(found, last, level, shrunk=2), RUNS, level, 1))
    else:
        check_intervals(found, [0, last // 2, last], LEVELS)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.slow) for one in NAMED]
)
def test_errors_and_intervals_are_as_predicted(name):
    check(name, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
def test_those_of_more_steps_with_the_coins_of_the_system_are_as_well(name):
    check(name, 300, coins=SystemCoins)


def check_none_too_short(found, runs, steps):
    for step in steps:
        for level in LEVELS:
            assert accepted(happens(held(found, step, level), runs, level - 0.01, 1))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_intervals_of_few_steps_hold_the_truth(name, steps):
    found = counted(name, Fraction(1, 4), steps, 200)
    check_none_too_short(found, 200, range(found[0].shape[1]))


@pytest.mark.parametrize("name", NAMED)
def test_intervals_of_noise_that_is_mostly_0_hold_the_truth(name):
    """That it is made of whole numbers matters then."""
    found = counted(name, 4, 40, 300, bound=1)
    check_none_too_short(found, 300, range(0, found[0].shape[1], 5))


LAPLACE = [name for name in NAMED if name not in {"response", "factorised"}]


@pytest.mark.parametrize("name", LAPLACE)
@pytest.mark.parametrize("loss", [Fraction(1, 10), Fraction(1)], ids=str)
def test_intervals_are_narrower_than_the_tail_bound_that_is_proved(name, loss):
    """Corollary 12.3 of Dwork and Roth.

    A sum of Laplace noises is within `nu sqrt(8 ln(2/delta))` with probability `1 - delta`, where
    `nu**2` is at least the sum of the squares of the scales, and `ln(2/delta)` times the largest
    of them. The sums of squares and of fourth powers bound this one from below.
    """
    arguments = {"horizon": 500, **NAMED[name]}
    counter = Counter(**arguments, epsilon=loss)
    for size in (1, 2, 97, 300, 100):
        counter.run(np.full(size, 1))
        last = counter._kept.last
        for delta in (0.5, 0.1, 0.05, 0.01, 1e-4):
            low, high = last._replace(value=1e9, hidden=0.0).interval(1 - delta)
            if last.variance:
                squares = last.variance / 2
                largest = last.fourth / 12 / squares
                nu = math.sqrt(max(squares, largest * math.log(2 / delta)))
                assert (high - low) / 2 <= nu * math.sqrt(8 * math.log(2 / delta))


@pytest.mark.parametrize("name", ["tree", "pan_private_tree", "twice_noised_tree", "mixed_radix"])
def test_errors_grow_with_the_steps_as_the_theorem_says(name):
    """Theorem 12.5 of Dwork and Roth: by a power of 1.5 of the logarithm, in every round.

    Figure 12.2 sums up `1 + log2 T` noises of scale `(1 + log2 T)/epsilon`.
    """
    ratios = []
    for power in range(4, 17, 3):
        arguments = {"horizon": 1 << power, **NAMED[name]}
        worst = np.sqrt(Counter(**arguments, epsilon="0.5").predicted_variances().max()) / 2
        ratios.append(worst / (1 + power) ** 1.5)
    assert max(ratios) < (2.001 if name == "twice_noised_tree" else math.sqrt(2) + 0.001)
    if name == "pan_private_tree":
        assert ratios == pytest.approx([math.sqrt(2)] * len(ratios), rel=1e-2)


@pytest.mark.parametrize("delta", [0.05, 0.001])
def test_the_largest_error_of_all_rounds_is_within_what_the_theorem_allows(delta):
    """Corollary 12.4 of Dwork and Roth for each round, with a share of delta."""
    steps, runs = 256, 300
    errors, *_ = counted("pan_private_tree", 1, steps, runs, bound=1)
    most = 9 * 9**0.5 * math.sqrt(8 * math.log(2 * steps / delta))
    misses = int((np.abs(errors).max(1) > most).sum())
    assert accepted(happens(misses, runs, 0, delta))
    assert rejected(happens(int((np.abs(errors).max(1) > most / 4).sum()), runs, 0, delta))


@pytest.mark.parametrize("loss", [4, 40])
def test_intervals_of_delayed_answers_hold_the_truth(loss):
    """They reach over the delay, and over all that may come once no answer may follow."""
    held = dict.fromkeys(LEVELS, 0)
    for _ in range(200):
        counter = Counter(400, epsilon=loss, method="delayed", coins=FastCoins())
        counter.run(np.ones(300, np.int64))
        for level in LEVELS:
            low, high = counter.interval(level)
            held[level] += low <= 300 <= high
    assert all(accepted(happens(held[level], 200, level - 0.01, 1)) for level in LEVELS)


@pytest.mark.parametrize("name", ["mixed_radix", "segments"])
def test_intervals_of_signed_steps_hold_a_truth_below_0(name):
    """Also within a segment, of which the answer leaves out the part that has not left."""
    held = dict.fromkeys(LEVELS, 0)
    for _ in range(200):
        counter = Counter(400, epsilon=4, bound=3, signed=True, method=name, coins=FastCoins())
        amounts = np.random.default_rng().integers(-3, 3, 317)
        counter.run(amounts)
        for level in LEVELS:
            low, high = counter.interval(level)
            held[level] += low <= amounts.sum() <= high
    assert all(accepted(happens(held[level], 200, level - 0.01, 1)) for level in LEVELS)
    assert amounts.sum() < 0  # false alarm 1e-7: 5.2 deviations


def longest_streak(marked):
    """The length of the longest run of marked steps."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], marked.astype(np.int8), [0]])))
    return int((ends[1::2] - ends[::2]).max(initial=0))


def test_delayed_answers_follow_the_count():
    """At little noise an answer is rarely behind by more than the delay, and answers do leave.

    At a step beyond the delay the next answer leaves with a probability above 1/2, as that of
    noise of 0 or more, and is again so far behind with one below 1/1,000. So 37 such steps in a
    row, anywhere in 100,000, have a probability below 1e-6. A delay that is off by 30 % is passed
    for some 90 steps before each answer.
    """
    counter = Counter(100_000, epsilon=100, method="delayed", coins=FastCoins())
    values = counter.run(np.ones(100_000, np.int64))
    behind = np.arange(1, 100_001) - values
    mechanism = counter._kept.mechanism
    assert 2 < len(np.unique(values)) <= mechanism.updates + 1
    assert longest_streak(behind > mechanism.delay) < 37
    assert longest_streak(behind > mechanism.delay / OFF) >= 37
    assert abs(behind.mean() / mechanism.delay - 0.5) < 0.2
