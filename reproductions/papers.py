"""The numbers of docs/papers.md: one small function for each, which the page names.

python -m reproductions.papers
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

import panprivacy as pp
from panprivacy.audit import exact_loss
from panprivacy.audit.attacks.guesses import right_probability
from panprivacy.audit.controls import CONTROLS
from panprivacy.continual import Counter
from panprivacy.devices.federated.every_tick import error_bound, total_variation
from panprivacy.papers.online import MultiCounter
from panprivacy.papers.published import ContinuousDensity, DworkDensity
from panprivacy.papers.published.digalakis_theory import (
    Estimator,
    dwork_bits,
    repaired_noise,
    theorem_3_2,
    theorem_4_2,
    tuned_bits,
)
from panprivacy.papers.published.mir_moments import contributions
from panprivacy.papers.queries import LinearQueries
from panprivacy.privacy.coins import Coins
from panprivacy.tables.cells.law import Law
from reproductions import GENERATOR, accurate_counts, every_step_seen, list_update, log_steps
from reproductions.digalakis import errors, figure_1, figure_2, figure_4, printed, reach

NUMBERS: dict[str, Callable[[], float]] = {}
"""Each number by its name; a call computes it."""

Floats = NDArray[np.float64]
Number = Callable[[], float]
STEPS = 1 << 20


def number(function: Number) -> Number:
    """Put a number into the table."""
    NUMBERS[function.__name__] = function
    return function


def control(name: str) -> float:
    """The loss of a control, which tests/exact/test_controls.py compares with all its outcomes."""
    return next(one.true_loss for one in CONTROLS if one.name == name)


# Digalakis, Karystinos, Garofalakis


class Response:
    """Randomised response as in section 2.1.3: a coin says whether to tell the truth or toss."""

    def __init__(self, coins: Coins) -> None:
        self._coins, self._bit = coins, coins.bernoulli(Fraction(1, 4), 1)

    def update(self, users: Iterable[int], _deltas: object = None) -> None:
        """The user has the property."""
        if users:
            self._bit = self._coins.bernoulli(Fraction(3, 4), 1)

    def state(self) -> bytes:
        """The answer."""
        return self._bit.tobytes()


@number
def response_loss() -> float:
    """Theorem 2.1."""
    return float(exact_loss(Response, stream=[[7]], neighbour=[[]]))


def of_answer(kept: float, shift: float) -> float:
    """What a noised answer loses to somebody who saw a bit that is kept or moves it so far."""
    return math.log(kept + (1 - kept) * math.exp(shift))


@number
def algorithm_1_answer() -> float:
    """Of the answer alone, at epsilon 1/10; the paper says 1/10."""
    return of_answer(1 / 2 - 0.1 / 4, 4)


@number
def algorithm_2_answer() -> float:
    """The same for Algorithm 2."""
    t = math.tanh(0.05)
    return of_answer((1 - t) / 2, 0.1 / t)


@number
def algorithm_1_state() -> float:
    """What the bits of Algorithm 1 lose where epsilon is 1/2."""
    return dwork_bits(0.5).loss


@number
def algorithm_1_both() -> float:
    """State and answer of Algorithm 1 together, at epsilon 1/10; the paper says 2/10."""
    return printed("Dwork", 0.1).loss


@number
def algorithm_2_both() -> float:
    """The same for Algorithm 2."""
    return printed("OptBern", 0.1).loss


@number
def algorithm_1_spread() -> float:
    """The printed bound of Theorem 3.2 over what a full sample has, at epsilon 1/2, m = 1,000."""
    return theorem_3_2(1_000, 0.5) / printed("Dwork", 0.5).fixed_sample_error(1_000, 1.0)


@number
def algorithm_2_spread() -> float:
    """The same for Theorem 4.2."""
    return theorem_4_2(1_000, 0.5) / printed("OptBern", 0.5).fixed_sample_error(1_000, 1.0)


@number
def sample_printed() -> float:
    """The users that Theorem 4.3 asks for, at epsilon 1/5, alpha 1/10, beta 1/20."""
    return printed("OptBern", 0.2).sample_size(0.1, 0.05)


@number
def sample_dwork() -> float:
    """The users that Theorem 3.3 asks for."""
    return printed("Dwork", 0.2).sample_size(0.1, 0.05)


@number
def sample_repaired() -> float:
    """The users of Theorem 4.3 with noise that is private."""
    return Estimator(tuned_bits(0.2), repaired_noise(0.2)).sample_size(0.1, 0.05)


@number
def beta_printed() -> float:
    """The tightest beta of 20,000 users, as printed."""
    return printed("OptBern", 0.2).min_beta(0.1, 20_000)


@number
def beta_repaired() -> float:
    """The same with noise that is private."""
    return Estimator(tuned_bits(0.2), repaired_noise(0.2)).min_beta(0.1, 20_000)


@number
def continuous() -> float:
    """The error of continuous cells over that of Algorithm 1, both repaired, at a loss of 0.4."""
    sizes = {"universe": 100_000, "cells": 5_000, "epsilon": 0.4}
    plans = [kind(**sizes).plan for kind in (ContinuousDensity, DworkDensity)]
    ours, theirs = (float(plan.model(0).deviation(0.5)) for plan in plans)
    return ours / theirs


@number
def figure_1_ratio() -> float:
    """Users that the bound asks for: Algorithm 1 over Algorithm 2, epsilon 0.3."""
    (row,) = figure_1.rows([0.3])
    return row["Dwork printed"] / row["OptBern printed"]


@number
def figure_1_repaired() -> float:
    """The same at equal true loss."""
    (row,) = figure_1.rows([0.3])
    return row["Dwork repaired"] / row["OptBern repaired"]


@number
def figure_2_zero() -> float:
    """How much rarer a 0 becomes where c is 4/5, epsilon 1/2."""
    (row,) = figure_2.rows([0.5])
    return 1 / row["R(0) OptBern, c = 4/5"]


@number
def figure_4_dwork() -> float:
    """The share of runs that are off by 0.1, Algorithm 1 as printed, epsilon 0.2."""
    return failures()["Dwork printed"]


@number
def figure_4_tuned() -> float:
    """The same for Algorithm 2."""
    return failures()["OptBern printed"]


@functools.cache
def failures() -> dict[str, float]:
    """One point of figure 4, in 200 runs."""
    (row,) = figure_4.rows("uniform", [0.2], 200)
    return {name: float(str(value)) for name, value in row.items() if "printed" in name}


def measured(kind: str, users: int, epsilon: float, runs: int) -> dict[str, float]:
    """One point of figures 5 to 7."""
    (row,) = errors.simulated(kind, [(users, epsilon)], runs, ppds=True)
    return {name: float(str(value)) for name, value in row.items() if name != "stream"}


@number
def figure_5_ratio() -> float:
    """The error of Algorithm 2 as printed over Theorem 4.2: 1,000 users, epsilon 0.2."""
    return measured("uniform", 1_000, 0.2, 200)["OptBern printed"] / theorem_4_2(1_000, 0.2)


@number
def figure_6_ratio() -> float:
    """Algorithm 2 over PPDS, as printed, on the Zipf stream: 100 ids, epsilon 1/2."""
    row = measured("zipf", 100, 0.5, 300)
    return row["OptBern printed"] / row["PPDS printed"]


@number
def figure_7_ratio() -> float:
    """The same where nothing is sampled, on the uniform stream, epsilon 0.2."""
    row = measured("uniform", 100_000, 0.2, 200)
    return row["OptBern printed"] / row["PPDS printed"]


@number
def reach_ppds() -> float:
    """The error of repaired PPDS over that of `Density`: 400 bytes, a loss of 0.4."""
    return reach.ratios(0.4)["PPDS"]


@number
def reach_dwork_split() -> float:
    """The error of repaired Dwork et al. in the paper's split, which adds up to 0.4."""
    return reach.ratios(0.4)["Dwork, their split"]


