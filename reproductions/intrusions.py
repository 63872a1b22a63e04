"""m looks at a counter that nobody announces cost an error of the order of the root of m.

    python -m reproductions.intrusions

Naor, lecture 10, slide 52: a counter whose memory may be seen m times errs by the root of m. Let
events come at m steps alone, one before each look, by the toss of a fair coin: the argument of
`every_step_seen` holds for these, so the error at the end is `sqrt(m)/(2 cosh(epsilon/2))` or more.

Beside that, three counters over T steps. `noisy_steps` and `response` survive looks at every step,
and pay for T of them at once. `mixed_radix` survives one look, and others that are announced; each
of these adds noise to what is open.

Right: an intruder looks before and after each of some steps, and says whether it had an event. From
a state that survives they are right at most `e**epsilon/(1 + e**epsilon)` of the time; from that
of a tree always, if nobody announces their looks.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from panprivacy.continual import METHODS, Counter
from panprivacy.continual.methods import CounterRequest
from panprivacy.tables.counters.mechanism import Silent
from reproductions import COINS, FOLDER, GENERATOR
from reproductions.every_step_seen import least

STEPS, RUNS = 1 << 14, 12
SEEN, ROUNDS = 128, 32
LOOKS = [1, 4, 16, 64, 256, 1_024]
ANNOUNCED, UNANNOUNCED = "mixed_radix, announced", "mixed_radix, unannounced"


def error(looks: int) -> tuple[float, float]:
    """The root-mean-square error of `mixed_radix` over all steps, with looks that are announced.

    As it was in some runs, and as variances say.
    """
    asked = CounterRequest(STEPS, Fraction(1), 1, open_steps=False, pan_private=True)
    mechanism, silent = METHODS["mixed_radix"].make(asked), Silent()
    ends = np.linspace(0, STEPS, looks + 2).astype(int)
    variances, squares = 0.0, 0.0
    for run in range(-1, RUNS):
        coins = COINS if run >= 0 else silent
        memory = mechanism.initial(coins)
        for start, end in itertools.pairwise(ends):
            if start:
                mechanism.rerandomise(memory, coins)
            answers = mechanism.run(memory, np.zeros(end - start, np.int64), coins)
            if run >= 0:
                squares += float(np.sum(answers.values**2))
            else:
                variances += float(answers.variances.sum())
    return math.sqrt(squares / RUNS / STEPS), math.sqrt(variances / STEPS)


def named(method: str, rounds: int, *, announced: bool = False) -> float:
    """The share of steps of which an intruder says rightly whether they had an event.

    They see the memory before each step and after it. The last cell moves by what the step adds: of
    a tree it is the widest node, which stays open in all these steps.
    """
    mechanism = METHODS[method].make(
        CounterRequest(STEPS, Fraction(1), 1, open_steps=False, pan_private=True)
    )
    right = 0
    for _ in range(rounds):
        memory = mechanism.initial(COINS)
        stream = GENERATOR.integers(0, 2, SEEN)
        for step in range(SEEN):
            before = memory.cells[-1]
            if announced:
                mechanism.rerandomise(memory, COINS)
            mechanism.run(memory, stream[step : step + 1], COINS)
            right += int((memory.cells[-1] > before) == stream[step])
    return right / rounds / SEEN


def main() -> None:
    """Measure, print and draw."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained", dpi=90)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    found, predicted = zip(*map(error, LOOKS), strict=True)
    for name, errors in (("measured", found), ("predicted", predicted)):
        print(f"{ANNOUNCED}, {name}", [round(one, 1) for one in errors])
    left.plot(LOOKS, predicted, color="C0", label=f"{ANNOUNCED} looks")
    left.plot(LOOKS, found, "o", color="C0")
    for method, color in (("response", "C2"), ("noisy_steps", "C4")):
        flat = Counter(STEPS, epsilon=1, method=method).predicted_error()
        left.axhline(flat, color=color, label=f"{method}, a look at every step")
    left.plot(
        LOOKS, least(np.array(LOOKS), 1.0), "k-", label="m looks, unannounced: nobody errs less"
    )
    left.set(xscale="log", yscale="log", xlabel="looks, m", ylabel="root-mean-square error")
    left.set_title(f"{STEPS:,} steps at epsilon 1")
    left.legend(frameon=False, fontsize=8)
    guesses = {
        UNANNOUNCED: named("mixed_radix", 1),
        ANNOUNCED: named("mixed_radix", ROUNDS, announced=True),
        "noisy_steps": named("noisy_steps", ROUNDS),
        "response": named("response", ROUNDS),
    }
    print("named rightly", {name: round(share, 3) for name, share in guesses.items()})
    right.barh(list(guesses), list(guesses.values()), color=["C3", "C0", "C4", "C2"])
    most = 1 / (1 + math.exp(-1))
    right.axvline(most, color="k", linestyle="--", label="at most")
    right.set(xlim=(0.5, 1.02), xlabel="steps of which the intruder is right")
    right.set_title("Looks before and after a step")
    right.legend(frameon=False, loc="upper right", fontsize=8)
    figure.savefig(FOLDER / "intrusions.png")


if __name__ == "__main__":
    main()
