"""Plans of additive cells: their number, the split of epsilon, and the content of a release.

A quadratic answer has no bounded sensitivity on the table. Two forms of a release are safe: noise
on *every cell*, of which the answer is a function; or noise on *one sum* of squares of cells that
are cut to a public ±clip. The first pays with the noise of every cell, the second with a
sensitivity that grows with the clip. The size of the answer decides which one has the smaller
error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np

from panprivacy.errors import PlanError
from panprivacy.privacy.guarantee import Budget
from panprivacy.tables.decoders.intervals import Floats, discrete_laplace_variance
from panprivacy.tables.decoders.quadratic import CellNoise
from panprivacy.tables.planning.regret import WORST_ERROR, grid
from panprivacy.tables.planning.request import Request, budgets, no_signal

MOST_BOUND = 1 << 20
_FEWEST_CELLS = 64
"""Minimum cells of a plan, per table: the errors of fewer do not follow the law of intervals."""

_SHARES = 2
"""Step in the shares of epsilon that are tried: errors change little between them."""

_CUT = 0.01
"""Largest bias by clipping, as a share of the standard deviation of cells that are empty."""

_TILTS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
_MOST_BITS = 62
_MOST_NOISE_BITS = 56
_LEAST = 1e-12
_MOST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True, init=False)
class AdditiveBudget(Budget):
    """The split of the epsilon of additive cells."""

    def __init__(self, state: Fraction, release: Fraction) -> None:
        object.__setattr__(self, "state", state)
        object.__setattr__(self, "release", release)

    def unseen(self, *, releases: int, intrusions: int) -> Fraction:  # noqa: ARG002
        """Return the loss of the releases if there is no intrusion into the state.

        The noise of the cells can replace that of one release. Cells are not a bounded channel:
        they have no largest value, so the rule of other tables does not hold here.
        """
        most = releases * self.release
        return min(most, self.state + most - self.release)


@dataclass(frozen=True, slots=True)
class Reach:
    """The bounds on how one user can move the cells.

    Args:
        bound: the largest state.
        signed: whether states reach down to `-bound`.
        tables: how many tables a user moves, a cell of each.
    """

    bound: int
    signed: bool
    tables: int

    @property
    def cell(self) -> int:
        """The width of the range of states: the largest difference of two states of a user."""
        return (2 if self.signed else 1) * self.bound

    @property
    def path(self) -> int:
        """Largest change of a difference of two states between two moments."""
        return 2 * self.cell

    def initial(self, budget: Budget) -> Fraction:
        """Return the scale of the initial noise of cells."""
        return self.tables * self.cell / budget.state

    def later(self, budget: Budget) -> Fraction:
        """Return the scale of the noise that an announced intrusion adds."""
        return self.tables * self.path / budget.state

    def squares(self, clip: int) -> int:
        """Return the largest amount by which a user moves the sum of squares of clipped cells."""
        return self.path * (2 * clip - self.path) if self.path < clip else clip * clip

    def products(self, clip: int) -> int:
        """Return the largest amount by which a user moves the sum of products of clipped cells."""
        both = self.path * (2 * clip - self.path)
        return both if self.path <= clip else clip * min(self.path, 2 * clip)

    def sensitivity(self, clip: int) -> int:
        """Return the most by which a user moves all noisy numbers of a release together."""
        if not clip:
            return self.tables * self.path
        return (
            self.squares(clip) if self.tables == 1 else self.products(clip) + 2 * self.squares(clip)
        )

    def noise(
        self, budget: Budget, intrusions: int, *, published: bool, added: int = 1
    ) -> CellNoise:
        """Return the noise of a cell, with that of a release that publishes it.

        Args:
            budget: the split of epsilon.
            intrusions: number of announced intrusions.
            published: whether a release publishes each cell.
            added: of how many tables cells were added up.
        """
        noise = added * CellNoise.laplace(self.initial(budget))
        for _ in range(intrusions):
            noise += added * CellNoise.laplace(self.later(budget))
        return (
            noise + CellNoise.laplace(self.path * self.tables / budget.release)
            if published
            else noise
        )

    def tails(self, cells: int, budget: Budget, intrusions: int, moment: float) -> Tails:
        """Return the tail bounds of the cells of a table whose states have this sum of squares."""
        scales = [float(self.initial(budget)), *[float(self.later(budget))] * intrusions]
        found = []
        for tilt in _TILTS:
            h = tilt / max(scales)
            users = moment / self.bound**2 * (math.cosh(h * self.bound) - 1) / cells
            grown = users + sum(_log_growth(scale, h) for scale in scales)
            found.append((h, math.log(2 * cells) + grown))
        return Tails(tuple(found))

    def clip(self, cells: int, budget: Budget, tails: Tails, most: float) -> int | None:
        """Return the smallest clip that hides at most this; None if its squares are too large."""
        low, high = 1, self.path
        while not tails.hide_at_most(most, high):
            low, high = high, 2 * high
            if not squares_fit(cells, high):
                return None
        while high - low > max(low >> 7, 1):
            middle = (low + high) // 2
            low, high = (low, middle) if tails.hide_at_most(most, middle) else (middle, high)
        noise = self.sensitivity(high) / budget.release
        return high if squares_fit(cells, high) and noise < 1 << _MOST_NOISE_BITS else None


def squares_fit(cells: int, clip: int) -> bool:
    """Return whether sums of squares are whole numbers of 64 bits."""
    return cells * clip * clip < 1 << _MOST_BITS


@dataclass(frozen=True, slots=True)
class Tails:
    """Tail bounds of the cells of a table with random addressing of users.

    For every tilt h > 0, the square of `x` exceeds that of the clip by at most
    `(2 clip/(e h) + 4/(e h)**2) e**(h (|x| - clip))`. The mean of `e**(h x)` is that of the noise,
    times at most `exp(moment (cosh(h bound) - 1) / (cells bound**2))` for users of states up to the
    bound whose squares add up to `moment`.

    Args:
        tilts: some h, with the logarithm of the mean for all cells, and either sign.
    """

    tilts: tuple[tuple[float, float], ...]

    def hidden(self, clip: float) -> float:
        """Return the largest amount that clipping removes from the sum of squares of all cells."""
        return min(self._hidden(clip))

    def hide_at_most(self, most: float, clip: float) -> bool:
        """Return whether clipping removes at most so much: one bound that says so is enough."""
        return any(hidden <= most for hidden in self._hidden(clip))

    def _hidden(self, clip: float) -> Iterator[float]:
        """Yield a bound for each tilt; the steepest first, which often is the smallest."""
        for h, grown in reversed(self.tilts):
            scale = math.e * h
            exponent = min(grown - h * clip, _MOST_EXPONENT)
            yield (2 * clip / scale + 4 / scale**2) * math.exp(exponent)


def _log_growth(scale: float, h: float) -> float:
    """Return the log of the mean of `e**(h x)` of discrete Laplace noise; infinite if divergent."""
    ratio = math.exp(-1 / scale)
    left = (1 - ratio * math.exp(h)) * (1 - ratio * math.exp(-h))
    return math.log((1 - ratio) ** 2 / left) if left > 0 and h * scale < 1 else math.inf


class Designed(Protocol):
    """A plan of additive cells, whose error depends on the answer."""

    def relative_errors(self, truths: Floats) -> Floats:
        """Return the errors as a share of the quantity measured by."""


D = TypeVar("D", bound=Designed)

Design = tuple[int, AdditiveBudget, int]
"""The cells of a table, the split of epsilon, and the clip; 0 to publish each cell."""


def best_design(
    make: Callable[[Design], D], designs: Sequence[Design], moments: tuple[float, float]
) -> D:
    """Return the plan of least regret over a range of answers; see `planning.regret`."""
    plans = [make(design) for design in designs]
    truths = grid(*moments)
    errors = np.clip([plan.relative_errors(truths) for plan in plans], _LEAST, WORST_ERROR)
    regret = (errors / errors.min(axis=0)).max(axis=1)
    return plans[int(np.argmin(regret))]


def designs(
    reach: Reach,
    request: Request,
    most: int,
    moment: float,
    *,
    cells: int | None = None,
    clip: int | None = None,
) -> list[Design]:
    """Return all designs to choose from.

    Args:
        reach: the bounds on the changes by one user.
        request: epsilon and what it covers.
        most: maximum number of cells of a table.
        moment: the largest sum of squares of states of a table.
        cells: number of cells of a table, if it is fixed.
        clip: the clip of cells, if it is fixed.

    Raises:
        PlanError: epsilon is too small for any.
    """
    sizes = [cells] if cells else _sizes(most)
    found = [
        (size, budget, where)
        for budget in _budgets(request)
        for size in sizes
        for where in _clips(reach, request, size, budget, moment, clip)
    ]
    if not found:
        raise no_signal(request)
    return found


def _sizes(most: int) -> list[int]:
    """Return the powers of two of cells that fit."""
    sizes = [1 << power for power in range(most.bit_length()) if 1 << power <= most]
    return [size for size in sizes if size >= _FEWEST_CELLS] or sizes[-1:]


def _budgets(request: Request) -> list[AdditiveBudget]:
    found = budgets(request)
    return [AdditiveBudget(one.state, one.release) for one in found[::_SHARES]]


def _clips(
    reach: Reach,
    request: Request,
    cells: int,
    budget: Budget,
    moment: float,
    clip: int | None,
) -> Iterator[int]:
    """Yield both forms of a release, or the one that was named."""
    if clip is not None:
        yield clip
        return
    yield 0
    empty = reach.noise(budget, request.intrusions, published=False)
    most = _CUT * math.sqrt(cells * empty.of_products)
    tails = reach.tails(cells, budget, request.intrusions, moment)
    found = reach.clip(cells, budget, tails, most)
    if found is not None:
        yield found


def check_clip(clip: int | None, cells: int | None) -> None:
    """Refuse a clip whose squares could be too large to add up."""
    if clip and not squares_fit(cells or 1, clip):
        message = (
            f"clip ({clip:,}) is so large that its squares do not fit in 64 bits: say a smaller one"
        )
        raise PlanError(message)


def released_variance(reach: Reach, clip: int, budget: Budget) -> float:
    """Return the noise variance of each released sum of clipped cells; 0 where there is none."""
    if not clip:
        return 0.0
    return discrete_laplace_variance(float(reach.sensitivity(clip) / budget.release))
