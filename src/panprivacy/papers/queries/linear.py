"""The K-projected Laplace mechanism: noise on every query, then the nearest possible answers.

Reference: C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", Algorithm 18
and Theorem 12.8, as repaired: the loss is that of a delta, which Theorem 12.7 forgets; the error
has no factor of 2 from Lemma 12.9. Different from print: all is on a grid of whole numbers, and
the scale of the noise comes from the columns of the matrix and from zero-concentrated privacy,
which takes half of what is printed, or less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import positive_fraction, positive_integer, proportion
from panprivacy.papers.queries.projection import nearest
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import Epsilon, Guarantee, Ledger, float_above, log_above

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NoiseLaw = Literal["laplace", "gaussian"]

MOST_COLUMNS: Final = 1 << 13
"""Maximum number of columns of a matrix: the projection stores its square."""
MOST_QUERIES: Final = 1 << 16
FINEST: Final = 1 << 20
"""Entries are rounded to multiples of 1/FINEST, if no coarser grid has them exactly."""
_MOST_USERS: Final = 1 << 40
_SCALE_STEPS: Final = 1 << 10
_RHO_DIGITS: Final = 1 << 64


@dataclass(frozen=True, eq=False)
class LinearAnswers:
    """Answers to all queries; they are public.

    Args:
        values: the projected answers, in users, float64[queries].
        table: a signed table of users for which these are the exact answers, float64[columns]; its
            absolute values add up to `users` at most.
        gap: gap of the projection, in squared users: `values` is nearest up to this.
        noised: the answers with their noise, in units of 1/grid of a user, int64[queries]: all else
            is a function of them and of public parameters.
        epsilon: privacy loss of this release, in nats.
    """

    values: Floats
    table: Floats = field(repr=False)
    gap: float
    noised: Integers = field(repr=False)
    epsilon: float


class LinearQueries:
    """Answers `matrix @ counts` for one table of counts, with noise on every answer.

    >>> import numpy as np
    >>> from panprivacy.papers.queries import LinearQueries
    >>> asked = LinearQueries(np.eye(3), users=1_000, epsilon=1)
    >>> asked.scale
    Fraction(1, 1)
    >>> answer = asked.release([500, 300, 200])
    >>> [bool(abs(error) < 60) for error in answer.values - [500, 300, 200]]
    [True, True, True]

    The projection pays where there are many queries of few users: it takes the noise that no table
    of `users` users can explain.

    Guarantee: let P and P' be the laws of what is released with and without one user. For every set
    S of outcomes `P(S) <= e**epsilon P'(S) + delta`, and outcomes where P is above `e**epsilon P'`
    have a probability of at most delta. The table is not stored, and nobody may see it.
    [tests/exact/test_queries.py, docs/guarantees/queries.md]

    Accuracy: with probability `1 - failure` the squares of all errors add up to at most
    `bound(failure)` and the gap. [tests/statistical/test_queries.py]

    Args:
        matrix: a query a row: what one user of each column counts, 0 to 1; public. Entries that are
            not multiples of 1/2**20 are rounded to them.
        users: maximum number of users; public. With more the answers are too small, and as
            private.
        epsilon: the loss for one user, in nats.
        delta: 0 for pure differential privacy.
        noise: "laplace", as the paper has it, or "gaussian", whose errors are smaller; it needs a
            delta above 0.
        ledger: budget shared with others that count the same users; None for one of its own.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range, or some that do not go together.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = (
        "_account",
        "_coins",
        "_ledger",
        "_matrix",
        "delta",
        "epsilon",
        "grid",
        "noise",
        "users",
    )

    def __init__(
        self,
        matrix: ArrayLike,
        *,
        users: int,
        epsilon: Epsilon,
        delta: Epsilon = 0,
        noise: NoiseLaw = "laplace",
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        self._matrix, self.grid = on_grid(_checked(matrix))
        self.users = positive_integer(_MOST_USERS, users=users)
        self.epsilon, self.delta = positive_fraction(epsilon=epsilon), _delta(delta)
        self.noise = noise
        if noise not in ("laplace", "gaussian") or (noise == "gaussian" and not self.delta):
            message = 'noise must be "laplace", or "gaussian" with a delta above 0'
            raise PlanError(message)
        self._coins = coins or SystemCoins()
        if ledger is not None and self.delta:
            message = "a ledger adds up epsilon alone: leave out delta"
            raise PlanError(message)
        self._ledger = ledger or Ledger(self.epsilon)
        self._account = self._ledger.open(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of each user."""
        return Guarantee(self.epsilon, delta=self.delta, looks=False)

    @property
    def ledger(self) -> Ledger:
        """The budget that it draws on; shared if it was given one."""
        return self._ledger

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self._matrix)

    @property
    def sensitivity(self) -> tuple[int, int]:
        """Largest change by one user: of the sum of all answers, and of the sum of their squares.

        In units of the grid, and exact: the largest over the columns of the matrix.
        """
        return int(self._matrix.sum(axis=0).max()), int((self._matrix**2).sum(axis=0).max())

    @property
    def scale(self) -> Fraction:
        """Noise scale in users: the Laplace scale, or the standard deviation of Gaussian noise."""
        return self._scale() / self.grid

    def _scale(self) -> Fraction:
        """Return the same in units of the grid, rounded up."""
        total, squares = self.sensitivity
        pure = total / self.epsilon
        if not self.delta:
            return pure
        concentrated = _root_above(squares / (2 * rho_within(self.epsilon, self.delta)))
        return min(pure, concentrated) if self.noise == "laplace" else concentrated

    @property
    def variance(self) -> float:
        """Bound on the noise variance of one answer before the projection, in squared users."""
        return float(self.scale) ** 2 * (2 if self.noise == "laplace" else 1)

    def bound(self, failure: float = 0.05) -> float:
        """Return a bound on the sum of squared errors, up to the gap of a release.

        It holds with probability `1 - failure` for every table; in squared users. It is `2 users`
        times the largest product of the noise with a column, an upper bound of the error that the
        projection leaves.

        Args:
            failure: the probability that the sum is larger.
        """
        missed = proportion(failure=failure)
        columns = self._matrix.shape[1]
        tail = math.log(2 * columns / missed)
        weight = self.sensitivity[1] / self.grid**2
        if self.noise == "gaussian":
            reach = math.sqrt(2 * weight * tail)
        elif tail <= weight:
            reach = math.sqrt(8 * weight * tail)
        else:
            reach = math.sqrt(2) * (weight + tail)
        return 2 * self.users * float(self.scale) * reach

    def _typical(self) -> float:
        """Return a typical sum of squared errors: at most that without a projection."""
        return min(self.bound(0.5), self.queries * self.variance)

    def release(self, counts: ArrayLike, *, tolerance: float = 0.05) -> LinearAnswers:
        """Release noisy answers to all queries, projected to those that `users` users may have.

        Args:
            counts: number of users of each column, whole numbers, int64[columns].
            tolerance: of the projection: it stops at a gap of this share of the squared errors to
                expect, or gives up; the answer says what its gap is.

        Raises:
            BudgetError: a release was made before; there is no output.
            InputError: other counts; nothing is spent.
        """
        exact, share = self._exact(counts), proportion(tolerance=tolerance)
        self._account.spend(self.epsilon)
        noised = exact + self._draw()
        entries = self._matrix / self.grid
        table, gap = nearest(entries, noised / self.grid, self.users, share * self._typical())
        return LinearAnswers(entries @ table, table, gap, noised, float_above(self.epsilon))

    def _exact(self, counts: ArrayLike) -> Integers:
        """Return the answers in units of the grid."""
        table = np.asarray(counts)
        if table.shape != (self._matrix.shape[1],) or table.dtype.kind not in "iu":
            message = f"counts must be {self._matrix.shape[1]:,} whole numbers, one a column"
            raise InputError(message)
        outside = np.flatnonzero((table < 0) | (table > _MOST_USERS))
        if outside.size or float(table.sum()) > _MOST_USERS:  # for any queries
            message = (
                f"a count must be a whole number from 0, and all together {_MOST_USERS:,} at most"
            )
            raise InputError(message, row=int(outside[0]) + 1 if outside.size else None)
        return self._matrix @ table.astype(np.int64)

    def _draw(self) -> Integers:
        """Return fresh noise on every answer, in units of the grid."""
        scale = self._scale()
        if self.noise == "gaussian":
            return self._coins.discrete_gaussian(scale**2, self.queries)
        return self._coins.discrete_laplace(scale, self.queries)


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the zero-concentrated loss equivalent to an epsilon at a delta, rounded down.

    It is the largest one with `rho + 2 sqrt(rho ln(1/delta)) <= epsilon`, decided exactly.
    """
    tail = log_above(1 / delta)
    near = math.isqrt(int((epsilon + tail) * _RHO_DIGITS**2)) - math.isqrt(
        int(tail * _RHO_DIGITS**2)
    )
    root = Fraction(near, _RHO_DIGITS)
    while (rho := root * root) and (rho > epsilon or (epsilon - rho) ** 2 < 4 * rho * tail):
        root = Fraction(math.floor(root * _RHO_DIGITS) - 1, _RHO_DIGITS)
    if not rho:
        message = "epsilon is too small for its delta: raise one of them"
        raise PlanError(message)
    return rho


def on_grid(matrix: Floats) -> tuple[Integers, int]:
    """Return the matrix in units of the coarsest grid that represents it, and the units in 1."""
    grid = 1
    while grid < FINEST and not (np.rint(matrix * grid) == matrix * grid).all():
        grid *= 2
    return np.rint(matrix * grid).astype(np.int64), grid


def _checked(matrix: ArrayLike) -> Floats:
    entries = np.asarray(matrix)
    if entries.ndim != 2 or not entries.size or entries.dtype.kind not in "biuf":
        message = "the matrix must have a row a query and a column for each kind of user"
        raise PlanError(message)
    if len(entries) > MOST_QUERIES or entries.shape[1] > MOST_COLUMNS:
        message = f"the matrix may have {MOST_QUERIES:,} rows and {MOST_COLUMNS:,} columns at most"
        raise PlanError(message)
    if not ((entries >= 0) & (entries <= 1)).all() or not entries.any():
        message = "the entries of the matrix must be numbers of 0 to 1, not all 0"
        raise PlanError(message)
    return entries.astype(np.float64)


def _delta(delta: Epsilon) -> Fraction:
    if delta == 0:
        return Fraction(0)
    exact = positive_fraction(delta=delta)
    if exact >= 1:
        message = "delta must be below 1"
        raise PlanError(message)
    return exact


def _root_above(square: Fraction) -> Fraction:
    """Return a number at least the root, on a grid whose noise is drawn in machine words."""
    return Fraction(math.isqrt(math.ceil(square * _SCALE_STEPS**2)) + 1, _SCALE_STEPS)
