"""From options to statistics: what a program counts, and what it releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from panprivacy._validate import positive_integer
from panprivacy.addressing import MAX_UNIVERSE
from panprivacy.errors import PlanError
from panprivacy.guarantee import Guarantee, Ledger
from panprivacy.options import Asked, Grouping, Sizes, Statistics
from panprivacy.planning import Request, check_useful, plan_incidence
from panprivacy.planning.heavy import MOST_TOTAL
from panprivacy.planning.incidence import MOST_BOUND
from panprivacy.statistics import (
    CroppedSum,
    Density,
    DistinctCount,
    Grouped,
    HeavyHitterCount,
    Incidence,
    IncidenceRelease,
    Label,
    Release,
    ThresholdCount,
)
from panprivacy.statistics.resuming import check_all, parted, resume_all
from panprivacy.statistics.table import unless_lost

Statistic = Density | DistinctCount | Incidence | CroppedSum | ThresholdCount | HeavyHitterCount
Single = Release | IncidenceRelease | None
"""None for a release that is lost: more users came than were planned for."""

Answer = Single | Mapping[Label, Single]
Checked = Sequence[Any]
"""What the `prepare` of each statistic gave."""

DEFAULT_MEMORY = 65_536
COUNTER_BYTES = 1, 2, 4
DEFAULT_EXPECTED = (1_000, 1_000_000_000)


@dataclass(frozen=True)
class Counting:
    """The statistics of a run, and what they are asked.

    Args:
        statistics: by name.
        ledger: the budget they share.
        asked: what the incidence count releases.
        confidence: of all intervals.
    """

    statistics: Mapping[str, Statistic | Grouped[Statistic]]
    ledger: Ledger
    asked: Asked = field(default_factory=Asked)
    confidence: float = 0.95

    @property
    def guarantee(self) -> Guarantee:
        """Of all statistics together."""
        groups = self._first.guarantee.groups
        return Guarantee(self.ledger.total, groups=groups)

    @property
    def unseen(self) -> Fraction:
        """The loss if nobody ever sees the states."""
        return sum((one.unseen for one in self.statistics.values()), Fraction(0))

    @property
    def state_bytes(self) -> int:
        """Size of all states."""
        return sum(one.state_bytes for one in self.statistics.values())

    @property
    def releases(self) -> int:
        """How many releases have been made."""
        return self._first.releases

    @property
    def planned(self) -> int:
        """How many releases the budget covers."""
        return int(self._first.plan.request.releases)

    @property
    def release_epsilon(self) -> Fraction:
        """What one release of all statistics costs a user, in nats."""
        return sum((one.release_epsilon for one in self.statistics.values()), Fraction(0))

    def update(self, users: object, deltas: object, groups: object) -> None:
        """Have every statistic count a batch, or none of them."""
        self.apply(self.prepare(users, deltas, groups))

    def prepare(self, users: object, deltas: object, groups: object) -> Checked:
        """Have every statistic check a batch.

        Returns:
            What `apply` takes. It holds ids: use it at once.

        Raises:
            InputError: one of them cannot count it.
        """
        return [
            one.prepare(users, groups, deltas)
            if isinstance(one, Grouped)
            else one.prepare(users, deltas)
            for one in self.statistics.values()
        ]

    def apply(self, *batches: Checked) -> None:
        """Have every statistic count what `prepare` has checked, in one pass."""
        for place, one in enumerate(self.statistics.values()):
            one.apply(*(checked[place] for checked in batches))

    def state(self) -> bytes:
        """The states, one after another; whoever reads them has intruded."""
        return b"".join(one.state() for one in self.statistics.values())

    def resume(self, state: bytes, *, released: int = 0) -> None:
        """Go on from earlier states of the same statistics; see `Statistic.resume`."""
        resume_all(*self._parts(state), [released] * len(self.statistics))

    def check_state(self, state: bytes, *, released: int = 0) -> None:
        """Raise what `resume` would refuse, without changing anything."""
        check_all(*self._parts(state), [released] * len(self.statistics))

    @property
    def _first(self) -> Statistic | Grouped[Statistic]:
        """A statistic; all release together."""
        return next(iter(self.statistics.values()))

    def _parts(self, state: bytes) -> tuple[list[Statistic | Grouped[Statistic]], list[bytes]]:
        held = list(self.statistics.values())
        return held, parted(state, held)

    def release(self) -> dict[str, Answer]:
        """One answer of each statistic."""
        return {
            name: unless_lost(one.release, **self._asked_of(name))
            for name, one in self.statistics.items()
        }

    def forget(self) -> None:
        """Wipe all states."""
        for statistic in self.statistics.values():
            statistic.forget()

    def check_release(self) -> None:
        """Refuse what cannot be asked, before anything is counted."""
        for name, statistic in self.statistics.items():
            statistic.check_release(**self._asked_of(name))

    def _asked_of(self, name: str) -> dict[str, Any]:
        named = self.asked.named() if name == Statistics.incidence else {}
        return {"confidence": self.confidence, **named}


def make_statistics(
    names: list[Statistics], sizes: Sizes, releases: int, grouping: Grouping | None, ledger: Ledger
) -> dict[str, Statistic | Grouped[Statistic]]:
    """The statistics, sharing epsilon equally.

    Raises:
        PlanError: they do not go together with the sizes, or their answers would be noise.
    """
    if not names:
        *most, last = Statistics
        message = f"stat= must say what to count: {', '.join(most)} or {last}"
        raise PlanError(message)
    if len(set(names)) < len(names):
        message = "stat= must name each statistic once"
        raise PlanError(message)
    share = ledger.total / len(names)
    statistics = {
        str(name): _made(partial(_MAKERS[name], sizes, releases), share, grouping, ledger)
        for name in names
    }
    for statistic in statistics.values():
        parts = ledger.total / statistic.plan.request.epsilon
        check_useful(statistic.plan, parts, sizes.memory)
    return statistics


def make_counting(
    names: list[Statistics],
    sizes: Sizes,
    asked: Asked,
    grouping: Grouping | None,
    releases: int,
    *,
    epsilon: Fraction,
    confidence: float,
) -> Counting:
    """The statistics with a ledger of their own, and what they are asked."""
    ledger = Ledger(epsilon)
    statistics = make_statistics(names, sizes, releases, grouping, ledger)
    return Counting(statistics, ledger, asked, confidence)


def _made(
    make: Callable[[Fraction, Ledger], Statistic],
    epsilon: Fraction,
    grouping: Grouping | None,
    ledger: Ledger,
) -> Statistic | Grouped[Statistic]:
    """One statistic, or one for each group."""
    if grouping is None:
        return make(epsilon, ledger)
    return Grouped(
        lambda share: make(share, Ledger(share)),
        grouping.labels,
        epsilon=epsilon,
        per_user=grouping.per_user,
        ignore_others=grouping.ignore_others,
        ledger=ledger,
    )


def _distinct(sizes: Sizes, releases: int, epsilon: Fraction, ledger: Ledger) -> Statistic:
    net = {"deletions": True, "bound": sizes.bound, "signed": sizes.signed}
    return DistinctCount(
        epsilon=epsilon,
        expected=sizes.expected or DEFAULT_EXPECTED,
        memory=sizes.memory or DEFAULT_MEMORY,
        releases=releases,
        ledger=ledger,
        **(net if sizes.deletions else {}),  # type: ignore[arg-type]
    )


def _density(sizes: Sizes, releases: int, epsilon: Fraction, ledger: Ledger) -> Statistic:
    universe = _universe(Statistics.density, sizes)
    cells = min(universe, 8 * (sizes.memory or DEFAULT_MEMORY))
    return Density(
        universe=universe, epsilon=epsilon, cells=cells, releases=releases, ledger=ledger
    )


def _universe(name: Statistics, sizes: Sizes) -> int:
    """How many users there could be, of a statistic that needs to know."""
    if sizes.universe is None:
        message = f"stat= {name} needs universe=: how many users there could be"
        raise PlanError(message)
    return positive_integer(universe=sizes.universe)


def _incidence(sizes: Sizes, releases: int, epsilon: Fraction, ledger: Ledger) -> Statistic:
    bound = positive_integer(MOST_BOUND, bound=sizes.bound)
    _check_numbered(Statistics.incidence, sizes)
    expected, cells = sizes.most_users, None
    if sizes.memory is not None:
        cells = _counters(sizes.memory, sizes, expected, Request(epsilon, releases))
    return Incidence(
        epsilon=epsilon,
        bound=bound,
        universe=sizes.universe,
        expected=expected,
        cells=cells,
        signed=sizes.signed,
        releases=releases,
        ledger=ledger,
    )


def _check_numbered(name: Statistics, sizes: Sizes) -> None:
    """Refuse counters of which nobody says how many users they are for."""
    if sizes.universe is None and sizes.expected is None:
        message = f"stat= {name} needs universe=, or expected=: how many users may come"
        raise PlanError(message)


def _counters(memory: int, sizes: Sizes, expected: int | None, request: Request) -> int:
    """How many counters fit in memory; their width depends on the law that the plan chooses."""
    for width in COUNTER_BYTES:
        cells = memory // width
        if sizes.universe is not None:
            cells = min(cells, positive_integer(MAX_UNIVERSE, universe=sizes.universe))
        if cells == 0:
            break
        planned = plan_incidence(
            positive_integer(MOST_BOUND, bound=sizes.bound),
            sizes.universe,
            cells,
            expected,
            None,
            request,
            signed=sizes.signed,
        )
        if planned.table.nbytes <= memory:
            return cells
    message = f"bound= is too large for a memory= of {memory} bytes"
    raise PlanError(message)


def _cropped_sum(sizes: Sizes, releases: int, epsilon: Fraction, ledger: Ledger) -> Statistic:
    _check_numbered(Statistics.cropped_sum, sizes)
    return CroppedSum(
        epsilon=epsilon,
        tau=positive_integer(tau=sizes.tau),
        bound=sizes.bound,
        universe=sizes.universe,
        expected=None if sizes.universe else sizes.expected,
        memory=sizes.memory,
        releases=releases,
        ledger=ledger,
    )


def _threshold(sizes: Sizes, releases: int, epsilon: Fraction, ledger: Ledger) -> Statistic:
    return ThresholdCount(
        epsilon=epsilon,
        least=positive_integer(least=sizes.least),
        bound=sizes.bound,
        universe=_universe(Statistics.threshold, sizes),
        memory=sizes.memory,
        releases=releases,
        ledger=ledger,
    )


def _heavy_hitters(sizes: Sizes, releases: int, epsilon: Fraction, ledger: Ledger) -> Statistic:
    return HeavyHitterCount(
        epsilon=epsilon,
        k=positive_integer(k=sizes.k),
        total=positive_integer(MOST_TOTAL, total=sizes.total),
        memory=sizes.memory,
        releases=releases,
        ledger=ledger,
    )


_MAKERS: dict[Statistics, Callable[[Sizes, int, Fraction, Ledger], Statistic]] = {
    Statistics.distinct: _distinct,
    Statistics.density: _density,
    Statistics.incidence: _incidence,
    Statistics.cropped_sum: _cropped_sum,
    Statistics.threshold: _threshold,
    Statistics.heavy_hitters: _heavy_hitters,
}
