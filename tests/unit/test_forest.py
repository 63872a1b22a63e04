"""A forest of trees, for counts of many items."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from panprivacy.tables.counters.forest import Forest
from panprivacy.tables.counters.mechanism import Silent


@pytest.mark.parametrize("lacks", ["at_birth", "at_closing", "combined"])
def test_a_forest_predicts_the_errors_of_its_own_trees(lacks):
    forest = replace(Forest.planted(3, 50, Fraction(1), open_steps=True), **{lacks: False})
    silent = Silent()
    told = forest.run(forest.initial(silent), np.zeros((3, 50), np.int64), silent)
    assert forest.variances().tolist() == told.variances.tolist()


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("open_steps", [False, True])
def test_no_noise_has_larger_exponentials_than_is_said(epsilon, open_steps):
    forest = Forest.planted(3, 1, epsilon, open_steps=open_steps)
    (scale,) = map(float, forest.scales(0))
    squares, most = forest.exponents()
    tail, thetas = math.exp(-1 / scale), np.linspace(-most, most, 41)
    means = (1 - tail) ** 2 / ((1 - tail * np.exp(thetas)) * (1 - tail * np.exp(-thetas)))
    assert (means > 0).all()  # else it is infinite
    draws = 1 + open_steps
    assert (draws * np.log(means) <= 2 * thetas**2 * squares + 1e-12).all()
