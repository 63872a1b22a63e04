"""What a threshold costs that is hard or soft: `Incidence` beside `ThresholdCount`.

    python -m benchmarks.thresholds

The first table is what the plans predict for a million possible users at epsilon 1, 0.9 of it for
the state. The second is measured on real users with production coins, each count beside its own
truth. Exits with 1 when an error is further from what was predicted than chance makes it.
"""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.counters import activity
from panprivacy.decoders.intervals import discrete_laplace_variance
from panprivacy.statistics.incidence.decoder import StateModel

USERS, RUNS, MOST_OVER = 1_000_000, 100, 1.25
BUDGET = pp.Budget(Fraction(9, 10), Fraction(1, 10))
LEASTS = [2, 10, 100, 1_000]
ACTORS = 304_691


def hard(least: int, bound: int, users: int) -> tuple[pp.Incidence, float]:
    """A count that cuts hard, and its predicted deviation where nobody counts."""
    count = pp.Incidence(universe=users, bound=bound, epsilon=1, budget=BUDGET)
    model, query = count.plan.model(0), count.plan.states.at_least(least)
    if not isinstance(model, StateModel):
        raise TypeError
    scale = float(np.ptp(model.scores(query)) / BUDGET.release)
    estimate = model.named(query, 0, discrete_laplace_variance(scale))
    return count, float(np.sqrt(estimate.constant + estimate.output))


def soft(least: int, bound: int, users: int) -> pp.ThresholdCount:
    """A count with a soft threshold."""
    return pp.ThresholdCount(threshold=least, bound=bound, universe=users, epsilon=1, budget=BUDGET)


def print_theory() -> None:
    """What both cost, in users."""
    print(f"of {USERS:,} users  bound     hard     soft")
    for least in LEASTS:
        bound = max(5 * least, 10)
        _, deviation = hard(least, bound, USERS)
        error = soft(least, bound, USERS).plan.absolute_error()
        print(f"at least {least:6,}  {bound:9,} {deviation:8,.0f} {error:8,.0f}")


def measure(states: NDArray[np.int64], least: int) -> float:
    """Print what is measured; the error over what was predicted."""
    bound, users = int(states.max()), np.arange(len(states))
    errors: dict[str, list[float]] = {"hard": [], "soft": []}
    _, predicted = hard(least, bound, len(states))
    plan = soft(least, bound, len(states)).plan
    truths = {
        "hard": float((states >= least).sum()),
        "soft": float(np.clip(states / plan.low - 1, 0, 1).sum()),
    }
    for _ in range(RUNS):
        one, other = hard(least, bound, len(states))[0], soft(least, bound, len(states))
        for count in (one, other):
            count.update(users, states)
        errors["hard"].append(one.release(at_least=least).at_least(least).value - truths["hard"])
        errors["soft"].append(other.release().value - truths["soft"])
    found = {way: float(np.sqrt(np.mean(np.square(each)))) for way, each in errors.items()}
    print(
        f"at least {least:6,}  {truths['hard']:9,.0f} {predicted:9,.0f} {found['hard']:9,.0f}  "
        f"{truths['soft']:9,.0f} {plan.absolute_error():9,.0f} {found['soft']:9,.0f}"
    )
    return max(found["hard"] / predicted, found["soft"] / plan.absolute_error())


def main() -> int:
    """Predict, measure and print."""
    print_theory()
    print("\nHiggs, acts of each     hard: predicted  measured       soft: predicted  measured")
    states = np.bincount(activity(), minlength=ACTORS)
    worst = max(measure(states, least) for least in (2, 10, 100))
    return int(worst > MOST_OVER)


if __name__ == "__main__":
    sys.exit(main())
