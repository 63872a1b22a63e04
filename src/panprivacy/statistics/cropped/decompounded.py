"""A cropped sum that is read off the histogram of hashed counters whose law is flat.

Of very many users it is better than a count of blocks: it tells what the users of one counter add
up to, so nobody is hidden, and two counters a user are enough. Of few its output noise is larger.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.statistics.count_plan import CountReading
from panprivacy.statistics.cropped.plan import Cropped
from panprivacy.statistics.incidence.decoder import SharedModel
from panprivacy.statistics.incidence.estimates import Estimates
from panprivacy.statistics.incidence.linear_queries import States
from panprivacy.statistics.incidence.plan import IncidencePlan
from panprivacy.statistics.means.plans import MeanAsked
from panprivacy.tables.cells.law import Law
from panprivacy.tables.cells.modular import ModularCells
from panprivacy.tables.cells.protocol import Table
from panprivacy.tables.decoders.intervals import Floats, Measured
from panprivacy.tables.decoders.separate import SeparateModel
from panprivacy.tables.planning.request import noise_variance


@dataclass(frozen=True, slots=True)
class DecompoundedModel:
    """Reads a cropped sum off a histogram.

    Args:
        shared: reads the histogram.
        states: that users can be in.
        tau: where they are cropped.
        users: the most that are planned for.
        noise_variance: of each count.
    """

    shared: SharedModel
    states: States
    tau: int
    users: int
    noise_variance: float

    def estimate(self, ones: ArrayLike) -> float:
        """The sum, at least 0."""
        return max(float(self._read(ones).values), 0.0)

    def measured(self, ones: ArrayLike) -> Measured:
        """The sum before it is cut, its standard error, and the bias of the logarithm."""
        with np.errstate(over="ignore", invalid="ignore"):  # of a table that noise has emptied
            found = self._read(ones)
            deviation = float(np.nan_to_num(found.deviations(), nan=math.inf))
        return Measured(float(found.values), deviation, found.bias)

    def answer(self, ones: ArrayLike, confidence: float) -> tuple[float, float, float]:
        """The estimate, and both ends of its confidence interval.

        Raises:
            LostReleaseError: so many users share a counter that the answer would be noise.
        """
        self.shared.check_readable(ones, self.noise_variance)
        found = self._read(ones)
        low, high = found.intervals(confidence, math.inf)
        return max(float(found.values), 0.0), float(low), float(high)

    def deviation(self, truth: ArrayLike) -> Floats:
        """The standard deviation for each sum, of users in the one state that errs most."""
        truths = np.ravel(truth).tolist()
        worst = [max(state + output for state, output in _variances(self, t)) for t in truths]
        return np.sqrt(worst).reshape(np.shape(truth))

    def output_share(self, truth: float) -> float:
        """The part of the variance that output noise causes, where it is largest."""
        return max(output / (state + output) for state, output in _variances(self, truth))

    def variances(self, truth: float) -> list[tuple[float, float]]:
        """The variance of the counters and of the output, for users that are all in one state.

        States that go half around the modulus leave least of what tells a sum; states of 1 take
        the most users, as far as so many are planned for.
        """
        middle = self.states.modulus // 2
        crowds = []
        for state in {1, self.tau, middle, middle + 1, self.states.bound}:
            users = truth / min(state, self.tau)
            if state <= self.states.bound and (users <= self.users or state >= self.tau):
                crowds.append((users, state))
        query = self.states.cropped_sum(self.tau)
        return list(self.shared.crowd_variances(query, crowds, self.noise_variance))

    def _read(self, histogram: ArrayLike) -> Estimates:
        return self.shared.from_histogram(
            self.states.cropped_sum(self.tau), histogram, self.noise_variance
        )


@functools.lru_cache(maxsize=4)
def _variances(model: DecompoundedModel, truth: float) -> list[tuple[float, float]]:
    """Return the variances of a model, which its error and the reach of its noise both need.

    With a modulus of a million they take about a second; a few are held, because laws are large.
    """
    return model.variances(truth)


@dataclass(frozen=True, slots=True)
class DecompoundedPlan(MeanAsked, Cropped):
    """The parameters of a `CroppedSum` of so many users that a histogram is better.

    Args:
        bound: the largest state.
        law: the noise of the counters.
    """

    expected: int
    bound: int
    law: Law

    proofs = ("modular", "releases")

    @classmethod
    def of(cls, tau: int, counted: IncidencePlan) -> Self:
        """Counters as they are planned for an `Incidence`."""
        sizes = tau, None, counted.cells, counted.expected or 0
        return cls(*sizes, counted.request, counted.split, counted.bound, counted.law)

    @property
    def table(self) -> ModularCells:
        """The table's cells."""
        return ModularCells(self.cells, self.law)

    @property
    def range_of_states(self) -> tuple[int, int]:
        """The lowest and the highest state that is told right: counters may have room for more."""
        return 0, self.law.modulus - 1

    @property
    def _truths(self) -> Floats:
        """Errors are largest where most users share counters."""
        return np.array([self.largest])

    @property
    def readable(self) -> bool:
        """Whether the counters of as many users as are planned for can be read."""
        model = self.model(self.request.intrusions)
        load = self.expected / self.cells
        return model.shared.spectrum.is_readable(load, model.noise_variance)

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002
        """A user moves two counts of the histogram by one."""
        return 2

    def model(self, epoch: int) -> DecompoundedModel:
        """Return the estimate model of counts released after `epoch` announced intrusions."""
        shared = SharedModel(self.law, epoch, self.cells)
        states = States(self.law.modulus, self.bound, signed=False)
        noise = noise_variance(self.sensitivity(epoch), self.split.budget)
        return DecompoundedModel(shared, states, self.tau, self.expected, noise)

    reads_separately = True

    def joint_model(self, epoch: int, tables: int) -> SeparateModel:
        """Return the estimate model of the histograms of several tables."""
        return SeparateModel(self.model(epoch), tables)

    def reading(self, query: object, epoch: int) -> Any:
        """Return the reading of a release after `epoch` announced intrusions."""
        found = MeanAsked.reading(self, query, epoch)  # refuses a mean
        return DecompoundedReading(self, found.epoch)


class DecompoundedReading(CountReading):
    """A release of the histogram, from which the sum is read."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """The number of values."""
        plan: Any = self.plan
        return plan.law.modulus

    def sums(self, cells: Any, table: Table) -> NDArray[np.int64]:
        """Return the number of counters that hold each value."""
        counts: NDArray[np.int64] = cells.histogram(table)
        return counts
