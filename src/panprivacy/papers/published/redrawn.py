"""Cells that are redrawn from a second law when their user appears, whatever the two laws are.

Dwork et al.'s sampled bits, Dwork and Roth's bits and the continuous cells of Digalakis et al.
differ in the laws alone. What a look and the releases lose together follows from these exactly.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.hygiene.uncounted import uncounted
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import LARGEST_EXPONENT, Budget, exp_bounds, log_above, rounded_up
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.deltas import refuse_deltas
from panprivacy.statistics.density.decoder import DensityModel
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.tables.addressing import Slots, mark_slots
from panprivacy.tables.cells.protocol import Deltas, PresenceCells, Table
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.request import (
    Request,
    Split,
    laplace_variance,
    no_signal,
    release_shares,
)
from panprivacy.tables.planning.universe import check_cells

Weights = tuple[int, ...]
"""Relative probabilities that a cell holds 0, 1, ...: whole numbers with any sum."""

LawsOf = Callable[[Fraction], "CellLaws"]
"""Function from a loss to the laws with that loss under one intrusion."""

WEIGHT = 1 << 48
MOST_CELLS = 1 << 27
_CHARGE_DIGITS = 15
_NOISE_DIGITS = 7


@dataclass(frozen=True, slots=True)
class CellLaws:
    """The laws of the initial value of a cell, and of the redraw when its user appears.

    Args:
        absent: weights of the initial values 0, 1, ...
        present: the weights of a redraw, of equal length, with more weight on high values.
    """

    absent: Weights
    present: Weights

    @classmethod
    def of_bits(cls, absent: Fraction, present: Fraction) -> CellLaws:
        """Return the laws of cells that are 1 with these probabilities, and 0 otherwise."""
        odds = [
            (chance.denominator - chance.numerator, chance.numerator)
            for chance in (absent, present)
        ]
        return cls(*odds)

    @property
    def top(self) -> int:
        """The highest value."""
        return len(self.absent) - 1

    def probabilities(self) -> tuple[list[Fraction], list[Fraction]]:
        """Return the probability of each value of an absent cell, and of a present cell."""
        absent, present = (
            [Fraction(weight, sum(weights)) for weight in weights]
            for weights in (self.absent, self.present)
        )
        return absent, present

    def moments(self) -> tuple[float, float, float, float]:
        """Return mean and variance of an absent cell, and of a present one."""
        return _moments(self)

    def of_look(self) -> Fraction:
        """Return the privacy loss of one intrusion, rounded up."""
        absent, present = self.probabilities()
        return log_above(max(present[-1] / absent[-1], absent[0] / present[0]))

    def loss(self, release: Fraction, releases: int) -> Fraction:
        """Return the loss of one intrusion and `releases` releases of this epsilon, rounded up.

        Guarantee: no pair of neighbours has a larger loss, for the laws that the proof covers.
        [tests/exact/test_published_density.py, docs/guarantees/published.md]
        """
        absent, present = self.probabilities()
        total = releases * release
        if total > LARGEST_EXPONENT:
            return self.of_look() + total
        steps = [Fraction(value, self.top) for value in range(self.top + 1)]
        speaking_for_0 = [exp_bounds(total * (1 - step))[1] for step in steps]
        speaking_for_1 = [1 / exp_bounds(release * step)[1] for step in steps]
        mean = sum(map(operator.mul, absent, speaking_for_0), Fraction(0))
        least = sum(map(operator.mul, present, speaking_for_1), Fraction(0))
        return max(
            log_above(present[-1] / absent[-1] * mean),
            log_above(absent[0] / present[0]) + releases * log_above(1 / least),
        )

    def near_loss(self, release: float, releases: int) -> float:
        """Return the same in floating point, to solve for the epsilon of a release."""
        absent, present = np.log(_chances(self))
        steps = np.arange(self.top + 1) / self.top
        mean = np.logaddexp.reduce(absent + releases * release * steps[::-1])
        least = np.logaddexp.reduce(present - release * steps)
        return float(
            max(present[-1] - absent[-1] + mean, absent[0] - present[0] - releases * least)
        )


@uncounted
def _chances(laws: CellLaws) -> Floats:
    return np.array(laws.probabilities(), float)


@uncounted
def _moments(laws: CellLaws) -> tuple[float, float, float, float]:
    values = np.arange(laws.top + 1)
    means, variances = [], []
    for law in _chances(laws):
        means.append(float(law @ values))
        variances.append(float(law @ (values - means[-1]) ** 2))
    return means[0], variances[0], means[1], variances[1]


@dataclass(frozen=True, slots=True)
class RedrawnBudget(Budget):
    """The split of the epsilon of redrawn cells.

    Args:
        laws: laws of the cells.
    """

    laws: CellLaws

    def of_releases(self, count: int) -> Fraction:
        """Return the loss of the first `count` releases beyond the state: less than their sum."""
        return _of_releases(self, count) if count else Fraction(0)


@uncounted
def _of_releases(budget: RedrawnBudget, count: int) -> Fraction:
    beyond = budget.laws.loss(budget.release, count) - budget.laws.of_look()
    return min(count * budget.release, Fraction(rounded_up(beyond, _CHARGE_DIGITS)))


@dataclass(frozen=True, slots=True)
class RedrawnCells(PresenceCells):
    """Byte cells, with an initial value from one law, redrawn from another when the user appears.

    Guarantee: one look changes by at most the largest ratio of the two laws between streams that
    differ in all or some updates of one user. [tests/exact/test_published_density.py]

    Args:
        cells: number of cells.
        laws: the laws from which they are drawn.
    """

    cells: int
    laws: CellLaws

    says = "noisy numbers"

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self.cells

    def initial(self, coins: Coins) -> Table:
        """Return a table in which nobody has appeared."""
        return self._drawn(self.laws.absent, self.cells, coins)

    def _drawn(self, weights: Weights, count: int, coins: Coins) -> NDArray[np.uint8]:
        values = coins.categorical(weights, count)
        drawn = values.astype(np.uint8)
        wipe(values)
        return drawn

    def is_table(self, table: Table) -> bool:
        """Return whether no cell holds more than the highest value."""
        return len(table) == self.cells and int(table.max()) <= self.laws.top

    def update(
        self,
        table: Table,
        slots: Iterable[Slots],
        deltas: Deltas | None,  # noqa: ARG002 - however often a user comes, they have come
        epoch: int,  # noqa: ARG002 - there are no intrusions
        coins: Coins,
    ) -> None:
        """Redraw each touched cell once: only the last redraw of a batch is observable."""
        bitmap = np.zeros(-(-self.cells // 64), np.uint64)
        for piece in slots:
            mark_slots(piece, bitmap)
        touched = np.unpackbits(bitmap.view(np.uint8), count=self.cells, bitorder="little")
        try:
            fresh = self._drawn(self.laws.present, int(touched.sum()), coins)
            np.place(table, touched.view(np.bool_), fresh)  # makes no list of the cells
            wipe(fresh)
        finally:
            wipe(bitmap, touched)

    def ones(self, table: Table) -> NDArray[np.uint8]:
        """Return the value of each cell, uint8[cells]: 0 to the highest value."""
        return table.copy()

    def fresh_noise(self, coins: Coins) -> NoReturn:  # noqa: ARG002
        """Refuse: an intrusion cannot be announced."""
        raise PlanError(_NO_INTRUSIONS)

    def rerandomise(self, table: Table, noise: Table) -> NoReturn:  # noqa: ARG002
        """Refuse: an intrusion cannot be announced."""
        raise PlanError(_NO_INTRUSIONS)


_NO_INTRUSIONS = "the published algorithms have no announced intrusions; leave out intrusions="


@dataclass(frozen=True, slots=True)
class RedrawnModel(DensityModel):
    """The share of a universe, from the noisy sum of redrawn cells.

    Args:
        laws: laws of the cells.
    """

    laws: CellLaws

    @property
    def absent_mean(self) -> float:
        """The mean of a cell whose user did not appear."""
        return self.laws.moments()[0]

    def cell_variance(self, share: Floats) -> Floats:
        """Return the variance of a cell, given whether its user appeared, on average over users."""
        _, absent, _, present = self.laws.moments()
        return absent + share * (present - absent)


@dataclass(frozen=True, slots=True)
class RedrawnPlan(DensityPlan):
    """The parameters of a density estimator of redrawn cells.

    Args:
        laws: laws of the cells.
    """

    laws: CellLaws

    proofs = ("published",)
    checks = ("exact/test_published_density", "statistical/test_published_density")

    @property
    def table(self) -> RedrawnCells:  # type: ignore[override]
        """The table's cells."""
        return RedrawnCells(self.cells, self.laws)

    def sensitivity(self, epoch: int) -> int:  # noqa: ARG002 - there are no intrusions
        """Return the largest amount by which a user may move the sum of all cells."""
        return self.laws.top

    def check_deltas(self, deltas: Deltas) -> None:
        """Refuse departures: a delta is at least 1."""
        refuse_deltas(deltas < 1, "delta must be at least 1: nobody leaves")

    def model(self, epoch: int) -> RedrawnModel:  # noqa: ARG002 - there are no intrusions
        """Return the model of a noisy sum."""
        contrast, noise = self.split.contrast, self.split.noise_variance
        return RedrawnModel(self.universe, self.cells, contrast, noise, self.laws)


