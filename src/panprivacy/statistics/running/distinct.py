"""How many different users so far, at the end of every step?

Noisy bits of hashed users, as a `DistinctCount` has them; and for each level of them a running
count of its ones, which is told by how much their number changes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Unpack

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users
from panprivacy.ground.validation import MOST_BYTES
from panprivacy.privacy.guarantee import Guarantee, exp_bounds, log_above, randomised_response
from panprivacy.statistics.arguments import Arguments
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.distinct.decoder import LevelModel
from panprivacy.statistics.distinct.plan import DistinctPlan
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.plan import guarantee_of
from panprivacy.statistics.records import Sizes, Whole, integer, users
from panprivacy.statistics.release import Name
from panprivacy.statistics.running.cases import DISTINCT_TRIALS, DISTINCT_WALKS
from panprivacy.statistics.running.stepwise.counted import CountedBits, EventBits
from panprivacy.statistics.running.stepwise.event_plan import Horizon, SumsPlan, at_birth
from panprivacy.statistics.running.stepwise.nodes import Nodes
from panprivacy.statistics.running.stepwise.statistic import StepwiseTable
from panprivacy.tables.cells.protocol import Deltas
from panprivacy.tables.counters.running import Sum
from panprivacy.tables.counters.shapes import largest_deviation, mixed_radix
from panprivacy.tables.counters.tree import Tree
from panprivacy.tables.decoders.intervals import Measured
from panprivacy.tables.planning.regret import Designs
from panprivacy.tables.planning.request import Request, Split, no_signal

_SHARES = 64
_DIGITS = 10**9
_MOST_EPSILON = 1_000


@dataclass(frozen=True, slots=True)
class RunningDistinctPlan(SumsPlan, DistinctPlan):
    """The parameters of a `RunningDistinct`.

    Args:
        expected: lowest and highest number of users the plan is good for.
        levels: number of levels.
        cells_per_level: cells of each.
        request: epsilon and what it covers; its releases are the horizon.
        split: all of epsilon is the state's; the noise is that of the worst step.
        horizon: how many steps there are at most, each with an answer.
        bit_epsilon: of a look at the bits.
        sum_epsilon: of one more or one less in a step, in all that the sums tell.
        tree: the tree of steps of each level; the state may be seen within a step.
    """

    horizon: int
    bit_epsilon: Fraction
    sum_epsilon: Fraction
    tree: Tree

    proofs = ("running-distinct", "bits", "running")
    checks = ("exact/test_running_distinct", "statistical/test_running_distinct")
    name = Name("", "running_distinct")

    @property
    def question(self) -> str:  # type: ignore[override]
        """The question that it answers, in words."""
        return f"how many users so far, at the end of each of up to {self.horizon:,} steps?"

    @property
    def bits(self) -> EventBits:
        """The bits of all levels."""
        return EventBits(self.cells, self.bit_epsilon, self.request.intrusions)

    @property
    def table(self) -> CountedBits:  # type: ignore[override]
        """The layout of the stored table."""
        return CountedBits(self.bits, self.levels, Nodes(self.tree))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for each event.

        After a crash the other branch tells what the bit was, or what is drawn when the event comes
        again.
        """
        told = self.sum_epsilon
        if self.request.intrusions:
            told += self.sum_epsilon + self.bit_epsilon
        return guarantee_of(self, crash=2 * told)

    def model(self, epoch: int) -> LevelModel:
        """Return the model of numbers of ones at the worst step after announced intrusions."""
        planned = epoch == self.request.intrusions
        contrast = self.split.contrast if planned else float(self.bits.contrast(epoch))
        sizes = self.levels, self.cells_per_level
        return LevelModel(*sizes, contrast, (1 + contrast) / 2, 1, self.split.noise_variance)

    def check_deltas(self, deltas: Deltas) -> None:
        """Nobody leaves."""
        refuse_deltas(deltas < 1, "delta must be at least 1: users that leave cannot be counted")

    def estimate(
        self, sums: Sequence[Sum], epoch: int, confidence: float
    ) -> tuple[float, float, float, Measured]:
        """The number of users with its interval, and before it is cut, from the ones of each level.

        All levels have the same steps, so their noise has the same variance.
        """
        model = replace(self.model(epoch), noise_variance=sums[0].variance)
        ones = [one.value for one in sums]
        return *model.answer(ones, confidence), model.measured(ones)


@functools.lru_cache(maxsize=64)
def plan_running_distinct(
    expected: tuple[int, int], memory: int, horizon: int, request: Request
) -> RunningDistinctPlan:
    """Plan a `RunningDistinct` with at most so many bytes of bits.

    Raises:
        PlanError: a budget, or no signal would be left.
    """
    plan = _designs(expected, horizon, request).best(8 * memory)
    exact = largest_deviation(plan.tree) ** 2
    return replace(plan, split=replace(plan.split, noise_variance=exact))


