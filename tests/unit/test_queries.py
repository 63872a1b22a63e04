"""Linear queries: what is refused, what is paid, and the projection."""

from __future__ import annotations

import numpy as np
import pytest

import panprivacy as pp
from panprivacy.papers.queries import LinearQueries, linear
from panprivacy.papers.queries.projection import correct, nearest, walk

RNG = np.random.default_rng(11)


def worth(matrix, answers, table):
    return float(((matrix @ table - answers) ** 2).sum())


@pytest.mark.parametrize("shape", [(3, 5), (20, 8), (40, 40), (5, 1), (1, 6)])
@pytest.mark.parametrize("total", [0.5, 10.0, 1e4])
def test_no_table_is_nearer_than_the_gap_allows(shape, total):
    matrix = RNG.random(shape)
    answers = 20 * RNG.standard_normal(shape[0])
    tolerance = 1e-6 * float(answers @ answers)
    table, gap = nearest(matrix, answers, total, tolerance)
    assert np.abs(table).sum() <= total * (1 + 1e-9)
    assert gap <= tolerance
    found = worth(matrix, answers, table)
    for _ in range(300):
        other = RNG.exponential(size=shape[1]) * RNG.choice([-1, 1], shape[1])
        other *= total / np.abs(other).sum() * RNG.choice([1, RNG.random()])
        assert found <= worth(matrix, answers, other) + 2 * gap
        moved = 0.99 * table + 0.01 * other
        assert found <= worth(matrix, answers, moved) + 2 * gap


def test_the_gap_is_that_of_its_definition():
    matrix, answers = RNG.random((10, 6)), 30 * RNG.standard_normal(10)
    table, gap = nearest(matrix, answers, 3.0, 1e9)  # stops at once
    vertices = np.vstack([3 * np.eye(6), -3 * np.eye(6)])
    products = (matrix @ table - answers) @ (matrix @ (table - vertices).T)
    assert gap == pytest.approx(products.max(), rel=1e-9)


def test_answers_of_a_table_that_is_allowed_are_left_alone():
    matrix, table = RNG.random((30, 10)), RNG.random(10)
    found, gap = nearest(matrix, matrix @ table, 20.0, 1e-9)
    np.testing.assert_allclose(found, table, rtol=1e-3)
    assert gap <= 1e-9


def test_one_value_is_cut_to_what_is_possible():
    table, _ = nearest(np.array([[1.0]]), np.array([50.0]), 7.0, 1e-9)
    assert table == pytest.approx([7])
    table, _ = nearest(np.array([[1.0]]), np.array([-50.0]), 7.0, 1e-9)
    assert table == pytest.approx([-7])


def test_a_step_moves_towards_the_answers_and_keeps_the_slope():
    matrix, answers, total = RNG.random((9, 5)), 10 * RNG.standard_normal(9), 4.0
    weights, square = np.eye(10)[0], matrix.T @ matrix
    before = worth(matrix, answers, total * (weights[:5] - weights[5:]))
    slope = matrix.T @ (answers - matrix @ (total * (weights[:5] - weights[5:])))
    walk.plain(weights, slope, square, total, 0.0, 3)
    table = total * (weights[:5] - weights[5:])
    assert worth(matrix, answers, table) < before
    np.testing.assert_allclose(slope, matrix.T @ (answers - matrix @ table), atol=1e-9)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)


def test_a_correction_ends_where_the_plane_is_nearest():
    matrix, answers, total = RNG.random((9, 3)), RNG.random(9), 4.0
    weights = np.array([0.3, 0.3, 0.2, 0.2, 0, 0])
    while not correct(weights, matrix.T @ matrix, matrix.T @ answers / total):
        pass
    table = total * (weights[:3] - weights[3:])
    active = np.flatnonzero(weights)
    vertices = total * np.vstack([np.eye(3), -np.eye(3)])[active]
    products = (matrix @ table - answers) @ (matrix @ (vertices - table).T)
    np.testing.assert_allclose(products, 0, atol=1e-6)


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([1, 0], "a row a query"),
        ([[]], "a row a query"),
        ([["a"]], "a row a query"),
        ([[2]], "0 to 1"),
        ([[-0.1]], "0 to 1"),
        ([[float("nan")]], "0 to 1"),
        ([[0]], "not all 0"),
        (np.zeros((1, 8_193)), "8,192 columns"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix, says):
    with pytest.raises(pp.PlanError, match=says):
        LinearQueries(matrix, users=9, epsilon=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"users": 0}, "users"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta must be below 1"),
        ({"delta": -1}, "delta"),
        ({"noise": "gaussian"}, "noise must be"),
        ({"noise": "normal", "delta": 0.1}, "noise must be"),
        ({"delta": 0.1, "ledger": pp.Ledger(2)}, "a ledger adds up epsilon alone"),
        ({"epsilon": "1e-80", "delta": "1e-300"}, "epsilon is too small"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, says):
    with pytest.raises(pp.PlanError, match=says):
        LinearQueries([[1]], **{"users": 9, "epsilon": 1, **arguments}).scale  # noqa: B018


@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [[1, 2]], [0.5, 1], [-1, 2], [1 << 61, 1]])
def test_counts_that_cannot_be_used_cost_nothing(counts):
    asked = LinearQueries([[1, 0.5]], users=9, epsilon=1)
    with pytest.raises(pp.InputError, match="count"):
        asked.release(counts)
    assert asked.ledger.spent == 0


@pytest.mark.parametrize("total", [1 << 40, (1 << 40) + 8, 1 << 43])
def test_which_counts_are_refused_does_not_depend_on_what_is_asked(total):
    """Else a question that is refused would tell how many users there are, for nothing."""
    counts, refused = np.full(8, total // 8), []
    for matrix in (np.ones((1, 8)), np.full((1, 8), 2.0**-20)):
        asked = LinearQueries(matrix, users=1_000, epsilon=1)
        try:
            asked.release(counts)
        except pp.InputError as error:
            refused.append(str(error))
    assert len(refused) == (0 if total == 1 << 40 else 2)
    assert len(set(refused)) <= 1


def test_a_second_release_is_refused():
    asked = LinearQueries([[1, 0.5]], users=9, epsilon=1)
    asked.release([1, 2])
    assert asked.ledger.spent == 1
    with pytest.raises(pp.BudgetError):
        asked.release([1, 2])


def test_it_draws_on_a_shared_ledger():
    ledger = pp.Ledger(1)
    asked = LinearQueries([[1]], users=9, epsilon="0.6", ledger=ledger)
    assert ledger.available == pp.Ledger("0.4").total
    with pytest.raises(pp.BudgetError):
        LinearQueries([[1]], users=9, epsilon="0.6", ledger=ledger)
    asked.release([3])
    assert ledger.spent == asked.epsilon


@pytest.mark.parametrize(
    ("matrix", "grid"),
    [([[1, 0]], 1), ([[0.5, 1]], 2), ([[0.375, 0.5]], 8), ([[0.1, 1]], linear.FINEST)],
)
def test_the_grid_is_the_coarsest_that_has_the_matrix(matrix, grid):
    assert LinearQueries(matrix, users=9, epsilon=1).grid == grid


def test_the_guarantee_says_that_nobody_may_look():
    said = str(LinearQueries([[1]], users=9, epsilon=1, delta=1e-9).guarantee)
    assert said.startswith("epsilon 1 and delta 1e-9 for adding or removing one user")
    assert said.endswith("where nobody sees the state")
