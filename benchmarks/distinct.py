"""`DistinctCount` beside the best of others, and beside the limit of its bits: `make accuracy`.

Measured with production coins and whole numbers as ids where our class counts; the other programs
are drawn by their exact laws. Writes docs/accuracy-distinct.md and its pictures, and exits with 1
when a number is outside of its limits. docs/laws.md proves the limits.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import panprivacy as pp
from benchmarks.counters import marked, table
from benchmarks.laws import filled
from benchmarks.limits import information, least, least_ever, least_over, limit
from benchmarks.sketches import BITS, Flipped, Loglog, flipped_model
from benchmarks.trials import ROOT, Trial, measure
from panprivacy.statistics.distinct.plan import DistinctPlan
from panprivacy.statistics.distinct.sizes import DistinctSizes
from panprivacy.tables.planning.bits import best_split
from panprivacy.tables.planning.request import Request

PAGE = ROOT / "docs" / "accuracy-distinct.md"
COMPARED, INFORMED = (ROOT / "docs" / f"{name}.png" for name in ("distinct", "information"))

MEMORY, RUNS, STANDARD_ERRORS = BITS // 8, 400, 5
TOLERANCE = STANDARD_ERRORS / math.sqrt(2 * RUNS)
"""So many standard errors of a root mean square, relative to it."""
WIDE = (10_000, 10_000_000)
USERS = (10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 3 * 10**6, 10**7)
SAME = 279_379
"""Where ranges are compared: as many users as on the page of accuracy."""
LOST = 0.2
"""What errs by more than this is not measured: few bits tell, and errors have a long tail."""
PUBLISHED_LEVELS = 24
"""The precision that Presto and Velox take unless told: 24 levels."""


# Those that are compared


class Laid(DistinctSizes, frozen=True, tag="distinct"):
    """All bits of 64 KiB, in levels that no planner chose."""

    levels: int = 1

    def plan(self, request: Request) -> DistinctPlan:
        """With the best split of epsilon for such levels."""
        cells = BITS // self.levels
        return DistinctPlan(WIDE, self.levels, cells, request, best_split(request, cells))


def laid(levels: int) -> pp.DistinctCount:
    """A count of so many levels, kept as ours are."""
    return pp.DistinctCount(Laid(expected=WIDE, memory=MEMORY, levels=levels), epsilon=1)


def planned(expected: int | tuple[int, int] = WIDE, memory: int = MEMORY) -> pp.DistinctCount:
    """A count as it is planned."""
    return pp.DistinctCount(expected=expected, memory=memory, epsilon=1)


OURS: dict[str, Any] = {
    "DistinctCount": planned,
    "SFM's layout, kept as ours": functools.partial(laid, PUBLISHED_LEVELS),
    "one bitmap, kept as ours": functools.partial(laid, 1),
}
"""Pan-private: the class that ships, with three layouts."""
THEIRS: dict[str, Flipped | Loglog] = {
    "SFM as published": Flipped(PUBLISHED_LEVELS),
    "HyperLogLog": Loglog(),
}
"""Private only when they leave: whoever sees the memory before that finds out who came."""
COLORS = dict(zip((*OURS, *THEIRS), ("k", "C0", "C2", "C1", "C3"), strict=True))

SIZES = (1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18)
"""Bytes of the tables of known size, with a user for each bit."""
RANGES = ((10**5, 10**6), (10**5, 10**7), (10**6, 10**7), (10**4, 10**7), (10**5, 10**9))
KNOWN = (10**3, 10**4, 10**5, SAME, 5 * 10**5, 10**6, 10**7)


def predicted(name: str, users: int) -> float:
    """The relative error that formulas say."""
    if name in THEIRS:
        return THEIRS[name].predicted(users)
    return relative(OURS[name]().plan, users)


def lost(name: str, users: int) -> bool:
    """Whether an error is beyond all formulas: there or at twice the number of users."""
    return max(predicted(name, users), predicted(name, 2 * users)) > LOST


def relative(plan: DistinctPlan, users: float) -> float:
    """The relative error that a plan predicts."""
    return float(plan.relative_errors(np.array([users]))[0])


def trial(make: Any, users: int) -> Trial:
    """Runs of our class on users 0, 1, 2, ..."""
    return Trial(make, "numbers", users, users, RUNS)


def known(memory: int) -> Trial:
    """Of a table that is planned for a user a bit."""
    return trial(functools.partial(planned, 8 * memory, memory), 8 * memory)


# The page


@dataclass(frozen=True)
class Measured:
    """A relative root-mean-square error, and the one that was predicted."""

    error: float
    expected: float

    @property
    def within(self) -> bool:
        """Whether one is near the other."""
        return abs(self.error / self.expected - 1) <= TOLERANCE


def measured() -> tuple[dict[tuple[str, int], Measured], dict[int, Measured], Measured]:
    """All that is run: ways by users, known sizes by memory, and SFM with the levels of ours."""
    ways = [(name, users) for name in (*OURS, *THEIRS) for users in (*USERS, SAME)]
    ways = [(name, users) for name, users in ways if not lost(name, users)]
    trials = {way: trial(functools.partial(OURS[way[0]]), way[1]) for way in ways if way[0] in OURS}
    tables = {memory: known(memory) for memory in SIZES}
    outcomes = measure([*trials.values(), *tables.values()])
    drawn: dict[Any, tuple[Flipped | Loglog, int]] = {
        way: (THEIRS[way[0]], way[1]) for way in ways if way[0] in THEIRS
    }
    drawn[None] = Flipped(planned().plan.levels), SAME
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        jobs = {key: pool.submit(draw_error, *one) for key, one in drawn.items()}
        others = {
            key: Measured(job.result(), drawn[key][0].predicted(drawn[key][1]))
            for key, job in jobs.items()
        }

    def ours(one: Trial) -> Measured:
        outcome = outcomes[one]
        return Measured(outcome.error / one.truth, outcome.deviation / one.truth)

    found = {way: ours(trials[way]) if way in trials else others[way] for way in ways}
    return found, {memory: ours(one) for memory, one in tables.items()}, others[None]


def draw_error(way: Flipped | Loglog, users: int) -> float:
    """The relative root-mean-square error over all runs."""
    errors = way.answers(users, RUNS) / users - 1
    return float(np.sqrt(np.mean(errors**2)))


def percent(share: float, digits: int = 3) -> str:
    return f"{100 * share:.{digits}f} %"


def shown(one: Measured, missed: list[str]) -> str:
    """Measured, with what was predicted."""
    return marked(f"{percent(one.error)} ({percent(one.expected)})", one.within, missed)


HEAD = """# Distinct users: beside the best, and beside the limit

