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
from typing import cast

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError, install
from panprivacy.ground.validation import positive_integer, proportion, whole_number
from panprivacy.privacy.coins import Coins, SystemCoins
from panprivacy.privacy.guarantee import Budget, Epsilon, Ledger
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.arguments import instance, request
from panprivacy.statistics.cases import Short, Trial, Walk
from panprivacy.statistics.composites.members import (
    JoinedContributions,
    JoinedInternals,
    JoinedMemory,
    JoinedReleasing,
    JoinedWindows,
    Members,
)
from panprivacy.statistics.composites.together import Together
from panprivacy.statistics.entry import Cases
from panprivacy.statistics.incidence.sizes import IncidenceSizes
from panprivacy.statistics.incidence.statistic import Incidence
from panprivacy.statistics.table.memory import Batch
from panprivacy.tables.cells.difference_sets import is_prime
from panprivacy.tables.cells.law import Law
from panprivacy.tables.ids import Labels, SharedColumn, WholeNumbers, read_deltas, read_ids

Floats = NDArray[np.float64]

MOST_UNIVERSE = 1 << 22
MOST_STATES = 1 << 12
_MOST_PRIMES = 64
_STATE_SHARE = Fraction(9, 10)


@dataclass(frozen=True, slots=True)
class PrimeHistograms:
    """The noisy histogram of counter values for each prime, and the estimates from it.

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
        """All noisy counts, prime by prime."""
        return tuple(count for histogram in self.histograms for count in histogram)

    def estimates(self, state: int) -> tuple[float, ...]:
        """Return an unbiased estimate of the users in states congruent to `state`, by prime."""
        place = whole_number(0, self.bound, state=state)
        return tuple(
            float(np.roll(self._law(prime).kernel(), place) @ np.array(histogram))
            for prime, histogram in zip(self.primes, self.histograms, strict=True)
        )

    def minimum(self, state: int) -> float:
        """Return the printed estimate of the users in a state: biased low by `sd sqrt(2 ln L)`."""
        return min(self.estimates(state))

    def states(self) -> Floats:
        """Return the number of users in each state 0 .. bound; float64[bound+1].

        The linear programme minimises the total deviation of the histograms from their expectation,
        over all numbers of users that are at least 0 and add up to the universe. The solution is
        unique where the primes add up to `bound + L` or more.


        Raises:
            ImportError: SciPy is missing, which the extra `published` installs.
        """
        expected = []
        for prime in self.primes:  # probability that a counter of each state holds each value
            values, states = np.ogrid[:prime, : self.bound + 1]
            expected.append(self._law(prime).probabilities()[(values - states) % prime])
        return _min_deviation(
            np.vstack(expected), np.array(self.counts, float), float(self.universe)
        )

    def _law(self, prime: int) -> Law:
        return Law.geometric(prime, self.law_epsilon)


def _min_deviation(expected: Floats, observed: Floats, total: float) -> Floats:
    """Return the `x >= 0` of this total with the smallest sum of `|expected x - observed|`."""
    try:
        from scipy.optimize import linprog  # noqa: PLC0415 - only this needs it
    except ImportError as error:
        message = f"the linear programme needs SciPy: {install('published')}"
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


class ResidueMemory(JoinedMemory[int, Incidence]):
    """The memory of the tables of all primes."""

    __slots__ = ()

    def prepare(self, users: Labels, deltas: WholeNumbers | None = None) -> list[Batch]:
        """Check one batch of events without counting it; takes and raises as `Incidence`."""
        ids = SharedColumn(users)
        rows = sum(map(len, read_ids(ids)))
        given = np.ones(rows, np.int64) if deltas is None else read_deltas(deltas, rows)
        return [
            table.internals.memory.prepare(ids, given % prime)
            for prime, table in self.members.programs.items()
        ]

    def apply(self, *batches: Sequence[Batch]) -> None:
        """Count what `prepare` has checked, and wipe what it made of deltas."""
        try:
            super().apply(*batches)
        finally:
            wipe(*(one.deltas for batch in batches for one in batch if one.deltas is not None))


class PrimeReleasing(JoinedReleasing[int, Incidence]):
    """The releases of the tables of all primes, as one answer.

    Args:
        members: the tables.
        bound: the largest state.
        universe: number of users.
        law_epsilon: epsilon of the state of each table.
    """

    __slots__ = ("_bound", "_law_epsilon", "_universe")

    def __init__(
        self, members: Members[int, Incidence], bound: int, universe: int, law_epsilon: Fraction
    ) -> None:
        super().__init__(members)
        self._bound, self._universe, self._law_epsilon = bound, universe, law_epsilon

    def release(self) -> PrimeHistograms:  # type: ignore[override]
        """Publish the noisy histograms of all primes; see `PrimeIncidence.release`."""
        self.check_release()
        answers = [table.release() for table in self.members.programs.values()]
        return PrimeHistograms(
            tuple(self.members.programs),
            tuple(answer.counts for answer in answers),
            self._bound,
            self._universe,
            self._law_epsilon,
            math.fsum(answer.epsilon for answer in answers),
        )


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the tables of all primes have in common.

    Args:
        epsilon: of each.
        releases: of each.
        budget: the share of each.
        ledger: of all.
        coins: of all.
    """

    epsilon: Fraction
    releases: int
    budget: Budget
    ledger: Ledger
    coins: Coins | None

    def table(self, sizes: IncidenceSizes) -> Incidence:
        """Return the table of one prime."""
        return Incidence(
            bound=sizes.highest,
            universe=sizes.universe,
            cells=sizes.cells,
            law=sizes.law,
            epsilon=self.epsilon,
            releases=self.releases,
            budget=self.budget,
            ledger=self.ledger,
            coins=self.coins,
        )


