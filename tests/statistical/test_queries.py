"""Projected answers err no more than is proved, and those that are not projected do."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from panprivacy.papers.queries import LinearQueries
from tests.statistical.checks import accepted, happens, rejected

QUERIES, COLUMNS, USERS, FAILURE = 400, 60, 100, 0.05
DELTA = 1e-6


def printed(epsilon, users, queries, columns):
    """Theorem 12.8 as repaired (R3)."""
    inner = math.log(1 / DELTA) * math.log(2 * columns / FAILURE)
    return 16 * users * queries * math.sqrt(inner) / epsilon


@pytest.mark.long
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_squared_errors_stay_below_what_is_proved(noise):
    matrix = np.random.default_rng(5).integers(0, 2, (QUERIES, COLUMNS))
    counts = np.bincount(np.arange(USERS) % 7, minlength=COLUMNS)
    runs, within, alone, below_printed = 60, 0, 0, 0
    for _ in range(runs):
        asked = LinearQueries(matrix, users=USERS, epsilon=1, delta=DELTA, noise=noise)
        answer = asked.release(counts)
        errors = float(((answer.values - matrix @ counts) ** 2).sum())
        raw = float(((answer.noised / asked.grid - matrix @ counts) ** 2).sum())
        within += errors <= asked.bound(FAILURE) + answer.gap
        alone += raw <= asked.bound(FAILURE) + answer.gap
        below_printed += errors <= printed(1, USERS, QUERIES, COLUMNS)
        assert asked.bound(FAILURE) <= printed(1, USERS, QUERIES, COLUMNS)
    assert accepted(happens(within, runs, 1 - FAILURE, 1))
    assert accepted(happens(below_printed, runs, 1 - FAILURE, 1))
    assert rejected(happens(alone, runs, 1 - FAILURE, 1))


def test_our_noise_is_at_most_half_of_what_is_printed():
    asked = LinearQueries(np.ones((QUERIES, 2)), users=9, epsilon=1, delta=DELTA)
    book = math.sqrt(8 * QUERIES * math.log(1 / DELTA))
    assert float(asked.scale) < 0.52 * book


@pytest.mark.slow
def test_a_thousand_queries_of_a_thousand_columns_take_seconds():
    matrix = np.random.default_rng(6).random((1_000, 1_000))
    counts = np.bincount(np.arange(100_000) % 997, minlength=1_000)
    asked = LinearQueries(matrix, users=100_000, epsilon=1, delta=1e-9)
    started = time.process_time()
    answer = asked.release(counts)
    assert time.process_time() - started < 60
    assert answer.gap <= 0.05 * asked.bound(0.5)
    assert ((answer.values - matrix @ counts) ** 2).sum() <= asked.bound(1e-6) + answer.gap
