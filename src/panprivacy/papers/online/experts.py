"""Following the advice of experts by private counts of their mistakes.

Reference: Kalai and Vempala, "Efficient algorithms for online decision problems", 2005; Naor,
"Foundations of Privacy", lecture 10, slides 27 to 30.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from panprivacy.errors import InputError, PlanError
from panprivacy.ground.validation import whole_number
from panprivacy.papers.online.online import MOST_HORIZON, Online, sizes_of
from panprivacy.privacy.coins import Coins
from panprivacy.privacy.guarantee import Epsilon, Ledger
from panprivacy.privacy.noise import wipe
from panprivacy.tables.counters.mechanism import Floats, Integers

UNITS: Final = {
    "advice": "what one expert advised in one round",
    "round": "all advice and the outcome of one round",
}
"""Meaning of one event, by name."""

_AT_ONCE: Final = 1 << 18
"""Numbers that a run makes ready at a time: experts times rounds."""


class PrivateExperts(Online):
    """An adaptive choice among n experts: the one with the fewest mistakes, by private counts.

    >>> import numpy as np
    >>> import panprivacy as pp
    >>> mistakes = np.ones((2_000, 4), bool)
    >>> mistakes[:, 2] = False  # one expert is always right
    >>> experts = pp.online.PrivateExperts(4, horizon=3_000, unit="advice", epsilon=1.0)
    >>> followed = experts.run(mistakes)
    >>> bool((followed[1_000:] == 2).mean() > 0.9)
    True

    Before each round `choice` is the expert to follow; after it the round reports the mistakes.
    Choices are public. An object belongs to one thread at a time.

    Guarantee: the joint law of the state at any one time and of all choices changes by a factor of
    at most `e**epsilon` when the mistakes of one event are others: with the unit "advice" those of
    one expert in one round, with "round" those of all experts in one round. Each counter has
    epsilon, or `epsilon/n`. [tests/exact/test_online.py, docs/guarantees/online.md]

    Accuracy: `bound(best)` is proved of the expected number of mistakes, for rounds that do not
    react to choices. [tests/statistical/test_online.py]

    Args:
        n: number of experts, at least 2.
        horizon: maximum number of rounds.
        unit: what one event is, one of `UNITS`; there is no default.
        epsilon: the loss for one event, in nats.
        perturbation: scale of the noise that is added to each count for each choice, beside that of
            privacy; 0 for none, of which no bound is proved; None for the one whose bound is least
            where the best expert is wrong in half of the rounds.
        ledger: budget shared with others that count the same events; None for one of its own.
        coins: source of all randomness; None for the operating system's.

    Raises:
        PlanError: an argument out of range, or some that do not go together.
        BudgetError: the ledger has less than `epsilon` available.
    """

    __slots__ = ("_choice", "_perturbation")
    name = "experts"

    def __init__(
        self,
        n: int,
        horizon: int,
        *,
        unit: str,
        epsilon: Epsilon,
        perturbation: int | None = None,
        ledger: Ledger | None = None,
        coins: Coins | None = None,
    ) -> None:
        experts, rounds = sizes_of(n, horizon)
        whole_number(2, experts, n=n)
        if not isinstance(unit, str) or unit not in UNITS:
            says = "; ".join(f'"{name}" for {hidden}' for name, hidden in UNITS.items())
            message = f"unit must say what one event is: {says}"
            raise PlanError(message)
        if perturbation is not None:
            whole_number(0, MOST_HORIZON, perturbation=perturbation)
        super().__init__(
            experts,
            rounds,
            1,
            epsilon,
            affected=experts if unit == "round" else 1,
            open_steps=False,
            sizes={"unit": unit, "perturbation": perturbation},
            ledger=ledger,
            coins=coins,
        )
        best = math.ceil(math.sqrt(rounds / 2 * (self._strays()[0] + 2) / (1 + math.log(experts))))
        self._perturbation = best if perturbation is None else int(perturbation)
        self._choice = int(self._noise((experts, 1)).argmin())

    @property
    def unit(self) -> str:
        """Unit of one event: one of `UNITS`."""
        return str(self._sizes["unit"])

    @property
    def perturbation(self) -> int:
        """The scale of the noise that is added to each count for each choice."""
        return self._perturbation

    @property
    def choice(self) -> int:
        """Expert to follow in the next round, 0 .. n-1; public."""
        self._now  # noqa: B018 - wiped states choose nobody
        return self._choice

    @property
    def values(self) -> Floats:
        """The mistakes of each expert so far, with the noise of privacy: float64[n]."""
        return self._now.last.values.copy()

    def bound(self, best: float) -> float:
        """Return a bound on the expected number of mistakes; `horizon` if nothing less is proved.

        It is proved of programs without announced intrusions and crashes.

        Args:
            best: number of mistakes of the best expert.
        """
        scale, (strays, theta) = self._perturbation, self._strays()
        if scale * theta < 1:
            return float(self.horizon)
        falls = math.exp(-1 / scale)
        tails = falls ** np.arange(1, math.ceil(scale * (50 + math.log(self.n)))) / (1 + falls)
        most = float(-np.expm1(self.n * np.log1p(-tails)).sum())
        return min(math.exp((strays + 2) / scale) * (best + most), float(self.horizon))

    def round(self, mistakes: ArrayLike) -> int:
        """End a round; whom to follow in the next one.

        Args:
            mistakes: whether each expert was wrong, bool[n].

        Raises:
            InputError: it is no row of n truth values. Nothing was changed.
            BudgetError: all rounds of the horizon have ended. Nothing was changed.
        """
        row: Any = [mistakes]
        self.run(row)
        return self._choice

    def run(self, mistakes: ArrayLike) -> NDArray[np.int64]:
        """Process many rounds at once, and return the expert followed in each, int64[rounds].

        While it runs, the mistakes are in memory as they are: of rounds that come one by one, take
        each with `round`. A run that is interrupted has made some of its rounds: `tick` says how
        many.

        Args:
            mistakes: whether each expert was wrong in each round, bool[rounds, n].

        Raises:
            InputError: they are no table of truth values, n in a row. Nothing was changed.
            BudgetError: the horizon has fewer rounds left. Nothing was changed.
        """
        try:
            taken = np.asarray(mistakes)
        except ValueError:  # rows of several lengths
            taken = np.empty(0)
        if taken.dtype != bool or taken.ndim != 2 or taken.shape[1] != self.n:
            message = f"mistakes are True or False for each of {self.n:,} experts, a row a round"
            raise InputError(message)
        try:
            self._check_left(len(taken))
            most = max(_AT_ONCE // self.n, 1)
            pieces = range(0, len(taken), most)
            followed = [self._follow(taken[start : start + most]) for start in pieces]
        finally:
            if isinstance(mistakes, (list, tuple)):  # else it is the caller's own
                wipe(taken)
        return np.concatenate([*followed, np.empty(0, np.int64)])

    def _follow(self, mistakes: NDArray[np.bool_]) -> Integers:
        """Process some rounds, and return the expert followed in each."""
        noise = self._noise((self.n, len(mistakes)))
        amounts = np.ascontiguousarray(mistakes.T, np.int64)
        chosen = (self._now.answer(amounts).values + noise).argmin(axis=0)
        followed = np.concatenate([[self._choice], chosen[:-1]])
        self._choice = int(chosen[-1])
        return followed

    def _noise(self, shape: tuple[int, int]) -> Integers:
        """Return the perturbation of each count for each choice."""
        if not self._perturbation:
            return np.zeros(shape, np.int64)
        drawn = self._coins.discrete_laplace(Fraction(self._perturbation), shape[0] * shape[1])
        return drawn.reshape(shape)

    def _strays(self) -> tuple[float, float]:
        """Return D and theta for the noise Z of one moment: `E exp((max Z - Z_i)/s) <= exp(D/s)`.

        It holds for `s >= 1/theta`.
        """
        squares, most = self._now.forest.exponents()
        log = math.log(self.n)
        theta = math.sqrt(min(log / (4 * squares), most**2)) if squares else most
        return log / theta + 4 * theta * squares, theta

    @property
    def _conditions(self) -> tuple[str, ...]:
        return (f"one event is {UNITS[self.unit]}", *super()._conditions)

    def _extra(self) -> bytes:
        return self._choice.to_bytes(8, "little")

    def _check_extra(self, body: memoryview) -> None:
        if int.from_bytes(body, "little") >= self.n:
            message = "the state is damaged: there is no such expert"
            raise InputError(message)

    def _take_extra(self, body: memoryview) -> None:
        self._choice = int.from_bytes(body, "little")