For readers who ask how much better a count of distinct users could be. `make accuracy` measures this page again and
rewrites it, and fails if a number is outside of its limits. Coins come from the operating system, so another run changes
digits and nothing else.
"""

BESIDE = (
    "Relative root-mean-square error at epsilon 1 in 64 KiB (524,288 bits), by number of users; "
    "predicted errors in brackets. Memory may be seen at any time in the first three columns; the "
    "last two are private only when they leave: who sees their memory before finds the "
    f"users ([attacks](attacks.md)). Runs: {RUNS} each. Tolerance: measured over predicted is within "
    f"{TOLERANCE:.2f} of 1, {STANDARD_ERRORS} standard errors. Lost: errs by more than "
    f"{100 * LOST:.0f} %, at this number of users or at twice of it."
)
WAYS = f"""* **DistinctCount**, planned for 10^4 to 10^7 users: 9 levels of 58,254 bits. Real ids, the class that ships.
* **SFM's layout, kept as ours**: the bits of Sketch-Flip-Merge (Hehir, Ting, Cormode, ICML 2023), with the {PUBLISHED_LEVELS} levels that
  Presto and Velox take unless told. A user has one bit: a bucket of equal chance, and a level of chance 1/2, 1/4, ..., the last
  level the rest. These are our levels; only their number is another one. The same class redraws these bits and releases.
* **One bitmap, kept as ours**: linear counting with randomised response, all users in one level.
* **SFM as published**: its sketch holds true bits, and flips each with probability `1/(e**epsilon + 1)` once, when it leaves. All
  of epsilon goes to the bits, and no noise is added. The estimate is their composite likelihood. Here 21,845 buckets fill
  the memory; their programs take powers of two.
