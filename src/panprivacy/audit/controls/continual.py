"""Continual counters, and what is decided by them, as they are printed.

Reference: Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", figure 12.1; Naor,
"Foundations of Privacy", lecture 10, slides 17 to 19, 30, 36 to 40 and 55 to 61.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from panprivacy.audit.controls.control import Control, Counted, SeparateControl, revealed_by_single
from panprivacy.audit.crashes import Restarted
from panprivacy.audit.crashing import AGAIN_AND_AGAIN, RISING, counter_crashes, cropped_crash
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.neighbours import short_streams
from panprivacy.audit.streams import CRASH, RELEASE, SAVE, EventStream
from panprivacy.audit.subject import Separate
from panprivacy.privacy.coins import Coins
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.running.count import RunningCount

_BYTES = 8


class NoisyBeginning:
    """Figure 12.1, one interval: a sum with initial noise, published without output noise."""

    def __init__(self, coins: Coins, epsilon: Fraction) -> None:
        self._sum = int(coins.discrete_laplace(1 / epsilon, 1)[0])

    def update(self, events: Sequence[object], _deltas: object = None) -> None:
        """Count events."""
        self._sum += len(events)

    def release(self) -> Counted:
        """Return the sum, at the end of the interval."""
        return Counted((self._sum,))

    def state(self) -> bytes:
        """Return the sum."""
        return self._sum.to_bytes(_BYTES, "little", signed=True)


class DelayedUpdates:
    """Slide 18: the count since the last answer as it is, and a noisy threshold for it."""

    def __init__(self, coins: Coins, epsilon: Fraction, delay: int) -> None:
        self._count = 0
        self._threshold = delay + int(coins.discrete_laplace(1 / epsilon, 1)[0])

    def update(self, events: Sequence[object], _deltas: object = None) -> None:
        """Count events."""
        self._count += len(events)

    def state(self) -> bytes:
        """Return the count and the threshold."""
        kept = self._count, self._threshold
        return b"".join(one.to_bytes(_BYTES, "little", signed=True) for one in kept)


class CountersInATree:
    """Slide 37: a private register for each node of a tree of counters, each with all of epsilon.

    Args:
        coins: source of all randomness.
        epsilon: epsilon of each register.
        levels: how many an event is in; there are `2**(levels - 1)` counters.
    """

    def __init__(self, coins: Coins, epsilon: Fraction, levels: int) -> None:
        self._leaves = 1 << levels - 1
        self._registers = coins.discrete_laplace(1 / epsilon, 2 * self._leaves - 1)

    def update(self, counters: Sequence[int], _deltas: object = None) -> None:
        """Count events, each from its leaf up to the root."""
        for counter in counters:
            node = self._leaves + counter
            while node:
                self._registers[node - 1] += 1
                node //= 2

    def state(self) -> bytes:
        """Return the registers."""
        return self._registers.tobytes()


class CountedMistakes:
    """Slide 30: a private count of mistakes for each expert, each with all of epsilon."""

    def __init__(self, coins: Coins, epsilon: Fraction, experts: int) -> None:
        self._counts = coins.discrete_laplace(1 / epsilon, experts)

    def update(self, outcomes: Sequence[object], _deltas: object = None) -> None:
        """Count outcomes that nobody foresaw."""
        self._counts += len(outcomes)

    def state(self) -> bytes:
        """Return the counts."""
        return self._counts.tobytes()


class KeptThreshold:
    """Slides 58 to 60 around a density: a noisy threshold that is stored until it is crossed."""

    def __init__(self, coins: Coins, epsilon: Fraction) -> None:
        self._density = Density(universe=2, epsilon=epsilon, coins=coins)
        self._threshold = 1 + int(coins.discrete_laplace(1 / epsilon, 1)[0])
        self.update = self._density.update

    def release(self) -> Counted:
        """Return whether the ones have reached the threshold."""
        ones = self._density.state()[-1].bit_count()  # the table is the last byte
        return Counted((int(ones >= self._threshold),))

    def state(self) -> bytes:
        """Return the table and the threshold."""
        kept = self._threshold.to_bytes(_BYTES, "little", signed=True)
        return self._density.state() + kept


def _running_count(coins: Coins) -> RunningCount:
    return RunningCount(horizon=1, epsilon=1, coins=coins)


def _claiming_less(
    name: str,
    says: str,
    like: Callable[[Fraction], Separate],
    pair: tuple[EventStream, EventStream],
    *,
    claimed: int,
    true_loss: float,
) -> SeparateControl:
    """Return a control that claims less than the product with the same program."""
    return SeparateControl(
        name=name,
        says=says,
        make=lambda coins: like(Fraction(1)).make(coins),
        claimed=Fraction(claimed),
        streams=[pair[0]],
        users=((0, 0),),
        adjacency="event",
        pair=pair,
        true_loss=true_loss,
        like=lambda: like(Fraction(1)),
    )


CONTINUAL = (
    Control(
        name="r2",
        says="noise of birth alone: who has looked knows it, and subtracts it from the answer",
        make=lambda coins: NoisyBeginning(coins, Fraction(1)),
        claimed=Fraction(1),
        streams=list(short_streams([[0], [1]], 2, releases=1)),
        coins=EnumeratedCoins(tail=8),
        adjacency="event",
        pair=([[1], [0], RELEASE], [[1], [], RELEASE]),
    ),
    Control(
        name="crash-for-nothing",
        says="a running count that claims epsilon over a crash: an event that it loses costs two",
        make=lambda coins: Restarted(_running_count, coins),
        claimed=Fraction(1),
        streams=[[SAVE, [0], CRASH, RELEASE]],
        users=((0, 0),),
        coins=EnumeratedCoins(tail=5, state_tail=1),
        adjacency="event",
        pair=([SAVE, [0], CRASH, RELEASE], [SAVE, [], CRASH, RELEASE]),
        true_loss=2.0,
    ),
    _claiming_less(
        "sketch-crash-for-nothing",
        "a running cropped sum that claims epsilon over a crash",
        cropped_crash,
        (RISING[0], [*RISING[0][:2], [], *RISING[0][3:]]),
        claimed=1,
        true_loss=1.21898,
    ),
    _claiming_less(
        "second-crash-for-nothing",
        "a counter that claims over two crashes what it loses with one",
        counter_crashes,
        (
            AGAIN_AND_AGAIN[0],
            [step if isinstance(step, str) else [] for step in AGAIN_AND_AGAIN[0]],
        ),
        claimed=3,
        true_loss=4.0,
    ),
    revealed_by_single(
        "n3",
        "a noisy threshold hides no exact count that is kept beside it",
        lambda coins: DelayedUpdates(coins, Fraction(1), delay=1),
        claimed=Fraction(2),
    ),
    revealed_by_single(
        "n4-tree",
        "an event is in a register of each level of a tree of counters: two levels cost 2 epsilon",
        lambda coins: CountersInATree(coins, Fraction(1), levels=2),
        claimed=Fraction(1),
        true_loss=2.0,
        tail=2,
    ),
    revealed_by_single(
        "n4-experts",
        "the outcome of a round moves the counts of all experts: three of them cost 3 epsilon",
        lambda coins: CountedMistakes(coins, Fraction(1), experts=3),
        claimed=Fraction(1),
        true_loss=3.0,
        tail=2,
    ),
    Control(
        name="n3-transformation",
        says="who has seen the table and a threshold knows what each later comparison tells",
        make=lambda coins: KeptThreshold(coins, Fraction(1)),
        claimed=Fraction(2),
        streams=list(short_streams([[0]], 1, releases=1)),
        coins=EnumeratedCoins(tail=2),
        pair=([[0], RELEASE], [[], RELEASE]),
    ),
)
