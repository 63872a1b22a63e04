"""What windows gain that are planned around the last one, with production coins.

    python -m benchmarks.learning

Prints the root-mean-square errors of days of 500,000 visitors in 64 KiB at epsilon 1, planned for a
wide range, learned, and known; how often intervals hold a day of ten times as many; what a window
that nobody sees loses; and the same for the bound of histograms, of users who come up to ten times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import panprivacy as pp

DAY, EPSILON = 86_400, 1
VISITORS, TIMES, RUNS = 500_000, 10, 300
WIDE = 10_000, 10_000_000
OFTEN, BOUND = 10, 1_000
"""How often users come at most, and what the bound is where nobody knows that."""
BOUNDS = BOUND, 10 * OFTEN, OFTEN
POPULATIONS = (1, 1_000_000), (2, 1_000_000), (4, 1_000_000), (4, 100_000), (4, 10_000)
"""Epsilon, and of how many users half come."""
HISTOGRAMS = 30


def days(expected: str | int | tuple[int, int], numbers: Sequence[int]) -> list[pp.Release]:
    """The answers of some days, one after the other."""
    now = [0.0]
    windowed = pp.Windowed(
        lambda: pp.DistinctCount(epsilon=EPSILON, expected=expected),
        every=DAY,
        clock=lambda: now[0],
    )
    for number in numbers:
        windowed.update(np.arange(number))
        now[0] += DAY
        windowed.advance()
    return [window.release for window in windowed.releases]


def show(title: str, answers: Sequence[pp.Release], users: int) -> None:
    """One line of the report."""
    values = np.array([answer.value for answer in answers])
    error = float(np.sqrt(np.mean((values / users - 1) ** 2)))
    held = sum(answer.low <= users <= answer.high for answer in answers)
    print(f"{title:<42} {error:8.2%} {held / len(answers):10.3f} {len(answers):6d}")


def histograms(
    epsilon: int, universe: int, bound: int | str, often: Sequence[int]
) -> list[tuple[int, pp.IncidenceRelease]]:
    """The bounds of some days and their histograms; on each, users come up to so many times."""
    now = [0.0]
    windowed = pp.Windowed(
        lambda: pp.Incidence(epsilon=epsilon, universe=universe, bound=bound),
        every=DAY,
        clock=lambda: now[0],
    )
    ids, released = np.arange(universe // 2), []
    for most in often:
        planned = windowed.current.plan.bound
        windowed.update(ids, ids % most + 1)
        now[0] += DAY
        windowed.advance()
        released.append((planned, windowed.take()[0].release))
    return released


def measured(
    days: Sequence[tuple[int, pp.IncidenceRelease]], universe: int, most: int
) -> tuple[str, float, float]:
    """The bounds, the root-mean-square error of states with users, and how often they are held."""
    truth = np.bincount(np.arange(universe // 2) % most + 1)
    found = [
        (truth[state], histogram.exactly(state))
        for bound, histogram in days
        for state in range(1, min(most, bound) + 1)
    ]
    errors = [answer.value - users for users, answer in found]
    held = [answer.low <= users <= answer.high for users, answer in found]
    bounds = [bound for bound, _ in days]
    planned = f"{min(bounds):,} to {max(bounds):,}"
    return planned, float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(held))


def show_bounds() -> None:
    """What learning a bound gains, and what becomes of days on which users come more often."""
    title = "users come up to 10 times"
    print(f"{title:<32} {'learned':>14} {'error':>7} {'coverage':>9} {'at 1,000':>9} {'at 100':>7}")
    for epsilon, universe in POPULATIONS:
        same = [OFTEN] * (HISTOGRAMS + 1)
        learned = histograms(epsilon, universe, f"learn:1:{BOUND}", same)[1:]
        bounds, error, held = measured(learned, universe, OFTEN)
        wide, tight = (
            measured(histograms(epsilon, universe, bound, same), universe, OFTEN)[1]
            for bound in BOUNDS[:2]
        )
        title = f"epsilon {epsilon}, {universe // 2:,} of {universe:,}"
        print(f"{title:<32} {bounds:>14} {error:7,.0f} {held:9.3f} {wide:9,.0f} {tight:7,.0f}")
    for times in (10, 100):
        often = [OFTEN, *[times * OFTEN] * 3]
        runs = [histograms(4, 100_000, f"learn:1:{BOUND}", often)[1:] for _ in range(HISTOGRAMS)]
        for number, same_day in enumerate(zip(*runs, strict=True), 1):
            bounds, error, held = measured(same_day, 100_000, times * OFTEN)
            title = f"{times} times as often, day {number}"
            print(f"{title:<32} {bounds:>14} {error:7,.0f} {held:9.3f}")
    for make in (partial(pp.ThresholdCount, threshold=OFTEN), partial(pp.CroppedSum, tau=OFTEN)):
        counts = [make(bound=bound, universe=1_000_000, epsilon=EPSILON) for bound in BOUNDS]
        errors = ", ".join(f"{one.plan.absolute_error():,.0f}" for one in counts)
        print(f"{counts[0].name} at 10, a million users, bounds {BOUNDS}: {errors}")


def main() -> None:
    """Measure."""
    show_bounds()
    print(f"{'days of 500,000 visitors':<42} {'error':>8} {'coverage':>10} {'days':>6}")
    same = [VISITORS] * (RUNS + 1)
    show("planned for 10,000 to 10,000,000", days(WIDE, same)[1:], VISITORS)
    show("learned, first day as wide", days("learn:10000:10000000", same)[1:], VISITORS)
    show("learned, first day 1,000 to 1,000,000,000", days("learn", same)[1:], VISITORS)
    show("known", days(VISITORS, same)[1:], VISITORS)
    runs = [days("learn", [VISITORS, *[TIMES * VISITORS] * 3])[1:] for _ in range(RUNS // 5)]
    for number, answers in enumerate(zip(*runs, strict=True), 1):
        show(f"day {number} of 5,000,000, after 500,000", answers, TIMES * VISITORS)
    for expected in (WIDE, "learn:10000:10000000"):
        for one in (
            pp.DistinctCount(epsilon=EPSILON, expected=expected),
            pp.CroppedSum(tau=10, epsilon=EPSILON, expected=expected, memory=1 << 20),
        ):
            unseen = float(one.guarantee.unseen_loss.epsilon)
            print(f"an unseen window, {one.entry.name}, {expected}: {unseen:.4f}")


if __name__ == "__main__":
    main()