* **HyperLogLog**: 87,381 registers of 6 bits, with a fresh secret hash, after Dickens, Thaler and Ting (2022). Users are sampled
  with probability `1 - e**-epsilon`, and {Loglog().phantoms:,} phantoms are put in before. Who keeps all ids in memory needs none of
  this: Laplace noise on the exact count errs by 1.4 users at epsilon 1.
"""
READING = (
    "Of what may be seen, DistinctCount errs least from 100,000 users on, but for sizes that "
    "one bitmap happens to fit; the bitmap is lost from a few million users on. For 10,000 users "
    "the 24 levels are better: fewer of their bits stay idle. The HyperLogLog errs about half as "
    "much for very many users, and more for few, because of its phantoms: half of the error is the "
    "price of a memory that may be seen."
)
WHY_PRIVATE = """**Why the HyperLogLog is private when it leaves.** Let `s` be what its m registers hold, `p0` the probability of `s` without a
user, and `p1` that with them once they are sampled. Of N elements with independent hashes at most m matter: without any one of the
others `s` would be the same. Each element is as likely to matter as any other, so `p0 >= (1 - m/N) p1`, and N is more than the
number of phantoms. The user is sampled with probability `1 - e**-epsilon`, so with them `s` has the probability
`e**-epsilon p0 + (1 - e**-epsilon) p1`. That is at least `e**-epsilon p0`, and at most `e**epsilon p0` if there are
`m (1 + e**-epsilon) - 1` phantoms or more. All of it rests on a hash that nobody knows. ∎
"""


def beside_section(found: dict[tuple[str, int], Measured], missed: list[str]) -> str:
    """All ways over the number of users."""
    rows = []
    for users in USERS:
        cells = [found.get((name, users)) for name in COLORS]
        rows.append([f"{users:,}", *(shown(one, missed) if one else "lost" for one in cells)])
    return "\n".join(
        [
            "## Beside others\n",
            filled(BESIDE),
            f"\n{WAYS}\n![Relative error by number of users](distinct.png)\n",
            table(["users", *COLORS], rows),
            filled(READING),
            f"\n{WHY_PRIVATE}",
        ]
    )


def equal_section(
    found: dict[tuple[str, int], Measured], narrow: Measured, missed: list[str]
) -> str:
    """The layout of SFM with its own levels and with ours."""
    levels = planned().plan.levels
    layouts = {
        "DistinctCount": (levels, found["DistinctCount", SAME]),
        "SFM as published": (levels, narrow),
        "SFM as published, its own levels": (PUBLISHED_LEVELS, found["SFM as published", SAME]),
        "SFM's layout, kept as ours": (
            PUBLISHED_LEVELS,
            found["SFM's layout, kept as ours", SAME],
        ),
    }
    rows = [
        [name, f"{count}", f"{BITS // count:,}", shown(one, missed)]
        for name, (count, one) in layouts.items()
    ]
    more = layouts["DistinctCount"][1].expected / narrow.expected - 1
    text = (
        f"The same memory at {SAME:,} users. With as many levels SFM has the same bits. By the "
        f"formulas DistinctCount errs {100 * more:.0f} % more than SFM as published, which is what "
        "it pays for bits that may be seen before they leave. All the rest is the plan: a bit of a "
        f"level that is full or empty tells nothing, and {PUBLISHED_LEVELS} levels reach "
        f"{PUBLISHED_LEVELS - levels} octaves further than the {levels} that the expected range "
        f"needs. At equal error they take {PUBLISHED_LEVELS / levels:.1f} times the memory."
    )
    headings = ["layout", "levels", "bits a level", "measured (predicted)"]
    return f"## At equal ranges\n\n{filled(text)}\n\n{table(headings, rows)}"


BOUND = """A bit that n users meet with an average of `x` each (its load) tells about the logarithm of their number

    I(x) = x**2 / (e**(2 x)/(4 sinh(epsilon/2)**2) + e**x - 1)

