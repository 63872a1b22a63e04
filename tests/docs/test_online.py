"""The page of online decisions says what a run says."""

from __future__ import annotations

import math
from fractions import Fraction

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


@pytest.mark.long
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


@pytest.mark.long
def test_counts_of_rounds_err_as_the_table_says():
    """And Gaussian noise as much less, which grows with the root of n."""
    for experts, own, other, *mistakes in rows("gaussian"):
        n, rounds = int(experts), int(rows("experts")[0][1])
        program = pp.online.PrivateExperts(n, rounds, unit="round", epsilon=1)
        assert float(own) == pytest.approx(program.predicted_error(), abs=0.5)
        one = pp.continual.Counter(rounds, rho=Fraction(1, 85))
        assert float(other) == pytest.approx(math.sqrt(n) * one.predicted_error(), abs=0.5)
        assert one.guarantee.epsilon <= 1
        assert one.guarantee.delta <= Fraction(1, 10**9)
        assert float(mistakes[1]) < float(mistakes[0])


@pytest.mark.long
def test_delays_are_those_of_the_flights():
    outcomes = online.delays("origin")
    assert np.bincount(outcomes).tolist() == [29_496, 23_161, 19_653]
    wrong = online.mistakes_of(outcomes[:6])
    assert wrong.sum(axis=1).tolist() == [wrong.shape[1] - 1] * 6
    assert online.leader(np.array([[True, False], [True, False], [False, True]])) == 2


def test_the_page_says_what_a_leaf_of_the_slides_errs_by():
    assert f"errs by {2 * (math.log2(10_000) + 1):.1f}" in TEXT
    assert "715 steps for 10,000 counters" in TEXT


def test_the_tree_of_the_slides_counts_right_but_for_its_noise(monkeypatch):
    monkeypatch.setattr(online, "_noises", lambda scale: iter(lambda: 0, 1))
    requests = np.random.default_rng(2).integers(0, 5, 200)
    counts = [found.tolist() for found in online.tree_of_counters(requests, 5, 1)]
    steps = range(20, 220, 20)
    assert counts == [np.bincount(requests[:step], minlength=5).tolist() for step in steps]
    assert sum(list(online.tree_of_counters(requests, 5, 150))[-1]) == 0


def test_ours_errs_less_than_the_tree_of_the_slides_on_the_page():
    (ours, *others), largest = zip(
        *[(float(row[1]), float(row[2])) for row in rows("slides")], strict=True
    )
    assert len(others) == 4
    assert 1.5 * ours < min(others)
    assert 3 * largest[0] < min(largest[1:])
