"""If the memory is seen after every step, randomised response is the best that there is.

    python -m reproductions.every_step_seen

Naor, lecture 10, slides 52 and 53, with constants. Let each step be an event by the toss of a fair
coin, and let the intruder see the state after each. Given the state before a step, the one after
it is an epsilon-private answer to one bit: its law with an event, `Q1`, and that without, `Q0`, are
within `e**epsilon` of one another. With `t = tanh(epsilon/2)`:

* Given all states the bits are independent, and each is 1 with probability `Q1/(Q0 + Q1)`, which is
  at most `(1 + t)/2` and at least `(1 - t)/2`. So its variance is `(1 - t**2)/4` or more, and
  whatever is read off the states is off from the sum of m steps by `sqrt(m)/(2 cosh(epsilon/2))`
  or more, as the root of the mean square. The best guess from randomised response is exactly there.
* If the coin is not quite fair, heads with probability `1/2 + d`, the states know about d at most
  `4 m t**2` (Fisher). An answer that is unbiased for every stream has the mean `m (1/2 + d)`, so it
  varies by `m/(4 t**2)` or more, of which the stream makes `m/4`. What is left of the error is
  `sqrt(m)/(2 sinh(epsilon/2))`. Randomised response is exactly there.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from panprivacy.continual import Counter
from reproductions import COINS, FOLDER, GENERATOR

STEPS, RUNS = 4_096, 400
EPSILONS = [0.25, 0.5, 1.0, 2.0, 4.0]

Floats = NDArray[np.float64]


def least_unbiased(steps: Floats | int, epsilon: float) -> Floats:
    """No unbiased answer errs less."""
    return np.sqrt(steps) / (2 * math.sinh(epsilon / 2))


def least(steps: Floats | int, epsilon: float) -> Floats:
    """No answer errs less."""
    return np.sqrt(steps) / (2 * math.cosh(epsilon / 2))


def measured(method: str, epsilon: float, steps: int, runs: int) -> tuple[Floats, Floats]:
    """The errors after each step: of the answers, and of the best guess from them.

    The best guess of a sum of fair coins moves an answer towards half of the steps, by what coins
    and noise say each.
    """
    shares = math.tanh(epsilon / 2) ** 2 if method == "response" else 0.25
    if method == "noisy_steps":
        shares = 0.25 / (0.25 + 0.5 / math.sinh(epsilon / 2) ** 2)
    squares, guesses = np.zeros((2, steps))
    middle = np.arange(1, steps + 1) / 2
    for _ in range(runs):
        stream = GENERATOR.integers(0, 2, steps)
        truth = np.cumsum(stream)
        counter = Counter(steps, epsilon=str(epsilon), method=method, coins=COINS)
        answers = counter.run(stream)
        squares += (answers - truth) ** 2
        guesses += (middle + shares * (answers - middle) - truth) ** 2
    return np.sqrt(squares / runs), np.sqrt(guesses / runs)


def main() -> None:
    """Measure, print and draw."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2)
    colors = {"response": "C0", "noisy_steps": "C4"}
    times = np.arange(1, STEPS + 1)
    shown = np.unique(np.geomspace(8, STEPS, 14).astype(int)) - 1
    for method, color in colors.items():
        answers, guesses = measured(method, 1.0, STEPS, RUNS)
        left.plot(times[shown], answers[shown], "o", color=color, label=method)
        hollow = {"color": color, "markerfacecolor": "none", "label": f"{method}, best guess"}
        left.plot(times[shown], guesses[shown], "o", **hollow)
        ratios = []
        for epsilon in EPSILONS:
            pair = measured(method, epsilon, 256, RUNS)
            ratios.append([float(one[-1]) / 16 for one in pair])
        print(method, "over the root of the steps", np.round(ratios, 3).tolist())
        right.plot(EPSILONS, [one[0] for one in ratios], "o", color=color)
        right.plot(EPSILONS, [one[1] for one in ratios], "o", **hollow)
    grid = np.geomspace(EPSILONS[0], EPSILONS[-1], 50)
    for line, style, name in (
        (least_unbiased, "k-", "no unbiased answer"),
        (least, "k--", "nobody"),
    ):
        left.plot(times, line(times, 1.0), style, label=f"{name} errs less")
        right.plot(grid, [line(1, one) for one in grid], style)
    left.set(xscale="log", yscale="log", xlabel="steps, each of them seen")
    left.set(ylabel="root-mean-square error")
    left.set_title("Fair coins at epsilon 1")
    left.legend(frameon=False, fontsize=8)
    right.set(
        xscale="log", yscale="log", xlabel="epsilon", ylabel="error over the root of the steps"
    )
    right.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    right.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    right.minorticks_off()
    right.set_title("The constant")
    figure.savefig(FOLDER / "every_step_seen.png")


if __name__ == "__main__":
    main()
