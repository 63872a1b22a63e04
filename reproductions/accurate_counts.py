"""Counts that are too accurate are lists of people: the lower bounds of Mir et al., with constants.

    python -m reproductions.accurate_counts

Theorems 9 to 14 of D. Mir, S. Muthukrishnan, A. Nikolov, R. Wright, "Pan-private algorithms via
statistics on sketches". They say `o(sqrt(m))`, "some constant", "for any constant epsilon"; here is
what holds for every m and epsilon. Let each of m people come by the toss of a fair coin, let X be a
state that costs epsilon, and let the intruder run the program on from X with people q.

* **Error** (Theorem 12, Corollaries 1 and 2). Given X, the odds of each bit `a_i` lie within
  `e**epsilon` of 1, so its variance is `1/(4 cosh(epsilon/2)**2)` or more. Of the dot product with
  a random q the variance given X and q is, on average over q, a quarter of the sum of these and of
  something that is not negative. So the root-mean-square error is `sqrt(m)/(4 cosh(epsilon/2))` or
  more, whatever answers. `D(a or q) - D(q)` is the dot product with the rest of q, so the line is
  the same for a count of different people, `tau` times it for a cropped sum, and that of k people
  for k heavy hitters.
* **Failures** (Theorem 13, Corollaries 3 and 4). Draw a second vector b from the law of a given X.
  If answers are off by more than `beta` with probability `delta` only, then `|q (a - b)|` is at
  most `2 beta` but for `2 delta`. But a and b differ in h places, `m/(2 cosh(epsilon/2)**2)` on
  average, and `q (a - b)` is a binomial number of h tosses, shifted, which is seldom near 0.
* **Wrong answers** (Theorem 10). Whoever may falsify a share of the answers chooses those in which
  another vector differs most. They carry half of all differences if the share is
  `rho = 2 P(Z > sqrt(2 ln 2)) = 0.23903` for a normal Z: this is the paper's constant.
* **Unions** (Theorem 11). Let x and y agree with all answers, each answer within `alpha_1` of the
  truth and `alpha_2`. The queries x and y alone say that they differ in at most
  `(2 alpha_1 (|x| + |y|) + 4 alpha_2)/(1 - alpha_1)` places: 4 where the paper has 16.
* **Rare failures** (Theorem 14). Did nobody come, or k people? The two streams differ in k users.
  If `(1 - alpha) k > 2 beta`, then an answer within `(1 +- alpha) D +- beta` but for delta tells
  them apart, so `k >= ln(1/delta - 1)/epsilon`. This needs no look at the state, and is not
  divided by `log m`, as the paper's bound is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import panprivacy as pp
from panprivacy.audit.attacks.decoding import (
    PEOPLE,
    SeizedDensity,
    decode_products,
    dot_products,
)
from panprivacy.audit.attacks.guesses import Guesses, Truths, right_probability
from panprivacy.audit.attacks.reconstruction import (
    Accuracy,
    least_absolute,
    least_squares,
    sparse_vectors,
    unions,
)
from panprivacy.audit.attacks.seized import Seized, bits_of, tossed
from reproductions import COINS, FOLDER, GENERATOR

EPSILON = 1.0
ERRORS = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0]
"""In units of the root of the people."""

SHARES = [0.0, 0.05, 0.1, 0.15, 0.18, 0.2, 0.22, 0.24, 0.26, 0.3, 0.4]
DELTAS = np.logspace(-6, -0.5, 40)
RHO = 2 * NormalDist().cdf(-math.sqrt(2 * math.log(2)))

Floats = NDArray[np.float64]


def least_error(people: float, epsilon: float) -> float:
    """No state that costs epsilon answers all random dot products with a smaller error."""
    return math.sqrt(people) / (4 * math.cosh(epsilon / 2))


def least_failure(people: int, error: float, epsilon: float) -> float:
    """Whatever costs epsilon is off by more than this error at least so often."""
    mean = 1 / (2 * math.cosh(epsilon / 2) ** 2)
    least = 0.0
    for places in np.unique(np.linspace(1, mean * people, 200).astype(int)):
        often = (mean - places / people) / (1 - places / people)
        least = max(least, often * (1 - near(int(places), math.floor(2 * error))) / 2)
    return least


def near(tosses: int, reach: int) -> float:
    """The most likely `2 reach + 1` values in a row of a number of heads."""
    middle = tosses // 2
    values = np.arange(max(middle - reach, 0), min(middle + reach, tosses) + 1)
    log = math.lgamma(tosses + 1) - tosses * math.log(2)
    logs = [log - math.lgamma(v + 1) - math.lgamma(tosses - v + 1) for v in values]
    return min(float(np.exp(logs).sum()), 1.0)


def most_apart(ones: int, accuracy: Accuracy) -> float:
    """In so many places differ two vectors of so many ones at most that agree with all unions."""
    return (4 * accuracy.share * ones + 4 * accuracy.more) / (1 - accuracy.share)


def least_additive(failure: Floats | float, epsilon: float, alpha: float = 0.0) -> Floats:
    """No count that costs epsilon is this near to `(1 +- alpha) D` but for such failures."""
    users = np.ceil(np.log(1 / np.asarray(failure) - 1) / epsilon) - 1
    return (1 - alpha) * np.maximum(users, 0) / 2


@dataclass(frozen=True, slots=True, eq=False)
class Count:
    """An ordinary program: it keeps who came, and answers with an error of this deviation."""

    came: Truths
    deviation: float

    def counts_with(self, fed: Truths) -> NDArray[np.float32]:
        """How many came or are fed, with an error."""
        exact = (self.came | fed).sum(axis=1)
        return (exact + GENERATOR.normal(0, self.deviation, len(fed))).astype(np.float32)


def decoded(deviation: float) -> float:
    """The share of people that is decoded from a count with such errors (Theorems 9 and 12)."""
    came = tossed(COINS, PEOPLE)
    return Guesses(came, decode_products(Count(came, deviation), COINS)).share


def decoded_from_ours(epsilon: float) -> tuple[float, float]:
    """The same from the state of a `Density`, and the error with which it answers."""
    came = tossed(COINS, PEOPLE)
    members = pp.Density(universe=PEOPLE, epsilon=epsilon, coins=COINS)
    members.update(np.flatnonzero(came))
    state = SeizedDensity(Seized.of(members), COINS)
    queries = tossed(COINS, PEOPLE * PEOPLE).reshape(PEOPLE, PEOPLE)
    errors = dot_products(state, queries) - queries @ came.astype(np.float32)
    shift = float(errors.mean())  # of the one count that all of them share
    deviation = math.sqrt(float(errors.var()) + shift**2)
    return Guesses(came, decode_products(state, COINS)).share, deviation


def decoded_despite(share: float, people: int, queries: int) -> tuple[float, float]:
    """The share that is decoded if so many answers are falsified, by absolute errors and squares.

    The answers that would tell most speak of the opposite of everybody (Theorem 10).
    """
    came = GENERATOR.integers(0, 2, people).astype(np.float32)
    signs = GENERATOR.choice(np.array([-1, 1], np.float32), (queries, people))
    noise = GENERATOR.normal(0, 0.05 * math.sqrt(people), queries).astype(np.float32)
    answers = signs @ came + noise
    other = signs @ (1 - came)
    worst = np.argsort(-np.abs(signs @ (1 - 2 * came)))[: round(share * queries)]
    answers[worst] = other[worst]
    found = (
        least_absolute(signs, answers, accuracy=0.05 * math.sqrt(people)),
        least_squares(signs, answers),
    )
    absolute, squares = (float((one == (came == 1)).mean()) for one in found)
    return absolute, squares


def apart(people: int, ones: int, accuracy: Accuracy) -> int:
    """The most places in which another vector differs that somebody can make agree (Theorem 11).

    They answer with the middle of what is right for both.
    """
    vectors = sparse_vectors(people, ones)
    came = np.zeros((1, people), np.float32)
    came[0, :ones] = 1
    truth = unions(came, vectors)
    all_truths = unions(vectors, vectors)
    gaps = np.abs(all_truths - truth)
    within = accuracy.reach(all_truths) + accuracy.reach(truth)
    agree = (gaps <= within + 1e-5).all(axis=1)
    return int(np.abs(vectors - came)[agree].sum(axis=1).max())


def apart_from_ours(people: int, ones: int, runs: int) -> float:
    """In how many places the best guess from a `Density` differs on average, of so many people."""
    right = 0
    for _ in range(runs):
        density = pp.Density(universe=people, epsilon=EPSILON, coins=COINS)
        density.update(np.arange(ones))
        order = np.argsort(GENERATOR.random(people) - bits_of(density))  # bits of 1 come first
        right += int((order[:ones] < ones).sum())
    return 2 * (ones - right / runs)


def exceeded(errors: Floats, failures: Floats) -> Floats:
    """What errors exceed with these probabilities."""
    return np.quantile(np.abs(errors), 1 - failures, method="higher")


def told_apart(deviation: float, users: int, runs: int) -> float:
    """How often a guess from a rounded count is wrong: did so many users come, or nobody?"""
    noise = np.rint(GENERATOR.normal(0, deviation, (2, runs)))
    wrong = (noise[0] > users / 2).sum() + (noise[1] + users <= users / 2).sum()
    return float(wrong) / (2 * runs)


def errors_for_nobody(runs: int) -> Floats:
    """What a `DistinctCount` answers when nobody came."""
    made = (
        pp.DistinctCount(epsilon=EPSILON, memory=1_024, expected=(100, 10_000), coins=COINS)
        for _ in range(runs)
    )
    return np.array([float(one.release()) for one in made])


def _draw_errors(axis: Axes) -> None:
    root = math.sqrt(PEOPLE)
    shares = [decoded(error * root) for error in ERRORS]
    ours, error = decoded_from_ours(EPSILON)
    print("decoded", dict(zip(ERRORS, np.round(shares, 3).tolist(), strict=True)))
    print(f"Density: error {error / root:.2f}, decoded {ours:.3f}")
    axis.plot(ERRORS, shares, "o-", color="C3", label="count that keeps who came")
    axis.plot([error / root], [ours], "D", color="C0", label="Density, epsilon 1")
    most = right_probability(EPSILON)
    axis.axhline(most, color="k", ls="--", label="epsilon 1 allows this")
    line = least_error(PEOPLE, EPSILON) / root
    axis.axvspan(ERRORS[0] / 1.3, line, color="C7", alpha=0.3, label="no program with epsilon 1")
    axis.set(xscale="log", ylim=(0.45, 1.03), xlim=(ERRORS[0] / 1.3, ERRORS[-1] * 1.3))
    axis.set(xlabel="error, in roots of m", ylabel="people who are decoded")
    axis.set_title(f"Theorems 9 and 12: {PEOPLE:,} people, {4 * PEOPLE:,} queries")
    axis.legend(frameon=False, fontsize=8, loc="lower left")


def _draw_wrong(axis: Axes) -> None:
    for times, color in ((4, "C1"), (16, "C2"), (64, "C0")):
        found = np.array([decoded_despite(share, 200, times * 200) for share in SHARES])
        print(f"{times} answers a person", found[:, 0].round(2).tolist())
        axis.plot(SHARES, found[:, 0], "o-", color=color, label=f"{times} answers a person")
    print("least squares", found[:, 1].round(2).tolist())
    axis.plot(SHARES, found[:, 1], ":", color="C7", label="64, least squares")
    axis.axvline(RHO, color="k", ls="--", label=f"rho = {RHO:.3f}")
    axis.set(xlabel="share of answers that are falsified", ylabel="people who are decoded")
    axis.set_title("Theorems 10 and 13: the worst answers are wrong")
    axis.legend(frameon=False, fontsize=8, loc="lower left")


def _draw_unions(axis: Axes) -> None:
    people, ones = 14, 4
    more = np.arange(0, 2.01, 0.25)
    for share, color in ((0.0, "C0"), (0.05, "C1"), (0.1, "C2")):
        accuracies = [Accuracy(share, float(one)) for one in more]
        found = [apart(people, ones, one) for one in accuracies]
        print(f"alpha_1 {share:g}: apart", found)
        axis.plot(more, found, "o", color=color, label=f"alpha_1 = {share:g}: measured")
        axis.plot(more, [most_apart(ones, one) for one in accuracies], "-", color=color)
    ours, blind = apart_from_ours(people, ones, 1_000), 2 * ones * (1 - ones / people)
    print(f"Density: {ours:.2f} places, a blind guess {blind:.2f}")
    axis.axhline(blind, color="k", ls="--", label="a blind guess, on average")
    axis.axhline(ours, color="C4", label="Density, epsilon 1: the best guess")
    axis.set(xlabel="alpha_2", ylabel="places that stay open", ylim=(-0.4, 12))
    axis.set_title(f"Theorem 11: {ones} of {people} people, all unions")
    axis.legend(frameon=False, fontsize=8, loc="lower right")


def _draw_failures(axis: Axes) -> None:
    runs = 4_000_000
    laplace = GENERATOR.geometric(1 - math.exp(-EPSILON), (2, runs))
    private = exceeded(laplace[0] - laplace[1], DELTAS)
    rounded = exceeded(np.rint(GENERATOR.normal(0, 1, runs)), DELTAS)
    ours = errors_for_nobody(300)
    rare = DELTAS[DELTAS > 1 / 50]
    axis.plot(DELTAS, private, color="C2", label="exact count + discrete Laplace")
    axis.plot(DELTAS, rounded, color="C3", label="exact count + rounded normal: falls")
    axis.plot(rare, exceeded(ours, rare), color="C0", label="DistinctCount, 1 KiB")
    axis.plot(
        DELTAS, least_additive(DELTAS, EPSILON), "k-", label="no program with epsilon 1 below"
    )
    wrong, allowed = told_apart(1.0, 9, 4_000_000), 1 - right_probability(9 * EPSILON)
    print(f"9 people or nobody: wrong {wrong:.1e}, at least {allowed:.1e} where epsilon is 1")
    print(f"DistinctCount, nobody came: half below {np.median(np.abs(ours)):.0f}")
    axis.set(xscale="log", yscale="log", xlabel="probability that the error is larger")
    axis.set(ylabel="error when nobody came")
    axis.invert_xaxis()
    axis.set_title("Theorem 14: rare failures")
    axis.legend(frameon=False, fontsize=8)


def main() -> None:
    """Measure, print and draw."""
    figure = Figure(figsize=(11.5, 8.4), layout="constrained", dpi=90)
    axes = figure.subplots(2, 2).ravel()
    for draw, axis in zip(
        (_draw_errors, _draw_wrong, _draw_unions, _draw_failures), axes, strict=True
    ):
        draw(axis)
    for error in (0.01, 0.05, 0.1):
        often = least_failure(10**6, error * 1_000, EPSILON)
        print(f"a million people, off by {error} roots: fails {often:.3f} of the time or more")
    figure.savefig(FOLDER / "accurate_counts.png")


if __name__ == "__main__":
    main()
