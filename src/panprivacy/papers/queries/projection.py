"""The nearest of all answers that a table may have: Frank-Wolfe steps, with their gap.

Tables are signed, and their absolute values add up to at most n. So the answers are the convex hull
of n and -n times the columns, its vertices, and a linear function is largest at one of these.

Reference: S. Lacoste-Julien, M. Jaggi, "On the global linear convergence of Frank-Wolfe
optimization variants", 2015, Algorithm 2; P. Wolfe, "Finding the nearest point in a polytope",
1976.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from panprivacy.ground.kernels import kernel

Floats = NDArray[np.float64]

_ROUNDS, _STEPS, _CORRECTIONS = 200, 2_000, 20
_RIDGE = 1e-12


def nearest(
    matrix: Floats, answers: Floats, total: float, tolerance: float
) -> tuple[Floats, float]:
    """Return a table whose answers are nearest, but for the gap.

    For every table s the product of `answers(table) - answers` with `answers(table) - answers(s)`
    is at most the gap. With a gap of 0 no table is nearer; the squared distance is never more than
    twice the gap above the least.

    Args:
        matrix: a query a row, float64[k, columns].
        answers: what to be near to, float64[k].
        total: n.
        tolerance: the gap at which to stop.

    Returns:
        The table, float64[columns], and its gap, computed anew from it.
    """
    columns, square = matrix.shape[1], matrix.T @ matrix
    pulled = matrix.T @ answers / total
    weights = np.eye(1, 2 * columns)[0]  # of n times each column, then of -n times each
    for _ in range(_ROUNDS):
        table = total * (weights[:columns] - weights[columns:])
        slope = matrix.T @ (answers - matrix @ table)
        gap = float(total * np.abs(slope).max() - slope @ table)
        if gap <= tolerance:
            break
        walk(weights, slope, square, total, tolerance / 2, _STEPS)
        for _ in range(_CORRECTIONS):
            if correct(weights, square, pulled):
                break
        weights /= weights.sum()
    return table, max(gap, 0.0)


def correct(weights: Floats, square: Floats, pulled: Floats) -> bool:
    """Move to the nearest point of the plane through all vertices with weight, in place.

    Returns:
        True if it was reached; else a vertex on the way there has lost its weight.
    """
    columns = len(pulled)
    active = np.flatnonzero(weights > 0)
    at, sign = active % columns, np.where(active < columns, 1.0, -1.0)
    products = square[np.ix_(at, at)] * sign[:, None] * sign
    products[np.diag_indices(len(at))] *= 1 + _RIDGE  # a column and its negative are dependent
    free, even = np.linalg.solve(products, np.stack([pulled[at] * sign, np.ones(len(at))], 1)).T
    target = free + even * (1 - free.sum()) / even.sum()
    before = weights[active]
    falls = np.maximum(before - target, 0)
    reach = np.divide(before, falls, out=np.full(len(at), np.inf), where=falls > 0)
    share = min(1.0, float(reach.min()))
    weights[active] = np.maximum(before + share * (target - before), 0)
    if share < 1:
        weights[active[reach.argmin()]] = 0
    return share == 1


@kernel("void(float64[::1], float64[::1], float64[:, ::1], float64, float64, int64)")
def walk(
    weights: Floats, slope: Floats, square: Floats, total: float, tolerance: float, steps: int
) -> None:
    """Move weight from the worst vertex that has some to the best one, in place, step by step.

    Each step goes as far along this line as brings the answers nearest. `slope` follows.
    """
    columns = slope.size
    for _ in range(steps):
        best = worst = 0
        high, low, mean = -np.inf, np.inf, 0.0
        for vertex in range(2 * columns):
            at = vertex if vertex < columns else vertex - columns
            rises = slope[at] if vertex < columns else -slope[at]
            mean += weights[vertex] * rises
            if rises > high:
                high, best = rises, vertex
            if weights[vertex] > 0 and rises < low:
                low, worst = rises, vertex
        if total * (high - mean) <= tolerance:
            return
        i, j = best % columns, worst % columns
        sign_i = 1.0 if best < columns else -1.0
        sign_j = 1.0 if worst < columns else -1.0
        bend = square[i, i] + square[j, j] - 2 * sign_i * sign_j * square[i, j]
        step = weights[worst]
        if total * bend * step > high - low:
            step = (high - low) / (total * bend)
            weights[worst] -= step
        else:
            weights[worst] = 0.0
        weights[best] += step
        for at in range(columns):
            moved = sign_i * square[i, at] - sign_j * square[j, at]
            slope[at] -= total * step * moved
