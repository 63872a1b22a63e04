"""Two looks at who came, unannounced, cost an error of the order of the number of users.

    python -m reproductions.two_looks

Naor, lecture 10, slide 49: an algorithm of finitely many states that survives two unannounced looks
has an error of the order of n. The theorem names no constant, so this shows the two sides of it.

Left, what breaks: a `Density` is seen before and after some users come. A bit changes only when its
user comes, so each that changed betrays its user with certainty, at every epsilon.

Right, what it takes to survive. The two looks may lie around any batch of users, so each batch has
to toss all bits again: it flips a bit with probability f, and draws that of a user who comes anew,
1 with probability `(1 + t)/2`. For each t, f is the smallest with which two looks lose epsilon, and
for each number of batches the t is taken that is best. A user who came in the first of B batches is
known with contrast `t (1 - 2 f)**(B-1)`. Did all n users come then, or nobody? The best guess errs
by up to n/2, which is what a guess without any data does. This is one family of algorithms; that
there is no better one is the theorem.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import panprivacy as pp
from panprivacy.audit.attacks.seized import bits_of
from reproductions import COINS, FOLDER, GENERATOR

USERS, RUNS = 10_000, 400
EPSILONS = {1.0: "C0", 2.0: "C1", 4.0: "C2"}
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024]
CONTRASTS = np.linspace(0.02, 0.98, 49)

Floats = NDArray[np.float64]


def betrayed(epsilon: float) -> tuple[float, float]:
    """The share of those who came between two looks whose bit changed, and of the others."""
    density = pp.Density(universe=USERS, epsilon=epsilon, coins=COINS)
    first = bits_of(density)
    density.update(np.arange(USERS // 2))
    changed = first != bits_of(density)
    return float(changed[: USERS // 2].mean()), float(changed[USERS // 2 :].mean())


def law(contrast: float) -> Floats:
    """Of a bit that was drawn with a contrast: the probabilities of 0 and 1."""
    return np.array([1 - contrast, 1 + contrast]) / 2


def loss(contrast: float, flip: float) -> float:
    """What two looks tell of a user: the largest logarithm of a ratio of probabilities.

    The user may come before the first look, between the two, or both; or never.
    """
    stays = np.array([[1 - flip, flip], [flip, 1 - flip]])
    never = law(0)[:, None] * stays
    found = []
    for before, between in itertools.product((0.0, contrast), (False, True)):
        second = np.tile(law(contrast), (2, 1)) if between else stays
        found.append(np.abs(np.log(law(before)[:, None] * second / never)).max())
    return float(max(found))


@functools.cache
def least_flip(contrast: float, epsilon: float) -> float | None:
    """The smallest probability of a flip with which two looks lose epsilon; None if none does."""
    tried = np.linspace(0.001, 0.5, 500)
    return next((float(f) for f in tried if loss(contrast, float(f)) <= epsilon), None)


def left_after(batches: int, epsilon: float) -> float:
    """The contrast with which a user of the first batch is known after the last one, at best."""
    flips = ((float(t), least_flip(float(t), epsilon)) for t in CONTRASTS)
    return max((t * (1 - 2 * f) ** (batches - 1) for t, f in flips if f is not None), default=0.0)


def guess(ones: NDArray[np.int64], contrast: float) -> Floats:
    """How many came, where all did or nobody, from the number of bits that are 1."""
    absent, present = law(0), law(contrast)
    told = ones * math.log(present[1] / absent[1])
    told += (USERS - ones) * math.log(present[0] / absent[0])
    return USERS / (1 + np.exp(-np.clip(told, -700, 700)))


def error(contrast: float, runs: int) -> float:
    """The root of the mean squared error of the best guess, over the number of users."""
    half = runs // 2
    nobody = GENERATOR.binomial(USERS, 0.5, half)
    everybody = GENERATOR.binomial(USERS, law(contrast)[1], half)
    off = np.concatenate([guess(nobody, contrast), guess(everybody, contrast) - USERS])
    return float(np.sqrt(np.mean(off**2))) / USERS


def predicted(contrast: float) -> float:
    """The same, from the laws."""
    ones = np.arange(USERS + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, USERS + 1)))])
    ways = logs[-1] - logs - logs[::-1]
    chances = [
        np.exp(ways + ones * math.log(p[1]) + (USERS - ones) * math.log(p[0]))
        for p in (law(0), law(contrast))
    ]
    guessed = guess(ones, contrast) / USERS
    return math.sqrt(float(chances[0] @ guessed**2 + chances[1] @ (1 - guessed) ** 2) / 2)


def main() -> None:
    """Measure, print and draw."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    shares = np.array([betrayed(epsilon) for epsilon in EPSILONS])
    print("bits that changed, of those who came and of others", shares.round(3).tolist())
    places = np.arange(len(EPSILONS))
    left.bar(places - 0.2, shares[:, 0], 0.4, color="C3", label="came between the looks")
    left.bar(places + 0.2, shares[:, 1], 0.4, color="C7", label="did not come: 0")
    left.set_xticks(places, [f"epsilon {epsilon:g}" for epsilon in EPSILONS])
    left.set(ylim=(0, 1.25), ylabel="share whose bit changed")
    left.set_title("A Density, seen twice")
    left.legend(frameon=False, loc="upper left")
    for epsilon, color in EPSILONS.items():
        contrasts = [left_after(batches, epsilon) for batches in BATCHES]
        line = [predicted(contrast) for contrast in contrasts]
        points = [error(contrast, RUNS) for contrast in contrasts]
        print(f"epsilon {epsilon:g}", np.round(points, 4).tolist())
        right.plot(BATCHES, line, color=color, label=f"two looks lose epsilon {epsilon:g}")
        right.plot(BATCHES, points, "o", color=color)
    right.axhline(0.5, color="k", linestyle="--", label="a guess without data")
    right.set(xscale="log", xlabel="batches since the users came")
    right.set(ylabel=f"error over the {USERS:,} users")
    right.set_title("What survives two looks forgets")
    right.set_ylim(-0.03, 0.75)
    right.legend(frameon=False, loc="upper left", ncols=2, fontsize=9)
    figure.savefig(FOLDER / "two_looks.png")


if __name__ == "__main__":
    main()
