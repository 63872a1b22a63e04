"""The ways to keep a running count: what each can do, and the mechanism that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from panprivacy.errors import PlanError
from panprivacy.tables.counters import delayed, factorised, naive, shapes
from panprivacy.tables.counters.accumulator import Accumulator
from panprivacy.tables.counters.endless import Endless
from panprivacy.tables.counters.mechanism import Mechanism
from panprivacy.tables.planning.request import LEAST_EPSILON, MOST_EPSILON

MOST_HORIZON = 1 << 40
MOST_COORDINATES = 1 << 24
"""Steps of a factorised count, which keeps a number for each, and of one by segments."""
MOST_SUM = 1 << 54
"""Maximum sum of all steps, also divided by epsilon: noise then fits in 64 bits."""
_UNKNOWN = 1 << 30
"""Steps that count in its place where the number of steps is unknown."""
DELTA = Fraction(1, 10**9)
"""Delta at which the epsilon of a rho is stated, and the delta of delayed updates."""


@dataclass(frozen=True, slots=True)
class CounterRequest:
    """The parameters of a counter.

    Args:
        horizon: the number of steps; None if it is unknown.
        loss: epsilon or rho.
        bound: the most that an event adds.
        open_steps: whether intrusions within a step are covered.
        pan_private: whether intrusions are covered at all.
        signed: whether a step may take back, too: amounts are then from -bound.
    """

    horizon: int | None
    loss: Fraction
    bound: int
    open_steps: bool
    pan_private: bool
    signed: bool = False

    @property
    def smallest_amount(self) -> int:
        """The least amount of a step."""
        return -self.bound if self.signed else 0

    @property
    def steps(self) -> int:
        """The horizon.

        Raises:
            PlanError: it is unknown.
        """
        if self.horizon is None:
            message = "horizon must say how many steps there are at most; only mixed_radix can do "
            message += "without, where the state may be seen"
            raise PlanError(message)
        return self.horizon


@dataclass(frozen=True, slots=True)
class Method:
    """A method of counting.

    Args:
        says: description in half a sentence.
        make: its mechanism.
        by_rho: whether its loss is given as rho, and not as epsilon.
        with_delta: whether outcomes of a probability of 1e-9 in all are not covered by epsilon.
        open_steps: whether intrusions within a step can be covered.
        exposed: whether it can do without protection of its memory.
        at_any_time: whether intrusions after every step are covered.
        signed: whether amounts may be negative: where answers are sums of amounts and noise.
    """

    says: str
    make: Callable[[CounterRequest], Mechanism]
    by_rho: bool = False
    with_delta: bool = False
    open_steps: bool = False
    exposed: tuple[bool, ...] = (True,)
    at_any_time: bool = False
    signed: bool = True


def _mixed_radix(asked: CounterRequest) -> Mechanism:
    if asked.horizon is None and asked.pan_private:
        return Endless(asked.loss, asked.bound, asked.open_steps)
    return shapes.mixed_radix(
        asked.steps,
        asked.loss,
        asked.bound,
        open_steps=asked.open_steps,
        pan_private=asked.pan_private,
    )


def _factorised(asked: CounterRequest) -> Mechanism:
    if asked.steps > MOST_COORDINATES or asked.bound > factorised.MOST_BOUND:
        message = (
            f"a factorised count keeps a number a step: it has at most {MOST_COORDINATES:,} steps, "
            f"and a bound of at most {factorised.MOST_BOUND:,}; give epsilon in place of rho"
        )
        raise PlanError(message)
    return factorised.Factorised(asked.steps, asked.loss, asked.bound)


def _response(asked: CounterRequest) -> Mechanism:
    if asked.bound > naive.MOST_BOUND:
        message = f"response has a bound of at most {naive.MOST_BOUND:,}: take another method"
        raise PlanError(message)
    return naive.RandomisedResponseCounter(asked.steps, asked.loss, asked.bound)


def _segments(asked: CounterRequest) -> Mechanism:
    if asked.steps > MOST_COORDINATES:
        message = f"a count by segments has at most {MOST_COORDINATES:,} steps: leave out method="
        raise PlanError(message)
    return shapes.segments(asked.steps, asked.loss, asked.bound)


def _delayed(asked: CounterRequest) -> Mechanism:
    if asked.bound > delayed.MOST_BOUND:
        message = (
            f"a delayed count has a bound of at most {delayed.MOST_BOUND:,}: take another method"
        )
        raise PlanError(message)
    return delayed.Delayed(asked.steps, asked.loss, DELTA, asked.bound)


METHODS: Mapping[str, Method] = {
    "mixed_radix": Method(
        "a tree that gives each number the noise that its use is worth; the default for epsilon",
        _mixed_radix,
        open_steps=True,
        exposed=(True, False),
    ),
    "factorised": Method(
        "the square root of the matrix of partial sums; the default for rho",
        _factorised,
        by_rho=True,
    ),
    "response": Method(
        "randomised response at each step",
        _response,
        at_any_time=True,
        signed=False,
    ),
    "noisy_steps": Method(
        "noise on each step, which adds up",
        lambda asked: naive.NoisySteps(asked.steps, asked.loss, asked.bound),
        at_any_time=True,
    ),
    "fresh_noise": Method(
        "one sum, and fresh noise on each answer",
        lambda asked: naive.FreshNoise(asked.steps, asked.loss, asked.bound),
    ),
    "segments": Method(
        "segments of fixed length, which leave as they end",
        _segments,
    ),
    "delayed": Method(
        "an answer that moves when it is far behind; for epsilon and a delta of 1e-9",
        _delayed,
        with_delta=True,
        signed=False,
    ),
    "tree": Method(
        "the binary tree of Dwork and Roth, figure 12.1, whose memory must not be seen",
        lambda asked: shapes.even_tree(asked.steps, asked.loss, asked.bound, pan_private=False),
        exposed=(False,),
    ),
    "twice_noised_tree": Method(
        "the same with noise at birth and at closing",
        lambda asked: shapes.even_tree(asked.steps, asked.loss, asked.bound, pan_private=True),
    ),
    "pan_private_tree": Method(
        "Dwork and Roth, figure 12.2: a sum, and noise for intervals of time",
        lambda asked: Accumulator(asked.steps, asked.loss, asked.bound),
    ),
}
"""All methods of counting, by name."""


def method_of(method: object, *, by_rho: bool) -> str:
    """Return the name of a method for such a loss."""
    named = ("factorised" if by_rho else "mixed_radix") if method is None else method
    if not isinstance(named, str) or named not in METHODS:
        message = f"method must be one of {', '.join(METHODS)}"
        raise PlanError(message)
    if METHODS[named].by_rho != by_rho:
        wanted, given = ("epsilon", "rho") if by_rho else ("rho", "epsilon")
        message = f"{named} needs {wanted}=, not {given}="
        raise PlanError(message)
    return named


def check_request(method: str, asked: CounterRequest) -> None:
    """Refuse what a method cannot do."""
    can = METHODS[method]
    if asked.open_steps and not can.open_steps:
        message = f"{method} takes one amount a step: leave out open_steps, or take mixed_radix"
        raise PlanError(message)
    if asked.signed and not can.signed:
        message = f"{method} counts amounts of at least 0: leave out signed, or take mixed_radix"
        raise PlanError(message)
    if asked.pan_private not in can.exposed:
        needed = (
            "its state must not be seen: say pan_private=False"
            if asked.pan_private
            else ("its state may be seen: leave out pan_private=False")
        )
        message = f"{method} is one way only: {needed}"
        raise PlanError(message)
    if not LEAST_EPSILON <= asked.loss <= MOST_EPSILON:
        told = f"from {float(LEAST_EPSILON):.6f} to {MOST_EPSILON:,}"
        message = f"{'rho' if can.by_rho else 'epsilon'} must be {told}: most counts need 0.1 to 10"
        raise PlanError(message)
    steps = _UNKNOWN if asked.horizon is None else asked.horizon
    if steps * asked.bound > MOST_SUM * min(asked.loss, Fraction(1)):
        message = "the sum of all steps and its noise must fit into 64 bits: ask for a smaller "
        message += "horizon or bound, or for more epsilon"
        raise PlanError(message)