@number
def reach_dwork() -> float:
    """The error of repaired Dwork et al., given the best split and all of the exact loss."""
    return reach.ratios(0.4)["Dwork"]


@number
def centred_loss() -> float:
    """Bits of mean c (1 +- t) with c = 4/5, at epsilon 1/2."""
    return tuned_bits(0.5, 0.8).loss


@number
def sampling_loss() -> float:
    """Algorithm 3 after 20 appearances at epsilon 1/10."""
    return -20 * math.log((1 - math.tanh(0.05)) / 2)


@number
def linear_levels() -> float:
    """How often users u and u + 16 are both in level 1 or above, under the linear hash."""
    size = 64
    multipliers = np.arange(1, size, 2)[:, None]
    hashed = (multipliers * np.array([3, 19])[:, None, None] + np.arange(size)) % size
    return float((hashed % 2 == 0).all(axis=0).mean())


# Mir, Muthukrishnan, Nikolov, Wright


def stable(p: float, size: tuple[int, ...]) -> Floats:
    """Absolute values of p-stable numbers to the power of p, by Chambers, Mallows and Stuck."""
    angle = GENERATOR.uniform(-math.pi / 2, math.pi / 2, size)
    waiting = GENERATOR.exponential(1, size)
    head = np.abs(np.sin(p * angle)) ** p / np.cos(angle)
    return head * (np.cos((1 - p) * angle) / waiting) ** (1 - p)