def plan_redrawn(
    universe: int, cells: int | None, laws_of: LawsOf, request: Request
) -> RedrawnPlan:
    """Plan a density estimator.

    Args:
        universe: number of users.
        cells: how many of them have a cell; None for all.
        laws_of: the laws of a given loss.
        request: epsilon and what it covers.

    Raises:
        PlanError: the arguments do not fit together, or no signal would remain.
    """
    check_cells(universe, cells)
    if request.intrusions:
        raise PlanError(_NO_INTRUSIONS)
    sample = min(universe, MOST_CELLS) if cells is None else cells
    state = request.budget.state if request.budget else _best_state(sample, laws_of, request)
    laws = laws_of(state)
    own = request.budget.release if request.budget else _release(state, laws, request)
    absent, _, present, _ = laws.moments()
    noise = laplace_variance(float(own) / laws.top)
    if absent >= present or math.isinf(noise):
        raise no_signal(request)
    budget = RedrawnBudget(state, own, laws)
    request.check(budget)
    split = Split(budget, present - absent, noise)
    return RedrawnPlan(universe, sample, request, split, laws)


def _best_state(cells: int, laws_of: LawsOf, request: Request) -> Fraction:
    """Return the epsilon of the state that leads to the smallest error."""

    def error(state: Fraction) -> float:
        laws = laws_of(state)
        absent, absent_variance, present, present_variance = laws.moments()
        release = _near_release(laws, request.epsilon - state, request.releases)
        noise = laplace_variance(release / laws.top)
        variance = cells * max(absent_variance, present_variance) + noise
        return math.sqrt(variance) / (present - absent) if present > absent else math.inf

    states = [request.epsilon * (1 - share) for share in release_shares()]
    return min(states, key=error)


def _near_release(laws: CellLaws, left: Fraction, releases: int) -> float:
    """Return the epsilon of a release with which all of them cost so much, in floating point."""
    low, high = 0.0, float(left)
    most = laws.near_loss(0.0, releases) + high
    while laws.near_loss(high, releases) <= most:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = laws.near_loss(middle, releases) <= most
        low, high = (middle, high) if fits else (low, middle)
    return low


_HALVINGS = 60


def _release(state: Fraction, laws: CellLaws, request: Request) -> Fraction:
    """Return the same, exact, rounded down to 7 digits."""
    left = request.epsilon - state
    near = _near_release(laws, left, request.releases)
    unit = (
        Fraction(10) ** (math.floor(math.log10(near)) + 1 - _NOISE_DIGITS) if near else Fraction(1)
    )
    release = Fraction(near) // unit * unit
    while release > 0:
        if RedrawnBudget(state, release, laws).of_releases(request.releases) <= left:
            return release
        release -= unit
    raise no_signal(request)
