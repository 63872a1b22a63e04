"""A running count of events, released at every step, from memory that may be intruded on."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from panprivacy.continual.methods import (
    DELTA,
    METHODS,
    MOST_HORIZON,
    CounterRequest,
    check_request,
    method_of,
)
from panprivacy.errors import InputError, PanPrivacyError, PlanError
from panprivacy.ground.validation import (
    positive_fraction,
    positive_integer,
    proportion,
    truth,
)
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Epsilon, Guarantee, Ledger, float_above, log_above
from panprivacy.privacy.noise import wipe
from panprivacy.statistics.notes import format_number, note_on
from panprivacy.statistics.release import Name, Release
from panprivacy.statistics.running.stepwise.step_counter import StepCounter
from panprivacy.tables.counters.mechanism import Floats, Integers, variances
from panprivacy.tables.counters.running import Running

_MOST_PREDICTED = 1 << 27


class Counter(StepCounter[Running]):
    """The number of events so far, released at the end of every step.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> calls = pp.continual.Counter(horizon=10_000, epsilon=1.0)
    >>> values = calls.run(np.ones(5_000, int))
    >>> answer = calls.step(1)
    >>> 4_500 < answer.value < 5_500
    True

    The guarantee covers one event, not one user: a daily visitor has many events. A step is the
    time between two answers. An object belongs to one thread at a time.

    Guarantee: the joint law of the state at any one time between two steps, and of all answers,
    changes by a factor of at most `e**epsilon` when one event is added or removed, or one step has
    another amount that differs by at most the bound; with `open_steps` the time may lie within a
    step. With `rho`, the same is zero-concentrated
    differential privacy of that rho. Announced intrusions before that time are covered as well,
    for nothing. [tests/exact/test_continual.py, docs/guarantees/continual.md]

    Accuracy: unbiased. The root of the mean over all steps of the squared error is
    `predicted_error()`: for a million steps and epsilon 1 it is 52, or 56 with open steps; for rho
    1/2 it is 7.5. [tests/statistical/test_counters.py, docs/continual.md]

    Args:
        horizon: the maximum number of steps; None if it is unknown, which costs 20 to 30 %
            more error.
        epsilon: the loss for one event, in nats; or give rho.
        rho: the same of zero-concentrated differential privacy; better for many steps.
        method: one of `METHODS`; None for the best where there are many steps.
        bound: the most that one event adds.
        signed: whether an event may take back as much as well, as a visitor who leaves. It costs no
            accuracy: what is hidden is one event, not an event and what takes it back.
        open_steps: whether the state may be seen within a step: `add` then counts events as they
            come, any number of them in a step.
        pan_private: whether the state may be seen at all. Without, it is exact.
        ledger: budget shared with others that count the same events; None for one of its own.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range, or some that do not go together.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ("_asked", "_by_rho", "_method")
    name = "counter"

    def __init__(
        self,
        horizon: int | None = None,
        *,
        epsilon: Epsilon | None = None,
        rho: Epsilon | None = None,
        method: str | None = None,
        bound: int = 1,
        signed: bool = False,
        open_steps: bool = False,
        pan_private: bool = True,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        if (epsilon is None) == (rho is None):
            message = "give either epsilon= or rho=: how much one event may change what is seen"
            raise PlanError(message)
        self._by_rho = rho is not None
        loss = positive_fraction(epsilon=epsilon) if rho is None else positive_fraction(rho=rho)
        self._method = method_of(method, by_rho=self._by_rho)
        self._asked = CounterRequest(
            None if horizon is None else positive_integer(MOST_HORIZON, horizon=horizon),
            loss,
            positive_integer(MOST_HORIZON, bound=bound),
            truth(open_steps=open_steps),
            truth(pan_private=pan_private),
            truth(signed=signed),
        )
        check_request(self._method, self._asked)
        if ledger is not None and (self._by_rho or METHODS[self._method].with_delta):
            message = "a ledger adds up epsilon alone: give epsilon, and no method with a delta"
            raise PlanError(message)
        super().__init__(self.guarantee.epsilon, ledger, coins)

    @property
    def method(self) -> str:
        """The method of the count: one of `METHODS`."""
        return self._method

    @property
    def horizon(self) -> int | None:
        """Maximum number of steps; None if it is unknown."""
        return self._asked.horizon

    @property
    def bound(self) -> int:
        """The most that one event adds."""
        return self._asked.bound

    @property
    def signed(self) -> bool:
        """Whether an event may take back as much as one adds."""
        return self._asked.signed

    @property
    def open_steps(self) -> bool:
        """Whether intrusions within a step are covered, and `add` counts within it."""
        return self._asked.open_steps

    @property
    def value(self) -> float:
        """The answer of the last step; 0 before the first one."""
        return self._now.last.value

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of each event."""
        conditions = ["what is hidden is one event, not all events of a user"]
        if METHODS[self._method].at_any_time:
            conditions.append("the state may be seen after every step")
        loss, rho, delta = self._asked.loss, None, Fraction(0)
        if METHODS[self._method].with_delta:
            delta = DELTA
        if self._by_rho:
            loss, rho, delta = _epsilon_of(loss), loss, DELTA
        hidden = tuple(conditions)
        return Guarantee(
            loss,
            delta=delta,
            rho=rho,
            adjacency="event",
            conditions=hidden,
            looks=self._asked.pan_private,
            crash=self.crash_cost(loss, open_steps=self.open_steps),
            crash_again=loss,
        )

    def predicted_error(self, steps: int | None = None) -> float:
        """Return the root-mean-square error of the noise over the first `steps` steps.

        What `segments` and `delayed` leave out for a while comes on top.

        Args:
            steps: number of steps; None for all of the horizon.
        """
        return float(np.sqrt(self.predicted_variances(steps).mean()))

    def predicted_variances(self, steps: int | None = None) -> Floats:
        """Return the variance of the answer after each of the first steps, float64[steps]."""
        most = self._asked.steps if steps is None else self._now.horizon
        count = most if steps is None else positive_integer(most, steps=steps)
        if count > _MOST_PREDICTED:
            message = f"say steps=: at most {_MOST_PREDICTED:,} can be predicted at a time"
            raise PlanError(message)
        return variances(self._now.mechanism, count)

    def step(self, amount: int = 0, *, confidence: float = 0.95) -> Release:
        """End a step, which adds an amount; the answer after it.

        Args:
            amount: amount that the step adds, 0 or -bound .. bound, beside what `add` has counted
                in it.
            confidence: probability that the interval holds the truth.

        Raises:
            InputError: the amount is out of range. Nothing was changed.
            BudgetError: all steps of the horizon have ended. Nothing was changed.
        """
        proportion(confidence=confidence)
        released = self._run(np.array([self._amount(amount)])).released
        low, high = self.interval(confidence)
        epsilon = float_above(self.guarantee.epsilon)
        name = Name("counter", "running_count")
        counts = tuple(released.tolist())
        numbers = self.value, low, high, confidence, epsilon, counts
        note = note_on(low, high, unit="events", value=self.value)
        return Release(*numbers, name, "events", note, *self._now.last.measured)

    def run(self, amounts: ArrayLike) -> Floats:
        """Take in many steps at once; the answer after each, float64[n].

        While it runs, the amounts are in memory as they are: of steps that come one by one, take
        each with `step`.

        Args:
            amounts: amount that each step adds, 0 or -bound .. bound.

        Raises:
            InputError: an amount is out of range. Nothing was changed.
            BudgetError: fewer steps remain. Nothing was changed.
        """
        try:
            taken = np.asarray(amounts)
        except ValueError:  # rows of several lengths
            taken = np.empty((0, 0))
        if taken.ndim != 1 or (taken.size and taken.dtype.kind not in "iub"):
            message = "steps are whole numbers, in one row of integers"
            raise InputError(message)
        outside = (taken < self._asked.smallest_amount) | (taken > self.bound)
        try:
            if outside.any():
                raise InputError(self._out_of_range, row=int(outside.argmax()) + 1)
            if not taken.size:
                return np.empty(0)
            return self._run(np.array(taken, np.int64)).values
        finally:
            if isinstance(amounts, (list, tuple)):  # else it is the caller's own
                wipe(taken)

    def add(self, amount: int = 1) -> None:
        """Count an event of the open step; its end is `step()`.

        Raises:
            InputError: the amount is out of range. Nothing was changed.
            PanPrivacyError: the counter was not made with `open_steps`.
        """
        if not self._asked.open_steps:
            message = "add() is for open steps: make it with open_steps=True"
            raise PanPrivacyError(message)
        self._check_left(1)
        self._now.add(self._amount(amount))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return both ends of the interval around the last answer that holds the truth so often."""
        return self._now.last.interval(proportion(confidence=confidence), signed=self.signed)

    def announce_intrusion(self) -> None:
        """Add fresh noise to the state after an intrusion, so that one more is covered.

        It costs no epsilon. Open nodes then have a larger error.
        """
        if not self._asked.pan_private:
            message = "the state was exact, and somebody has seen it: nothing can mend that"
            raise PanPrivacyError(message)
        super().announce_intrusion()

    def _new(self) -> Running:
        return Running(METHODS[self._method].make(self._asked), self._coins)

    @property
    def _public(self) -> dict[str, Any]:
        asked = self._asked
        sizes = {
            "horizon": asked.horizon,
            "bound": asked.bound,
            "method": self._method,
            "open_steps": asked.open_steps,
            "pan_private": asked.pan_private,
            **({"signed": True} if asked.signed else {}),  # states of before do not say it
        }
        return {"sizes": sizes, "request": {"rho" if self._by_rho else "epsilon": str(asked.loss)}}

    @property
    def _out_of_range(self) -> str:
        smallest, less = (
            self._asked.smallest_amount,
            "" if self.signed else ", for less with signed=True",
        )
        cure = f"for more, make it with bound={less}"
        return f"a step adds a whole number, {smallest:,} to {self.bound:,}: {cure}"

    def _amount(self, amount: object) -> int:
        whole = isinstance(amount, (int, np.integer)) and not isinstance(amount, np.timedelta64)
        if not whole or not self._asked.smallest_amount <= int(amount) <= self.bound:  # type: ignore[call-overload]
            raise InputError(self._out_of_range)
        return int(amount)  # type: ignore[call-overload]

    def _run(self, amounts: Integers) -> Any:
        """Take in steps, and wipe this copy of them."""
        try:
            self._check_left(len(amounts))
            return self._now.run(amounts)
        finally:
            wipe(amounts)

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __str__(self) -> str:
        """Return the last answer, for people."""
        value, low, high = (format_number(one, "events") for one in (self.value, *self.interval()))
        return f"{value} ({low} to {high}, 95 %) after step {self.tick:,}"

    def __repr__(self) -> str:
        named = "rho" if self._by_rho else "epsilon"
        return f"<Counter {self._method} {named}={float(self._asked.loss):g}>"


def _epsilon_of(rho: Fraction) -> Fraction:
    """Return the epsilon of rho at delta 1e-9: `rho + 2 sqrt(rho ln(1/delta))`, rounded up."""
    grid = 10**9
    square = math.ceil(4 * rho * log_above(1 / DELTA) * grid**2)
    return rho + Fraction(math.isqrt(square) + 1, grid)
