"""How a tree of steps shares epsilon over its levels."""

from __future__ import annotations

from fractions import Fraction

from panprivacy.tables.counters import shapes
from panprivacy.tables.counters.mechanism import variances
from panprivacy.tables.counters.shapes import mixed_radix
from tests.unit.test_counters import ONE


def test_the_shares_are_the_best_ones():
    """To move any of them a little makes the mean error larger, without what children add."""

    def error(shares, radices=(6, 4, 3)):
        below, size = 0.0, 1
        for level, radix in enumerate(radices):
            below_now, own = 0.0, shares[level]
            for place in range(radix):
                share = own[place]
                rest = below / (1 - share) ** 2 if below else 0.0
                use = (radix - 1 - place) * size * (2 if level else 1)
                below_now += rest + (use / share**2 if use else 0.0)
            below, size = below_now, size * radix
        return below

    best = [[one / 1024 for one in row] for row in shapes.best_shares((6, 4, 3), 1, 2)]
    least_error = error(best)
    for level, place in [(1, 0), (1, 2), (2, 0), (2, 1)]:
        for factor in (0.95, 1.05):
            moved = [row.copy() for row in best]
            moved[level][place] *= factor
            assert error(moved) > least_error
    assert best[1][-1] == best[2][-1] == 0


def test_a_mixed_tree_errs_less_than_an_even_one():
    chosen = shapes.mixed_radix(10_000, ONE)
    error = variances(chosen).mean()
    even = shapes.even_tree(10_000, ONE, 1, pan_private=True)
    assert error < variances(even).mean() / 3
    assert variances(shapes.mixed_radix(10_000, ONE, pan_private=False)).mean() < error


def test_a_count_of_many_steps_has_nine_levels():
    """What was planned once is planned again: a state has so many numbers."""
    assert mixed_radix(1 << 40, Fraction(1)).radices == (43, *8 * [20])
