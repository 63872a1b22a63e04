"""How long plans take, over the sizes of all statistics: `python -m benchmarks.planning`.

    python -m benchmarks.planning [STATISTIC ...]

Each size goes from small to the largest that the statistic accepts. Small and large epsilons,
announced intrusions and an error to reach take turns, three for each size. Prints the slowest
plans. Seconds are those of the processor for a plan and the text that tells its error, in one
process, with kernels compiled and empty caches. A busy machine takes up to twice as long, so a plan
counts as slow only if it is so twice.

A slow plan is then made once more, as another process would make it: with empty caches, and the
results of searches that were stored on the disk. Exits with 1 if that is slow too.
"""

from __future__ import annotations

import functools
import gc
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import panprivacy as pp
from panprivacy.ground.kernels import compile_kernels

MOST_SECONDS = 2.0
SHOWN = 12
WAYS = 3
EPSILONS = 0.1, 8
PEOPLE = 1_000, 1_000_000, 1_000_000_000
RANGES = (1_000, 1_000_000), (10, 1 << 40)
BOUNDS = 1, 30, 1_000, 60_000, 200_000, 1_000_000
HORIZONS = 1, 365, 1_000_000
Sizes = dict[str, Any]


def combined(**choices: tuple[Any, ...]) -> Iterator[Sizes]:
    """Every combination of some choices; None leaves a size out."""
    for chosen in itertools.product(*choices.values()):
        sizes = zip(choices, chosen, strict=True)
        yield {name: value for name, value in sizes if value is not None}


def hashed_or_not() -> Iterator[Sizes]:
    """A universe, or users to expect."""
    yield from ({"universe": users} for users in PEOPLE)
    yield from ({"expected": users} for users in PEOPLE)


SIZES: dict[str, tuple[Sizes, ...]] = {
    "distinct": (
        *combined(expected=(*PEOPLE, *RANGES), memory=(None, 1 << 12, 1 << 30)),
        *combined(deletions=("strict",), expected=RANGES),
        *combined(deletions=(True,), bound=(*BOUNDS, 1 << 22), signed=(False, True)),
        *combined(deletions=(True,), bound=(100, 100_000), expected=RANGES, memory=(1 << 30,)),
    ),
    "density": (*combined(universe=PEOPLE, cells=(None, 1_000)),),
    "incidence": (
        *(
            {"bound": bound, **users, **signs}
            for bound in BOUNDS
            for users in hashed_or_not()
            for signs in ({}, {"signed": True}, {"below": 5})
        ),
        *combined(bound=(30, 1_000), expected=RANGES),
    ),
    "cropped-sum": (
        *(
            {"tau": tau, "bound": tau * times, **users}
            for tau in (1, 10, 1_000, 60_000)
            for times in (1, 64, 1_000)
            for users in hashed_or_not()
        ),
        *combined(tau=(1, 10, 1_000), expected=RANGES),
    ),
    "threshold": (
        *combined(threshold=(2, 10, 100, 1_000, 100_000), universe=PEOPLE[1:], below=(None, 1, 50)),
        *combined(
            threshold=(2, 30, 500, 2_000),
            bound=(4_095, 2_000),
            universe=(1_000_000,),
            hard=(True,),
            below=(None, 0, 400),
        ),
        *combined(threshold=(10,), bound=(50, 10_000, 1_000_000), universe=PEOPLE),
    ),
    "heavy-hitters": (
        *combined(k=(1, 100, 100_000), total=(10**6, 10**9, 10**15), below=(None, 100)),
        *combined(k=(100,), total=(10**9,), independence=(4, 64), resolution=(None, 1, 1_000)),
    ),
    "moment": (*combined(order=(1, 2), bound=BOUNDS, signed=(None, True), memory=(None, 1 << 30)),),
    "inner-product": (*combined(bound=BOUNDS, signed=(None, True), memory=(None, 1 << 30)),),
    "running-count": (*combined(horizon=(None, *HORIZONS), bound=(1, 1_000_000)),),
    "running-distinct": (*combined(horizon=HORIZONS, expected=(*PEOPLE, *RANGES)),),
    "running-cropped-sum": (
        *(
            {"tau": tau, "horizon": horizon, "bound": 5, **users}
            for tau in (1, 1_000)
            for horizon in HORIZONS
            for users in hashed_or_not()
        ),
    ),
    "running-heavy-hitters": (
        *combined(k=(1, 100, 100_000), total=(10**6, 10**12), horizon=HORIZONS, bound=(1, 1_000)),
    ),
}

SPENT: tuple[Sizes, ...] = (
    *({"epsilon": epsilon} for epsilon in EPSILONS),
    {"epsilon": 1, "releases": 30},
    {"epsilon": 4, "intrusions": 1},
    {"epsilon": 16, "intrusions": 3},
    {"epsilon": 1, "error": 0.1},
    {"error": 0.1},
)


@functools.cache
def caches() -> list[Any]:
    """All caches of the package, once each kind was planned."""
    for kind, sizes in SIZES.items():
        pp.plan(kind, epsilon=1, **sizes[0])
    made = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]  # noqa: SLF001 - it has no other name
    return [one for one in made if (one.__module__ or "").startswith("panprivacy.")]


def seconds(kind: str, sizes: Sizes) -> float:
    """The time of the processor that a plan and its text take, or its refusal; caches are empty."""
    for one in caches():
        one.cache_clear()
    start = time.process_time()
    with suppress(pp.PlanError):
        str(pp.plan(kind, **sizes))
    return time.process_time() - start


def trials(kind: str) -> Iterator[Sizes]:
    """All sizes at epsilon 1, and each with three more ways to spend, which take turns."""
    ways = itertools.cycle(SPENT)
    for sizes in SIZES[kind]:
        yield {**sizes, "epsilon": 1}
        yield from ({**sizes, **spent} for spent in itertools.islice(ways, WAYS))


def seconds_twice(kind: str, sizes: Sizes) -> tuple[float, float]:
    """The time of one plan, and of the same plan in another process if it is slow."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CACHE_DIRECTORY"] = folder  # the first place where results are stored
        first = seconds(kind, sizes)
        return first, seconds(kind, sizes) if first > MOST_SECONDS else first


def slowest(kinds: list[str]) -> list[tuple[float, float, str, Sizes]]:
    """All plans, the slowest first; slow ones are made twice."""
    found = []
    for kind in kinds:
        for sizes in trials(kind):
            taken, again = seconds_twice(kind, sizes)
            if taken > MOST_SECONDS:
                taken, again = map(min, (taken, again), seconds_twice(kind, sizes))
                print(shown(taken, again, kind, sizes), flush=True)
            found.append((taken, again, kind, sizes))
    return sorted(found, key=lambda one: -one[0])


def shown(taken: float, again: float, kind: str, sizes: Sizes) -> str:
    """A line of the list."""
    named = ", ".join(f"{name}={value}" for name, value in sizes.items())
    stored = f" ({again:.2f} s stored)" if taken > MOST_SECONDS else ""
    return f"{taken:7.2f} s{stored}  {kind}: {named}"


def main(kinds: list[str]) -> int:
    """Print the slowest plans; whether one is too slow."""
    compile_kernels()
    found = slowest(kinds or list(SIZES))
    slow = sum(taken > MOST_SECONDS for taken, *_ in found)
    still = sum(again > MOST_SECONDS for _, again, *_ in found)
    print(f"{len(found):,} plans, {slow} of them take more than {MOST_SECONDS:g} s")
    print(f"{still} of them take as long where the results of searches are stored")
    for one in found[:SHOWN]:
        print(shown(*one))
    return int(still > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
