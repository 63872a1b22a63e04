"""Noise that is calibrated to a sketch loses what it claims, and no less."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.audit import ANNOUNCE, RELEASE, EnumeratedCoins, exact_loss
from panprivacy.papers.published import (
    CalibratedDistinctCount,
    CalibratedNorm,
    StableDistinctCount,
)
from panprivacy.papers.published.mir_exponential import StableMap
from panprivacy.papers.published.mir_lattice import (
    SketchMap,
    lattice_of,
    sensitivity_of,
    weights_of,
)
from panprivacy.privacy.guarantee import exp_bounds

MAPS = {
    "a plane": SketchMap(((1, 0), (0, 1), (1, 1)), 5),
    "an even modulus": SketchMap(((1, 0), (2, 1), (3, 3)), 6),
    "one column twice": SketchMap(((1,), (1,)), 8),
    "a part of the lattice": SketchMap(((2, 2), (4, 2)), 6),
    "a counter": SketchMap(((1,),), 12),
    "a column of 0": SketchMap(((0, 0), (1, 3)), 7),
    "stable variables": StableMap(20, 2, 11, 2, 3, 0),
}
EPSILONS = Fraction(1, 100), Fraction(1), Fraction(7, 2), Fraction(100)
NORMS = pytest.mark.parametrize("norm", [0, 1, 2])


def moved(lattice, values, column, times):
    """What stands at each point once a user has moved it."""
    grid = values.reshape(lattice.shape)
    return np.roll(grid, tuple(-times * column), range(lattice.rows)).ravel()


def shifts(lattice):
    """Every way in which a user may move a point."""
    return itertools.product(np.unique(lattice.columns, axis=0), range(1, lattice.modulus))


@NORMS
@pytest.mark.parametrize("name", [name for name in MAPS if name != "stable variables"])
def test_a_length_is_the_least_norm_of_all_states_that_lead_to_a_point(name, norm):
    lattice = lattice_of(MAPS[name], norm)
    least = {}
    for states in itertools.product(range(lattice.modulus), repeat=len(lattice.columns)):
        sizes = [min(state, lattice.modulus - state) for state in states]
        size = sum(size ** [0, 1, 2][norm] for size in sizes if size)
        (number,) = lattice.numbers(np.array(states) @ lattice.columns)
        least[number] = min(size, least.get(number, size))
    found = {point: length for point, length in enumerate(lattice.lengths) if length >= 0}
    if norm == 2:
        least = {point: np.ceil(16 * np.sqrt(square)) for point, square in least.items()}
    assert found == least


@NORMS
@pytest.mark.parametrize("name", MAPS)
def test_the_sensitivity_is_what_a_user_moves_a_length_by_at_most_and_no_less(name, norm):
    lattice = lattice_of(MAPS[name], norm)
    most = 0
    for column, times in shifts(lattice):
        after = moved(lattice, lattice.lengths, column, times)
        assert ((after >= 0) == (lattice.lengths >= 0)).all(), "it leaves the lattice"
        most = max(most, int(abs(after - lattice.lengths)[lattice.lengths >= 0].max()))
    assert sensitivity_of(MAPS[name], norm) == most


@NORMS
@pytest.mark.parametrize("name", MAPS)
def test_no_user_moves_a_weight_by_more_than_epsilon_and_some_user_by_that(name, norm):
    """Over all points, users and states: what a look loses, in rational numbers."""
    lattice = lattice_of(MAPS[name], norm)
    for epsilon in EPSILONS:
        weights = np.array(weights_of(MAPS[name], norm, epsilon), object)
        reached = lattice.lengths >= 0
        assert ((weights > 0) == reached).all()
        worst = Fraction(1)
        for column, times in shifts(lattice):
            after = moved(lattice, weights, column, times)[reached]
            worst = max(worst, *map(Fraction, after, weights[reached]))
        below, above = exp_bounds(epsilon)
        assert worst <= below
        if epsilon < 50:
            assert worst >= above * (1 - Fraction(1, 10**9)), "the claim is not attained"


WIDE, WIDER = EnumeratedCoins(tail=10), EnumeratedCoins(tail=30)
ROUND = [[(0, 1)], RELEASE, [(0, 1)]], [[], RELEASE, []]

CASES = {
    "L0": (
        CalibratedNorm,
        {"columns": [[1, 0], [0, 1], [1, 1]], "modulus": 3, "norm": 0},
        pp.Budget(1, 3),
        ROUND,
    ),
    "L1": (
        CalibratedNorm,
        {"columns": [[1]], "modulus": 7, "norm": 1},
        pp.Budget(1, 3),
        ([[(0, 3)], RELEASE, [(0, 4)]], [[], RELEASE, [(0, 4)]]),
    ),
    "L2": (
        CalibratedNorm,
        {"columns": [[1], [1]], "modulus": 4, "norm": 2},
        pp.Budget(1, 23),
        ([[(0, 2)], RELEASE, []], [[], RELEASE, []]),
    ),
    "distinct": (CalibratedDistinctCount, {"universe": 1, "modulus": 3}, pp.Budget(1, 2), ROUND),
    "stable": (
        StableDistinctCount,
        {"universe": 2, "rows": 1, "modulus": 5, "grid": 5},
        pp.Budget(1, 2),
        ROUND,
    ),
}


def made(name, **others):
    """Makes a statistic that is walked."""
    kind, sizes, budget, _ = CASES[name]
    arguments = {**sizes, "budget": budget, "epsilon": budget.state + budget.release, **others}
    return lambda coins: kind(coins=coins, **arguments)


@pytest.mark.parametrize("name", CASES)
def test_state_and_release_keep_their_claim_and_attain_it(name):
    _, _, budget, streams = CASES[name]
    loss = exact_loss(made(name), *streams, coins=WIDER if name == "L2" else WIDE)
    total = budget.state + budget.release
    assert loss.within(total)
    attained = total if streams is ROUND else budget.state
    assert float(loss) > float(attained) - 1e-6


def test_to_replace_a_user_costs_twice_as_much_and_no_more():
    """Definition 4 changes two states (M8)."""
    stream, neighbour = [[(0, 1)], [(0, 2)], RELEASE], [[(1, 1)], [(1, 2)], RELEASE]
    make = made("L0", columns=[[1, 0], [0, 1]])
    loss = exact_loss(make, stream, neighbour, coins=WIDE)
    assert loss.within(8)
    assert float(loss) == pytest.approx(8, abs=1e-6)


def test_each_announced_look_costs_as_much_as_the_first():
    make = made("L1", epsilon=6, intrusions=1, budget=pp.Budget(1, 4))
    stream, neighbour = [[(0, 3)], ANNOUNCE, [(0, 3)]], [[], ANNOUNCE, []]
    loss = exact_loss(make, stream, neighbour)
    assert loss.within(2)
    assert float(loss) == pytest.approx(2, abs=1e-6)


class Unseen:
    """A statistic whose state nobody sees."""

    def __init__(self, statistic):
        self._statistic = statistic
        self.update, self.release = statistic.update, statistic.release

    def state(self):
        return b""


def test_an_unseen_point_loses_what_the_state_is_given_and_no_more():
    """However little noise there is on a release of it."""
    make = made("L0", columns=[[1]], epsilon=13, budget=pp.Budget(1, 12))
    stream, neighbour = [[(0, 1)], RELEASE], [[], RELEASE]
    loss = exact_loss(lambda coins: Unseen(make(coins)), stream, neighbour, coins=WIDE)
    assert make(None).guarantee.unseen_loss.epsilon == 1
    assert loss.within(1)
    assert float(loss) == pytest.approx(1, abs=1e-3)