class PrimeIncidence(Together[int, Incidence]):
    """The number of users in each state, from counters of each user modulo L primes.

    >>> from panprivacy.papers.published import PrimeIncidence
    >>> visits = PrimeIncidence(universe=100, bound=4, primes=(3, 5), epsilon=60)
    >>> visits.update([7, 7, 8])
    >>> 80 < visits.release().minimum(0) < 110
    True

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when all or some updates of one user are added or removed, whatever the
    states do. Each of L counters gets `epsilon_state/L` and each histogram `epsilon_release/L`.
    [tests/exact/test_published.py, docs/guarantees/published.md]

    Accuracy: each estimate modulo one prime is unbiased for the users whose states are congruent;
    its standard deviation grows with L and the prime. The minimum is biased; the linear programme
    has a smaller error, with no known bias. [tests/statistical/test_published.py,
    docs/published.md]

    Args:
        epsilon: total loss of state and releases, in nats.
        universe: number of users, whose ids are 0 .. universe-1, at most 2**22.
        bound: the largest state, at most 4,096; none is below 0. Privacy does not rest on it.
        primes: the moduli, all different; the lecture draws them, as `draw_primes` does.
        releases: number of releases that epsilon covers.
        budget: the split of epsilon between state and releases, all primes together; None for nine
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

    __slots__ = ()

    entry = Cases(trials=PRIME_TRIALS, walks=PRIME_WALKS)

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
        users = positive_integer(MOST_UNIVERSE, universe=universe)
        most = positive_integer(MOST_STATES, bound=bound)
        chosen = _checked_primes(primes)
        count = len(chosen)
        whole = asked.budget or Budget(
            asked.epsilon * _STATE_SHARE, asked.epsilon * (1 - _STATE_SHARE) / asked.releases
        )
        share = Budget(whole.state / count, whole.release / count)
        sizes = {
            prime: IncidenceSizes(
                bound=prime - 1,
                universe=users,
                cells=users,
                law=Law.geometric(prime, share.state),
            )
            for prime in chosen
        }
        for one in sizes.values():  # what cannot be planned is refused before anything is spent
            one.planned(request(asked.epsilon / count, asked.releases, 0, share))
        common = instance(Ledger, ledger=ledger) or Ledger(asked.epsilon)
        common.check(asked.epsilon)
        shared = _Shared(asked.epsilon / count, asked.releases, share, common, coins)
        super().__init__({prime: shared.table(one) for prime, one in sizes.items()})
        joined = self._joint
        self.internals = JoinedInternals(
            ResidueMemory(type(self).__name__, joined),
            JoinedWindows(joined),
            JoinedContributions(joined),
            PrimeReleasing(joined, most, users, share.state),
        )

    def release(self) -> PrimeHistograms:  # type: ignore[override]
        """Publish the noisy histograms of all primes; the budget is spent first.

        Raises:
            BudgetError: all planned releases have been made. Nothing was spent.
        """
        return cast("PrimeHistograms", super().release())


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
    """Return `count` different random primes from the range that the lecture names.

    It is the smallest that holds `4 log2(bound)/error` primes. Two states differ by a number with
    at most `log2(bound)` prime factors, so one prime confuses them with probability `error/4`.

    Args:
        count: the number L of primes.
        bound: the largest state.
        error: the largest share of collisions that one prime may have, between 0 and 1.
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
