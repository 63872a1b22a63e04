"""Set operations on published tables beside their prediction and their limit.

`python -m benchmarks.overlaps` writes docs/accuracy-overlaps.md, and exits with 1 when a number is
outside of its limits. Users are those of real streams or made up; the cells of users and the bits
are drawn by their exact laws.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.counters import marked, table
from benchmarks.trials import HIGGS, ROOT
from panprivacy.statistics.overlaps import weighing
from panprivacy.statistics.overlaps.intervals import SetQuery
from panprivacy.statistics.overlaps.many import union_of_many
from panprivacy.statistics.overlaps.occupancy import BitNoise, OccupancyModel
from panprivacy.statistics.overlaps.operations import count, return_rate, share
from panprivacy.statistics.overlaps.patterns import (
    BitTables,
    CellLayout,
    PatternCounts,
    members,
)
from panprivacy.statistics.overlaps.prediction import standard_error, two_windows
from panprivacy.statistics.release import Release
from panprivacy.tables.decoders.levels import level_shares

PAGE = ROOT / "docs" / "accuracy-overlaps.md"
FLIGHTS = ROOT / "../shared/data/nycflights13.parquet"
RUNS, STANDARD_ERRORS = 400, 5
CELLS_A_USER = 3
BY_CELLS = (0.5, 1, 1.5, 2, 3, 4, 8)
LARGE = 3_000_000
"""Cells of a table of 366 KiB."""
MOST_TIME = 0.005
HOUR, WEEK = 3_600, 7 * 86_400
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def noise_of(*epsilons: float) -> BitNoise:
    """Bits of tables of which each is seen once, with such an epsilon."""
    absent = tuple(1 / (1 + math.exp(epsilon)) for epsilon in epsilons)
    return BitNoise(absent, tuple(1 - one for one in absent))


def simulate(
    layout: CellLayout, noise: BitNoise, users: Sequence[int], random: np.random.Generator
) -> PatternCounts:
    """Draw the counts of tables by their exact law, for so many users of each pattern."""
    true = occupied(layout, users, random)
    law = _law_of_bits(noise)
    counts = np.stack([random.multinomial(level, law).sum(axis=0) for level in true])
    return PatternCounts(layout, counts, noise.absent, noise.present)


def occupied(layout: CellLayout, users: Sequence[int], random: np.random.Generator) -> Integers:
    """Draw how many cells of each level have users of just these tables; int64[levels, 2**k]."""
    cells = layout.cells_per_level
    if layout.universe is not None:
        everybody = np.array([layout.universe - sum(users[1:]), *users[1:]])
        return random.multivariate_hypergeometric(everybody, cells)[None]
    by_level = random.multinomial(np.array(users), level_shares(layout.levels))
    found = np.zeros((layout.levels, cells), np.uint16)
    for pattern in range(1, len(users)):
        for level, number in enumerate(by_level[pattern]):
            hit = np.zeros(cells, bool)
            hit[random.integers(0, cells, number)] = True
            found[level] |= hit * np.uint16(pattern)
    return np.stack([np.bincount(level, minlength=len(users)) for level in found])


def _law_of_bits(noise: BitNoise) -> Floats:
    """The probability of each pattern of bits in a cell of each true pattern; rows are cells."""
    law = np.ones((1, 1))
    for absent, present in zip(noise.absent, noise.present, strict=True):
        law = np.kron([[1 - absent, absent], [1 - present, present]], law)
    return law


@dataclass(frozen=True)
class Case:
    """Something that is asked of tables, many times.

    Args:
        name: of the line.
        layout: cells of the tables.
        noise: of their bits.
        users: of each pattern.
        part: set of patterns that is counted.
        whole: set of which it is a share; None for a number of users.
    """

    name: str
    layout: CellLayout
    noise: BitNoise
    users: tuple[int, ...]
    part: tuple[bool, ...]
    whole: tuple[bool, ...] | None = None

    @property
    def query(self) -> SetQuery:
        """The same as weights."""
        whole = None if self.whole is None else np.array(self.whole, float)
        return SetQuery(np.array(self.part, float), whole)

    @property
    def truth(self) -> float:
        """The true answer."""
        number = float(np.dot(self.users, self.part))
        return number if self.whole is None else number / float(np.dot(self.users, self.whole))

    @property
    def predicted(self) -> float:
        """The predicted standard error."""
        return standard_error(self.layout, self.noise, np.array(self.users, float), self.query)

    def answer(self, random: np.random.Generator) -> Release:
        """Draw tables, and read them."""
        observed = simulate(self.layout, self.noise, self.users, random)
        if self.whole is None:
            return count(observed, np.array(self.part))
        return share(observed, np.array(self.part), np.array(self.whole))

    def answers(self, runs: int, random: np.random.Generator) -> list[Release]:
        """Do so many times."""
        return [self.answer(random) for _ in range(runs)]


def returning(
    name: str, users: Sequence[float], epsilon: float, layout: CellLayout | None = None
) -> Case:
    """The return rate of two windows of so many users of each pattern."""
    counted = tuple(round(one) for one in users)
    first, second = members(2)
    cells = CELLS_A_USER * max(counted[1] + counted[3], counted[2] + counted[3])
    chosen = tuple((first & second).tolist()), tuple(first.tolist())
    return Case(name, layout or CellLayout(cells), noise_of(epsilon, epsilon), counted, *chosen)


def windows_of(path: os.PathLike[str], column: str, length: int) -> list[set[object]]:
    """The users of each window of a stream."""
    rows = pq.read_table(path, columns=["ts", column]).drop_null()
    numbers = np.asarray(rows["ts"]) // length
    users = np.asarray(rows[column].combine_chunks().dictionary_encode().indices)
    return [set(users[numbers == one].tolist()) for one in np.unique(numbers)]


def stream_cases() -> Iterator[Case]:
    """Neighbouring windows of two streams: three pairs of hours, and three of weeks."""
    for name, path, column, length, least, epsilon in (
        ("higgs, hours", HIGGS, "user", HOUR, 2_000, 1),
        ("flights, weeks", FLIGHTS, "tailnum", WEEK, 1_000, 2),
    ):
        windows = windows_of(path, column, length)
        pairs = [
            (number, first, second)
            for number, (first, second) in enumerate(itertools.pairwise(windows))
            if min(len(first), len(second)) >= least
        ]
        for number, first, second in pairs[:: max(len(pairs) // 3, 1)][:3]:
            both = len(first & second)
            users = (0, len(first) - both, len(second) - both, both)
            yield returning(f"{name} {number} and {number + 1}", users, epsilon)


def made_up_cases() -> Iterator[Case]:
    """Windows of 1,000 to 1,000,000 users, hashed cells; and tables with levels."""
    for number, part in ((1_000, 0.5), (10_000, 0.3), (100_000, 0.5), (1_000_000, 0.5)):
        users = two_windows(number, number, part)
        yield returning(f"{number:,} users", users, 1)
    wide = CellLayout(16_384, levels=8)
    for number in (1_000, 10_000, 100_000, 1_000_000):
        yield returning(f"{number:,} users, levels", two_windows(number, number, 0.5), 1, wide)


def accuracy_rows(cases: Iterator[Case], missed: list[str]) -> list[list[str]]:
    """Predicted errors beside measured ones, and how often intervals hold the truth."""
    random, rows = np.random.default_rng(), []
    for case in cases:
        runs = RUNS if max(case.users) < 100_000 else RUNS // 4
        answers = case.answers(runs, random)
        errors = np.array([one.estimate for one in answers]) - case.truth
        held = np.mean([one.low <= case.truth <= one.high for one in answers])
        measured, predicted = float(np.sqrt((errors**2).mean())), case.predicted
        tolerance = STANDARD_ERRORS / math.sqrt(2 * runs)
        near = abs(measured / predicted - 1) < tolerance + predicted  # of ratios, to first order
        least = 0.95 - STANDARD_ERRORS * math.sqrt(0.95 * 0.05 / runs)
        bytes_of_table = -(-case.layout.cells // 8)
        rows.append(
            [
                case.name,
                f"{case.users[1] + case.users[3]:,}",
                f"{case.users[2] + case.users[3]:,}",
                f"{bytes_of_table / 1024:,.1f} KiB",
                f"{100 * case.truth:.1f} %",
                f"{196 * predicted:.2f}",
                marked(f"{196 * measured:.2f}", near, missed),
                marked(f"{100 * held:.1f} %", held >= least, missed),
            ]
        )
    return rows


def limit_rows(missed: list[str]) -> list[list[str]]:
    """What the weights of levels lose beside the limit of Cramer and Rao."""
    rows = []
    for epsilon in (1, 2):
        for tables in (2, 3):
            model = OccupancyModel(CellLayout(16_384, levels=8), noise_of(*[epsilon] * tables))
            for number in (10_000, 100_000, 1_000_000):
                users = np.zeros(1 << tables)
                users[1 << np.arange(tables)] = users[-1] = number / 2
                losses = _losses(model, users, members(tables).all(axis=0).astype(float))
                shown = [f"{100 * loss:.1f} %" for loss in losses]
                shown[0] = marked(shown[0], losses[0] < 0.001, missed)
                rows.append([str(epsilon), str(tables), f"{number:,}", *shown])
    return rows


def _losses(model: OccupancyModel, users: Floats, chosen: Floats) -> tuple[float, float, float]:
    """The excess of the error over the limit: joint weights, one a level, one a level and union."""
    fixed = float(model.fixed(users, chosen))
    least = math.sqrt(_limit(model, users, chosen) - fixed)
    jointly = weighing.weigh(model, users, chosen).variance - fixed
    alone = weighing.alone(model, users, chosen).variance - fixed
    separate = _separate_variance(model, users, chosen) - fixed
    jointly, alone, separate = (math.sqrt(one) / least - 1 for one in (jointly, alone, separate))
    return jointly, alone, separate


def _limit(model: OccupancyModel, users: Floats, chosen: Floats) -> float:
    """The limit of Cramer and Rao, by differences of the law of patterns."""
    step, sets = 1e-3 * users.max(), len(users)
    base = model.noise.law(model.empty(model.unions(users)))
    moves = [
        model.noise.law(model.empty(model.unions(users + sign * step * np.eye(sets)[s])))
        for s in range(1, sets)
        for sign in (1, -1)
    ]
    slopes = (np.array(moves[::2]) - moves[1::2]) / (2 * step)
    information = model.layout.cells_per_level * np.einsum("alx,blx->ab", slopes / base, slopes)
    return float(chosen[1:] @ np.linalg.solve(information, chosen[1:]))


def _separate_variance(model: OccupancyModel, users: Floats, chosen: Floats) -> float:
    """The variance where the levels of each union have weights of their own."""
    unions = model.unions(users)
    empty = model.empty(unions)
    slopes, law = model.slopes(empty), model.noise.law(empty)
    influence = np.zeros_like(law)
    for one, weight in zip(np.eye(len(users))[1:], model.weights(chosen)[1:], strict=True):
        number = int(one.argmax())
        product = model.noise.influence(one)
        spread = (law * product**2).sum(axis=-1) - (law * product).sum(axis=-1) ** 2
        information = slopes[:, number] ** 2 / spread
        steps = information / information.sum() / slopes[:, number]
        influence += weight * steps[:, None] * product
    spread = (law * influence**2).sum(axis=-1) - (law * influence).sum(axis=-1) ** 2
    return float(spread.sum() / model.layout.cells_per_level)


def cell_rows() -> list[list[str]]:
    """Predicted errors of a return rate by the number of cells."""
    users, rows = two_windows(10_000, 10_000, 0.3), []
    for epsilon in (0.5, 1, 2, 4):
        cases = [
            returning("", users, epsilon, CellLayout(round(10_000 * cells))) for cells in BY_CELLS
        ]
        rows.append([f"{epsilon:g}", *(f"{196 * case.predicted:.1f}" for case in cases)])
    return rows


def union_rows(missed: list[str]) -> list[list[str]]:
    """Unions of many tables of 30,000 cells and 10,000 users, who come to each at random."""
    random, rows, runs = np.random.default_rng(), [], RUNS // 4
    for tables, epsilon, often in ((8, 1, 0.3), (20, 2, 0.1), (52, 4, 0.05), (30, 1, 0.1)):
        noise = noise_of(*[epsilon] * tables)
        united = [_united(random, noise, often) for _ in range(runs)]
        held = np.mean([one.low <= truth <= one.high for truth, one in united])
        endless = np.mean([math.isinf(one.high) for _, one in united])
        truth = float(np.mean([truth for truth, _ in united]))
        errors = [one.estimate - true for true, one in united]
        measured = float(np.sqrt(np.mean(np.square(errors)))) / truth
        least = 0.95 - STANDARD_ERRORS * math.sqrt(0.95 * 0.05 / runs)
        rows.append(
            [
                str(tables),
                str(epsilon),
                f"{truth:,.0f}",
                "none" if endless > 0.5 else f"±{196 * measured:.1f} %",
                f"{100 * endless:.0f} %",
                marked(f"{100 * held:.0f} %", held >= least, missed),
            ]
        )
    return rows


def _united(random: np.random.Generator, noise: BitNoise, often: float) -> tuple[int, Release]:
    """The truth and the answer of a union."""
    tables, users, cells = len(noise.absent), 10_000, 30_000
    came = random.random((tables, users)) < often
    slots, full = random.integers(0, cells, users), np.zeros((tables, cells), bool)
    for one, present in zip(full, came, strict=True):
        one[slots[present]] = True
    odds = np.where(full, noise.present[0], noise.absent[0])
    bits = (random.random(odds.shape) < odds).astype(np.uint8)
    read = BitTables.of_bits(CellLayout(cells), bits, noise.absent, noise.present)
    return int(came.any(axis=0).sum()), union_of_many(read)


def time_rows(missed: list[str]) -> list[list[str]]:
    """The time to count two tables of 366 KiB, and to answer."""
    random = np.random.default_rng()
    stored = random.bytes(2 * LARGE // 8)
    noise = noise_of(1, 1)

    def opened() -> BitTables:
        packed = np.frombuffer(stored, np.uint8).reshape(2, -1)
        return BitTables(CellLayout(LARGE), packed, noise.absent, noise.present)

    observed = opened().patterns()
    rows = []
    for name, run in (
        ("count the cells of each pattern", lambda: opened().patterns()),
        ("the return rate and its interval", lambda: return_rate(observed)),
        ("both", lambda: return_rate(opened().patterns())),
    ):
        taken = _quickest(run)
        rows.append([name, marked(f"{1000 * taken:.1f} ms", taken < MOST_TIME, missed)])
    return rows


def _quickest(run: Callable[[], object], times: int = 50) -> float:
    """The least time that it takes."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