@number
def stable_factor() -> float:
    """Algorithm 1 multiplies by this where it should divide: too large by its square, p = 1/20."""
    return float(np.median(stable(0.05, (400_000,)))) ** 2


@number
def stable_spread() -> float:
    """The relative spread of Theorem 5's median of 100 at p = 1/20."""
    medians = np.median(stable(0.05, (4_000, 100)), axis=1)
    return float(np.log(medians).std())


@number
def stable_promised() -> float:
    """What `(1 + alpha)**p` allows for alpha = 1/10."""
    return 1.1**0.05 - 1


def in_the_box(target: int) -> float:
    """The distance of Lemma 1 for X = (1, 10) and Z = 1."""
    steps = range(-2, 3)
    sizes = [
        (a != 0) + (b != 0) for a, b in itertools.product(steps, steps) if a + 10 * b == target
    ]
    return min(sizes, default=math.inf)


@number
def box_jump() -> float:
    """By how much the distance jumps between the neighbours 2 and 3."""
    return in_the_box(3) - in_the_box(2)


@functools.cache
def means(tau: int, *, crop_top: bool) -> Floats:
    """`E[w a mod 2 tau]/min(a, tau)` for a up to 30 tau; without the top unit, as in Lemma 5."""
    states = np.arange(1, 30 * tau)
    weights = 1 + (np.arange(20_000) + 0.5) / 20_000
    found = np.empty(len(states))
    for place, state in enumerate(states):
        values = state * weights % (2 * tau)
        found[place] = np.where(crop_top & (values > 2 * tau - 1), 0, values).mean()
    return found / np.minimum(states, tau)


@number
def weights_least() -> float:
    """The least of Lemma 4, over states, at tau 100: the paper says 1/2."""
    return float(means(100, crop_top=False).min())


@number
def weights_most() -> float:
    """The most of Lemma 4: the paper says 2."""
    return float(means(100, crop_top=False).max())


@number
def top_least() -> float:
    """The least of Lemma 5 at tau 10, where the paper says 1/2 - 1/10."""
    return float(means(10, crop_top=True).min())


@number
def printed_zero() -> float:
    """What the printed estimator returns for a user of state 0, at tau 10, epsilon 1."""
    tau, bump = 10, math.e
    total = 2 * tau - 1 + bump
    mean = (bump / 2 + (4 * tau**2 - 1) / 2) / total
    return (mean - tau**2 / total) * total / (bump - 1) - 1 / 2


