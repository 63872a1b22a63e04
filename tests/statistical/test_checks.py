"""The checks themselves: their tails are right, and they neither cry wolf nor sleep."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest

from .checks import (
    OFF,
    accepted,
    centred,
    chi_square_tail,
    fits,
    happens,
    rejected,
    spreads,
)

SETS = 2_000
DRAWS = np.random.default_rng(1)  # a fixed seed: these tests are about the checks


@pytest.mark.parametrize("x", [0.1, 3.0, 25.0, 80.0])
def test_tails_of_few_degrees_have_closed_forms(x):
    one = math.erfc(math.sqrt(x / 2))
    assert chi_square_tail(x, 1) == pytest.approx(one)
    assert chi_square_tail(x, 2) == pytest.approx(math.exp(-x / 2))
    assert chi_square_tail(x, 3) == pytest.approx(one + math.sqrt(2 * x / math.pi / math.exp(x)))


@pytest.mark.parametrize(("degrees", "quantile"), [(10, 46.863), (99, 180.792), (1000, 1227.152)])
def test_tails_of_many_degrees_agree_with_wilson_and_hilferty(degrees, quantile):
    part = 2 / (9 * degrees)
    z = ((quantile / degrees) ** (1 / 3) - (1 - part)) / math.sqrt(part)
    normal = math.erfc(z / math.sqrt(2)) / 2
    assert chi_square_tail(quantile, degrees) == pytest.approx(1e-6, rel=1e-3)
    assert chi_square_tail(quantile, degrees) == pytest.approx(normal, rel=0.5)


@pytest.mark.long
def test_p_values_of_right_laws_are_uniform():
    law = np.arange(1, 11) / 55
    sets = {
        "fits": [fits(DRAWS.multinomial(5_000, law), law) for _ in range(SETS)],
        "centred": [centred(DRAWS.normal(size=500)) for _ in range(SETS)],
        "spreads": [spreads(DRAWS.normal(size=500), 1.0) for _ in range(SETS)],
    }
    for name, values in sets.items():
        small = int((np.array(values) < 0.1).sum())
        assert accepted(happens(small, SETS, 0.1)), name


@pytest.mark.parametrize(("successes", "tail"), [(0, 0.7**20), (2, 0.0354831), (9, 0.1133315)])
def test_tails_of_coins_are_those_of_the_tables(successes, tail):
    assert happens(successes, 20, 0.3) == pytest.approx(2 * tail, rel=1e-6)


def test_bounds_on_coins_hold():
    heads = DRAWS.binomial(1_000, 0.3, size=SETS)
    small = sum(happens(int(one), 1_000, 0.3) < 0.1 for one in heads)
    assert accepted(happens(small, SETS, 0, 0.1))
    assert happens(300, 1_000, 0.3) == 1
    assert happens(350, 1_000, 0.3, 0.4) == 1
    assert happens(1, 1_000, 0.0) == 0


def test_laws_that_are_off_are_found():
    law = np.arange(1, 11) / 55
    wrong = law * np.where(np.arange(10) % 2, OFF, 1)
    assert rejected(fits(DRAWS.multinomial(5_000, wrong / wrong.sum()), law))
    assert rejected(happens(int(DRAWS.binomial(5_000, 0.3 * OFF)), 5_000, 0.3))
    assert rejected(centred(DRAWS.normal(size=2_000) + (OFF - 1)))
    assert rejected(spreads(DRAWS.normal(size=2_000), OFF))
    assert rejected(spreads(DRAWS.normal(size=2_000), 1 / OFF))


def test_cells_that_expect_little_are_pooled():
    law = np.append(np.full(1_000, 1e-4), [0.5, 0.4])
    assert accepted(fits(DRAWS.multinomial(10_000, law), law))
    assert fits(np.array([0, 10]), np.array([0.5, 0.5])) == 1


BARE = {
    "test_counters.py": 8, "test_estimates.py": 3, "test_learning.py": 2, "test_local.py": 2,
    "test_merging.py": 3, "test_moments.py": 1, "test_net_distinct.py": 2, "test_online.py": 14,
    "test_overlaps.py": 2, "test_queries.py": 5, "test_sampled_loss.py": 11,
}  # fmt: skip
"""Comparisons of numbers without a p-value: of laws, of draws with a seed, or with a bound or rate
that is stated beside them."""


def is_bare(node):
    """Whether an assertion compares numbers, and takes no p-value."""
    if not isinstance(node, ast.Assert):
        return False
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    names |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    orders = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
    compared = any(isinstance(one, orders) for one in ast.walk(node)) or "approx" in names
    return compared and not names & {"accepted", "rejected"}


def test_no_threshold_is_compared_without_a_rate():
    """Take `accepted(...)` and `rejected(...)`; add what cannot to `BARE`, and state its rate."""
    found = {}
    for path in Path(__file__).parent.glob("test_*.py"):
        if number := sum(map(is_bare, ast.walk(ast.parse(path.read_text())))):
            found[path.name] = number
    del found[Path(__file__).name]
    assert found == BARE