HEAD = """# Overlaps of published tables

What set operations on published tables err by, beside the prediction and beside the limit. For
whoever plans a cohort. [Why the answers are right](overlaps-decoding.md) is on another page.
`python -m benchmarks.overlaps` writes this one. Users come from real streams or are made up; their
cells and the bits are drawn by their exact laws. Each table is published once, and its state is
seen at no other time.

"""

ACCURACY = """## Return rates

The answers are the share of the users of a window who are in the next one too. Errors are in
points: half a 95 % interval as predicted, and 1.96 times the measured root-mean-square error.
Hashed tables have {cells} cells for each user of the larger window; those with levels have 8 levels
of 16,384 cells. Epsilon is 1, and 2 for the few aircraft of flights. A measured number that is more
than five of its standard errors off is marked, with room for what a prediction leaves out: it is of
first order, and a rate that is hardly told errs by more.

"""

LIMIT = """
## Weights of levels

These are the standard errors of an intersection beyond the limit of Cramer and Rao. There are 8
levels of 16,384 cells; half of the users of a table are in all tables, and half in no other one.
*Joint* weights are matrices for all unions together; they are taken for up to {joint} tables. *One
a level* is taken for more tables. *One a level and union* combines each union by itself, as a count
of one table does; it is not taken. One level of cells has nothing to weigh: moments reach the
limit.

"""

