"""Noise laws on the whole numbers modulo M: the initial noise of a modular cell.

A law is private if no value is more than `e**epsilon` times as likely as another, because an update
only shifts it. How well counts can be read back depends on its spectrum: the flatter, the better.
Laws that are constant on a difference set and on its complement have the flattest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from panprivacy.errors import PlanError
from panprivacy.ground.validation import positive_fraction, whole_number
from panprivacy.privacy.guarantee import Epsilon, exp_bounds
from panprivacy.tables.cells import difference_sets
from panprivacy.tables.cells.difference_sets import DifferenceSet, SetMembers
from panprivacy.tables.cells.shapes import MOST_SHAPED, Shape

Floats = NDArray[np.float64]

MOST_MODULUS = 1 << 24
"""The largest modulus of a law; drawing from one takes about a gigabyte."""

_UNIT = 1 << 24
_UNIT_STEPS = 1 << 16
"""Minimum number of steps of a weight for a small epsilon, where the modulus has room."""

_MOST_WEIGHT = 1 << 61
_MOST_EXPONENT = Fraction(42)
"""`e**42` is nearly 2**61: a larger ratio of weights would not fit."""

_MOST_READ_EXPONENT = 27.0
"""Beyond it differences of probabilities lose their digits, and no answer gets better."""

_LEAST_SPECTRUM = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A law on 0 .. M-1 with exact whole-number weights.

    >>> law = Law.of([3, 1, 1])
    >>> law.modulus, law.ratio, round(law.loss, 4)
    (3, Fraction(3, 1), 1.0986)
    >>> round(Law.flat(503, 1).entry_deviation(), 2)  # near 1/tanh(1/2)
    2.16

    Guarantee: a cell with this initial law, shifted by its users' deltas and seen once, tells two
    histories apart by a factor of at most `ratio`. [tests/unit/test_law.py]

    Args:
        name: name of its family, or "custom".
        weights: int64[M], at least 1 each; value `x` has probability `weights[x] / weights.sum()`.

    Attributes:
        made_of: the arguments that its family is made with; none for weights of one's own.
        members: the difference set of the values of larger weight, where the law has one.
    """

    name: str
    weights: NDArray[np.int64]
    made_of: tuple[object, ...] = field(default=(), init=False)
    members: SetMembers | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Check the weights, and keep a copy that nothing can change: privacy rests on them."""
        weights = np.asarray(self.weights)
        whole = weights.ndim == 1 and weights.dtype.kind in "iu"
        if not whole or not 2 <= len(weights) <= MOST_MODULUS or weights.min() < 1:
            message = "a law needs 2 to 2**24 whole weights of at least 1"
            raise PlanError(message)
        overflows = weights.sum(dtype=float) > 2 * _MOST_WEIGHT
        if overflows or int(weights.sum()) > _MOST_WEIGHT:
            message = "the weights of a law may have a sum of at most 2**61"
            raise PlanError(message)
        object.__setattr__(self, "weights", _frozen(weights))

    @staticmethod
    def of(weights: Sequence[int]) -> Law:
        """Return a law with any positive whole weights.

        Raises:
            PlanError: fewer than two weights or more than 2**24, one below 1, or a sum above 2**61.
        """
        try:
            exact = [whole_number(1, _MOST_WEIGHT, weight=weight) for weight in weights]
        except TypeError:
            message = "a law needs its weights as a sequence of whole numbers"
            raise PlanError(message) from None
        return Law("custom", np.array(exact, np.int64))

    @staticmethod
    def flat(modulus: int, epsilon: Epsilon) -> Law:
        """Return a law with more weight on the quadratic residues without 0, for `p ≡ 3 (mod 4)`.

        The modulus p is a prime.

        Every entry of a count-of-counts is then read with the same deviation, whatever `p`.

        Raises:
            PlanError: another modulus.
        """
        return on_set(difference_sets.residues(_modulus(modulus)), _epsilon(epsilon))

    @staticmethod
    def biquadratic(modulus: int, epsilon: Epsilon) -> Law:
        """Return a law with more weight on the nonzero fourth powers, for `p = 4 b**2 + 1`.

        The modulus p is a prime, and b is odd.

        Raises:
            PlanError: another modulus.
        """
        return on_set(difference_sets.biquadratic(_modulus(modulus)), _epsilon(epsilon))

    @staticmethod
    def singer(modulus: int, epsilon: Epsilon, base: int | None = None) -> Law:
        """Return a law with more weight on a hyperplane, `1/b` of all values.

        The modulus is `(b**d - 1)/(b - 1)`.

        Args:
            modulus: M.
            epsilon: epsilon of one intrusion.
            base: b, one of 2, 3, 5, 7; None for the smallest that fits.

        Raises:
            PlanError: another modulus.
        """
        return on_set(difference_sets.singer(_modulus(modulus), base), _epsilon(epsilon))

    @staticmethod
    def block(tau: int, q: int, epsilon: Epsilon) -> Law:
        """Return a law with more weight on every block of `tau` values numbered by a residue mod q.

        The modulus is `tau * q`, q a prime that leaves 3 when divided by 4; the number of a block
        counts as in `flat`. `CroppedSum` reads it; the states themselves cannot be read back.

        Args:
            tau: length of a block, where sums are cropped.
            q: number of blocks.
            epsilon: epsilon of one intrusion.

        Raises:
            PlanError: another q, or more than 2**24 values.
        """
        length = whole_number(1, MOST_MODULUS, tau=tau)
        chosen = difference_sets.residues(whole_number(2, MOST_MODULUS // length, q=q))
        return on_blocks(chosen, length, _epsilon(epsilon))

    @staticmethod
    def shaped(
        threshold: int, bound: int, modulus: int, size: int, epsilon: Epsilon, below: int = 0
    ) -> Law:
        """Return a law with more weight on a set shaped to one question: is a state high?

        The set is searched for, which takes about a second for a thousand values and five for five
        thousand. [docs/laws.md]

        Args:
            threshold: states from this one on count.
            bound: the largest state.
            modulus: M, more than the bound; an eighth more is good.
            size: size of the set; about `M/(e**epsilon + 1)` is best.
            epsilon: epsilon of one intrusion.
            below: the number of states below 0 that do not count either.

        Raises:
            PlanError: a threshold above the bound, or more than 4,608 values.
        """
        values = whole_number(2, MOST_SHAPED, modulus=modulus)
        most = whole_number(1, values - 1, bound=bound)
        least = whole_number(1, most, threshold=threshold)
        some = whole_number(1, values - 1, size=size)
        negative = whole_number(0, values - 1 - most, below=below)
        return on_shape(Shape(least, most, values, some, negative), _epsilon(epsilon))

    @staticmethod
    def spike(modulus: int, epsilon: Epsilon) -> Law:
        """Return a law with more weight on 0 alone, as in Mir et al."""
        return on_set(difference_sets.point(_modulus(modulus)), _epsilon(epsilon))

    @staticmethod
    def geometric(modulus: int, epsilon: Epsilon) -> Law:
        """Return weights that fall by one factor each from 0 to M-1, `e**epsilon` in all.

        Reference: the lecture.
        """
        return _geometric(_modulus(modulus), _epsilon(epsilon))

    @property
    def modulus(self) -> int:
        """M, the number of values."""
        return len(self.weights)

    @property
    def ratio(self) -> Fraction:
        """The largest probability over the smallest: `e` to the loss of one intrusion."""
        return Fraction(int(self.weights.max()), int(self.weights.min()))

    @property
    def loss(self) -> float:
        """The loss of one intrusion in nats, rounded; `within` decides exactly."""
        return math.log(self.ratio)

    def within(self, epsilon: Epsilon) -> bool:
        """Return whether the loss of one intrusion is at most epsilon, decided exactly."""
        below, _ = exp_bounds(min(positive_fraction(epsilon=epsilon), 2 * _MOST_EXPONENT))
        return self.ratio <= below

    def probabilities(self) -> Floats:
        """Return the probabilities, float64[M]."""
        return self.weights / float(self.weights.sum())

    def spectrum(self) -> NDArray[np.complex128]:
        """Return the Fourier transform of the probabilities, complex128[M]."""
        return np.fft.fft(self.probabilities())

    def spectrum_sizes(self) -> Floats | float:
        """Return the sizes of the spectrum at the frequencies 1 to M/2, float64[M//2].

        The others mirror them. Of a law on a difference set all are one number, and it is that.
        """
        if self.members is None:
            return np.abs(np.fft.rfft(self.probabilities())[1:])
        modulus, size = self.modulus, len(self.members)
        high, low = int(self.weights.max()), int(self.weights.min())
        return _size_of_frequencies(modulus, size, high, low)

    def hit_and_miss(self) -> tuple[float, float]:
        """Return the probability that a cell of state 0 holds a member.

        The second number is the average of that probability over all other states.
        """
        members = self._set()
        hit = float(self.probabilities()[members].sum())
        return hit, (len(members) - hit) / (self.modulus - 1)

    def kernel(self) -> Floats:
        """Return `h` with `E h(state + noise - j) = [state = j]`, a vote for entry j; float64[M].

        Raises:
            PlanError: the law hides the state altogether.
        """
        self.check_readable()
        if self.members is None:
            return np.fft.ifft(1 / np.conj(self.spectrum())).real
        hit, miss = self.hit_and_miss()
        votes = np.full(self.modulus, -miss)
        votes[self.members] += 1
        return votes / (hit - miss)

    def check_readable(self) -> None:
        """Raise `PlanError` if the noise cannot be undone."""
        if self.ratio == 1 or (
            self.members is None and np.abs(self.spectrum()).min() < _LEAST_SPECTRUM
        ):
            message = f"the noise of a {self.name} law cannot be undone: it leaves no signal"
            raise PlanError(message)

    def entry_deviation(self, epoch: int = 0) -> float:
        """Return the standard deviation of an estimated entry, in units of the root of the cells.

        It is that of the average over all states a cell may be in.

        Args:
            epoch: how many times noise of this law was added to the cells again.

        Raises:
            PlanError: the law hides the state altogether.
        """
        kernel = self.kernel()
        if epoch:
            kernel = np.fft.ifft(1 / np.conj(self.spectrum()) ** (epoch + 1)).real
        return math.sqrt(max(float(np.mean(kernel**2)) - 1 / self.modulus, 0))

    def _set(self) -> SetMembers:
        if self.members is None:
            message = f"a {self.name} law has no difference set"
            raise PlanError(message)
        return self.members

    def __str__(self) -> str:
        """Return a recipe, from which `from_recipe` makes the same law."""
        parts = (self.name, *self.made_of) if self.made_of else ("custom", *self.weights.tolist())
        return " ".join(map(str, parts))

    @staticmethod
    def from_recipe(recipe: str) -> Law:
        """Return the law that wrote this as its text.

        >>> str(Law.flat(7, "1/2"))
        'flat 7 1/2'
        >>> Law.from_recipe("custom 3 1 1")
        <Law custom modulo 3, loss 1.099>

        Raises:
            PlanError: no law writes this.
        """
        name, *numbers = recipe.split(" ")
        try:
            if name == "custom":
                return Law.of([int(number) for number in numbers])
            *sizes, epsilon = numbers
            return _FAMILIES[name](*map(int, sizes), epsilon)
        except (KeyError, IndexError, ValueError, TypeError):
            message = "no law has this recipe"
            raise PlanError(message) from None

    def __repr__(self) -> str:
        return f"<Law {self.name} modulo {self.modulus}, loss {self.loss:.4g}>"

    def __deepcopy__(self, _memo: object) -> Law:
        return self  # a copy of the weights could be changed


def _modulus(modulus: object) -> int:
    return whole_number(2, MOST_MODULUS, modulus=modulus)


def _epsilon(epsilon: Epsilon) -> Fraction:
    return min(positive_fraction(epsilon=epsilon), _MOST_EXPONENT)


def _frozen(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return a copy in memory that cannot be made writeable."""
    return np.frombuffer(array.astype(np.int64, copy=False).tobytes(), np.int64)


_NAMES = {"residues": "flat", "point": "spike"}


@functools.lru_cache(maxsize=32)
def on_set(chosen: DifferenceSet, epsilon: Fraction) -> Law:
    """Return weights in the ratio `e**epsilon` to 1, rounded down, on and off a difference set."""
    members = chosen.members()
    weights = _weights(members, chosen.modulus, 1, epsilon)
    sizes = (chosen.modulus, chosen.base) if chosen.family == "singer" else (chosen.modulus,)
    law = _made(_NAMES.get(chosen.family, chosen.family), weights, *sizes, epsilon)
    object.__setattr__(law, "members", _frozen(members))
    return law


@functools.lru_cache(maxsize=8)
def on_blocks(chosen: DifferenceSet | Shape, tau: int, epsilon: Fraction) -> Law:
    """Return the same for each block of `tau` values whose number is in the set."""
    residues = isinstance(chosen, DifferenceSet) and chosen.family == "residues"
    made_of = (tau, chosen.modulus, epsilon) if residues else ()
    return _made("block", _weights(chosen.members(), chosen.modulus, tau, epsilon), *made_of)


@functools.lru_cache(maxsize=64)
def of_blocks(chosen: DifferenceSet | Shape, tau: int, epsilon: Fraction) -> Law:
    """Return the law of the number of the block of a value that has the law `on_blocks`."""
    return Law("blocks", _block_weights(chosen.members(), chosen.modulus, tau, epsilon))


@functools.lru_cache(maxsize=64)
def on_shape(shape: Shape, epsilon: Fraction) -> Law:
    """Return the same on a set that is shaped to a question."""
    weights = _weights(shape.members(), shape.modulus, 1, epsilon)
    sizes = shape.threshold, shape.bound, shape.modulus, shape.size
    below = (shape.below,) if shape.below else ()
    return _made("shaped", weights, *sizes, *below, epsilon)


def _made(name: str, weights: NDArray[np.int64], *made_of: object) -> Law:
    """Return a law of a family; no other code can claim that a law belongs to one."""
    law = Law(name, weights)
    object.__setattr__(law, "made_of", made_of)
    return law


def _weights(members: SetMembers, count: int, tau: int, epsilon: Fraction) -> NDArray[np.int64]:
    """Return a larger weight for values in these of `count` blocks, a smaller one elsewhere."""
    blocks = _block_weights(members, count, tau, epsilon)
    return blocks if tau == 1 else np.repeat(blocks, tau)  # which takes long


def _block_weights(
    members: SetMembers, count: int, tau: int, epsilon: Fraction
) -> NDArray[np.int64]:
    """Return the weight of a value in each block."""
    high, low = high_and_low(count * tau, epsilon)
    blocks = np.full(count, low, np.int64)
    blocks[members] = high
    return blocks


@functools.lru_cache(maxsize=1024)
def high_and_low(modulus: int, epsilon: Fraction) -> tuple[int, int]:
    """Return two whole weights with a ratio of at most `e**epsilon`, and near it if possible."""
    below, _ = exp_bounds(min(epsilon, _MOST_EXPONENT))
    unit = max(_UNIT, math.ceil(_UNIT_STEPS / epsilon))
    high = min(math.floor(unit * below), _MOST_WEIGHT // modulus)
    return high, -(-high // below)


def size_of_frequencies(chosen: DifferenceSet, epsilon: Fraction) -> float:
    """Return the size of all frequencies but 0 of the law `on_set`, which need not be made."""
    return _size_of_frequencies(chosen.modulus, chosen.size, *high_and_low(chosen.modulus, epsilon))


def _size_of_frequencies(modulus: int, size: int, high: int, low: int) -> float:
    """Return the same for two weights: all frequencies of such a set have one size."""
    overlap = size * (size - 1) / (modulus - 1)
    return (high - low) * math.sqrt(size - overlap) / (size * high + (modulus - size) * low)


def outside(chosen: DifferenceSet, tau: int, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Return the probabilities outside of the blocks of the set: at a sum of 0, and the largest.

    Both are exact, for every sum; the largest is at a sum that no two blocks differ by.
    """
    high, low = high_and_low(chosen.modulus * tau, epsilon)
    weight = chosen.size * high + (chosen.modulus - chosen.size) * low
    shared = chosen.overlap * high + (chosen.size - chosen.overlap) * low
    return 1 - Fraction(chosen.size * high, weight), 1 - shared / weight


@functools.lru_cache(maxsize=1024)
def hit_and_miss(chosen: DifferenceSet, epsilon: Fraction, epoch: int) -> tuple[float, float]:
    """Return the probability of a member: at a sum of 0, and on average over all other sums.

    The law is larger on the chosen set, and its noise was added `epoch` times more.
    """
    size, modulus = chosen.size, chosen.modulus
    if epoch:
        high, low = high_and_low(modulus, epsilon)
        step = (high - low) / (size * high + (modulus - size) * low)
        hit = size / modulus + step ** (epoch + 1) * difference_sets.returns(chosen, epoch)
    else:
        ratio = math.exp(min(float(epsilon), _MOST_READ_EXPONENT))
        hit = size * ratio / (size * ratio + modulus - size)
    return hit, (size - hit) / (modulus - 1)


@functools.lru_cache(maxsize=8)
def _geometric(modulus: int, epsilon: Fraction) -> Law:
    """Return weights rounded down, but the smallest, which keeps the ratio below `e**epsilon`."""
    unit = min(_UNIT, int(_MOST_WEIGHT / (modulus * math.exp(epsilon))) + 1)
    most = min(math.floor(unit * exp_bounds(epsilon)[0]), _MOST_WEIGHT // modulus)
    steps = math.log(most / unit) * np.arange(modulus - 1, -1, -1) / (modulus - 1)
    weights = np.clip((unit * np.exp(steps)).astype(np.int64), unit, most)
    weights[0] = most
    return _made("geometric", weights, modulus, epsilon)


def _shaped(threshold: int, bound: int, modulus: int, size: int, *below_and_epsilon: Any) -> Law:
    """Return a shaped law from its recipe; epsilon is last, and states below 0 before it."""
    *below, epsilon = below_and_epsilon
    return Law.shaped(threshold, bound, modulus, size, epsilon, *below)


_FAMILIES: Mapping[str, Callable[..., Law]] = {
    "flat": Law.flat,
    "biquadratic": Law.biquadratic,
    "singer": lambda modulus, base, epsilon: Law.singer(modulus, epsilon, base),
    "block": Law.block,
    "shaped": _shaped,
    "spike": Law.spike,
    "geometric": Law.geometric,
}
"""Functions that make a law from the numbers of its recipe."""
