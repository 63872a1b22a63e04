"""The page of the local model says what its classes state; no number is outside its limits."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from benchmarks import local as bench

from panprivacy.papers import local

PAGE = bench.PAGE.read_text()


def rows(name):
    """The rows of a table of the page."""
    body = PAGE.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    lines = [line.strip("| ").split(" | ") for line in body.splitlines() if line.startswith("|")]
    return lines[2:]


def number(text):
    return float(text.replace(",", ""))


@pytest.mark.parametrize(("name", "values"), [("origins", 3), ("destinations", 105)])
@pytest.mark.parametrize("row", range(4))
def test_predictions_and_lengths_are_those_of_the_encodings(name, values, row):
    epsilon, *cells = rows(name)[row]
    best = local.best_encoding(values, epsilon)
    for kind, cell in zip(bench.KINDS, cells, strict=True):
        made = kind(values, epsilon)
        predicted, measured, inside, bits = map(number, re.findall(r"[\d.,]*\d", cell))
        assert predicted == pytest.approx(math.sqrt(made.variance * 336_776), abs=0.51)
        assert 0.6 < measured / predicted < bench.MOST_OVER
        assert inside >= 75
        assert bits == made.bits
        assert cell.startswith("**") == (made == best)


def test_no_number_that_was_measured_is_outside_of_its_limits():
    assert "missed" not in PAGE


@pytest.mark.parametrize("row", range(4))
def test_the_users_that_a_query_needs_are_those_of_the_plan(row):
    tolerance, epsilon, users, off = rows("statistical")[row]
    assert number(users) == local.users_needed(float(tolerance), epsilon, failure=0.05)
    assert float(off) <= float(tolerance)


def test_projected_answers_err_less_than_noised_ones_and_than_what_is_proved():
    for _, _, raw, projected, proved, _ in rows("ranges"):
        assert number(projected) < number(raw)
        assert number(projected) < number(proved)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2])
def test_the_formulas_of_the_page_hold_for_many_values(epsilon):
    e, k = math.exp(epsilon), 4_096
    blocks = local.HadamardResponse(k - 1, epsilon).blocks
    formulas = {
        local.RandomisedResponse: (e + k - 2) / (e - 1) ** 2,
        local.UnaryEncoding: 4 * e / (e - 1) ** 2,
        local.HadamardResponse: (2 * blocks + e - 1) ** 2 / (blocks * (e - 1) ** 2),
    }
    for kind, formula in formulas.items():
        assert kind(k - 1, epsilon).variance == pytest.approx(formula, rel=0.02)


def test_a_run_errs_as_the_page_says():
    held = np.arange(20_000) % 105
    randomiser = local.RandomisedResponse(105, 2)
    measured, inside = bench.error(randomiser, held)
    assert measured == pytest.approx(math.sqrt(randomiser.variance * len(held)), rel=0.12)
    assert inside > 0.9  # of 2,100 intervals: a chance of 1e-16 or so