@functools.lru_cache(maxsize=8)
def _designs(
    expected: tuple[int, int], horizon: int, request: Request
) -> Designs[RunningDistinctPlan]:
    """The designs for any memory.

    Raises:
        PlanError: a budget, or no signal would be left.
    """
    paid = at_birth(request)
    if request.epsilon > _MOST_EPSILON:
        message = f"epsilon of a running distinct count must be at most {_MOST_EPSILON:,}"
        raise PlanError(message)
    shares = _shares(request.epsilon)
    bits = [EventBits(1, bit, request.intrusions) for bit, _ in shares]
    contrasts = np.array([float(one.contrast(request.intrusions)) for one in bits])
    unit = largest_deviation(mixed_radix(horizon, Fraction(1), open_steps=True))
    variances = np.array([(unit / float(sums)) ** 2 for _, sums in shares])
    trees = [mixed_radix(horizon, sums, open_steps=True) for _, sums in shares]

    def design(levels: int, cells_per_level: int) -> RunningDistinctPlan:
        best = int(np.argmin((cells_per_level / 4 + variances) / contrasts**2))
        split = Split(paid.budget, float(contrasts[best]), float(variances[best]))
        sizes = expected, levels, cells_per_level, request, split, horizon
        return RunningDistinctPlan(*sizes, *shares[best], tree=trees[best])

    return Designs(lambda levels, cells: [design(levels, each) for each in cells], expected)


@functools.lru_cache(maxsize=64)
def _shares(epsilon: Fraction) -> list[tuple[Fraction, Fraction]]:
    """The ways to share epsilon: that of the bits, and that of the sums.

    Raises:
        PlanError: nothing is left for the sums.
    """
    bits = [epsilon * share / _SHARES for share in range(1, _SHARES)]
    found = [(bit, sums) for bit in bits if (sums := sum_epsilon(epsilon, bit)) > 0]
    if not found:
        raise no_signal(Request(epsilon))
    return found


def sum_epsilon(epsilon: Fraction, bit_epsilon: Fraction) -> Fraction:
    """The largest loss of one unit of a sum with which an event costs at most epsilon in all.

    With odds E of a bit and `C = e**(2 sum_epsilon)` it costs the logarithm of
    `E (1 + E C)/(1 + E)`, or of C if that is more. [docs/guarantees/running-distinct.md]

    Returns:
        Rounded down to nine digits after the point; 0 or less if nothing is left.
    """
    present = randomised_response(bit_epsilon)
    odds = present / (1 - present)
    below, _ = exp_bounds(epsilon)
    most = min((below * (1 + odds) / odds - 1) / odds, below)
    if most <= 1:
        return Fraction(0)
    return Fraction(math.floor(-log_above(1 / most) / 2 * _DIGITS), _DIGITS)


class RunningDistinctSizes(Sizes, frozen=True, tag="running-distinct"):
    """The number of different users so far, at the end of every step; hides one event."""

    most_memory: ClassVar[int] = 1 << 16

    horizon: Horizon
    expected: Annotated[
        Users,
        users(
            "how many users to plan for; the count stays private outside of the range", "1000:1e9"
        ),
    ] = (1_000, 1_000_000_000)
    memory: Annotated[int, integer("most bytes of bits; the plan may use fewer", MOST_BYTES)] = (
        1 << 16
    )

    def plan(self, request: Request) -> RunningDistinctPlan:
        """Levels of bits, and a tree of steps for each."""
        low, high = self.expected if isinstance(self.expected, tuple) else (self.expected,) * 2
        return plan_running_distinct((low, high), self.memory, self.horizon, request)


class RunningDistinct(StepwiseTable[RunningDistinctPlan]):
    """The number of different users so far, released at the end of every step.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> visitors = pp.RunningDistinct(horizon=24, expected=20_000, epsilon=2)
    >>> for hour in range(3):
    ...     visitors.update(np.arange(5_000) + 4_000 * hour)
    ...     answer = visitors.release()
    >>> 10_000 < answer.value < 16_000  # 13,000
    True

    What is hidden is one event, not one user: who comes every day is in many events. A step is the
    time between two releases; there are `horizon` of them, whatever `releases` says.

    Guarantee: the joint law of the state at any one time and all releases changes by a factor of
    at most `e**epsilon` when one event is added or removed. Each intrusion that is announced is
    covered as well, for nothing but accuracy: it flips many bits.
    [tests/contract, tests/exact/test_running_distinct.py, docs/guarantees/running-distinct.md]

    Accuracy: as a `DistinctCount` with the part of epsilon that its bits have, and a running count
    of ones; `error()` is for the worst step. [tests/statistical/test_running_distinct.py]

    All of epsilon is spent at birth, and releases cost nothing. A step whose release has left is
    never made again after a crash: what was counted since the state was taken is lost. Each crash
    after which an earlier state goes on adds up to `guarantee.crash`.
    """

    __slots__ = ()

    entry = CatalogueEntry(RunningDistinctSizes, trials=DISTINCT_TRIALS, walks=DISTINCT_WALKS)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            horizon: Whole,
            expected: tuple[Whole, Whole] | Whole | str = (1_000, 1_000_000_000),
            memory: Whole = 65_536,
            **arguments: Unpack[Arguments],
        ) -> None: ...