@number
def moment_deviation() -> float:
    """The deviation of Algorithm 2 when nobody came, over `sqrt(m)`, at tau 10, epsilon 1."""
    tau, bump = 10, math.e
    total = 2 * tau - 1 + bump
    mean = (bump / 2 + (4 * tau**2 - 1) / 2) / total
    square = (bump / 3 + (8 * tau**3 - 1) / 3) / total
    return math.sqrt(square - mean**2) * total / (bump - 1)


@number
def moment_factor() -> float:
    """The least factor of `CroppedFirstMoment` on its grid, at tau 10."""
    return contributions(10, 255, 100, 10)[0]


@number
def replaced() -> float:
    """Algorithm 2 when a user is replaced; 2 is claimed."""
    return control("m3")


@number
def two_runs() -> float:
    """Theorem 8, when a user is replaced; 12 is claimed."""
    return control("m9")


@number
def out_of_range() -> float:
    """Lemma 2, with noise from the rows of the matrix."""
    return control("m7")


@number
def two_components() -> float:
    """The general calibration, when a user is replaced; 1 is claimed."""
    return control("m8-two")


@number
def sections() -> float:
    """Lemma 7 holds from so many times k counters on."""
    return 1 / (1 - math.sqrt(1 / 2))


@number
def hitters_lost() -> float:
    """The share of 100 heavy hitters that collisions hide on average, in 1,000 counters."""
    k, h = 100, 1_000
    return 1 - h * (1 - (1 - 1 / h) ** k) / k


@number
def line() -> float:
    """No state of epsilon 1 errs less, over `sqrt(m)` (Theorem 12)."""
    return accurate_counts.least_error(1, 1.0)


@number
def density_error() -> float:
    """The error of `Density` over `sqrt(m)`, when a tenth of a million came, at epsilon 1."""
    plan = pp.Density(universe=10**6, epsilon=1).plan
    return float(plan.model(0).deviation(0.1)) * 1_000


@number
def cropped_error() -> float:
    """The error of `CroppedSum` over `sqrt(m)`, tau 10, at epsilon 1."""
    plan = pp.CroppedSum(universe=10**6, tau=10, bound=100, epsilon=1).plan
    return plan.absolute_error() / 1_000


@number
def cropped_per_tau() -> float:
    """The same over `tau sqrt(m)`."""
    return cropped_error() / 10


@number
def hitters_error() -> float:
    """The error of `HeavyHitterCount` over `sqrt(k)`, k = 10,000, at epsilon 1."""
    return pp.HeavyHitterCount(k=10_000, total=10**7, epsilon=1).plan.absolute_error() / 100


@number
def decoded() -> float:
    """The share decoded from counts that err by a fifth of the root (Theorem 9)."""
    return accurate_counts.decoded(0.2 * math.sqrt(accurate_counts.PEOPLE))


@number
def decoded_from_ours() -> float:
    """The same from a `Density` of epsilon 1, where 0.731 is allowed."""
    return accurate_counts.decoded_from_ours(1.0)[0]


@number
def allowed() -> float:
    """How often a guess may be right at epsilon 1."""
    return right_probability(1)


@number
def rho() -> float:
    """The constant of Theorem 10."""
    return 2 * NormalDist().cdf(-math.sqrt(2 * math.log(2)))


@number
def half_rho() -> float:
    """What Theorem 13 asks of delta."""
    return rho() / 2


@number
def sixth_rho() -> float:
    """What Corollary 3 asks of it."""
    return rho() / 6


@number
def despite_a_fifth() -> float:
    """The share decoded although a fifth of the answers is falsified."""
    return accurate_counts.decoded_despite(0.2, 200, 12_800)[0]


@number
def beyond_rho() -> float:
    """The same with 28 % of them."""
    return accurate_counts.decoded_despite(0.28, 200, 12_800)[0]


@number
def least_failures() -> float:
    """How often a program of epsilon 1 is off by a hundredth of the root of a million."""
    return accurate_counts.least_failure(10**6, 10, 1.0)


