"""The shape of a running count's tree: the children of its nodes, and their shares of epsilon.

The mean over all steps of the variance of an answer is `2 F/epsilon**2` for noise of large scale,
where `F` of a node's children is the sum over their places `d` of
`((v w_d)**(1/3) + F'**(1/3))**3`: a child's number serves `w_d` later steps, has the variance of
`v` noises, and `F'` is that of its own children. The share that attains it is
`(v w_d)**(1/3)/((v w_d)**(1/3) + F'**(1/3))`. [docs/guarantees/continual.md]
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from panprivacy.tables.counters.tree import SHARES, Tree

_MOST_LEVELS = 9
_WIDEST = 256
"""Children of a node, unless there are fewer steps."""

Shares = tuple[tuple[int, ...], ...]


@functools.lru_cache(maxsize=256)
def mixed_radix(
    horizon: int,
    epsilon: Fraction,
    bound: int = 1,
    *,
    open_steps: bool = False,
    pan_private: bool = True,
) -> Tree:
    """Return the tree with the smallest average error over all steps.

    Args:
        horizon: number of steps.
        epsilon: the loss for one event.
        bound: the most that an event adds.
        open_steps: whether the memory may be seen within a step.
        pan_private: whether the memory may be seen at all; else nodes close with noise alone.
    """
    draws = 2 if pan_private else 1
    first = draws if open_steps else 1
    radices = min(_candidates(horizon), key=lambda tried: _variances(tried, first, draws))
    shares = best_shares(radices, first, draws)
    return Tree(
        horizon, epsilon, radices, shares, bound, open_steps, combined=True, at_birth=pan_private
    )


def even_tree(horizon: int, epsilon: Fraction, bound: int, *, pan_private: bool) -> Tree:
    """Return the binary tree whose levels share epsilon evenly.

    Args:
        horizon: number of steps.
        epsilon: the loss for one event.
        bound: the most that an event adds.
        pan_private: whether nodes have initial noise and output noise (lecture 10, slide 51), or
            initial noise alone (Dwork and Roth, figure 12.1).
    """
    levels = max((horizon - 1).bit_length(), 1)
    shares = tuple((SHARES // (level + 1),) * 2 for level in range(levels))
    return Tree(horizon, epsilon, (2,) * levels, shares, bound, at_closing=pan_private)


def segments(horizon: int, epsilon: Fraction, bound: int) -> Tree:
    """Return segments of fixed length that leave as they end; between two ends the answer stays.

    The length makes the noise of all segments as large as what one may hide.
    """
    length = min(math.ceil((4 * horizon / float(epsilon) ** 2) ** (1 / 3)), horizon)
    count = -(-horizon // length)
    return Tree(horizon, epsilon, (length, count), ((0,) * length, (SHARES,) * count), bound)


@functools.lru_cache(maxsize=256)
def best_shares(radices: tuple[int, ...], first: int, draws: int) -> Shares:
    """Return the shares of each level and place, in 1,024ths.

    Args:
        radices: children of a node, of the lowest level first.
        first: how many noises the number of a step has.
        draws: how many those of other nodes have.
    """
    rows, below, size = [], 0.0, 1
    for level, radix in enumerate(radices):
        noises = draws if level else first
        roots = [((radix - 1 - place) * size * noises) ** (1 / 3) for place in range(radix)]
        inner = below ** (1 / 3)
        row = [round(SHARES * root / (root + inner)) if level else SHARES for root in roots]
        rows.append(tuple(row))
        below, size = sum((root + inner) ** 3 for root in roots), size * radix
    return tuple(rows)


def _candidates(horizon: int) -> list[tuple[int, ...]]:
    """Return radices with a product of at least the horizon: equal ones above the lowest level."""
    found: list[tuple[int, ...]] = [(horizon,)] if horizon <= _WIDEST else []
    for levels in range(1, _MOST_LEVELS):
        root = max(round(horizon ** (1 / (levels + 1))), 2)
        for radix in range(max(root - 8, 2), root + 3):
            for wider in range(levels):
                above = (radix,) * (levels - wider) + (radix + 1,) * wider
                lowest = -(-horizon // math.prod(above))
                if 2 <= lowest <= _WIDEST:
                    found.append((lowest, *above))
    return found


@functools.lru_cache(maxsize=1024)
def _variances(radices: tuple[int, ...], first: int, draws: int) -> tuple[float, float]:
    """Return the mean and the largest variance over all steps for epsilon 1, at large scales.

    The number of a node is weighed with those of its children, so what a node's children say of it
    together is followed as well: all for what the way to them leaves of epsilon.
    """
    children = total = largest = 0.0
    size = 1
    for level, (radix, row) in enumerate(
        zip(radices, best_shares(radices, first, draws), strict=True)
    ):
        together = errors = most = 0.0
        for place, share in enumerate(row):
            own = share / SHARES
            precision = own**2 / (2 * (draws if level else first))
            if level:
                precision += (1 - own) ** 2 / children
                errors += total / (1 - own) ** 2
                most = max(most, together + largest / (1 - own) ** 2)
            else:
                most = together
            together += 1 / precision
            errors += (radix - 1 - place) * size / precision
        children, total, largest, size = together, errors, most, size * radix
    return total / size, max(largest, children)


def largest_deviation(tree: Tree) -> float:
    """Return the largest standard deviation of an answer, of all steps.

    It is within 2 % of the truth where noise is of large scale, and above it where it is not, or
    where there are fewer steps than the product of the radices.

    Args:
        tree: as `mixed_radix` makes it.
    """
    draws = 2 if tree.at_birth else 1
    _, largest = _variances(tree.radices, draws if tree.open_steps else 1, draws)
    return tree.bound / float(tree.epsilon) * math.sqrt(largest)