in the sense of Fisher, and no cell of whatever size tells more if it only knows whether anybody came. [The
proofs](laws.md#what-bits-tell-of-a-number-of-users), with all that is assumed, turn that into four numbers:

* **most**, the largest `I`. Where users are many more than bits, no answer from m bits errs by less than about `1/sqrt(most m)`.
* **ever**: for a number of users that does not vary, what they share is known, and the error may be a little smaller.
  It is smallest at about one user a bit.
* **each**, the most that a user tells: in any memory the error is at least `sqrt((1/each - 1) n)` users.
* **area**, what a bit tells over all numbers of users: over a range of `W = ln(high/low)` no answer from m bits errs by less
  than about `sqrt(W/(area m))`, as the root of the mean square.
"""
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, math.inf)


def bound_row(epsilon: float) -> list[str]:
    """The limits at an epsilon."""
    best = limit(epsilon)
    contrast, empty = math.tanh(epsilon / 2), math.exp(-best.load)
    return [
        "none" if math.isinf(epsilon) else f"{epsilon:g}",
        f"{best.most:.4f}",
        f"{best.load:.2f}",
        f"{100 * (1 - empty):.0f} %",
        f"{100 * ((1 + contrast) / 2 - contrast * empty):.0f} %",
        percent(1 / math.sqrt(best.most * BITS)),
        percent(least_ever(BITS, epsilon)),
        f"{math.sqrt(1 / best.each - 1):.2f}",
        f"{best.area:.4f}",
    ]


def bound_section() -> str:
    """What bits can tell, by epsilon."""
    headings = ["epsilon", "most", "load", "cells met", "ones", "64 KiB, many users"]
    headings += ["64 KiB, ever", "in any memory, over `sqrt(n)`", "area"]
    parts = "## What bits can tell\n", BOUND, "![What bits tell](information.png)\n"
    return "\n".join([*parts, table(headings, [bound_row(one) for one in EPSILONS])])


def known_row(users: int) -> list[str]:
    """What a plan for a known number of users attains in 64 KiB."""
    plan = planned(users).plan
    in_full = flipped_model(plan.levels, plan.cells_per_level)
    error, layout = relative(plan, users), float(in_full.deviation(users)) / users
    best = least(users, BITS)
    return [
        f"{users:,}",
        f"{plan.levels}",
        f"{plan.table.nbytes:,}",
        percent(error),
        percent(best),
        f"{100 * (best / error) ** 2:.0f} %",
        f"{100 * (layout / error) ** 2:.0f} %",
        f"{100 * (best / layout) ** 2:.0f} %",
    ]


KNOWING = (
    "Plans of DistinctCount for one number of users, in at most 64 KiB at epsilon 1: the predicted "
    "error, the least possible one, and which share of the information the plan attains. That is "
    "the product of two shares: what is left after the release is paid and noised, and what is left "
    "by the layout. Up to a user a bit all of the loss is the release. Beyond, the plan adds "
    "levels to reach the number, and users cannot be left out: first levels are full and tell "
    "nothing."
)
SIZED = (
    f"The same in tables of all sizes, planned for a user a bit. Runs: {RUNS} each, real ids. "
    f"Tolerance: measured over predicted is within {TOLERANCE:.2f} of 1."
)


def known_section(sized: dict[int, Measured], missed: list[str]) -> str:
    """What plans attain for known numbers of users."""
    headings = ["users", "levels", "bytes", "predicted", "limit", "attained"]
    headings += ["after the release", "of the layout"]
    rows = [
        [
            f"{memory:,}",
            f"{8 * memory:,}",
            shown(one, missed),
            percent(least(8 * memory, 8 * memory)),
            f"{100 * (least(8 * memory, 8 * memory) / one.expected) ** 2:.0f} %",
        ]
        for memory, one in sized.items()
    ]
    columns = ["bytes", "users", "measured (predicted)", "limit", "attained"]
    return "\n".join(
        [
            f"## Attained: known sizes\n\n{filled(KNOWING)}\n",
            table(headings, [known_row(users) for users in KNOWN]),
            f"{filled(SIZED)}\n",
            table(columns, rows),
        ]
    )


def over(plan_errors: Any, low: float, high: float) -> float:
    """The root of the mean square of an error, over the logarithm of the number of users."""
    return math.sqrt(np.mean([plan_errors(users) ** 2 for users in np.geomspace(low, high, 200)]))


def range_row(expected: tuple[int, int]) -> list[str]:
    """What a plan for a range attains in 64 KiB."""
    plan = planned(expected).plan
    error = over(functools.partial(relative, plan), *expected)
    others = over(functools.partial(relative, laid(PUBLISHED_LEVELS).plan), *expected)
    return [
        *(f"{users:,}" for users in expected),
        f"{plan.levels}",
        f"{plan.table.nbytes:,}",
        percent(error),
        percent(others),
        percent(least_over(*expected, BITS)),
        percent(over(lambda users: least(users, BITS), *expected)),
    ]


RANGING = (
    "Plans for ranges, in at most 64 KiB at epsilon 1: the predicted error as the root of its mean "
    "square over the logarithm of the number of users, the same of SFM's layout kept as ours, and "
    "two limits, both of which hold: that of a range, and that of a known size at each place of it. "
    "Levels that halve lose nothing inside of their range: the sum of `I` over them is "
    "`area/ln 2` to a few parts in a thousand at epsilon 1, for all numbers of users. Plans err more than the limit because "
    "two or three levels stand beyond the ends of the range, the release costs its share, and plans "
    "weigh each number of users against its own best table, not against the mean."
)


def range_section() -> str:
    """What plans attain over ranges."""
    headings = ["from", "to", "levels", "bytes", "predicted", f"{PUBLISHED_LEVELS} levels"]
    headings += ["limit of the range", "limit if known"]
    rows = [range_row(expected) for expected in RANGES]
    return f"## Attained: ranges\n\n{filled(RANGING)}\n\n{table(headings, rows)}"


OPEN = """## What remains open

* **All pan-private programs.** The limits are for cells that only know whether anybody came, of which a user has one at
  most. Of all others only the order is known. Balcer, Cheu, Joseph and Mao ("Connecting robust shuffle privacy and
  pan-privacy", 2020) show that the additive error of approximate pan-privacy is of the order of `sqrt(k)` in a universe of k users, no
  less and no more. As far as it depends on k, only the constant is open. At epsilon 1 the limit of hashed cells in any memory is `2.3 sqrt(n)` for n users, and
  a plan for 10,000 errs by `2.5 sqrt(n)`. In a known universe of k users a `Density` errs by `0.96 sqrt(k)` before its release is
  noised, the [limit](laws.md#what-no-answer-can-beat) of unbiased answers from independent cells of one user each.
* **Memory.** Without privacy an error of a share needs of the order of `1/share**2` bits (Indyk and Woodruff, 2003). The best
  known sketch that merges errs by `sqrt(1.98/bits)` (Pettie and Wang, 2021), 0.194 % in 64 KiB. The limit of 0.403 % at
  epsilon 1 is 2.1 times that. Whether a pan-private program can come nearer is not known to us.
* **Several bits a user.** A user with two bits shares epsilon among them. The proofs do not cover that.
* **Our plans.** For known numbers of users above a user a bit, and for ranges that begin there, users should be left out by
  their hash before the first level. At 10^7 known users such a plan would err by about 0.41 %, not by 0.75 %.
"""


def draw(found: dict[tuple[str, int], Measured], sized: dict[int, Measured]) -> None:
    """Both pictures."""
    figure = Figure(figsize=(8.5, 5.5), layout="constrained", dpi=110)
    axis = figure.subplots()
    grid = np.unique(np.geomspace(USERS[0], USERS[-1], 80).astype(int))
    for name, color in COLORS.items():
        dashes = "-" if name in OURS else "-."
        label = name if name in OURS else f"{name}: private only when it leaves"
        lines = [predicted(name, int(users)) for users in grid]
        axis.plot(grid, lines, dashes, color=color, label=label)
        points = [(users, found[name, users].error) for users in USERS if (name, users) in found]
        axis.plot(*zip(*points, strict=True), "o", ms=5, color=color)
    axis.plot(grid, [least(users, BITS) for users in grid], "k:", label="limit of bits, size known")
    axis.set(xscale="log", yscale="log", xlabel="users", ylim=(2e-3, LOST))
    axis.set_ylabel("relative root-mean-square error")
    shares = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
    axis.set_yticks(shares, [f"{100 * share:g} %" for share in shares])
    axis.minorticks_off()
    axis.set_title("64 KiB, epsilon 1: lines predicted, points measured", fontsize=11)
    axis.legend(frameon=False, loc="upper center")
    figure.savefig(COMPARED)
    draw_information(sized)


def draw_information(sized: dict[int, Measured]) -> None:
    """What a bit tells over load and epsilon, and errors over memory."""
    figure = Figure(figsize=(13, 4.4), layout="constrained", dpi=100)
    by_load, by_epsilon, by_memory = figure.subplots(1, 3)
    loads = np.geomspace(0.02, 12, 300)
    for place, epsilon in enumerate(EPSILONS):
        best, color = limit(epsilon), f"C{place}"
        name = "no privacy" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        by_load.plot(loads, information(loads, epsilon), color=color, label=name)
        by_load.plot(best.load, best.most, "o", ms=4, color=color)
    by_load.set(xscale="log", yscale="log", ylim=(1e-4, 2), xlabel="load: users a bit")
    by_load.set(ylabel="information about ln(users)", title="What a bit tells, by load")
    by_load.legend(frameon=False, fontsize=8, loc="upper left")
    grid = np.geomspace(0.05, 16, 100)
    by_epsilon.plot(grid, [limit(float(one)).most for one in grid], "k", label="most of a bit")
    by_epsilon.plot(grid, (grid / math.e) ** 2, "k:", label="(epsilon/e)², for a small epsilon")
    top = limit(math.inf).most
    by_epsilon.axhline(top, color="C3", ls="--", label=f"{top:.3f}, without privacy")
    by_epsilon.plot(1, limit(1.0).most, "o", color="k")
    by_epsilon.annotate(f"{limit(1.0).most:.3f}", (1.15, 0.085))
    by_epsilon.set(xscale="log", yscale="log", ylim=(1e-4, 2), xlabel="epsilon")
    by_epsilon.set(title="At the best load")
    by_epsilon.set_xticks((0.1, 1, 10), ("0.1", "1", "10"))
    by_epsilon.legend(frameon=False, fontsize=8, loc="lower right")
    sizes = np.array(SIZES)
    by_memory.plot(sizes, [least(8 * one, 8 * one) for one in sizes], "k:", label="limit")
    lines = [one.expected for one in sized.values()]
    by_memory.plot(sizes, lines, color="C0", label="DistinctCount, predicted")
    points = [one.error for one in sized.values()]
    by_memory.plot(sizes, points, "o", ms=4, color="C0", label="measured")
    by_memory.set(xscale="log", yscale="log", xlabel="bytes, planned for a user a bit")
    by_memory.set(ylabel="relative root-mean-square error", title="Known sizes, epsilon 1")
    by_memory.set_xticks(
        sizes, ["64", "256", "1 Ki", "4 Ki", "16 Ki", "64 Ki", "256 Ki"], fontsize=9
    )
    shares = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
    by_memory.set_yticks(shares, [f"{100 * share:g} %" for share in shares])
    by_memory.minorticks_off()
    by_memory.set_xlim(SIZES[0] / 2, SIZES[-1] * 2)
    by_memory.legend(frameon=False, fontsize=8)
    figure.savefig(INFORMED)


def main() -> int:
    """Measure, write the page and the pictures, and say what is outside of its limits."""
    start, missed = time.monotonic(), []
    found, sized, narrow = measured()
    texts = [
        beside_section(found, missed),
        equal_section(found, narrow, missed),
        bound_section(),
        known_section(sized, missed),
        range_section(),
        OPEN,
    ]
    PAGE.write_text("\n".join([HEAD, *texts]))
    draw(found, sized)
    print(f"wrote {PAGE.name} in {time.monotonic() - start:.0f} s; missed: {missed or 'none'}")
    return min(len(missed), 1)


if __name__ == "__main__":
    sys.exit(main())
