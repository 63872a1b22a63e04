"""The loss of programs that only add: which noise would have made a neighbour look the same.

A running count draws so much noise that its outcomes cannot be walked. But it adds: what leaves and
what is kept are whole-number combinations of its amounts and its noise. So to each way in which its
noise can come out under a stream belongs one under the neighbour that looks exactly the same, with
the noise shifted by whole numbers that do not depend on it. Discrete Laplace noise that is shifted
by `k` is at most `e**(|k|/scale)` times rarer, so the loss is at most the sum of these; of discrete
Gaussian noise rho is at most the sum of `k**2/(2 variance)`.

Nothing is taken over from the program. Its combinations are read off by leading it through the
same stream with noise of 0 and of 1; a linear programme finds the cheapest shift; and the program
then has to look the same, to the last byte, under both streams with noise and shifted noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.exact.traces import LeakError
from panprivacy.errors import allow_noise

LOOK: Final = "look"
"""An action: an intrusion that is not announced; at most one counts."""
ANNOUNCED: Final = "announced"
"""An action: an announced intrusion."""

Action = Any
"""Action of a program: `LOOK`, `ANNOUNCED`, or the argument of `act` with an amount."""

_LARGE: Final = 1 << 20
_FACTOR: Final = 2_654_435_761
"""Noise of trials is up to the first, and as mixed as multiples of the second."""


@dataclass
class ShiftedCoins:
    """Coins that return recorded noise, and record the requests.

    Args:
        shown: the noise of each draw, in order; 0 beyond its end.
        costs: the loss of a shift of each draw by 1: epsilon, or rho of Gaussian noise.
        gaussian: whether noise is Gaussian.
    """

    shown: Sequence[int] = ()
    costs: list[Fraction] = field(default_factory=list)
    gaussian: bool = False

    def discrete_laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Return the next recorded sample."""
        return self._next(1 / Fraction(scale), size)

    def discrete_gaussian(self, variance: Fraction, size: int) -> NDArray[np.int64]:
        """Return the next recorded sample; note that the noise is Gaussian."""
        self.gaussian = True
        return self._next(1 / Fraction(2 * variance), size)

    def key(self, nbytes: int) -> bytes:
        """Return zeros."""
        return EnumeratedCoins().key(nbytes)

    def _next(self, cost: Fraction, size: int) -> NDArray[np.int64]:
        start = len(self.costs)
        self.costs += [cost] * size
        shown = [*self.shown[start : start + size], *[0] * size]
        return np.array(shown[:size], np.int64)


@dataclass(frozen=True)
class AddingProgram:
    """A program that only adds.

    Args:
        make: makes it with the coins it is given.
        act: runs one action, with the amount it adds; returns the output, or None.
        counts: the noisy whole numbers of an output.
        cells: the whole numbers of the state of a program.
        state: all that is kept, of a program.
    """

    make: Callable[[Any], Any]
    act: Callable[[Any, Action, int], Any]
    counts: Callable[[Any], Sequence[int]]
    cells: Callable[[Any], Sequence[int]]
    state: Callable[[Any], bytes]


@dataclass(frozen=True)
class ShiftedLoss:
    """The outcome.

    Args:
        loss: an upper bound of the loss over all events and looks: epsilon, or rho of Gaussian
            noise; infinite where no shift hides an event.
        event: the action whose amount changes.
        look: the place in the actions of the look that was not announced; None for none.
    """

    loss: Fraction | float
    event: int
    look: int | None


def shifted_loss(subject: AddingProgram, actions: Sequence[Action], bound: int = 1) -> ShiftedLoss:
    """Return the worst loss over all events of a life, all amounts, and all moments of a look.

    Args:
        subject: the program.
        actions: what it lives through. At each that is neither `LOOK` nor `ANNOUNCED` an amount
            of 0 .. bound is added, by which neighbours differ in one place.
        bound: the largest amount.

    Raises:
        LeakError: the program does not only add: it looks different where a shift should hide it.
    """
    life = _Life(subject, actions, bound)
    worst = ShiftedLoss(Fraction(-1), 0, None)
    for look in life.looks:
        for event in life.events:
            shift = life.cheapest(event, look)
            loss = life.cost(shift)
            if shift is not None:
                life.confirm(event, look, shift)
            if loss > worst.loss:
                worst = ShiftedLoss(loss, event, look)
    return worst


