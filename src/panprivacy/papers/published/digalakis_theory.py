"""Errors of the density estimators of Digalakis et al.: as printed, and as computed exactly.

Of a universe some users, the sample, have a bit each. It is 1 with probability `absent` before its
user appears and `present` afterwards, and `contrast` is the difference. The estimate of the density
is `(ones/users - absent)/contrast`, and noise is added to it. Algorithm 1 (Dwork et al.) and
Algorithm 2 (OptBern) differ in the two probabilities alone. Algorithm 3 (PPDS) has those of
Algorithm 2 for the `universe/2**level` users of a level.

The printed noise is `Laplace(0, 1/(epsilon users))` on the estimate, as if a bit moved it by
`1/users`. It moves it by `1/(contrast users)`, so the loss is far above what is claimed. The
repaired noise is discrete Laplace of scale `1/epsilon` on the number of ones, which a bit moves by
one. All of this is arithmetic: nothing here draws or keeps anything.

Reference: V. Digalakis, G. Karystinos, M. Garofalakis, "Improved pan-private stream density
estimation", Theorems 3.2, 3.3, 4.2, 4.3 and 5.2, sections 3.1 and 3.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_STEPS = 36
"""A golden section is shrunk so often: to 3e-8 of its length."""

_LEAST_LOG = -745.0
"""The logarithm of the smallest positive float."""


@dataclass(frozen=True, slots=True)
class BitProbabilities:
    """The probabilities that a bit is 1 before and after its user appeared.

    Args:
        absent: the probability before.
        present: the probability afterwards.
    """

    absent: float
    present: float

    @property
    def contrast(self) -> float:
        """The amount by which an appearance changes the probability."""
        return self.present - self.absent

    @property
    def ratios(self) -> tuple[float, float]:
        """The factors by which an appearance changes the probabilities of 0 and of 1 (figure 2)."""
        return (1 - self.present) / (1 - self.absent), self.present / self.absent

    @property
    def loss(self) -> float:
        """The privacy loss of one intrusion into a bit, in nats (figure 3)."""
        return max(abs(math.log(ratio)) for ratio in self.ratios)


def dwork_bits(epsilon: float) -> BitProbabilities:
    """Return the bits of Algorithm 1: a half, and `epsilon/4` more; epsilon up to 1/2 in the paper.

    They cost `-ln(1 - epsilon/2)`, about half of the epsilon that is allocated.
    """
    return BitProbabilities(1 / 2, 1 / 2 + epsilon / 4)


def tuned_bits(epsilon: float, centre: float = 0.5) -> BitProbabilities:
    """Return the bits of Algorithm 2: `centre (1 - t)` and `centre (1 + t)`, `t = tanh(epsilon/2)`.

    They cost epsilon if the centre is 1/2 or less. Section 4.2 allows up to 4/5, where it is 4.58
    for an epsilon of 1/2: only the ratio of ones was checked.
    """
    t = math.tanh(epsilon / 2)
    return BitProbabilities(centre * (1 - t), centre * (1 + t))


@dataclass(frozen=True, slots=True)
class CountNoise:
    """Noise on the number of ones.

    Args:
        variance: its variance.
        rate: by how much the logarithm of its density changes for each bit.
        factor: with which `factor e**(-rate size)` bounds the probability of that size or more.
    """

    variance: float
    rate: float
    factor: float


def printed_noise(bits: BitProbabilities, epsilon: float) -> CountNoise:
    """Return Laplace noise of scale `1/(epsilon users)` on the estimate, which is too little."""
    scale = bits.contrast / epsilon
    return CountNoise(2 * scale**2, 1 / scale, 1.0)


def repaired_noise(epsilon: float) -> CountNoise:
    """Return discrete Laplace noise of scale `1/epsilon` on the number of ones."""
    return CountNoise(1 / (2 * math.sinh(epsilon / 2) ** 2), epsilon, 2 / (1 + math.exp(-epsilon)))


@dataclass(frozen=True, slots=True)
class Estimator:
    """An estimator of the density: bits of a sample of users, and noise on the number of ones.

    >>> bits = tuned_bits(0.1)
    >>> printed, repaired = (
    ...     Estimator(bits, noise) for noise in (printed_noise(bits, 0.1), repaired_noise(0.1))
    ... )
    >>> round(printed.loss, 2), round(repaired.loss, 2)  # 0.2 is claimed
    (1.57, 0.15)

    Args:
        bits: probability that a bit is 1.
        noise: what is added to the number of ones.
    """

    bits: BitProbabilities
    noise: CountNoise

    @property
    def loss(self) -> float:
        """The loss of one intrusion into the state and one release together, in nats.

        Over all that a user may do before the first of the two and between them, both orders, and
        any of the user's updates removed. The ratio of two mixtures of Laplace laws is the largest
        where the answer goes to one end.
        """
        absent, present = (
            np.array([1 - chance, chance]) for chance in (self.bits.absent, self.bits.present)
        )
        stays, drawn = np.eye(2), np.tile(present, (2, 1))
        joint = {
            frozenset(history): (present if 1 in history else absent)[:, None]
            * (drawn if 2 in history else stays)
            for history in ((), (1,), (2,), (1, 2))
        }
        ends = [np.exp(sign * self.noise.rate * np.arange(2)) for sign in (-1, 1)]
        seen = {
            history: np.concatenate([law @ end for end in ends] + [end @ law for end in ends])
            for history, law in joint.items()
        }
        pairs = itertools.product(joint, repeat=2)
        return max(
            float(np.abs(np.log(seen[more] / seen[fewer])).max())
            for more, fewer in pairs
            if fewer < more
        )

    def fixed_sample_error(self, users: int, density: float) -> float:
        """Return the mean squared error about the density of the sample, exactly.

        Theorems 3.2 and 4.2 state it as a bound, in which `density (1 - density)/users` is added as
        well, the error of sampling that a fixed sample does not have.

        Args:
            users: number of users in the sample.
            density: the share of them that appeared, 0 .. 1.
        """
        absent, present = self.bits.absent, self.bits.present
        bits = (1 - density) * absent * (1 - absent) + density * present * (1 - present)
        return (bits / users + self.noise.variance / users**2) / self.bits.contrast**2

    def error(self, users: int, density: float, universe: int) -> float:
        """Return the mean squared error about the density of the universe, exactly.

        The sample is drawn without replacement, so a sample of all users adds nothing.

        Args:
            users: number of users in the sample.
            density: the share of the universe that appeared, 0 .. 1.
            universe: number of users in the universe.
        """
        left_out = (universe - users) / max(universe - 1, 1)
        sampling = density * (1 - density) / users * left_out
        return self.fixed_sample_error(users, density) + sampling

    def failure_bound(
        self, users: int, alpha: float, of_rest: float, of_noise: float
    ) -> tuple[float, float, float]:
        """Return the bounds of Theorems 3.3 and 4.3 on being off by alpha or more, in three parts.

        Hoeffding's inequality for the sample and for the bits, and the tail of the noise. It holds
        for a sample without replacement as well, though the proof takes independent draws.

        Args:
            users: number of users in the sample.
            alpha: the error that is too large, in units of the density.
            of_rest: `delta_1`, the share of alpha that is for bits and noise.
            of_noise: `delta_2`, the share of that which is for noise.

        Returns:
            For the sample, the bits and the noise; their sum bounds the probability.
        """
        sampling, rest = (1 - of_rest) * alpha, self.bits.contrast * of_rest * alpha
        return (
            2 * math.exp(-2 * users * sampling**2),
            2 * math.exp(-2 * users * ((1 - of_noise) * rest) ** 2),
            self.noise.factor * math.exp(-self.noise.rate * users * of_noise * rest),
        )

    def sample_size(self, alpha: float, beta: float) -> int:
        """Return the fewest users with a bound `P(|error| >= alpha) <= beta` (section 3.2).

        The shares of beta decide all: with the best shares of alpha the three conditions hold with
        equality, and `x = 1/sqrt(users)` solves `linear x + square x**2 = 1`, both convex in the
        shares of beta. So the minimum is found by two golden sections, one within the other.

        Args:
            alpha: the error that is too large, in units of the density.
            beta: how likely it may be, at most 1.

        Returns:
            A number of users, which may exceed the universe: then nothing is promised.
        """
        return math.ceil(self._min_users(alpha, math.log(beta)))

    def min_beta(self, alpha: float, users: int) -> float:
        """Return the tightest bound on `P(|error| >= alpha)` for `users` users (section 3.1).

        Args:
            alpha: the error that is too large, in units of the density.
            users: number of users in the sample.

        Returns:
            A probability; 1 where the bound says nothing.
        """
        if self._min_users(alpha, 0.0) >= users:
            return 1.0
        low, high = _LEAST_LOG, 0.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            if self._min_users(alpha, middle) <= users:
                high = middle
            else:
                low = middle
        return math.exp(high)

    def _min_users(self, alpha: float, log_beta: float) -> float:
        """Return the minimum of section 3.2, over the reals."""
        contrast = self.bits.contrast
        noise_log = math.log(self.noise.factor) - log_beta
        pair_log = math.log(2) - log_beta

        def root(of_sample: float, of_bits: float) -> float:
            """Return the root of the number of users with these shares of beta."""
            rest = 1 - of_sample - of_bits
            linear = math.sqrt((pair_log - math.log(of_sample)) / 2)
            linear += math.sqrt((pair_log - math.log(of_bits)) / 2) / contrast
            square = (noise_log - math.log(rest)) / (self.noise.rate * contrast)
            return (linear + math.sqrt(linear**2 + 4 * alpha * square)) / (2 * alpha)

        def best(of_sample: float) -> float:
            return _minimum(lambda of_bits: root(of_sample, of_bits), 1 - of_sample)

        return _minimum(best, 1.0) ** 2


def _minimum(function: Callable[[float], float], end: float) -> float:
    """Return the smallest value of a function between 0 and `end` that falls, then rises."""
    golden = (math.sqrt(5) - 1) / 2
    low, high = 0.0, end
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


def theorem_3_2(users: int, epsilon: float) -> float:
    """Return the printed mean-squared-error bound of Algorithm 1, `2 (2 m + 1)/(m epsilon)**2`.

    It holds for the printed noise and a fixed sample: it is what `fixed_sample_error` is if nobody
    appeared. With the repaired noise the second part is `(4/(m epsilon))**2` times the variance.
    """
    return 2 * (2 * users + 1) / (users * epsilon) ** 2


def theorem_4_2(users: float, epsilon: float) -> float:
    """Return the printed bound of Algorithm 2, `1/(4 m t**2) + 2/(m epsilon)**2`.

    Here `t = tanh(epsilon/2)`.

    A fixed sample has `(1/t**2 - 1)/(4 m)` with the printed noise, whatever its density: the bound
    has sampling with replacement at density 1/2 on top. The appendix prints `t**2/(4 m)`, a slip.
    """
    return 1 / (4 * users * math.tanh(epsilon / 2) ** 2) + 2 / (users * epsilon) ** 2


def theorem_5_2(universe: int, level: int, epsilon: float) -> float:
    """Return the printed bound for Algorithm 3: that of Algorithm 2 for `universe/2**level` users.

    It needs a level that is known in advance; the printed one depends on the stream and on coins.
    The repaired noise is as in Algorithm 2.
    """
    return theorem_4_2(universe / 2**level, epsilon)
