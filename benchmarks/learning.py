"""What windows gain that are planned around the last one, with production coins.

    python -m benchmarks.learning

Prints the root-mean-square errors of days of 500,000 visitors in 64 KiB at epsilon 1, planned for a
wide range, learned, and known; how often intervals hold a day of ten times as many; and what a
window that nobody sees loses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import panprivacy as pp

DAY, EPSILON = 86_400, 1
VISITORS, TIMES, RUNS = 500_000, 10, 300
WIDE = 10_000, 10_000_000


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


def main() -> None:
    """Measure."""
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
            print(f"an unseen window, {one.name}, {expected}: {float(one.unseen):.4f}")


if __name__ == "__main__":
    main()
