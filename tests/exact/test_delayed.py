"""What delayed answers lose, for every stream of up to 9 steps, every event and every look.

A life of 9 steps has too many outcomes to be walked one by one, but they factor. A look shows the
sum; so with the stream it tells the noise of birth. Given that, each step answers by coins of its
own, so a life is a product: of the law of birth, of steps without an answer, of those that moved,
and of the noise of the numbers that left. What a step does with its coins the shipping class says:
from which noise on it answers, and which number leaves. Only the products are taken here, in
floating point.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.tables.counters.delayed import Delayed
from panprivacy.tables.counters.mechanism import CounterState

REACH = 160
"""Births and first answers beyond it are set aside."""


class Given:
    """Coins that give the noise that they are told, and remember what was asked for."""

    def __init__(self, *noise):
        self.noise, self.scales = list(noise), []

    def discrete_laplace(self, scale, size):
        assert size == 1
        self.scales.append(scale)
        return np.array([self.noise.pop(0)])


def stepped(one, total, told, left, amount, noise):
    """One step of the shipping class: what leaves, if something does, and the sum after it."""
    memory = CounterState(np.array([total]), np.array([told, left, 0.0, 0.0]))
    coins = Given(noise, 0)
    released = one.run(memory, np.array([amount]), coins).released
    _, compared, answered = one.scales
    assert coins.scales == [compared, answered][: 1 + len(released)]
    assert memory.cells[0] == total + amount
    return released


@functools.cache
def needed(one, behind, left):
    """From which noise on a step answers where the sum is so far behind what was told.

    It is the same wherever both are, and the number that leaves is the sum with its noise.
    """
    least = behind + one.delay
    for told, amount in ((0, 0), (-7, one.bound)):
        total = told - behind - amount
        for noise in (-(1 << 12), least - 1, least, 1 << 12):
            released = stepped(one, total, told, left, amount, noise)
            assert released.tolist() == [total + amount] * (noise >= least)
    return least


def law(scale, numbers):
    """The probabilities of discrete Laplace noise."""
    tail = math.exp(-1 / float(scale))
    return tail ** np.abs(numbers) * (1 - tail) / (1 + tail)


def at_least(scale, numbers):
    """That it is so much or more."""
    tail = math.exp(-1 / float(scale))
    above = tail ** np.maximum(numbers, 1) / (1 + tail)
    return np.where(numbers > 0, above, 1 - tail ** (1 - np.minimum(numbers, 0)) / (1 + tail))


NUMBERS = np.arange(-REACH, REACH + 1)
FURTHEST = 4 * REACH


@functools.cache
def chances(one, left):
    """That a step answers, by how far the sum is behind what was told, -FURTHEST .. FURTHEST."""
    least = [needed(one, behind, left) for behind in range(-FURTHEST, FURTHEST + 1)]
    return at_least(one.scales[1], np.array(least))


def moments(one, stream, told, start):
    """That the next answer after `start` steps is at each later one, or never, which comes first.

    By noise of birth, number told and step.
    """
    sums = NUMBERS[:, None, None] + np.cumsum(stream)[start:]
    behind = told[:, None] - sums
    answers = chances(one, one.updates - bool(start))[behind + FURTHEST]
    silent = np.cumprod(1 - answers, axis=-1)
    before = np.concatenate((np.ones_like(silent[..., :1]), silent[..., :-1]), axis=-1)
    return np.concatenate((silent[..., -1:], before * answers), axis=-1)


@functools.lru_cache(maxsize=1_024)
def first(one, stream):
    """The same of the first answer, by noise of birth and step."""
    return moments(one, stream, np.zeros(1, int), 0)[:, 0]


@functools.lru_cache(maxsize=64)
def second(one, stream, start):
    """The same of the second answer, by the number told first, -REACH .. REACH."""
    return moments(one, stream, NUMBERS, start)


def excess(weight, other, scale, apart):
    """How far numbers with noise, weighed so, go beyond others whose mean lies `apart` further.

    Beyond both means the ratio of their probabilities stays the same, so tails count as one.
    """
    ends = np.arange(min(apart, 0), max(apart, 0) + 1)
    tail = math.exp(-1 / float(scale))
    one, two = law(scale, ends), law(scale, ends - apart)
    for at, further in ((0, 1 / (1 - tail)), (-1, 1 / (1 - tail))):
        if len(ends) > 1:
            one[at], two[at] = one[at] * further, two[at] * further
    if len(ends) == 1:
        one[:], two[:] = 1, 1
    each = weight[..., None] * one - other[..., None] * two
    return np.maximum(each, 0).sum(axis=-1)


def delta_of(one, stream, other, look, epsilon):
    """How often what is seen says more than epsilon for the one stream, at most."""
    born, _, answered = one.scales
    factor = math.exp(float(epsilon))
    apart = sum(stream[:look]) - sum(other[:look])  # of births that show the same at the look
    places = np.flatnonzero(np.abs(NUMBERS + apart) <= REACH)
    birth = law(born, NUMBERS[places]), factor * law(born, NUMBERS[places] + apart)
    firsts = first(one, stream)[places], first(one, other)[places + apart]
    sums = np.cumsum(stream), np.cumsum(other) + apart
    total = np.maximum(birth[0] * firsts[0][:, 0] - birth[1] * firsts[1][:, 0], 0).sum()
    for step in range(1, len(stream) + 1):
        between = int(sums[1][step - 1] - sums[0][step - 1])
        weights = [each * every[:, step] for each, every in zip(birth, firsts, strict=True)]
        if one.updates == 1 or step == len(stream):
            total += excess(*weights, answered, between).sum()
            continue
        noise = NUMBERS[None, :] - NUMBERS[places, None]
        told = [
            weight[:, None] * law(answered, noise - both[step - 1])
            for weight, both in zip(weights, sums, strict=True)
        ]
        seconds = second(one, stream, step)[places], second(one, other, step)[places + apart]
        total += np.maximum(told[0] * seconds[0][..., 0] - told[1] * seconds[1][..., 0], 0).sum()
        for later in range(step + 1, len(stream) + 1):
            between = int(sums[1][later - 1] - sums[0][later - 1])
            pair = [
                each * every[..., later - step] for each, every in zip(told, seconds, strict=True)
            ]
            total += excess(*pair, answered, between).sum()
    return total + aside(one)


def aside(one):
    """What lies beyond the grid: births, and first answers where others follow."""
    born, _, answered = one.scales
    if one.updates == 1:
        return 2 * at_least(born, np.array(REACH - one.bound))
    half = np.array((REACH - 9 * one.bound) // 2)
    return 2 * (at_least(born, half) + at_least(answered, half))


def worst(one, streams, epsilon):
    """Of streams, of the same without one event or with one more, and of looks at every time."""
    found = 0.0
    for stream in streams:
        for place in range(len(stream)):
            flipped = one.bound - stream[place]
            other = (*stream[:place], flipped, *stream[place + 1 :])
            for look in range(len(stream) + 1):
                found = max(found, delta_of(one, stream, other, look, epsilon))
    return found


def streams_of(steps, bound=1, every=1):
    """All streams of so many steps of 0 or the bound, or some of them."""
    return list(itertools.product([0, bound], repeat=steps))[::every]


@pytest.mark.long
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**9)], ids=str)
def test_no_event_and_no_look_tells_more_than_is_claimed(delta):
    for steps, every in ((1, 1), (2, 1), (3, 1), (6, 5), (9, 19)):
        one = Delayed(steps, Fraction(4), delta)
        assert one.updates == 1
        assert worst(one, streams_of(steps, every=every), one.epsilon) <= delta


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 3])
@pytest.mark.parametrize("steps", range(1, 10))
def test_no_stream_of_up_to_9_steps_tells_more(steps, bound):
    for delta in (Fraction(1, 10), Fraction(1, 10**9)):
        one = Delayed(steps, Fraction(4), delta, bound)
        assert worst(one, streams_of(steps, bound), one.epsilon) <= delta


@pytest.mark.long
def test_nor_do_two_answers():
    one = Delayed(9, Fraction(6), Fraction(1, 10))
    assert one.updates == 2
    stream, other = (1,) * 9, (1, 1, 1, 0, 1, 1, 1, 1, 1)
    found = [delta_of(one, *pair, look, one.epsilon)
             for look in (0, 3, 4, 9) for pair in ((stream, other), (other, stream))]  # fmt: skip
    assert max(found) <= one.delta


@pytest.mark.long
def test_all_lives_together_have_the_probability_1():
    one = Delayed(9, Fraction(6), Fraction(1, 10))
    stream = (1, 0, 0, 1, 1, 1, 0, 1, 1)
    assert first(one, stream).sum(axis=-1) == pytest.approx(1)
    assert second(one, stream, 4).sum(axis=-1) == pytest.approx(1)


class Hasty(Delayed):
    """It compares with a fifth of the noise."""

    @property
    def scales(self):
        born, compared, answered = super().scales
        return born, compared / 5, answered


def test_with_less_noise_of_comparisons_more_is_told():
    """The control."""
    one = Hasty(9, Fraction(4), Fraction(1, 10**9))
    assert worst(one, streams_of(9, every=100), one.epsilon) > one.delta