@number
def without_decoding() -> float:
    """The epsilon up to which `1/(4 cosh(epsilon/2)**2)` is more than half of rho."""
    return 2 * math.acosh(1 / math.sqrt(2 * rho()))


@number
def apart() -> float:
    """Places that stay open in Theorem 11: 3 of 9 people, alpha_1 = 0, alpha_2 = 1."""
    return accurate_counts.apart(9, 3, accurate_counts.Accuracy(0, 1))


@number
def rare() -> float:
    """No count of epsilon 1 is nearer to nobody, but once in a million times (Theorem 14)."""
    return float(accurate_counts.least_additive(1e-6, 1.0))


@number
def rare_ours() -> float:
    """What discrete Laplace noise exceeds once in a million times."""
    return math.ceil(math.log(2 / (1 + math.exp(-1)) * 1e6)) - 1


# Naor


@number
def slide_46() -> float:
    """The epsilon up to which bits of mean 1/2 and 1/2 + epsilon cost `4 epsilon` or less."""
    grid = np.linspace(0.001, 0.499, 499_000)
    return float(grid[-np.log(1 - 2 * grid) <= 4 * grid].max())


def predicted(method: str, **given: bool) -> float:
    """The error of a counter over 2**20 steps at epsilon 1."""
    return Counter(STEPS, epsilon=1, method=method, **given).predicted_error()


@number
def noisy_steps() -> float:
    """Slide 15, over the root of the steps."""
    return predicted("noisy_steps") / math.sqrt(STEPS)


@number
def twice() -> float:
    """Slide 51: noise at birth and at the end, beside noise once."""
    return predicted("twice_noised_tree") / predicted("tree", pan_private=False)


@number
def delayed_printed() -> float:
    """What slide 18 loses as printed."""
    return control("n3")


@number
def experts_printed() -> float:
    """What slide 30 loses as printed, with three experts."""
    return control("n4-experts")


@number
def list_barrier() -> float:
    """Slide 32 with a constant: walks through a list of 100 for a burst, at epsilon 1."""
    return sum(list_update.least_cost(before, 1.0) - 1 for before in range(100)) / 100


@number
def tree_of_counters() -> float:
    """What slide 37 loses as printed, with two levels."""
    return control("n4-tree")


@number
def many_counters() -> float:
    """Ours in its place: 10,000 counters, a million steps, epsilon 1."""
    return MultiCounter(10_000, 10**6, epsilon=1).predicted_error()


@number
def leaf_printed() -> float:
    """One output of a leaf of slide 37, once its registers share epsilon."""
    return 2 * (math.log2(10_000) + 1)


@number
def looks() -> float:
    """Slide 52 with its constant, over the root of the looks."""
    return float(every_step_seen.least(1, 1.0))


@number
def primes() -> float:
    """What two primes cost where 1 is claimed."""
    return control("n1")


@number
def geometric_law() -> float:
    """Slide 67: the deviation of an entry at p = 127 and epsilon 1, over `sqrt(m)`."""
    return Law.geometric(127, 1).entry_deviation()


@number
def flat_law() -> float:
    """The same for the law of `Incidence`."""
    return Law.flat(127, 1).entry_deviation()


# Dwork and Roth


@number
def biased_bits() -> float:
    """What bits of mean 1/2 and 1/2 + epsilon cost at epsilon 1/10."""
    return -math.log(1 - 0.2)


@number
def tail() -> float:
    """Lemma 12.2 over the truth: 20 Laplace draws of scale 1 exceed 20."""
    drawn = GENERATOR.laplace(0, 1, (20, 1_000_000)).sum(axis=0)
    return math.exp(-(20**2) / (8 * 20)) / float((drawn > 20).mean())


@number
def corollary_at_zero() -> float:
    """Corollary 12.4 says this of what is true half of the time: alpha = 4, lambda = 0."""
    return math.exp(-(4**2) / 8)