class _Life:
    """The combinations of a program that lives through some actions."""

    def __init__(self, subject: AddingProgram, actions: Sequence[Action], bound: int) -> None:
        self._subject, self._actions, self._bound = subject, actions, bound
        self.events = [place for place, one in enumerate(actions) if one not in {LOOK, ANNOUNCED}]
        looks = [place for place, one in enumerate(actions) if one == LOOK]
        self.looks: list[int | None] = [*looks] or [None]
        nothing = [0] * len(actions)
        base, _, coins = self._led(nothing, [])
        self._costs, self._gaussian = coins.costs, coins.gaussian
        units = np.eye(len(self._costs), dtype=int).tolist()
        self._by_noise = [_less(self._led(nothing, unit)[0], base) for unit in units]
        self._by_event = {
            event: _less(self._led(_with(nothing, event, 1), [])[0], base) for event in self.events
        }

    def cheapest(self, event: int, look: int | None) -> list[int] | None:
        """Return the shift of noise that best hides an amount of 1 from an intrusion, or None.

        Raises:
            ImportError: there is no SciPy.
        """
        from scipy.optimize import linprog  # noqa: PLC0415 - only this needs it

        ways = np.array([self._flat(one, look) for one in self._by_noise], float).T
        wanted = np.array(self._flat(self._by_event[event], look), float)
        weights = [float(cost) ** (0.5 if self._gaussian else 1) for cost in self._costs]
        found = linprog(
            np.tile(weights, 2), A_eq=np.hstack([ways, -ways]), b_eq=-wanted, method="highs"
        )
        if not found.success:
            return None
        up, down = np.split(found.x, 2)
        return [int(one) for one in np.rint(up - down)]

    def cost(self, shift: Sequence[int] | None) -> Fraction | float:
        """Return the loss of a shift, where the amount is the largest."""
        if shift is None:
            return math.inf
        power = 2 if self._gaussian else 1
        costs = zip(shift, self._costs, strict=True)
        return sum((abs(self._bound * one) ** power * cost for one, cost in costs), Fraction(0))

    def confirm(self, event: int, look: int | None, shift: Sequence[int]) -> None:
        """Check that the view of the program is the same under both streams, to the last byte.

        Raises:
            LeakError: the views differ.
        """
        mixed = [(one * _FACTOR + event) % (2 * _LARGE) for one in range(len(shift))]
        noise = [one - _LARGE for one in mixed]
        amounts = [(one * _FACTOR + event) % (self._bound + 1) for one in range(len(self._actions))]
        hidden = 1 + event % self._bound
        shifted = [one + hidden * more for one, more in zip(noise, shift, strict=True)]
        views = [
            self._flat(self._led(_with(amounts, event, amount), noises)[1], look)
            for amount, noises in ((0, noise), (hidden, shifted))
        ]
        if views[0] != views[1]:
            message = "the program tells more than sums of its amounts and its noise"
            raise LeakError(message)

    @allow_noise()
    def _led(
        self, amounts: Sequence[int], noise: Sequence[int]
    ) -> tuple[list[list[int]], list[list[Any]], ShiftedCoins]:
        """Return the view at each action, as whole numbers and as it is; and the coins."""
        coins, subject = ShiftedCoins(noise), self._subject
        program = subject.make(coins)
        numbers, things = [], []
        for action, amount in zip(self._actions, amounts, strict=True):
            if action in {LOOK, ANNOUNCED}:
                numbers.append(list(map(int, subject.cells(program))))
                things.append([subject.state(program)])
                if action == ANNOUNCED:
                    program.announce_intrusion()
            else:
                left = subject.act(program, action, amount)
                numbers.append([] if left is None else list(map(int, subject.counts(left))))
                things.append([left])
        return numbers, things, coins

    def _flat(self, rows: Sequence[Sequence[Any]], look: int | None) -> list[Any]:
        """Return the view of a run, with one intrusion that is not announced."""
        return [
            one
            for place, (action, row) in enumerate(zip(self._actions, rows, strict=True))
            if action != LOOK or place == look
            for one in row
        ]


def _less(rows: Sequence[Sequence[int]], base: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the difference of two views."""
    return [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(rows, base, strict=True)]


def _with(amounts: Sequence[int], event: int, amount: int) -> list[int]:
    """Return amounts with another one in one place."""
    return [amount if place == event else one for place, one in enumerate(amounts)]
