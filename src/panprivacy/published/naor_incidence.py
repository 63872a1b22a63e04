"""Incidence counting modulo many primes, with a linear programme.

Reference: M. Naor, "Foundations of Privacy", lecture 10, slides 63 to 68. Repaired: an appearance
moves a counter for each of L primes, so each gets a share of 1/L of epsilon (printed: the whole,
which loses L times as much). The minimum of L estimates is biased low; beside it stands the
linear programme over all primes at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from panprivacy._validate import positive_integer, proportion, whole_number
from panprivacy.cells.difference_sets import is_prime
from panprivacy.cells.law import Law
from panprivacy.coins import Coins, SystemCoins
from panprivacy.errors import PlanError
from panprivacy.guarantee import Budget, Epsilon, Ledger
from panprivacy.ids import Labels, WholeNumbers, read_deltas
from panprivacy.noise import wipe
from panprivacy.statistics.arguments import instance, request
from panprivacy.statistics.cases import Cases, Short, Trial, Walk
from panprivacy.statistics.incidence.sizes import IncidenceSizes
from panprivacy.statistics.incidence.statistic import Incidence
from panprivacy.statistics.statistic import Batch
from panprivacy.statistics.together import Together

Floats = NDArray[np.float64]

MOST_UNIVERSE = 1 << 22
MOST_STATES = 1 << 12
_MOST_PRIMES = 64
_STATE_SHARE = Fraction(9, 10)


@dataclass(frozen=True, slots=True)
class PrimeHistograms:
    """For each prime how many counters hold each value, noised, and what is read off them.

    `epsilon` is what this release cost, `law_epsilon` what the laws of the counters are made for.
    """

    primes: tuple[int, ...]
    histograms: tuple[tuple[int, ...], ...]
    bound: int
    universe: int
    law_epsilon: Fraction
    epsilon: float

    @property
    def counts(self) -> tuple[int, ...]:
        """All noised counts, prime by prime."""
        return tuple(count for histogram in self.histograms for count in histogram)

    def estimates(self, state: int) -> tuple[float, ...]:
        """For each prime an unbiased estimate of the users whose state is congruent to `state`."""
        place = whole_number(0, self.bound, state=state)
        return tuple(
            float(np.roll(self._law(prime).kernel(), place) @ np.array(histogram))
            for prime, histogram in zip(self.primes, self.histograms, strict=True)
        )

    def minimum(self, state: int) -> float:
        """The printed estimate of the users in a state: biased low by `sd sqrt(2 ln L)`."""
        return min(self.estimates(state))

    def states(self) -> Floats:
        """How many users are in each state 0 .. bound, by the linear programme; float64[bound+1].

        Of all numbers of users that are at least 0 and add up to the universe, those from which
        the histograms are expected with the smallest total deviation. They are determined where
        the primes add up to `bound + L` or more.

        Raises:
            ImportError: SciPy is missing, which the extra `published` installs.
        """
        expected = []
        for prime in self.primes:  # how likely a counter of each state holds each value
            values, states = np.ogrid[:prime, : self.bound + 1]
            expected.append(self._law(prime).probabilities()[(values - states) % prime])
        return _least_deviation(
            np.vstack(expected), np.array(self.counts, float), float(self.universe)
        )

    def _law(self, prime: int) -> Law:
        return Law.geometric(prime, self.law_epsilon)


def _least_deviation(expected: Floats, observed: Floats, total: float) -> Floats:
    """The `x >= 0` of this total with the smallest sum of `|expected x - observed|`."""
    try:
        from scipy.optimize import linprog  # noqa: PLC0415 - only this needs it
    except ImportError as error:
        message = "the linear programme needs SciPy: pip install 'panprivacy[published]'"
        raise ImportError(message) from error
    rows, states = expected.shape
    slack = np.eye(rows)
    found = linprog(
        np.concatenate([np.zeros(states), np.ones(rows)]),
        A_ub=np.block([[expected, -slack], [-expected, -slack]]),
        b_ub=np.concatenate([observed, -observed]),
        A_eq=np.concatenate([np.ones(states), np.zeros(rows)])[np.newaxis],
        b_eq=[total],
        method="highs",
    )
    if found.x is None:
        message = f"the linear programme was not solved: {found.message}"
        raise ArithmeticError(message)
    return np.asarray(found.x[:states], float)


PRIME_TRIALS = (
    Trial(
        "counters modulo primes",
        {"universe": 60_013, "bound": 9, "primes": (3, 5)},
        None,
        deltas=(1, 3, -2),
        intrusions=False,
    ),
)

PRIME_WALKS = (
    Walk(
        "prime-incidence",
        "counters modulo 2 and 3",
        {"universe": 2, "bound": 5, "primes": (2, 3)},
        [Short([[(0, 1)], [(0, 4)], [(0, -1)]], 2, releases=0)],
        tail=1,
    ),
)


class PrimeIncidence(Together[int, Incidence]):
    """How many users are in each state, from counters of each user modulo L primes.

    >>> from panprivacy.published import PrimeIncidence
    >>> visits = PrimeIncidence(universe=100, bound=4, primes=(3, 5), epsilon=60)
    >>> visits.update([7, 7, 8])
    >>> 80 < visits.release().minimum(0) < 110
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. Each of L counters gets `epsilon_state/L` and each histogram `epsilon_release/L`.
    [tests/exact/test_published.py, docs/guarantees/published.md]

    Accuracy: each estimate modulo one prime is unbiased for the users whose states are congruent;
    its deviation grows with L and the prime. The minimum is biased; the linear programme errs
    less, with no bias known. [tests/statistical/test_published.py, docs/published.md]

    Args:
        epsilon: total loss of state and releases, in nats.
        universe: number of users, whose ids are 0 .. universe-1, at most 2**22.
        bound: the largest state, at most 4,096; none is below 0. Privacy does not rest on it.
        primes: the moduli, all different; the lecture draws them, as `draw_primes` does.
        releases: how many releases epsilon covers.
        budget: how epsilon is split between state and releases, all primes together; None for nine
            tenths and one.
        ledger: budget shared with other statistics of the same stream.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range.
        BudgetError: the ledger has less than `epsilon` available.

    Reference: lecture 10, slides 66 to 68. Different from print: `epsilon/L` for each counter in
    place of epsilon, whole weights in place of real ones, and noise on the histograms, of which the
    lecture asks only that the output be noisy.
    """

    __slots__ = ("_bound", "_law_epsilon", "_universe")

    trials, walks = Cases(PRIME_TRIALS), Cases(PRIME_WALKS)

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        universe: int,
        bound: int,
        primes: Sequence[int],
        releases: int = 1,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        asked = request(epsilon, releases, 0, budget)
        self._universe = positive_integer(MOST_UNIVERSE, universe=universe)
        self._bound = positive_integer(MOST_STATES, bound=bound)
        chosen = _checked_primes(primes)
        count = len(chosen)
        whole = asked.budget or Budget(
            asked.epsilon * _STATE_SHARE, asked.epsilon * (1 - _STATE_SHARE) / asked.releases
        )
        share = Budget(whole.state / count, whole.release / count)
        self._law_epsilon = share.state
        sizes = {
            prime: IncidenceSizes(
                bound=prime - 1,
                universe=self._universe,
                cells=self._universe,
                law=Law.geometric(prime, share.state),
            )
            for prime in chosen
        }
        for one in sizes.values():  # what cannot be planned is refused before anything is spent
            one.planned(request(asked.epsilon / count, asked.releases, 0, share))
        common = instance(Ledger, ledger=ledger) or Ledger(asked.epsilon)
        common.check(asked.epsilon)
        tables = {
            prime: Incidence(
                bound=one.highest,
                universe=one.universe,
                cells=one.cells,
                law=one.law,
                epsilon=asked.epsilon / count,
                releases=asked.releases,
                budget=share,
                ledger=common,
                coins=coins,
            )
            for prime, one in sizes.items()
        }
        super().__init__(tables)

    def prepare(self, users: Labels, deltas: WholeNumbers | None = None) -> list[Batch]:
        """Check one batch of events without counting it; takes and raises as `Incidence`."""
        rows = sum(map(len, self._first.prepare(users).ids))
        given = np.ones(rows, np.int64) if deltas is None else read_deltas(deltas, rows)
        return [table.prepare(users, given % prime) for prime, table in self._members.items()]

    def apply(self, *batches: Sequence[Batch]) -> None:
        """Count what `prepare` has checked, and wipe what it made of deltas."""
        try:
            super().apply(*batches)
        finally:
            wipe(*(one.deltas for batch in batches for one in batch if one.deltas is not None))

    def release(self) -> PrimeHistograms:  # type: ignore[override]
        """Publish the noised histograms of all primes; the budget is spent first.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
        """
        self.check_release()
        answers = [table.release() for table in self._members.values()]
        return PrimeHistograms(
            tuple(self._members),
            tuple(answer.counts for answer in answers),
            self._bound,
            self._universe,
            self._law_epsilon,
            math.fsum(answer.epsilon for answer in answers),
        )


def _checked_primes(primes: Sequence[int]) -> tuple[int, ...]:
    try:
        chosen = tuple(whole_number(2, MOST_STATES, prime=prime) for prime in primes)
    except TypeError:
        chosen = ()
    distinct = len(set(chosen)) == len(chosen)
    if not 1 <= len(chosen) <= _MOST_PRIMES or not distinct or not all(map(is_prime, chosen)):
        message = f"primes must be 1 to {_MOST_PRIMES} different primes of at most {MOST_STATES:,}"
        raise PlanError(message)
    return chosen


def draw_primes(
    count: int, bound: int, error: float, coins: Coins | None = None
) -> tuple[int, ...]:
    """So many different primes at random, from the range that the lecture names.

    It is the smallest that holds `4 log2(bound)/error` primes. Two states differ by a number with
    at most `log2(bound)` prime factors, so one prime confuses them with probability `error/4`.

    Args:
        count: L.
        bound: the largest state.
        error: the collisions that one prime may have, between 0 and 1.
        coins: None for the operating system's.

    Raises:
        PlanError: an argument out of range, or more primes than there are.
    """
    least = 4 * math.log2(positive_integer(MOST_STATES, bound=bound)) / proportion(error=error)
    candidates = list(filter(is_prime, range(2, MOST_STATES + 1)))
    wanted = max(least, float(positive_integer(_MOST_PRIMES, count=count)))
    if wanted > len(candidates):
        message = f"error is too small: there are only {len(candidates):,} primes to draw from"
        raise PlanError(message)
    range_size = math.ceil(wanted)
    left, source = candidates[:range_size], SystemCoins() if coins is None else coins
    picks = (int(source.categorical([1] * len(left), 1)[0]) for _ in range(count))
    return tuple(sorted(left.pop(pick) for pick in picks))