@number
def tree_error() -> float:
    """Figure 12.2 over 2**20 steps, epsilon 1."""
    return predicted("pan_private_tree")


@number
def mixed_error() -> float:
    """Ours."""
    return predicted("mixed_radix")


@number
def tree_bound() -> float:
    """What the proof of Theorem 12.5 gives for all 2**20 steps in 2/3 of all runs."""
    return log_steps.printed(STEPS)


@number
def largest_least() -> float:
    """Theorem 12.6 at 2**20 steps, epsilon 1."""
    return log_steps.bound(STEPS)


@number
def local_error() -> float:
    """Section 12.1: what one count errs in the local model at epsilon 1, over `sqrt(n)`."""
    return float(every_step_seen.least_unbiased(1, 1.0))


@number
def projected() -> float:
    """Theorem 12.8: the constant that its proof gives, over the one that it states."""
    return 16 / math.sqrt(192)


@number
def projected_scale() -> float:
    """What Algorithm 18 needs of its noise, for a thousand queries in which all users count."""
    asked = LinearQueries(np.ones((1_000, 1)), users=1, epsilon=1, delta=1e-9)
    return float(asked.scale) / math.sqrt(8 * 1_000 * math.log(1e9))


# Feldman, McMillan, Rothblum, Talwar


@number
def encrypted_response() -> float:
    """What Algorithms 5 and 6 lose at epsilon_0 1/2: they randomise if Ber(2/(e**eps + 1)) is 0."""
    randomised = 1 - 2 / (math.exp(0.5) + 1)
    return math.log((1 - randomised / 2) / (randomised / 2))


@number
def two_coordinates() -> float:
    """What Theorem 11's histogram loses between two counts, over epsilon_0 = 1."""
    keep = math.e / (1 + math.e)
    return 2 * math.log(keep / (1 - keep))


@number
def response_error() -> float:
    """The error of randomised response at epsilon_0 1/10, over `sqrt(n)`."""
    return math.exp(0.05) / (math.exp(0.1) - 1)


@number
def response_printed() -> float:
    """The same as Theorems 6, 10 and 11 print it."""
    return math.sqrt(1 + math.exp(0.1) / (1 + math.exp(0.1)) ** 2)


@number
def shifted_in_place() -> float:
    """The bucket of 0 to 3 in which Algorithm 5 as printed puts a device with one event."""
    c, d = [1, 0, 0, 0], [1, 0, 0, 0]
    c[0], d[0] = 0, 1
    for i in range(1, 4):
        c[i], d[i] = c[i - 1], d[i - 1]
    return [*c[:3], d[3]].index(1)


@number
def beyond_the_last() -> float:
    """What Algorithm 4 sums for a device with 5 events, where counts stop at k = 3."""
    c = [int(i == 5) for i in range(4)]
    return sum(i * one for i, one in enumerate(c))


FLIP = Fraction(1 / (math.e + 1))
"""How often a response is wrong at epsilon 1."""


@number
def binomial_equality() -> float:
    """The printed value of Theorem 12 over the true one: 20 steps, epsilon 1."""
    top = math.ceil(20 * FLIP)
    likeliest = math.comb(20, top) * FLIP**top * (1 - FLIP) ** (20 - top)
    return float(2 * (1 - 2 * FLIP) * top / (20 * FLIP) * likeliest / total_variation(20, FLIP))


@number
def told_by_device() -> float:
    """Theorem 8 with its constant, `sinh(epsilon/2)/sqrt(T)`, over the truth: 100 steps."""
    return math.sinh(1 / 2) / 10 / float(total_variation(100, FLIP))


@number
def without_ciphertexts() -> float:
    """Theorem 9: what no count errs less than, over `sqrt(n T)`; 100 ticks, epsilon 1."""
    return error_bound(1, 100, 1.0) / 10


def main() -> None:
    """Print all of them."""
    for name, compute in NUMBERS.items():
        print(f"{name:20} {compute():.5g}", flush=True)


if __name__ == "__main__":
    main()
