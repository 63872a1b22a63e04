"""The largest error of a counter grows at least as the logarithm of the steps.

    python -m reproductions.log_steps

Dwork and Roth, Theorem 12.6; Naor, lecture 10, slides 23 to 25. The steps are cut into phases of k.
The stream `x_j` has an event at every step of phase j, the stream 0 has none. A counter that is
off by less than k/2 at all steps, with probability p, says of `x_j` less than k/2 before phase j
and k/2 or more from its end on; these events exclude one another for different j, and all of them
what it says of 0. The streams 0 and `x_j` differ in k events, so on 0 each has probability
`p e**(-epsilon k)` at least. So where `p (1 + floor(T/k) e**(-epsilon k)) > 1`, there is no such
counter.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from panprivacy.continual import Counter
from reproductions import COINS, FOLDER

PROBABILITY = 2 / 3
STEPS = [1 << power for power in range(6, 21, 2)]
RUNS = 24
METHODS = {"mixed_radix": "C0", "pan_private_tree": "C3", "noisy_steps": "C4"}


def bound(steps: int, epsilon: float = 1.0) -> float:
    """No counter errs less than this at all steps with probability 2/3."""
    impossible = (
        k / 2
        for k in range(1, steps + 1)
        if PROBABILITY * (1 + steps // k * math.exp(-epsilon * k)) > 1
    )
    return max(impossible, default=0.0)


def largest_error(method: str, steps: int, runs: int) -> float:
    """What the largest error over all steps stays below in 2/3 of the runs."""
    nothing = np.zeros(steps, np.int64)
    counters = (Counter(steps, epsilon=1, method=method, coins=COINS) for _ in range(runs))
    found = [float(np.abs(counter.run(nothing)).max()) for counter in counters]
    return float(np.quantile(found, PROBABILITY))


def printed(steps: int) -> float:
    """What Theorem 12.5 says of figure 12.2, by Corollary 12.3 for each step."""
    noises = 1 + math.ceil(math.log2(steps))
    log = math.log(2 * steps / (1 - PROBABILITY))
    return noises * math.sqrt(max(noises, log)) * math.sqrt(8 * log)


def main() -> None:
    """Measure, print and draw."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained", dpi=90)
    axis = figure.subplots()
    for method, color in METHODS.items():
        errors = [largest_error(method, steps, RUNS) for steps in STEPS]
        axis.plot(STEPS, errors, "o-", color=color, label=f"{method}, measured")
        print(method, [round(one) for one in errors], flush=True)
    lowest = [bound(steps) for steps in STEPS]
    print("bound", lowest)
    axis.plot(
        STEPS,
        [printed(steps) for steps in STEPS],
        ":",
        color="C3",
        label="pan_private_tree, Theorem 12.5",
    )
    axis.plot(STEPS, lowest, "k-", label="Theorem 12.6: nobody errs less")
    axis.set(xscale="log", yscale="log", xlabel="steps")
    axis.set(ylabel="largest error over all steps, 2/3 of runs")
    axis.set_title("Counting at epsilon 1")
    axis.set_ylim(1, 1e4)
    axis.legend(frameon=False, loc="upper left", fontsize=8)
    figure.savefig(FOLDER / "log_steps.png")


if __name__ == "__main__":
    main()
