"""Our own class with the mistakes that programs around it make.

Most keep or show something beside the private state, so that their loss is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from panprivacy.audit.controls.control import Control, Counted, revealed_by_single
from panprivacy.audit.exact.coins import EnumeratedCoins
from panprivacy.audit.kept_generator import KeptGenerator
from panprivacy.audit.neighbours import short_streams
from panprivacy.audit.shards import PlainSums, TwoShards
from panprivacy.audit.streams import RELEASE, EventStream
from panprivacy.papers.local.response import RandomisedResponse
from panprivacy.privacy.coins import Coins
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.release import Release


class Program:
    """A program around a `Density`, which does nothing wrong; see the subclasses."""

    def __init__(self, coins: Coins) -> None:
        self._density = Density(universe=2, epsilon=1, coins=coins)

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Count the users."""
        self._density.update(users)

    def release(self) -> object:
        """Return the answer."""
        return self._density.release()

    def state(self) -> bytes:
        """Return the state that an intruder finds."""
        return self._density.state()


class SeededGenerator(Program):
    """Generator in the state: an intruder with its seed draws the noise again."""

    def __init__(self, coins: Coins) -> None:
        self._generator = KeptGenerator(coins.key(32))
        super().__init__(self._generator)

    def state(self) -> bytes:
        """Return the bits, and the generator."""
        return super().state() + self._generator.seed + self._generator.calls.to_bytes(8)


class RowCounter(Program):
    """Counts the rows it has read, for its log."""

    def __init__(self, coins: Coins) -> None:
        super().__init__(coins)
        self._count = 0

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Count the users and the rows."""
        super().update(users)
        self._count += len(users)

    def state(self) -> bytes:
        """Return the bits, and what is counted beside them."""
        return super().state() + self._count.to_bytes(8)


class ExactCounter(RowCounter):
    """An exact count, which adds noise only at a release."""

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Count the users twice."""
        self._density.update(users)
        self._count += len(set(users))


class PlainCheckpoint(Program):
    """Writes its state to a file before each batch, as it is."""

    def __init__(self, coins: Coins) -> None:
        super().__init__(coins)
        self._file = super().state()

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Save, then count."""
        self._file = self._density.state()
        super().update(users)

    def state(self) -> bytes:
        """Return the bits, and the file: bits that differ were redrawn."""
        return self._file + super().state()


@dataclass(frozen=True, slots=True)
class AnswerWithError:
    """An answer with the standard error displayed beside it."""

    answer: Release
    error: float

    @property
    def counts(self) -> tuple[int, ...]:
        """The noisy counts."""
        return self.answer.counts


class RawInterval(Program):
    """Computes the error bar from the table, in place of the noisy count."""

    def release(self) -> AnswerWithError:
        """Return the noisy answer, and an error bar that has no noise."""
        ones = self._density.state()[-1].bit_count()  # the table is the last byte
        return AnswerWithError(self._density.release(), math.sqrt((ones + 1) * (3 - ones)))


class RowInterval(RowCounter):
    """Adds the number of rows to the width of its interval, and shows them nowhere else."""

    def release(self) -> Release:
        """Return the noisy answer, with ends that are too far apart."""
        answer = self._density.release()
        return replace(answer, high=answer.high + self._count)

    def state(self) -> bytes:
        """Return the bits alone."""
        return self._density.state()


class TrustingComposite(Program):
    """Says what it gave to its factory, and not what the factory made of it."""

    def __init__(self, coins: Coins, factory: Callable[..., Density]) -> None:
        self._density = factory(epsilon=1, releases=1, coins=coins)


def generous(*, releases: int, coins: Coins, **_told: object) -> Density:
    """Return a factory that has an epsilon of its own."""
    return Density(universe=2, epsilon=2, releases=releases, coins=coins)


class RefusingOracle:
    """Asks a device for one of two values, and says so where its record is another one."""

    def __init__(self, coins: Coins) -> None:
        self._coins, self._record = coins, 1

    def update(self, users: Sequence[int], _deltas: object = None) -> None:
        """Add one entry to the record for each event."""
        self._record += len(users)

    def release(self) -> Counted:
        """Return 1 and the report; 0 where it is refused."""
        asked = RandomisedResponse(2, 1)
        (report,) = asked.randomise([min(self._record, 1)], self._coins).tolist()
        return Counted((1, report) if self._record < asked.values else (0, 0))

    def state(self) -> bytes:
        """Return nothing: the record stays on the device."""
        return b""


_ONE = [(0, 0, 1)], [(0, 0, -1)], RELEASE, RELEASE
_BOTH = [(0, 0, 1), (0, 1, 1)], [(0, 0, -1), (0, 1, -1)], RELEASE, RELEASE
_NOBODY: EventStream = [[], [], RELEASE, RELEASE]


def _shards(
    name: str, says: str, kind: type[TwoShards], stream: EventStream, loss: float
) -> Control:
    """Return a control of two shards: a user comes and departs, they contribute, an answer."""
    return Control(
        name=name,
        says=says,
        make=lambda coins: kind(lambda own: Density(universe=2, epsilon=1, coins=own), coins),
        claimed=Fraction(1),
        streams=[stream],
        coins=EnumeratedCoins(tail=4),
        pair=(stream, _NOBODY),
        true_loss=loss,
    )


_certain = partial(revealed_by_single, claimed=Fraction(1))

PROGRAMS = (
    _certain("seeded-generator", "a generator that stays in memory", SeededGenerator),
    _certain("exact-counter", "an exact count beside the noisy one", ExactCounter),
    _certain("plain-checkpoint", "a plain checkpoint beside the live state", PlainCheckpoint),
    _certain("row-counter", "the number of rows in the state", RowCounter),
    _certain("raw-interval", "error bars computed from the raw table", RawInterval, releases=1),
    _certain(
        "row-interval", "intervals that are wider by the number of rows", RowInterval, releases=1
    ),
    Control(
        name="dishonest-factory",
        says="a composite that claims what it gave to a factory, which has an epsilon of its own",
        make=lambda coins: TrustingComposite(coins, generous),
        claimed=Fraction(1),
        streams=list(short_streams([[0], [1]], 2, releases=1)),
        coins=EnumeratedCoins(tail=4),
        pair=([RELEASE, [0]], [RELEASE, []]),
        true_loss=2.0,
    ),
    _certain(
        "refusing-oracle",
        "an oracle whose refusal says that a record is out of range",
        RefusingOracle,
        releases=1,
    ),
    _shards(
        "shard-sums", "sums that leave their shards without noise", PlainSums, [*_ONE], math.inf
    ),
    _shards("both-shards", "a user in both of two shards", TwoShards, [*_BOTH], 2.0),
)
