"""Reconstruction of the bits from approximate answers: Theorems 9 to 11 of Mir et al."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.attacks.guesses import Truths

RealNumbers = NDArray[np.floating[Any]]
Queries = RealNumbers
"""One row a query, one column a person."""

_ROUNDS = 10
_BLOCK = 64


def least_squares(queries: Queries, answers: RealNumbers) -> Truths:
    """Return the bits whose dot products are nearest to the answers, rounded (Theorem 9)."""
    return _solve(queries, queries, answers) > 0.5


def least_absolute(queries: Queries, answers: RealNumbers, accuracy: float) -> Truths:
    """Return the bits with the least sum of absolute errors, rounded (Theorem 10).

    Answers that are far off keep little weight, so that a constant share of them may be anything.
    Reweighted least squares find the minimum; errors below the accuracy count as that large.
    """
    weighted = queries
    for _ in range(_ROUNDS):
        solution = _solve(weighted, queries, answers)
        errors = np.maximum(np.abs(answers - queries @ solution), accuracy)
        weighted = queries / errors[:, np.newaxis]
    return _solve(weighted, queries, answers) > 0.5


def _solve(weighted: Queries, queries: Queries, answers: RealNumbers) -> RealNumbers:
    """Return the least squares solution by its normal equations."""
    return np.linalg.solve(weighted.T @ queries, weighted.T @ answers)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Error bound of an answer: a share of the truth (`alpha_1`), plus a constant (`alpha_2`)."""

    share: float
    more: float

    def reach(self, truth: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the largest error."""
        return self.share * truth + self.more


def sparse_vectors(size: int, most: int) -> NDArray[np.float32]:
    """Return all 0/1 vectors with at most `most` ones, one a row."""
    chosen = list(chain.from_iterable(combinations(range(size), ones) for ones in range(most + 1)))
    rows = np.repeat(np.arange(len(chosen)), [len(ones) for ones in chosen])
    vectors = np.zeros((len(chosen), size), np.float32)
    vectors[rows, list(chain.from_iterable(chosen))] = 1
    return vectors


def unions(vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the size of the union of each vector (a row) and each query (a column)."""
    alone = vectors.sum(axis=1)[:, np.newaxis] + queries.sum(axis=1)
    return alone - vectors @ queries.T


def consistent(
    vectors: NDArray[np.float32], answers: NDArray[np.float32], accuracy: Accuracy
) -> NDArray[np.float32]:
    """Return the vectors consistent with all answers to union queries (Theorem 11).

    Each vector is also a query.
    """
    left = vectors
    for start in range(0, len(vectors), _BLOCK):
        truths = unions(left, vectors[start : start + _BLOCK])
        errors = np.abs(truths - answers[start : start + _BLOCK])
        left = left[(errors <= accuracy.reach(truths)).all(axis=1)]
    return left