CELLS = """
## Cells a user

Half a predicted 95 % interval of a return rate of 30 % of 10,000 users, in points, by the number of
hashed cells for each user. More cells have more noise, and fewer have more collisions.

"""

MANY = """
## Unions of many tables

Tables have 30,000 cells. Each of 10,000 users comes to each table with the same probability. The
error is 1.96 times the root mean square, relative to the union. Where most intervals have no end,
there is no answer.

"""

TIME = """
## Time

Two tables of 366 KiB on one core, the quickest of 50 times.

"""


def page(missed: list[str]) -> str:
    """The page, with all measurements."""
    accuracy = ["windows", "first", "second", "a table", "return", "predicted", "measured"]
    many = ["tables", "epsilon", "union", "error", "no end"]
    limit = ["epsilon", "tables", "users of a table", "joint", "one a level"]
    parts = [
        HEAD,
        ACCURACY.format(cells=CELLS_A_USER),
        table([*accuracy, "intervals that hold"], accuracy_rows(all_cases(), missed)),
        LIMIT.format(joint=weighing.MOST_JOINT),
        table([*limit, "one a level and union"], limit_rows(missed)),
        CELLS,
        table(["epsilon", *(f"{cells:g}" for cells in BY_CELLS)], cell_rows()),
        MANY,
        table([*many, "intervals that hold"], union_rows(missed)),
        TIME,
        table(["what", "time"], time_rows(missed)),
    ]
    return "".join(parts)


def all_cases() -> Iterator[Case]:
    """Those that are made up, and those of streams."""
    yield from made_up_cases()
    yield from stream_cases()


def main() -> None:
    """Measure, and write the page."""
    missed: list[str] = []
    PAGE.write_text(page(missed))
    sys.exit(f"outside of their limits: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
