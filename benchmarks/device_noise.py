"""The noise that devices need where only the sum of their reports is seen.

    python -m benchmarks.device_noise

Prints the tables of docs/guarantees/devices.md and two-servers.md: epsilon 1 and delta 1e-6 for a
count over so many devices. `tests/docs/test_devices.py` compares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from panprivacy.devices.federated.count_nonzero import CountNonZero
from panprivacy.devices.federated.distributions import bernoulli, hockey_stick
from panprivacy.devices.federated.promise import Promise, Range, worst_of_others
from panprivacy.devices.federated.simulation import local_deviations

DEVICES = 100, 1_000, 10_000, 100_000
EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)


def lines(devices: Iterable[int]) -> Iterator[str]:
    """A row of the table for each number of devices."""
    for several in devices:
        promise = Promise(epsilon=EPSILON, delta=DELTA, devices=several)
        kind = CountNonZero.planned(promise)
        share = deviation(kind, several) / math.sqrt(math.log(1 / DELTA))
        yield (
            f"| {several:,} | {float(kind.epsilon_0):.2f} | {deviation(kind, several):.2f} "
            f"| {share:.2f} |"
        )


def found_lines(devices: Iterable[int]) -> Iterator[str]:
    """A row of the table of the delta that is left if a row that was found comes in as well."""
    for several in devices:
        promise = Promise(epsilon=EPSILON, delta=DELTA, devices=several)
        yield f"| {several:,} | {_delta_with_found(CountNonZero.planned(promise), several):.1e} |"


def _delta_with_found(kind: CountNonZero, devices: int) -> float:
    """The delta at epsilon: a device with an event is in the sum twice, once without noise."""
    here, there = map(bernoulli, kind.reporting)

    def apart(ranges: tuple[Range, ...]) -> float:
        others = kind.reporting.others(devices, *ranges)
        one, other = (others + here).shifted(1), others + there
        return max(hockey_stick(EPSILON, pair) for pair in ((one, other), (other, one)))

    return worst_of_others(devices, 1, apart)


def deviation(kind: CountNonZero, devices: int) -> float:
    """The standard deviation of a count over so many devices, none of which had an event."""
    return float(local_deviations(kind, np.zeros(1), devices)[0])


def main() -> None:
    """Print the tables, and what the local model errs by."""
    print("| devices | epsilon_0 | deviation of a count | over `sqrt(ln(1/delta))` |")
    print("|--:|--:|--:|--:|")
    print(*lines(DEVICES), sep="\n")
    print("\n| devices of the promise | delta with one row that was found |\n|--:|--:|")
    print(*found_lines(DEVICES), sep="\n")
    local = CountNonZero.planned(Promise(epsilon=EPSILON))
    print(f"\nIn the local model: {deviation(local, DEVICES[-1]):.0f} for {DEVICES[-1]:,} devices.")


if __name__ == "__main__":
    main()
