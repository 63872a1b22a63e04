"""The page of the running count says what its counters state; no number is outside its limits."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from benchmarks import continual, running_distinct

import panprivacy as pp
from panprivacy.tables.counters.mechanism import variances
from panprivacy.tables.counters.shapes import best_shares, mixed_radix
from panprivacy.tables.counters.tree import Tree
from tests.statistical.checks import OFF, accepted, rejected
from tests.statistical.test_counters import SKEWED

PAGE = continual.PAGE.read_text()
QUICK = [steps for steps in continual.RUNS if steps <= 10**5]
STATED = [way for way in continual.WAYS if not math.isnan(way.predicted(10))]


def rows(name):
    """The rows of a table of the page, by their first cell."""
    body = PAGE.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    lines = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    return {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[2:]}


def number(text):
    return float(text.replace(",", ""))


@pytest.mark.parametrize("steps", QUICK)
@pytest.mark.parametrize("way", STATED, ids=lambda way: way.name)
def test_the_predicted_errors_are_those_that_counters_state(way, steps):
    shown = rows("errors")[way.name][list(continual.RUNS).index(steps)]
    predicted, measured = map(number, shown.split(" / "))
    assert predicted == pytest.approx(way.predicted(steps), rel=0.006)
    assert 0.8 < measured / predicted < 1.25


def test_no_number_that_was_measured_is_outside_of_its_limits():
    assert "missed" not in PAGE


def test_all_methods_are_on_the_page():
    shown = " ".join(rows("errors"))
    assert [name for name in pp.continual.METHODS if f"`{name}`" not in shown] == []


@pytest.mark.long
@pytest.mark.parametrize("way", [continual.CLOSED, continual.FACTORISED], ids=lambda way: way.name)
def test_a_run_errs_as_the_page_says(way):
    """False alarm 1e-6, with a third more deviation for the skewness of squares."""
    squares = np.array(continual.squares(way, 1_000, 200))
    predicted = way.predicted(1_000) ** 2

    def p_value(squares):
        z = abs(squares.mean() - predicted) / squares.std() * math.sqrt(len(squares))
        return math.erfc(z / SKEWED / math.sqrt(2))

    assert accepted(p_value(squares))
    assert rejected(p_value(OFF**2 * squares))
    assert rejected(p_value(squares / OFF**2))


def test_errors_beside_others_are_those_of_the_errors_above():
    above, beside = rows("errors"), rows("others")
    column = list(continual.RUNS).index(continual.MILLION)
    for name in (continual.CLOSED.name, continual.FACTORISED.name, continual.PRINTED.name):
        predicted = above[name][column].partition(" / ")[0]
        assert number(beside[name][1]) == pytest.approx(number(predicted), rel=0.006)


def test_the_bounds_beside_others_are_those_of_the_formulas():
    beside = {(name, cells[0]): number(cells[1]) for name, cells in rows("others").items()}
    formulas = {
        ("no factorisation with Gaussian noise errs less", "rho 1/2"): continual.least_gaussian,
        ("no factorisation with Laplace noise errs less", "epsilon 1"): continual.least_laplace,
        ("tree with signed digits (formula)", "epsilon 1"): continual.signed_digits,
    }
    for key, formula in formulas.items():
        assert beside[key] == pytest.approx(formula(continual.MILLION), rel=0.006)


def test_no_factorisation_errs_less_than_its_bound():
    """By the singular values of partial sums, and by the best factorisation that is known."""
    steps = 60
    sums = np.tril(np.ones((steps, steps)))
    values = np.linalg.svd(sums, compute_uv=False)
    assert continual.least_gaussian(steps) == pytest.approx(values.sum() / steps)
    root = pp.continual.Counter(steps, rho="1/2").predicted_error() / math.sqrt(2)
    assert continual.least_gaussian(steps) < root < 1.1 * continual.least_gaussian(steps)
    exposed = pp.continual.Counter(steps, epsilon=1, pan_private=False).predicted_error()
    assert continual.least_laplace(steps) < exposed


@pytest.mark.parametrize("radix", [3, 5, 9])
def test_the_formula_of_signed_digits_counts_digits(radix):
    """The mean number of nodes over all numbers of three digits is that of the formula."""
    digits = range(-(radix // 2), radix // 2 + 1)
    sizes = [sum(map(abs, number)) for number in itertools.product(digits, repeat=3)]
    assert np.mean(sizes) == pytest.approx(3 * (radix - 1 / radix) / 4)


def test_intervals_are_narrower_than_the_bounds_of_the_book():
    shown = {name: number(cells[0]) for name, cells in rows("bounds").items()}
    single, every = continual.printed_bounds(continual.MILLION)
    assert shown["`pan_private_tree`, one step by Lemma 12.2"] == pytest.approx(single, rel=0.01)
    assert shown["`pan_private_tree`, all steps at once, as Theorem 12.5 has it"] == pytest.approx(
        every, rel=0.01
    )
    assert continual.reach(continual.PRINTED, 1_000) < continual.printed_bounds(1_000)[0] / 1.5


def test_the_lemma_of_the_book_holds_for_figure_12_2():
    """All answers of 40 runs lie within the bound for all at once, but for a few runs."""
    steps, runs = 256, 40
    bound = continual.printed_bounds(steps)[1]
    nothing = np.zeros(steps, np.int64)
    outside = sum(
        np.abs(continual.PRINTED.make(steps).run(nothing)).max() > bound for _ in range(runs)
    )
    assert outside < 20  # of a mean of at most 2: a chance of 1e-13


def test_short_counts_have_the_methods_that_the_page_names():
    errors = {name: continual.way(name, method=name).predicted for name in ("response", "segments")}
    errors["segments"] = next(w for w in continual.WAYS if w.name == "`segments`").predicted
    best = continual.CLOSED.predicted
    assert errors["response"](400) < best(400)
    assert errors["response"](600) > best(600)
    assert errors["segments"](5_000) < best(5_000)
    assert errors["segments"](10_000) > best(10_000)


@pytest.mark.long
def test_what_the_page_says_of_rho():
    counter = pp.continual.Counter(1_000, rho="1/2")
    assert round(float(counter.guarantee.epsilon), 1) == 6.9
    same = pp.continual.Counter(continual.MILLION, epsilon=counter.guarantee.epsilon)
    said = re.search(r"`mixed_radix` errs by ([\d.]+) over a million steps", PAGE)[1]
    assert round(same.predicted_error(), 1) == float(said)
    small = pp.continual.Counter(continual.MILLION, rho="1/85")
    assert 0.99 < small.guarantee.epsilon < 1
    assert round(small.predicted_error()) == 49


@pytest.mark.long
def test_what_equal_shares_cost_and_unequal_ones_save():
    """The numbers at the end of docs/guarantees/continual.md."""
    radices = (37, 12, 13, 13, 14)
    equal = sum(((2 if level else 1) * (one - 1)) ** (1 / 3) for level, one in enumerate(radices))
    assert equal**1.5 == pytest.approx(57.1, abs=0.05)
    shares = best_shares(radices, 1, 2)
    apart = Tree(continual.MILLION, Fraction(1), radices, shares)
    assert math.sqrt(variances(apart).mean()) == pytest.approx(53.3, abs=0.1)
    best = mixed_radix(continual.MILLION, Fraction(1))
    assert math.sqrt(variances(best).mean()) == pytest.approx(52.1, abs=0.05)


@pytest.mark.parametrize("row", range(6))
def test_what_is_predicted_of_different_users_is_what_plans_state(row):
    body = PAGE.partition("<!-- distinct -->")[2].partition("<!-- end of distinct -->")[0]
    lines = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    epsilon, steps, predicted, measured, once = lines[2:][row]
    asked = int(number(steps)), int(epsilon)
    assert percent(predicted) == pytest.approx(100 * running_distinct.predicted(*asked), abs=0.006)
    assert percent(once) == pytest.approx(100 * running_distinct.once(asked[1]), abs=0.006)
    assert measured == "-" or percent(measured) < 1.3 * percent(predicted)


def percent(text):
    return float(text.removesuffix(" %"))
