"""What devices can tell whose memory hides each event by itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.devices.federated.every_tick import error_bound, response_error, total_variation


def weights(tosses, flip):
    """The law of a binomial, exactly."""
    return [
        math.comb(tosses, ones) * flip**ones * (1 - flip) ** (tosses - ones)
        for ones in range(tosses + 1)
    ]


def both_laws(ticks, flip):
    """Of the number of responses that are 1: without an event, and with one."""
    rest = weights(ticks - 1, flip)
    with_one = [
        flip * still + (1 - flip) * moved
        for still, moved in zip([*rest, 0], [0, *rest], strict=True)
    ]
    return weights(ticks, flip), with_one


@pytest.mark.parametrize("flip", [Fraction(1, 4), Fraction(2, 7), Fraction(1, 2)])
@pytest.mark.parametrize("ticks", [1, 2, 3, 4, 7, 20])
def test_the_total_variation_is_exact(ticks, flip):
    without, with_one = both_laws(ticks, flip)
    apart = sum(abs(a - b) for a, b in zip(without, with_one, strict=True)) / 2
    assert total_variation(ticks, flip) == apart


@pytest.mark.parametrize("ticks", [2, 9, 100, 1_000])
def test_the_bound_of_the_paper_stands(ticks):
    flip = Fraction(1, 4)
    bound = (1 - 2 * flip) / math.sqrt(4 * flip * (1 - flip) * ticks)
    assert bound / math.sqrt(2) < total_variation(ticks, flip) <= bound


def informed(without, with_one):
    """What one device tells of a fair coin that says whether it has an event."""
    without, with_one = np.array(without, float), np.array(with_one, float)
    return 2 * float(((with_one - without) ** 2 / (with_one + without)).sum())


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("ticks", [1, 2, 5, 30])
def test_the_least_error_is_that_of_all_that_a_device_can_say(ticks, epsilon):
    laws = both_laws(ticks, 1 / (1 + math.exp(epsilon)))
    assert error_bound(50, ticks, epsilon) == pytest.approx(
        math.sqrt(50 * (1 / informed(*laws) - 1 / 4))
    )


def private_steps(ticks, states, epsilon, generator):
    """For each tick the laws of the next state, by what is observed and by the state before."""
    for _ in range(ticks):
        absent = generator.dirichlet(np.ones(states), size=states)
        tilt = generator.uniform(-epsilon / 2, epsilon / 2, (states, states))
        present = absent * np.exp(tilt)
        yield absent, present / present.sum(axis=1, keepdims=True)


def outcome(stream, steps, states):
    law = np.eye(states)[0]
    for bit, step in zip(stream, steps, strict=True):
        law = law @ step[bit]
    return law


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ticks", [1, 2, 4])
def test_no_private_memory_tells_more(ticks, seed):
    """Whatever its states are, and whichever it sends: here the last one."""
    generator = np.random.default_rng(seed)
    steps = list(private_steps(ticks, 4, 1.0, generator))
    ratios = [abs(np.log(present / absent)).max() for absent, present in steps]
    assert max(ratios) <= 1
    streams = [tuple(int(i == at) for i in range(ticks)) for at in range(ticks)]
    with_one = np.mean([outcome(stream, steps, 4) for stream in streams], axis=0)
    without = outcome((0,) * ticks, steps, 4)
    allowed = 1 / (error_bound(1, ticks, 1.0) ** 2 + 1 / 4)
    assert informed(without, with_one) <= allowed * (1 + 1e-9)


@pytest.mark.parametrize("ticks", [1, 2, 3])
def test_responses_that_are_added_up_err_as_is_said(ticks):
    """By all outcomes of all responses, for every stream."""
    keep = math.e / (1 + math.e)
    for stream in itertools.product((0, 1), repeat=ticks):
        squares = 0.0
        for said in itertools.product((0, 1), repeat=ticks):
            agree = sum(a == b for a, b in zip(stream, said, strict=True))
            chance = keep**agree * (1 - keep) ** (ticks - agree)
            estimate = (sum(said) - ticks * (1 - keep)) / (2 * keep - 1)
            squares += chance * (estimate - sum(stream)) ** 2
        assert math.sqrt(squares) == pytest.approx(response_error(1, ticks, 1.0))


def test_responses_are_the_best_for_one_tick_and_nearly_for_many():
    ratios = [response_error(9, ticks, 1.0) / error_bound(9, ticks, 1.0) for ticks in (1, 2, 1_000)]
    assert ratios[0] == pytest.approx(1)
    assert 1.04 < ratios[1] < 1.05
    assert 1 < ratios[2] < 1.001
