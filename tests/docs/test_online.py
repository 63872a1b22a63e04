"""The page of online decisions says what a run says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import online

import panprivacy as pp

TEXT = online.PAGE.read_text()


def rows(name):
    """The rows of a table of the page, as texts."""
    table = TEXT.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip().replace(",", "") for cell in line.split("|")[1:-1]] for line in lines[2:]]


@pytest.mark.parametrize("place", range(len(online.SIZES)))
def test_counters_err_as_the_table_says(place):
    n, steps, every, predicted, measured, bound, largest = map(float, rows("counters")[place][:7])
    program = pp.online.MultiCounter(int(n), int(steps), epsilon=1)
    assert (int(n), int(steps)) == online.SIZES[place]
    assert every == program.every
    assert predicted == pytest.approx(program.predicted_error(), abs=0.05)
    assert bound == pytest.approx(program.largest_error(), abs=0.5)
    assert measured == pytest.approx(predicted, rel=0.1)
    assert largest < bound


def test_experts_are_followed_as_the_table_says():
    mistakes = online.mistakes_of(online.delays("origin"))
    best, exact = int(mistakes.sum(axis=0).min()), online.leader(mistakes)
    found = [row for row in rows("experts") if row[0] == "3"]
    assert len(found) == 4
    for _, rounds, told_best, told_exact, unit, perturbation, more, bound in found:
        assert (int(rounds), int(told_best), int(told_exact)) == (len(mistakes), best, exact)
        experts = pp.online.PrivateExperts(
            3, len(mistakes), unit=unit, epsilon=1, perturbation=int(perturbation)
        )
        proved = experts.bound(best) - best
        if perturbation == "0":
            assert bound == "none"
            assert int(more) < 300
        else:
            assert float(bound) == pytest.approx(proved, abs=0.5)
            assert int(more) < proved
            default = pp.online.PrivateExperts(3, len(mistakes), unit=unit, epsilon=1)
            assert default.perturbation == int(perturbation)


def test_delays_are_those_of_the_flights():
    outcomes = online.delays("origin")
    assert np.bincount(outcomes).tolist() == [29_496, 23_161, 19_653]
    wrong = online.mistakes_of(outcomes[:6])
    assert wrong.sum(axis=1).tolist() == [wrong.shape[1] - 1] * 6
    assert online.leader(np.array([[True, False], [True, False], [False, True]])) == 2


def test_the_page_says_what_a_leaf_of_the_slides_errs_by():
    assert f"errs by {2 * (math.log2(10_000) + 1):.1f}" in TEXT
    assert "715 steps for 10,000 counters" in TEXT
