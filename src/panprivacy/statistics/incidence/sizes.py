"""What an `Incidence` is told."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import Annotated

import numpy as np
from msgspec.structs import replace

from panprivacy.errors import PlanError
from panprivacy.ground.parsing import Users
from panprivacy.ground.validation import MOST_BYTES, expected_range
from panprivacy.privacy.guarantee import Budget
from panprivacy.statistics.common_sizes import AmountUnit, CounterMemory, PerhapsUniverse
from panprivacy.statistics.incidence.plan import EntryReading, IncidencePlan
from panprivacy.statistics.incidence.strain import SharedSpectrum
from panprivacy.statistics.records import (
    Sizes,
    custom_field,
    flag,
    integer,
    learned_bound,
    users,
)
from panprivacy.tables.cells.difference_sets import DifferenceSet
from panprivacy.tables.cells.law import MOST_MODULUS, Law, on_set, size_of_frequencies
from panprivacy.tables.decoders.intervals import Floats
from panprivacy.tables.planning.learning import LearnedBound, highest
from panprivacy.tables.planning.request import Request, Split, budgets, no_signal, noise_variance
from panprivacy.tables.planning.room import roomiest, sets_of, wider_sets
from panprivacy.tables.planning.universe import cells_within, check_cells, check_memory

Option = tuple[Budget, DifferenceSet]
"""A way to spend epsilon, and the set that the law is made of."""

_MOST_BOUND = MOST_MODULUS // 8 - 1
"""Signed states are twice as many, and a difference set may be 4 times larger."""

_TYPICAL_QUESTIONS = 8
"""A split of epsilon is for so many named counts, or the whole histogram if that is better."""

_CELLS_PER_USER = 2
"""Of hashed cells: with more the noise of empty cells grows, with fewer that of collisions."""

_MOST_OWN_WEIGHTS = 3_000
"""So many can stand in the front of a state, which says all that is public about it."""


def _law(name: str, given: object) -> Law:
    """A law, or the recipe of one."""
    law = given
    if isinstance(given, str):
        try:
            law = Law.from_recipe(given)
        except PlanError as error:
            message = f"{name}=: {error}; str() of a law writes one, such as flat 7 1/2"
            raise PlanError(message) from None
    if not isinstance(law, Law):
        message = f"{name} must be a Law"
        raise PlanError(message)
    if not law.made_of and law.modulus > _MOST_OWN_WEIGHTS:
        message = f"{name} may have at most {_MOST_OWN_WEIGHTS:,} weights of one's own"
        raise PlanError(message)
    return law


class IncidenceSizes(Sizes, frozen=True, tag="incidence"):
    """How many users are in each state: how many came exactly t times, or at least k times."""

    bound: Annotated[
        int | LearnedBound,
        learned_bound("the largest sum of a user's deltas; others spoil answers, from where plan "
                      "says on", _MOST_BOUND, example=30),
    ]  # fmt: skip
    universe: PerhapsUniverse = None
    expected: Annotated[
        Users | None, users("for open-ended ids: the most users that may come", 100_000)
    ] = None
    cells: Annotated[
        int | None,
        integer("counters: one for each user, fewer for a sample; hashed ones two for each "
              "expected user unless told", MOST_BYTES, example=200_000),
    ] = None  # fmt: skip
    memory: CounterMemory = None
    signed: Annotated[bool, flag("whether sums of deltas may be below 0, down to -bound")] = False
    below: Annotated[
        int | None,
        integer("how far below 0 sums may be, where that is less than the bound; 0 where none is",
              _MOST_BOUND, 0, example=5),
    ] = None  # fmt: skip
    law: Annotated[
        Law | None, custom_field(_law, "LAW", "the noise of the counters; the best one unless told")
    ] = None
    unit: AmountUnit = None

    def plan(self, request: Request) -> IncidencePlan:
        """A counter for each user, of a universe or a sample of it, or hashed ones."""
        self._check()
        # Room would widen each threshold of signed states.
        for room in (False,) if self.signed else (True, False):
            planned = self.attempt(request, room=room)
            if planned.readable:
                return planned
        refused = f"{planned.cells:,} hashed counters cannot be read at bound {planned.bound:,}"
        if self.cells is not None or self.law is not None or self.memory is not None:
            message = f"{refused}; take more cells, a larger epsilon or a smaller bound"
            raise PlanError(message)
        enough = self._enough(request)
        ways = f"plan for {enough:,} expected users, " if enough else ""
        users = f"{self.most_users:,} users"
        message = f"{refused} and {users}; {ways}a larger epsilon or a smaller bound"
        raise PlanError(message)

    @property
    def highest(self) -> int:
        """The bound of the current window."""
        return highest(self.bound)

    @property
    def most_users(self) -> int | None:
        """The most users that may come, for open-ended ids."""
        return None if self.expected is None else expected_range(self.expected)[1]

    @property
    def _depth(self) -> int | None:
        """How far below 0 sums may be, if that is said; amounts are not, unless they are signed."""
        return 0 if self.below is None and self.unit and not self.signed else self.below

    @property
    def _states(self) -> int:
        """How many states there are."""
        below = self.highest if self.signed else self._depth or 0
        return below + 1 + self.highest

    def _check(self) -> None:
        """Refuse sizes that do not say how many users there are, or contradict each other."""
        if self.expected is not None and self.universe is not None:
            message = "expected= is for open-ended ids: a universe says how many users there are"
            raise PlanError(message)
        if self.below is not None and self.signed:
            message = "signed=True is below= as far as the bound: say one of them"
            raise PlanError(message)
        least = self.bound[0] if isinstance(self.bound, LearnedBound) else self.bound
        if self.below is not None and self.below > least:
            message = f"below= ({self.below:,}) exceeds the bound ({least:,}): raise the bound"
            raise PlanError(message)
        if self.law is not None and isinstance(self.bound, LearnedBound):
            message = "law= is made for one bound: leave it out where windows learn the bound"
            raise PlanError(message)
        check_cells(self.universe, self.cells)
        if self.universe is None and self.cells is None and self.expected is None:
            message = (
                "say universe= (how many users there could be), or for open-ended ids expected= "
                "(the most that may come) or cells="
            )
            raise PlanError(message)
        check_memory(self.cells, self.memory)

    def attempt(self, request: Request, *, room: bool) -> IncidencePlan:
        """The plan, whether it can be read or not.

        Args:
            request: epsilon and what it covers.
            room: whether counters may have more values than there are states, where that is
                nearly free.
        """
        bound, states = self.highest, self._states
        if self.law is None:
            budget, chosen = self._best(states, request, room=room)
            law = on_set(chosen, budget.state)
        else:
            budget, law = _budget_for(self.law, states, request), self.law
        if law.ratio == 1 or not math.isfinite(noise_variance(2, budget)):
            raise no_signal(request)
        hit, miss = (0.0, 0.0) if law.members is None else law.hit_and_miss()
        split = Split(budget, hit - miss, noise_variance(1, budget))
        cells = self._counters(law.modulus)
        if not cells:
            message = f"bound= is too large for a memory= of {self.memory} bytes"
            raise PlanError(message)
        users = self.universe, cells, self.most_users
        asked = self.bound[0] if isinstance(self.bound, LearnedBound) else None
        states_told = bound, self.signed, self._depth
        return IncidencePlan(*states_told, *users, law, request, split, asked, self.unit)

    def _counters(self, modulus: int) -> int:
        """One for each user, as far as memory reaches; hashed ones for those that are expected."""
        if self.cells is not None:
            return self.cells
        if self.universe is not None:
            return min(self.universe, cells_within(self.memory, modulus))
        wanted = _CELLS_PER_USER * (self.most_users or 1)
        return wanted if self.memory is None else min(wanted, cells_within(self.memory, modulus))

    def _best(self, states: int, request: Request, *, room: bool) -> Option:
        """The budget and the set of the smallest predicted error, or of most room near that."""
        hashed, counters = self.universe is None, functools.cache(self._counters)
        typical = math.inf if hashed or request.intrusions else _TYPICAL_QUESTIONS

        def errors(option: Option) -> Floats:
            """Return the errors of one of a few named entries, and of one histogram entry."""
            budget, chosen = option
            cells = counters(chosen.modulus) or 1
            entry = EntryReading.of(chosen, budget.state).after(request.intrusions)
            scale = (self.universe or cells) / cells
            asked = typical, math.inf
            return scale * np.sqrt([entry.variance(cells, budget, one) for one in asked])

        sets = sets_of(states)
        if hashed:  # errors do not know that fewer counters hold more users each
            most = max(counters(one.modulus) for one in sets)
            sets = [one for one in sets if counters(one.modulus) == most]
        tight = itertools.product(budgets(request), sets)
        best = min(tight, key=lambda option: errors(option)[0])
        if not math.isfinite(errors(best)[0]):
            raise no_signal(request)
        wider = wider_sets(states, best[1]) if room else []
        return roomiest(
            best,
            itertools.product(budgets(request), wider),
            lambda option: option[1],
            errors,
        )

    def _enough(self, request: Request) -> int | None:
        """For how many users the plan can be read, because they get more counters."""
        for doublings in range(1, 30):
            expected = (self.most_users or 1) << doublings
            if replace(self, expected=expected)._is_readable(request):  # noqa: SLF001 - its own
                return expected
        return None

    def _is_readable(self, request: Request) -> bool:
        """Whether the plan for hashed users can be read; its law need not be made to know."""
        budget, chosen = self._best(self._states, request, room=False)
        noise, size = noise_variance(2, budget), size_of_frequencies(chosen, budget.state)
        if not size or not math.isfinite(noise):
            raise no_signal(request)
        cells = self._counters(chosen.modulus)
        spectrum = SharedSpectrum.of(chosen.modulus, size, request.intrusions, cells)
        return spectrum.is_readable((self.most_users or 0) / cells, noise)


def _budget_for(law: Law, states: int, request: Request) -> Budget:
    """The budget that a law of the user's leaves."""
    if law.modulus < states:
        message = f"the law has {law.modulus:,} values, and the states need {states:,}"
        raise PlanError(message)
    law.check_readable()
    state = request.budget.state if request.budget else Fraction(math.ceil(law.loss * 1e6), 10**6)
    left = (request.epsilon - request.looks * state) / request.releases
    if not law.within(state) or left <= 0:
        message = (
            f"the law's loss of {law.loss:.6g} a look exceeds what epsilon leaves the state; make "
            "it with a smaller epsilon, such as 9/10 of the total"
        )
        raise PlanError(message)
    return request.check(request.budget or Budget(state, left))
