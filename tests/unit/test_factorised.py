"""A factorised count: its sums, its weights, and what is wiped."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panprivacy.tables.counters import factorised
from panprivacy.tables.counters.factorised import Factorised, strategy
from panprivacy.tables.counters.mechanism import CounterState, Silent
from tests.unit.test_counters import ONE, watched


@given(
    st.integers(1, 60), st.lists(st.integers(0, 1_000), min_size=1, max_size=60), st.integers(0, 59)
)
@settings(max_examples=30)
def test_the_sums_of_a_factorised_count_are_those_of_whole_numbers(horizon, amounts, start):
    start, amounts = min(start, horizon - 1), amounts[: horizon - min(start, horizon - 1)]
    coefficients = factorised.strategy(horizon)[: horizon - start]
    exact = np.convolve(np.array(amounts), coefficients)[: horizon - start]
    assert np.array_equal(factorised._added(np.array(amounts), coefficients), exact)


@pytest.mark.parametrize("horizon", [1, 2, 3, 5, 64, 200])
def test_the_weights_of_a_factorised_count_invert_its_coefficients(horizon):
    """In exact arithmetic, of the rounded coefficients that are in use."""
    coefficients = [Fraction(one) for one in factorised.strategy(horizon).tolist()]
    weights = []
    for step in range(horizon):
        rest = sum(w * coefficients[step - k] for k, w in enumerate(weights))
        weights.append((1 - rest) / coefficients[0])  # their product with them is all ones
    found = factorised.combination(horizon)
    assert found == pytest.approx([float(one) for one in weights], rel=1e-9, abs=1e-16)
    wanted = [math.comb(2 * k, k) / 4**k for k in range(horizon)]
    assert [float(one) / factorised.UNIT for one in coefficients] == pytest.approx(
        wanted, abs=0.51 / factorised.UNIT
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["at the bound", "anything", "now and then"])
def test_the_largest_sums_of_a_factorised_count_are_exact(kind):
    check_largest(1 << 20, kind)


def test_large_sums_of_a_factorised_count_are_exact():
    check_largest(1 << 16, "at the bound")


def check_largest(steps, kind):
    generator, most = np.random.default_rng(7), factorised.MOST_BOUND
    amounts = {
        "at the bound": np.full(steps, most),
        "anything": generator.integers(0, most + 1, steps),
        "now and then": most * (generator.random(steps) < 0.001),
    }[kind].astype(np.int64)
    coefficients = factorised.strategy(steps)
    added = factorised._added(amounts, coefficients)
    if kind == "at the bound":
        assert np.array_equal(added, most * np.cumsum(coefficients))
    places = [0, 1, 2, steps // 3, steps - 2, steps - 1, *generator.integers(0, steps, 50)]
    exact = [int(amounts[: place + 1] @ coefficients[place::-1]) for place in places]
    assert added[places].tolist() == exact  # below 2**63, so exact as well
    found = Factorised(steps, ONE, most)
    values = found.run(
        CounterState(np.zeros(steps, np.int64), np.zeros((2, steps))), amounts, Silent()
    )
    assert np.abs(values.values - np.cumsum(amounts)).max() < 0.01


def test_exact_products_are_wiped(monkeypatch):
    calls = watched(monkeypatch, np.fft, "rfft"), watched(monkeypatch, np.fft, "irfft")
    amounts, coefficients = np.ones(5, np.int64), factorised.strategy(9)
    assert factorised._added(amounts, coefficients)[0] == factorised.UNIT
    (of_amounts, _), (product,) = ([result for _, result in some] for some in calls)
    assert not of_amounts.any()
    assert not product.any()


def test_weights_that_all_counts_share_cannot_be_changed():
    assert not strategy(20).flags.writeable


def test_coefficients_are_kept_in_4096ths():
    """A state of another unit would be off by a factor."""
    assert strategy(3).tolist() == [4096, 2048, 1536]
