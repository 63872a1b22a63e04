"""What a threshold costs that is hard or soft: `Incidence` and `ThresholdCount`, hard and soft.

    python -m benchmarks.thresholds

The first table is what the plans predict for a million possible users at epsilon 1, 0.9 of it for
the state, and how near the shaped law comes to what no law of its loss goes below. The second shows
at which epsilon a shaped law is worth it, each plan with the split of its own. The third and the
fourth show what room for states below 0 costs. The last is measured on real users with production
coins, each count beside its own truth. Exits with 1 when an error is further from what was
predicted than chance makes it.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

import panprivacy as pp
from benchmarks.counters import activity
from panprivacy.statistics.incidence.decoder import StateModel
from panprivacy.statistics.threshold.hard import HardPlan
from panprivacy.tables.decoders.intervals import discrete_laplace_variance

USERS, RUNS, MOST_OVER = 1_000_000, 100, 1.25
BUDGET = pp.Budget(Fraction(9, 10), Fraction(1, 10))
LEASTS = [2, 5, 10, 50, 100, 500]
EPSILONS = [0.5, 1, 2, 4]
ROOMS = [(10, 50), (10, None), (100, 500), (100, 5_000), (100, None)]
HEAVY = [100, 1_000, 10_000]
BELOW = [0, 1, 3, 10, 30]
ACTORS = 304_691
WAYS = "named", "shaped", "soft"


def counts(least: int, bound: int, users: int, **spent: Any) -> dict[str, Any]:
    """A count of each way: of an incidence, of a law shaped to it, and of a soft threshold."""
    told = {"bound": bound, "universe": users, **spent}
    return {
        "named": pp.Incidence(**told),
        "shaped": pp.ThresholdCount(threshold=least, hard=True, **told),
        "soft": pp.ThresholdCount(threshold=least, **told),
    }


def deviation(count: Any, least: int) -> float:
    """The predicted deviation, at most."""
    if not isinstance(count, pp.Incidence):
        return float(count.plan.absolute_error())
    model, query = count.plan.model(0), count.plan.states.at_least(least)
    if not isinstance(model, StateModel):
        raise TypeError
    scale = float(np.ptp(model.scores(query)) / count.plan.split.budget.release)
    estimate = model.named(query, 0, discrete_laplace_variance(scale))
    return float(np.sqrt(estimate.constant + estimate.output))


def highest(least: int) -> int:
    """The bound that goes with a threshold."""
    return max(5 * least, 10)


def print_theory() -> None:
    """What they cost, in users, and the limit."""
    print(f"of {USERS:,} users  bound    named   shaped     soft   over the limit")
    for least in LEASTS:
        made = counts(least, highest(least), USERS, epsilon=1, budget=BUDGET)
        errors = "".join(f"{deviation(made[way], least):9,.0f}" for way in WAYS)
        over = over_the_limit(made["shaped"])
        print(f"at least {least:6,}  {highest(least):9,}{errors} {over:8.2f}")


def over_the_limit(count: pp.ThresholdCount) -> float:
    """The root of the price of a law over the least that there can be."""
    plan = count.plan
    if not isinstance(plan, HardPlan):
        raise TypeError
    spent = float(plan.split.budget.state)
    return float(np.sqrt(plan.shape.price(spent) / plan.shape.price_bound(spent)))


def print_gains() -> None:
    """How many times as much a named count errs, and a shaped law over a soft threshold."""
    print("\nnamed / shaped, shaped / soft", *(f"  epsilon {epsilon:>3}" for epsilon in EPSILONS))
    for least in LEASTS:
        cells = []
        for epsilon in EPSILONS:
            made = counts(least, highest(least), USERS, epsilon=epsilon)
            named, shaped, soft = (deviation(made[way], least) for way in WAYS)
            cells.append(f"{named / shaped:5.2f}, {shaped / soft:4.2f}")
        print(f"at least {least:6,}              ", *cells, sep="  ")


def print_room() -> None:
    """What room below 0 costs: where it is nearly free, and where it is asked for."""
    print("\nepsilon  at least       bound   none    free, down to     half of the threshold")
    for epsilon in EPSILONS:
        for least, bound in ROOMS:
            sizes = {"threshold": least, "bound": bound, "universe": USERS, "epsilon": epsilon}
            none = pp.plan("threshold", **sizes, below=0).absolute_error()
            free = pp.plan("threshold", **sizes)
            asked = pp.plan("threshold", **sizes, below=least // 2).absolute_error() / none
            lowest, times = (free.range_of_states or (0, 0))[0], free.absolute_error() / none
            told = f"{none:7,.0f} {times:7.2f} {lowest:8,} {asked:10.2f}"
            shown = f"{bound:,}" if bound else f"none: {64 * least:,}"
            print(f"{epsilon:7} {least:9,} {shown:>11} {told}")


def print_room_elsewhere() -> None:
    """What the same costs heavy hitters, of whom half of the threshold is asked for, and others."""
    print("\nepsilon  heavy hitters: k, none, half of the threshold")
    for epsilon in EPSILONS:
        for k in HEAVY:
            sizes = {"k": k, "total": 1_000 * k, "epsilon": epsilon}
            none = pp.plan("heavy-hitters", **sizes).absolute_error()
            asked = pp.plan("heavy-hitters", **sizes, below=500).absolute_error()
            print(f"{epsilon:7} {k:7,} {none:9,.0f} {asked / none:9.2f}")
    print("\nincidence, bound 30, epsilon 1: at least, none, down to -1, -3, -10, -30")
    for least in LEASTS[:3]:
        counts = [pp.Incidence(bound=30, universe=USERS, epsilon=1, below=n) for n in BELOW]
        none, *others = (deviation(count, least) for count in counts)
        print(f"{least:8} {none:9,.0f}", *(f"{other / none:6.2f}" for other in others))


def measure(states: NDArray[np.int64], least: int) -> float:
    """Print what is measured; the largest error over what was predicted."""
    bound, users = int(states.max()), np.arange(len(states))
    spent = {"epsilon": 1, "budget": BUDGET}
    errors: dict[str, list[float]] = {way: [] for way in WAYS}
    first = counts(least, bound, len(states), **spent)
    hard = float((states >= least).sum())
    soft = float(np.clip(states / first["soft"].plan.low - 1, 0, 1).sum())
    truths = {"named": hard, "shaped": hard, "soft": soft}
    for _ in range(RUNS):
        for way, count in counts(least, bound, len(states), **spent).items():
            count.update(users, states)
            asked = {"at_least": least} if way == "named" else {}
            answer = count.release(**asked)
            value = answer.at_least(least).value if asked else answer.value
            errors[way].append(value - truths[way])
    found = {way: float(np.sqrt(np.mean(np.square(each)))) for way, each in errors.items()}
    predicted = {way: deviation(first[way], least) for way in WAYS}
    shown = "".join(f"{predicted[way]:10,.0f} {found[way]:8,.0f}" for way in WAYS)
    print(f"at least {least:6,}  {hard:9,.0f} {soft:9,.0f}{shown}")
    return max(found[way] / predicted[way] for way in WAYS)


def main() -> int:
    """Predict, measure and print."""
    print_theory()
    print_gains()
    print_room()
    print_room_elsewhere()
    print("\nHiggs, acts of each hard      soft  named: predicted, measured; shaped; soft")
    states = np.bincount(activity(), minlength=ACTORS)
    worst = max(measure(states, least) for least in (2, 10, 100))
    return int(worst > MOST_OVER)


if __name__ == "__main__":
    sys.exit(main())
